# SPDX-License-Identifier: Apache-2.0
"""The text that ``sfumato init`` writes is TOML, whatever the columns are called."""

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli import init_toml
from sfumato.cli.init_keys import Keys
from sfumato.cli.init_sources import Columns
from sfumato.cli.init_toml import TableDraft, config_text, literal
from sfumato.config.load import BUDGET
from sfumato.config.table import COLUMNS, UNIT

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1)


def parsed(draft: TableDraft) -> dict[str, object]:
    keys = Keys.of({draft.name: list(draft.columns.known)})
    return tomllib.loads(config_text("d", [draft], keys))


@given(NAMES, NAMES)
def test_every_name_can_be_declared(table: str, column: str) -> None:
    columns = Columns({column: {"type": "integer"}})
    draft = TableDraft(table, "people.csv", columns, {column: {"type": "integer", "lower": 0}})
    declared = parsed(draft)["tables"][table]["columns"][column]  # type: ignore[index]
    assert declared == {"type": "integer", "lower": 0, "upper": "?"}


@given(st.lists(NAMES), st.dictionaries(NAMES, NAMES))
def test_literals_are_read_back(values: list[str], labels: dict[str, str]) -> None:
    form = tomllib.loads(f"a = {literal(values)}\nb = {literal(labels)}")
    assert form == {"a": values, "b": labels}


def test_each_type_has_its_places() -> None:
    kinds = {"integer", "real", "date", "timestamp", "category", "boolean", "text"}
    columns = Columns({kind: {"type": kind} for kind in kinds} | {"unknown": {}})
    declared = parsed(TableDraft("people", "people.csv", columns))["tables"]["people"]["columns"]  # type: ignore[index]
    bounded = {kind for kind, form in declared.items() if form.get("lower") == "?"}
    assert bounded == {"integer", "real", "date", "timestamp"}
    assert (declared["category"]["values"], declared["unknown"]) == ("?", {"type": "?"})
    assert declared["boolean"] == {"type": "boolean"}


def test_what_the_owner_says_of_the_unit_is_written() -> None:
    columns = Columns({"id": {}, "age": {"type": "integer"}})
    unit = {"column": "id", "max_rows": "auto", "max_groups": 3}
    form = parsed(TableDraft("people", "people.csv", columns, unit=unit))
    assert form["tables"]["people"]["unit"] == unit  # type: ignore[index]
    form = parsed(TableDraft("people", "people.csv", columns, unit={}))
    assert "unit" not in form["tables"]["people"]  # type: ignore[index]


def test_the_lines_to_fill_are_those_of_the_declared_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = TableDraft("people", "people.csv", Columns({"age": {"type": "integer"}}))
    keys = Keys.of({"people": ["age"]})
    before = config_text("d", [draft], keys)
    epsilon, *others = BUDGET
    assert f'[budget]\nepsilon = "?"  # {epsilon.help}\n' in before
    for key in others:
        assert f"\n# {key.line}  # {key.help}\n" in before
    for key in (*COLUMNS["integer"][:2], *UNIT[:3]):
        assert f'\n{key.name} = "?"  # {key.help}\n' in before
    renamed = replace(epsilon, name="eps", help="another word")
    monkeypatch.setattr(init_toml, "BUDGET", (renamed, *others))
    assert '[budget]\neps = "?"  # another word\n' in config_text("d", [draft], keys)


@pytest.mark.parametrize(("encoding", "is_marked"), [("cp1251", True), ("utf-16", False)])
def test_an_encoding_that_names_were_read_in_is_marked_as_a_guess(
    encoding: str, *, is_marked: bool
) -> None:
    columns = Columns({"x": {}}, options={"encoding": encoding})
    draft = TableDraft("people", "people.csv", columns)
    text = config_text("d", [draft], Keys.of({"people": ["x"]}))
    (line,) = (line for line in text.splitlines() if line.startswith("encoding"))
    assert ("a guess" in line) is is_marked
    assert parsed(draft)["tables"]["people"]["encoding"] == encoding  # type: ignore[index]


def test_the_form_of_a_date_leaves_two_formats_and_nested_columns_are_named() -> None:
    columns = Columns(
        {"born": {}}, {"born": {"type": "date", "format": "%d.%m.%Y"}}, nested=["who"]
    )
    text = config_text("d", [TableDraft("t", "t.csv", columns)], Keys.of({"t": ["born"]}))
    assert 'format = "?"  # "%d.%m.%Y" or "%m.%d.%Y": which comes first' in text
    assert '# "who": nested values, which no type reads' in text
    assert "columns.who" not in text

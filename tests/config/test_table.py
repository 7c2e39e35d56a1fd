# SPDX-License-Identifier: Apache-2.0
"""Columns of a file: every key with any value is a column or a refusal with its place; the
declarations themselves are in test_load.
"""

import inspect
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.config.section import REQUIRED
from sfumato.config.table import _TYPES, COLUMNS, EDGE, NODE, TABLE, UNIT, read_column, read_table
from sfumato.errors import InvalidConfig
from sfumato.metadata.column import Category
from sfumato.metadata.table import Table
from sfumato.privacy.unit import Edge, Node, Unit

CONSTRUCTORS = {**_TYPES, "category": Category}
# What TOML can say.
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_keys_of_a_type_are_the_arguments_of_its_class(kind: str) -> None:
    arguments = inspect.signature(CONSTRUCTORS[kind]).parameters  # type: ignore[arg-type]
    assert {key.name for key in COLUMNS[kind]} == arguments.keys()
    needed = {name for name, each in arguments.items() if each.default is each.empty}
    assert {key.name for key in COLUMNS[kind] if key.default is REQUIRED} == needed


def test_the_keys_of_tables_and_units_are_the_arguments_of_their_classes() -> None:
    assert {key.name for key in TABLE} == inspect.signature(Table).parameters.keys()
    assert {key.name for key in UNIT} == inspect.signature(Unit).parameters.keys()


@given(st.data())
def test_any_value_gives_a_column_or_a_refusal_with_its_place(data: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(COLUMNS)))
    form = {key.name: data.draw(VALUES) for key in COLUMNS[kind] if data.draw(st.booleans())}
    try:
        column = read_column({"type": kind, **form}, "tables.t.columns.c")
    except InvalidConfig as refused:
        assert refused.problem.startswith("tables.t.columns.c")
    else:
        assert isinstance(column, CONSTRUCTORS[kind])  # type: ignore[arg-type]


@given(st.data())
def test_any_value_gives_a_table_or_a_refusal_with_its_place(data: Any) -> None:
    unit = {key.name: data.draw(VALUES) for key in UNIT if data.draw(st.booleans())}
    form = {key.name: data.draw(VALUES) for key in TABLE if data.draw(st.booleans())}
    try:
        table = read_table({"unit": unit, "source": "a.csv", **form}, "tables.t", Path())
    except InvalidConfig as refused:
        assert refused.problem.startswith("tables.t")
    else:
        assert isinstance(table, Table)


def test_an_unknown_type_names_the_near_one() -> None:
    with pytest.raises(InvalidConfig, match="type = 'integr'") as refused:
        read_column({"type": "integr"}, "tables.t.columns.c")
    assert refused.value.remedy == "Did you mean integer?"


def test_edges_and_nodes_are_units_of_a_file() -> None:
    def unit(form: object) -> object:
        return read_table({"source": "a.csv", "unit": form}, "tables.t", Path()).unit

    assert unit({"edge": ["a", "b"]}) == Edge("a", "b")
    assert unit({"edge": ["a", "b"], "name": "tie"}) == Edge("a", "b", name="tie")
    assert unit({"node": ["a", "b"], "of": "people"}) == Node("a", "b", of="people")
    for wrong in (
        {"edge": "a"},
        {"edge": ["a"]},
        {"edge": ["a", "a"]},
        {"edge": ["a", 3]},
        {"edge": ["a", "b"], "max_rows": 1},
        {"node": ["a", "b"]},
        {"node": ["a", "a"], "of": "people"},
        {"node": ["a", "b"], "of": 3},
    ):
        with pytest.raises(InvalidConfig, match=r"tables\.t\.unit"):
            unit(wrong)


def test_the_keys_of_edges_and_nodes_are_the_arguments_of_their_classes() -> None:
    for keys, made in ((EDGE, Edge), (NODE, Node)):
        arguments = set(inspect.signature(made).parameters) - {"first", "second"}
        assert {key.name for key in keys} - {"edge", "node"} == arguments


def test_tokens_read_their_words_from_files_beside_the_declaration(tmp_path):
    (tmp_path / "words.txt").write_text("眼睛\r\n\r\n 头痛 \r\n", encoding="gb18030")
    form = {"type": "text", "tokens": {"stop": ["the"], "dictionary": "words.txt", "most": 5}}
    column = read_column(form, "tables.t.columns.c", tmp_path)
    assert column == sf.Text(tokens=sf.Tokens(["the"], ["眼睛", "头痛"], most=5))
    for wrong in ("absent.txt", ["ab"], 7):
        form["tokens"]["dictionary"] = wrong
        with pytest.raises(InvalidConfig, match=r"tables\.t\.columns\.c\.tokens"):
            read_column(form, "tables.t.columns.c", tmp_path)

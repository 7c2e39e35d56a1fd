# SPDX-License-Identifier: Apache-2.0
"""``sfumato init``, driven as a stranger would: from files to a first table."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.init_keys import Keys
from sfumato.cli.init_sources import columns_of
from sfumato.cli.init_toml import TableDraft, config_text
from tests.contracts.shell import Shell

BOOK = """\
列,取值
年龄,0..120
性别,1=男;2=女
收入,0..1000000
"""
ROWS = "\n".join(["年龄,性别,收入", *(f"{20 + n % 60},{1 + n % 2},{n * 7}" for n in range(200))])


@pytest.fixture
def empty(shell: Shell) -> Shell:
    """A folder without declarations."""
    for path in shell.folder.iterdir():
        path.unlink()
    return shell


def test_a_file_in_gbk_is_a_published_table_after_four_commands(empty: Shell) -> None:
    (empty.folder / "人口.csv").write_bytes(ROWS.encode("gbk"))
    empty.write("book.csv", BOOK)
    ran = empty.run("init", "人口.csv", "--codebook", "book.csv", "--dataset", "census")
    assert (ran.code, "人口: 3 columns" in ran.out) == (0, True)
    refused = empty.run("check")
    assert (refused.code, refused.err.splitlines()[:3]) == (
        2,
        ["InvalidConfig: 4 places are still open:", "  budget: epsilon",
         "  tables.人口.unit: column, max_rows, max_groups"],
    )  # fmt: skip
    # the one edit: each row is another person
    path = empty.folder / "sfumato.toml"
    text = re.sub(r"\[tables[^\n]*unit\]\n.*?\n\n", "", path.read_text("utf-8"), flags=re.DOTALL)
    path.write_text(text.replace('epsilon = "?"', 'epsilon = "2"'), encoding="utf-8")
    assert "收入: Integer(0, 1000000)" in empty.run("check").out
    sql = "SELECT 性别, AVG(年龄) AS mean_age FROM 人口 GROUP BY 性别"
    ran = empty.run("query", sql, "--epsilon", "1", "--format", "csv", "--output", "table.csv")
    header, *rows = (empty.folder / "table.csv").read_text("utf-8").splitlines()
    assert (ran.code, header) == (0, "性别,mean_age,mean_age_low,mean_age_high")
    assert [row.split(",")[0] for row in rows] == ["男", "女"]


def test_a_guess_is_a_comment_and_confirmed_by_removing_two_signs(empty: Shell) -> None:
    empty.write("people.csv", "age\n30\n31\n")
    empty.run("init", "people.csv")
    path = empty.folder / "sfumato.toml"
    text = path.read_text("utf-8").replace('epsilon = "?"', 'epsilon = "1"')
    text = text.replace('lower = "?"', "lower = 0").replace('upper = "?"', "upper = 120")
    text = re.sub(r"\[tables.people.unit\]\n.*?\n\n", "", text, flags=re.DOTALL)
    path.write_text(text, encoding="utf-8")
    assert empty.run("check").err.splitlines()[1] == "  tables.people.columns.age: type"
    path.write_text(text.replace("# type =", "type ="), encoding="utf-8")
    assert "age: Integer(0, 120)" in empty.run("check").out


def test_three_tables_share_their_keys(empty: Shell) -> None:
    empty.write("patients.csv", "patient_id,sex\n1,F\n")
    empty.write("visits.csv", "visit_id;patient_id;ward\n1;1;A\n")
    empty.write("drugs.csv", "visit_id,dose\n1,3\n")
    assert empty.run("init", ".").code == 0
    text = (empty.folder / "sfumato.toml").read_text("utf-8")
    assert "#   patient_id: patients, visits\n#   visit_id: drugs, visits\n" in text
    assert '# column = "visit_id"' in text
    assert '# via = "visits.patient_id"' in text
    text = re.sub(r'^# ((column|via|type) = "[a-z_.]+").*', r"\1", text, flags=re.MULTILINE)
    text = text.replace('epsilon = "?"', 'epsilon = "1"').replace('_rows = "?"', "_rows = 2")
    text = text.replace('groups = "?"', "groups = 3").replace('values = "?"', 'values = ["A"]')
    text = text.replace('lower = "?"', "lower = 0").replace('upper = "?"', "upper = 9")
    (empty.folder / "sfumato.toml").write_text(text, encoding="utf-8")
    ran = empty.run("check")
    assert (ran.code, ran.err) == (0, "")
    assert "unit: Unit('visit_id', via='visits.patient_id', max_rows=2" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("people.csv", "--output", "sfumato.toml"), "exists"),
        (("people.csv", "people.csv", "--output", "new.toml"), "would be the table 'people'"),
        (("nobody.csv", "--output", "new.toml"), "cannot be read"),
        (("people.csv", "--codebook", "book.pdf", "--output", "new.toml"), ".json, .xml, .csv"),
        (("people.csv", "--output", "nowhere/new.toml"), "No folder"),
        (("postgresql://ann:secret@db/clinic", "--output", "new.toml"), "PGPASSWORD"),
        ((), "Missing argument"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    shell: Shell, arguments: tuple[str, ...], said: str
) -> None:
    before = (shell.folder / "sfumato.toml").read_bytes()
    ran = shell.run("init", *arguments)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert "secret" not in ran.err
    assert (shell.folder / "sfumato.toml").read_bytes() == before
    assert not (shell.folder / "new.toml").exists()


@given(st.lists(st.tuples(st.integers(1, 10**9), st.sampled_from("FM")), min_size=1))
def test_no_value_of_the_data_is_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str]]
) -> None:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    texts = []
    for some in (rows, [(7, "F")]):
        lines = "\n".join(["n,sex", *(f"{n},{sex}" for n, sex in some)])
        path.write_text(f"{lines}\n", encoding="utf-8")
        columns = columns_of(str(path))
        keys = Keys.of({"people": list(columns.known)})
        texts.append(config_text("d", [TableDraft("people", "people.csv", columns)], keys))
    assert texts[0] == texts[1]


def test_interactive_asks_and_says_what_it_means_for_the_noise(
    empty: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.write("people.csv", "age,sex,born\n30,F,31/12/1990\n")
    said = iter(["2", "integer", "17", "90", "category", "F, M", "date", "%d/%m/%Y",
                 "1900-01-01", "2026-12-31"])  # fmt: skip
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(said))
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    ran = empty.run("init", "people.csv", "--interactive")
    assert "age: its mean over 1,000 rows at epsilon 0.1 is within +- 2.19" in ran.out
    assert "sex: a count in each of 2 groups at epsilon 0.1 is within +- 30" in ran.out
    ran = empty.run("check")
    assert ran.code == 0
    for piece in ("Integer(17, 90)", "Category('F', 'M')", "format='%d/%m/%Y'", "epsilon=2"):
        assert piece in ran.out
    assert list(Path.cwd().glob("*.toml")) == [empty.folder / "sfumato.toml"]

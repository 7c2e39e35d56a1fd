# SPDX-License-Identifier: Apache-2.0
"""``sfumato check``: whether the declarations fit; it makes and charges nothing."""

import json
import sqlite3
from contextlib import closing

import pytest

from sfumato.cli.main import run
from sfumato.ledger import Ledger, verify
from tests.contracts.shell import COUNT, Shell


def test_it_lists_the_declarations_and_makes_no_ledger(shell: Shell) -> None:
    before = sorted(shell.folder.iterdir())
    ran = shell.run("check")
    assert ran.code == 0
    for piece in (
        "table people:",
        "unit: each row is one unit",
        "age: Integer(0, 99)",
        "neighbours: add-remove",
        "will be made on first use with Budget(epsilon=1000000, delta=0.000001)",
    ):
        assert piece in ran.out
    assert sorted(shell.folder.iterdir()) == before


def test_models_and_synthetic_fits_are_read_too(shell: Shell) -> None:
    path = shell.folder / "sfumato.toml"
    text = path.read_text(encoding="utf-8")
    good = (
        '[models.old]\nrecipe = "DecisionTree"\ndata = "SELECT age, sex FROM people"\n'
        'label = "sex"\nepsilon = 1\ndepth = 3\n[synthetic.rows]\ntable = "people"\nrho = 1\n'
    )
    path.write_text(text + good, encoding="utf-8")
    ran = shell.run("check")
    assert ran.code == 0
    assert "model old: DecisionTree of sex: SELECT age, sex FROM people\n" in ran.out
    assert "synthetic rows: people\n" in ran.out
    for key, wrong, said in (
        ("depth", "depht", "models.old: unknown key 'depht'"),
        ('"DecisionTree"', '"Tree"', "models.old: recipe = 'Tree'"),
    ):
        path.write_text(text + good.replace(key, wrong), encoding="utf-8")
        ran = shell.run("check")
        assert ran.code == 2 and said in ran.err
    path.write_text(text + good.replace("rho = 1", "rounds = 3\nruonds = 3"), encoding="utf-8")
    assert "unknown key 'ruonds'" in shell.run("check").err


def test_it_says_what_a_boolean_without_spellings_does_not_read(shell: Shell) -> None:
    shell.configure("columns.age", 'columns.n = {type = "boolean"}\ncolumns.age')
    people = shell.folder / "people.csv"
    header, *rows = people.read_text(encoding="utf-8").splitlines()
    people.write_text("\n".join([f"{header},n", *(f"{row},Y" for row in rows)]), encoding="utf-8")
    ran = shell.run("check")
    assert (ran.code, ran.out.count("note: people.n")) == (0, 1)
    assert "note: people.n: true is written true, True, TRUE or 1" in ran.out


def test_it_says_that_ids_are_compared_by_their_code_points(shell: Shell) -> None:
    with closing(sqlite3.connect(shell.folder / "people.db")) as connection, connection:
        connection.execute("CREATE TABLE people (who TEXT COLLATE NOCASE, age, sex, born, job)")
        row = 1, "F", "1960-01-01", "clerk"
        places = "?, ?, ?, ?, ?"
        people = [("Bob", *row), ("bob", *row)]
        connection.executemany(f"INSERT INTO people VALUES ({places})", people)
    shell.configure('"people.csv"', '"people.db"\ntable = "people"')
    said = "spellings that the database calls equal (a collation) are units of their own"
    assert said not in shell.run("check").out
    shell.configure('table = "people"', 'table = "people"\nunit = {column = "who"}')
    assert said in shell.run("check").out
    ran = shell.run("check", "--data")
    assert "who: the source calls 1 spellings equal to others (a collation)" in ran.out
    (table,) = json.loads(shell.run("check", "--data", "--json").out)["tables"]
    assert table["unit"]["respelled"] == {"who": 1}


def test_it_agrees_with_the_ledger_and_leaves_it_as_it_is(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    before = _report(shell)
    assert "agrees" in shell.run("check").out
    assert _report(shell) == before


def _report(shell: Shell) -> object:
    ledger = Ledger.open(shell.folder / "ledger.db")
    try:
        return verify(ledger)
    finally:
        ledger.close()


def test_the_budget_may_be_left_out_once_the_ledger_knows_it(shell: Shell) -> None:
    shell.configure('[budget]\nepsilon = "1000000"\ndelta = "1e-6"\n', "")
    ran = shell.run("check")
    assert (ran.code, ran.err.split(".")[0]) == (
        2,
        "InvalidConfig: No ledger yet, and no [budget] to open one with",
    )
    Ledger.open(shell.folder / "ledger.db").close()
    ran = shell.run("check")
    assert ran.code == 2
    assert "The ledger does not know the dataset" in ran.err


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("people.csv", "nobody.csv", 2, "InvalidSource: Table 'people': no file"),
        ("people.csv", "sfumato.toml", 2, "is neither .parquet nor .csv"),
        (
            "columns.age",
            "columns.wage",
            2,
            "InvalidDeclaration: Table 'people' has no column 'wage'",
        ),
        ('"shop"', '""', 2, "InvalidConfig: the file: dataset = ''"),
        (
            "lower = 0, upper = 99",
            "lower = 99, upper = 0",
            2,
            "InvalidConfig: tables.people.columns.age: Bounds from 99 to 0",
        ),
        (
            "size = 40",
            'unit = {column = "person"}',
            2,
            "InvalidDeclaration: Table 'people' has no column 'person'",
        ),
        ("[budget]", "[budget", 2, "is not TOML"),
    ],
)
def test_what_does_not_fit_is_named(shell: Shell, old: str, new: str, code: int, said: str) -> None:
    shell.configure(old, new)
    ran = shell.run("check")
    assert ran.code == code
    assert said in ran.err
    assert not (shell.folder / "ledger.db").exists()


def test_another_contract_is_named(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shell.configure('"1000000"', '"2000"')
    ran = shell.run("check")
    assert ran.code == 2
    assert "ContractMismatch" in ran.err
    assert "epsilon: now 2000, in the ledger 1000000" in ran.err


def test_a_truncated_parquet_is_named_without_its_content(shell: Shell) -> None:
    shell.write("people.parquet", "PAR1 not really")
    shell.configure("people.csv", "people.parquet")
    ran = shell.run("check")
    assert ran.code == 2
    assert "InvalidSource" in ran.err
    assert "not really" not in ran.err


def test_it_says_whether_the_layouts_can_be_read(shell: Shell) -> None:
    shell.configure('ledger = "ledger.db"', 'ledger = "ledger.db"\nprepared = "layouts"')
    shell.configure("size = 40", 'unit = {column = "job", max_rows = 5}')
    ran = shell.run("check")
    assert (ran.code, "InvalidSource: No prepared layout in " in ran.err) == (2, True)
    assert not (shell.folder / "layouts").exists()
    assert run(["prepare"]) == 0
    assert "prepared: layouts has layouts of people\n" in shell.run("check").out
    shell.write("people.csv", "age,sex,born,job\n1,F,1960-01-01,clerk\n")
    ran = shell.run("check")
    assert (ran.code, "The prepared layout of table 'people' is stale" in ran.err) == (2, True)


def test_it_lists_what_still_holds_rows_even_where_a_layout_is_stale(shell: Shell) -> None:
    shell.configure('dataset = "shop"', 'dataset = "shop"\nprepared = "layouts"')
    (shell.folder / "layouts").mkdir()
    (shell.folder / "layouts" / "sfumato-people-1.parquet").write_bytes(b"rows")
    ran = shell.run("check")
    assert ran.code != 0
    assert (
        f"holds rows: layout, {shell.folder}/layouts/sfumato-people-1.parquet, 4 bytes" in ran.out
    )


# --- --data --------------------------------------------------------------------------------

NOTICE = "NOT PRIVATE: exact counts of the data, for its owner's eyes only. "


def test_data_counts_how_all_values_are_read_and_stores_nothing(shell: Shell) -> None:
    before = sorted(shell.folder.iterdir())
    ran = shell.run("check", "--data")
    assert ran.code == 0
    assert ran.out.startswith(NOTICE)
    assert "table people: 40 rows\n" in ran.out
    assert "age  100.0% (40)        -         -        -\n" in ran.out
    # then everything that check says
    assert "neighbours: add-remove\n" in ran.out
    assert "will be made on first use" in ran.out
    assert sorted(shell.folder.iterdir()) == before


def test_data_ends_with_two_where_a_column_cannot_be_used(shell: Shell) -> None:
    rows = [f'"{n},000",F,31/12/1960,' for n in range(1, 4)]
    shell.write("people.csv", "\n".join(["age,sex,born,job", *rows]))
    ran = shell.run("check", "--data")
    assert ran.code == 2
    assert ran.err == (
        "Not as declared:\n"
        "  people.age: wholly unread: none of 3 values is as declared\n"
        "  people.born: wholly unread: none of 3 values is as declared\n"
        "  people.job: 100.0% missing\n"
    )
    assert 'age: not read are values like "9,999" (3)' in ran.out
    assert 'born: not read are values like "dd/mm/yyyy" (3)' in ran.out
    assert 'sex: declared, but in no row: "male"' in ran.out
    assert "neighbours: add-remove" in ran.out


def test_the_counts_are_json_where_that_is_asked(shell: Shell) -> None:
    form = json.loads(shell.run("check", "--data", "--json").out)
    assert form["notice"].startswith(NOTICE)
    assert form["private"] is False
    (people,) = form["tables"]
    assert (people["table"], people["rows"], form["faults"]) == ("people", 40, [])
    shell.write("people.csv", "age,sex,born,job\n?,F,1960-01-01,clerk\n")
    ran = shell.run("check", "--data", "--json")
    assert ran.code == 2
    assert json.loads(ran.out)["faults"] == [
        "people.age: wholly unread: none of 1 values is as declared"
    ]
    ran = shell.run("check", "--json")
    assert (ran.code, "sfumato check --data --json" in ran.err) == (2, True)


def test_the_counts_are_shown_even_where_the_ledger_disagrees(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    before = _report(shell)
    assert shell.run("check", "--data").code == 0
    assert _report(shell) == before
    shell.configure('"1000000"', '"2000"')
    ran = shell.run("check", "--data")
    assert (ran.code, "ContractMismatch" in ran.err) == (2, True)
    assert "table people: 40 rows" in ran.out


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "gbk"])
def test_a_file_in_another_encoding_is_refused_without_its_content(
    shell: Shell, encoding: str
) -> None:
    word = "山田" if encoding != "latin-1" else "Zoë"
    text = f"age,sex,born,job\n1,F,1960-01-01,{word}\n"
    (shell.folder / "people.csv").write_bytes(text.encode(encoding))
    ran = shell.run("check", "--data")
    assert ran.code == 2
    assert "InvalidSource" in ran.err
    assert word not in ran.out + ran.err


def test_reckless_settings_are_said_and_not_forbidden(shell: Shell) -> None:
    shell.configure('delta = "1e-6"', 'delta = "0.1"')
    ran = shell.run("check")
    assert ran.code == 0
    assert "note: epsilon = 1000000 protects nobody" in ran.out
    assert "note: delta = 0.1 is at least 1 / 40, the rows of people" in ran.out

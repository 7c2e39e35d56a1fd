# SPDX-License-Identifier: Apache-2.0
"""``sfumato check``: whether the declarations fit; it makes and charges nothing."""

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
        ('"shop"', '""', 2, "InvalidConfig: dataset is missing"),
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

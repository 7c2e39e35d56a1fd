# SPDX-License-Identifier: Apache-2.0
"""``sfumato prepare``: layouts where the file says, told to the owner, and gone when dropped."""

import pytest

from sfumato.cli.main import run
from tests.contracts.shell import Shell

UNIT = 'unit = {column = "job", max_rows = 5}\nsource = "people.csv"'


@pytest.fixture
def told(shell: Shell, capsys: pytest.CaptureFixture[str]):
    """Runs a command that may tell the owner something on stderr: code, out, err."""
    shell.configure('ledger = "ledger.db"', 'ledger = "ledger.db"\nprepared = "layouts"')
    shell.configure('source = "people.csv"', UNIT)

    def tell(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(arguments))
        return code, *capsys.readouterr()

    return tell


def test_it_writes_the_layouts_and_says_so(shell: Shell, told) -> None:
    code, out, err = told("prepare")
    assert code == 0 and out.startswith("prepared in ") and out.endswith("layouts\n")
    assert err.startswith("table people: at most 5 rows of a unit, ") and err.endswith(" s\n")
    assert sorted(each.suffix for each in (shell.folder / "layouts").iterdir()) == [
        ".json",
        ".parquet",
    ]
    assert not (shell.folder / "ledger.db").exists()
    ran = shell.run("query", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1000")
    assert ran.code == 0 and "layout" in ran.out
    shell.write("people.csv", "age,sex,born,job\n")
    assert shell.run("preview", "SELECT COUNT(*) FROM people", "--epsilon", "1").code == 2


def test_the_number_of_rows_can_be_said(told) -> None:
    code, _, err = told("prepare", "--rows", "3")
    assert code == 0 and "at most 3 rows of a unit" in err
    code, _, err = told("prepare", "--rows", "0")
    assert code == 2 and err.startswith("InvalidDeclaration: rows=0.")


def test_dropping_deletes_them(shell: Shell, told) -> None:
    told("prepare")
    code, out, err = told("prepare", "--drop")
    assert (code, err) == (0, "") and out.endswith("layouts: deleted\n")
    assert not (shell.folder / "layouts").exists()
    assert told("prepare", "--drop")[1].endswith("layouts: there was nothing to delete\n")


def test_a_file_that_names_no_folder_is_refused(shell: Shell) -> None:
    ran = shell.run("prepare")
    assert ran.code == 2 and "InvalidConfig: The file does not say where layouts go." in ran.err

# SPDX-License-Identifier: Apache-2.0
"""One number for the format of all stores, and a step from each format to the next."""

import shutil
from pathlib import Path

import apsw
import pytest

from sfumato.errors import LedgerCorrupt
from sfumato.ledger import Ledger, verify
from sfumato.ledger.store import postgres_schema, sqlite_schema
from sfumato.ledger.store.format import FORMAT
from tests.contracts.charges import charges, paid, pure

DATA = Path(__file__).parent.parent / "data"


def version(path: Path) -> int:
    """The format of a closed file."""
    connection = apsw.Connection(str(path))
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


def test_each_store_has_a_step_from_each_of_its_formats_to_the_next() -> None:
    assert list(sqlite_schema._STEPS) == list(range(1, FORMAT))
    assert list(postgres_schema._STEPS) == list(range(2, FORMAT))


def test_a_file_of_each_format_is_kept() -> None:
    found = {path.name: version(path) for path in DATA.glob("format-*.sqlite")}
    assert found == {f"format-{number}.sqlite": number for number in range(1, FORMAT)}


def account_of(ledger: Ledger, question: str) -> str:
    """The account that paid for an answer."""
    return next(row.account for row in charges(ledger) if row.question == question)


@pytest.mark.parametrize("number", range(1, FORMAT))
def test_a_ledger_of_each_format_comes_forward_and_keeps_its_answers(
    tmp_path: Path, number: int
) -> None:
    path = Path(shutil.copy(DATA / f"format-{number}.sqlite", tmp_path / "l.db"))
    for _ in range(2):
        ledger = Ledger.open(path)
        assert verify(ledger).problems == ()
        assert ledger.answer("one") == b"first answer"
        assert (
            ledger.first_answer(["statement of four"], account_of(ledger, "four"))
            == b"fourth answer"
        )
        ledger.close()
    assert version(path) == FORMAT
    ledger = Ledger.open(path)
    paid(ledger, pure("0.1", "new", dataset="e/f"), b"new answer", released=("p",))
    assert ledger.answer("new") == b"new answer"
    assert verify(ledger).problems == ()


@pytest.mark.parametrize("number", [0, -1])
def test_a_format_that_never_was_is_refused(tmp_path: Path, number: int) -> None:
    path = Path(shutil.copy(DATA / "format-3.sqlite", tmp_path / "l.db"))
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path)
    assert version(path) == number

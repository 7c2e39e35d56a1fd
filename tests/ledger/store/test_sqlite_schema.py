# SPDX-License-Identifier: Apache-2.0
"""Formats: an old file comes forward without loss, whole or not at all."""

import shutil
from fractions import Fraction
from pathlib import Path

import apsw
import pytest

from sfumato.errors import LedgerCorrupt
from sfumato.ledger import Ledger, verify
from sfumato.ledger.journal import LEGACY
from sfumato.ledger.store import sqlite_schema
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED
from sfumato.ledger.store.format import FORMAT
from sfumato.privacy import Budget
from tests.contracts.charges import charges, contract, paid, pure

# Written by the version that had format 1: two datasets ('d' and 'e/f'), three analysts' questions
# in every state, a thaw, and two charges that were open when the process was killed.
OLD = Path(__file__).parent.parent / "data" / "format-1.sqlite"
OLD_HEAD = "f361181aaf114570d2fbac27d880a03c43c50fd3fb0943e2a29965f44c28c450"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of the old file."""
    return Path(shutil.copy(OLD, tmp_path / "l.db"))


def version(path: Path) -> int:
    """The format of a closed file."""
    connection = apsw.Connection(str(path))
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def test_a_ledger_of_format_2_comes_forward_and_verifies(tmp_path: Path) -> None:
    path = Path(shutil.copy(OLD.with_name("format-2.sqlite"), tmp_path / "two.db"))
    assert version(path) == 2
    ledger = Ledger.open(path)
    before = verify(ledger)
    assert (before.problems, before.charges) == ((), 11)
    assert ledger.answer("one") == b"first answer"
    paid(ledger, pure("0.1", "new"), b"new answer", released=("p",))
    assert ledger.released(["p"], "d/unstated/owner") == {"p": [b"new answer"]}
    ledger.close()
    assert version(path) == FORMAT
    assert verify(Ledger.open(path)).problems == ()


def test_the_old_file_has_the_old_format(path: Path) -> None:
    assert version(path) == 1


def test_an_old_ledger_comes_forward_and_verifies(path: Path) -> None:
    ledger = Ledger.open(path)
    assert verify(ledger).problems == ()
    ledger.close()
    assert version(path) == FORMAT
    assert verify(Ledger.open(path)).problems == ()


def test_nothing_that_was_spent_is_lost(path: Path) -> None:
    ledger = Ledger.open(path)
    # 0.1 + 0.2 + 0.05, two forfeited tenths, one interrupted, a Gaussian of 0.001, one that crashed
    rho = Fraction(1, 100) + Fraction(4, 100) + Fraction(25, 10000) + 4 * Fraction(1, 100)
    spent = ledger.balance("d").spent
    assert (spent.epsilon, Fraction(spent.rho, 10**12)) == (None, rho / 2 + Fraction(1, 1000))
    assert ledger.balance("d").reserved.rho == 0
    assert ledger.standing("d", "unstated", "ann").spent.epsilon == 5 * 10**10
    assert ledger.budget_of("d") == Budget(3, "1e-6")
    assert (ledger.budget_of("e/f"), ledger.balance("e/f").spent.epsilon) == (Budget(2), 5 * 10**11)


def test_nothing_that_was_answered_is_lost(path: Path) -> None:
    ledger = Ledger.open(path)
    bodies = [ledger.answer(name) for name in ("one", "two", "three", "four", "nine")]
    assert bodies == [
        b"first answer",
        b"second answer",
        b"third answer",
        b"fourth answer",
        b"ninth answer",
    ]
    assert (
        ledger.first_answer(
            ["statement of one"],
            next(row.account for row in charges(ledger) if row.question == "one"),
        )
        == b"first answer"
    )


def test_every_charge_keeps_its_state_and_those_that_were_open_are_closed(path: Path) -> None:
    states = {row.question: (row.state, row.reason) for row in charges(Ledger.open(path))}
    assert states == {
        **dict.fromkeys(("one", "two", "three", "four", "nine"), (COMMITTED, "")),
        "five": (FORFEITED, "engine"),
        "six": (FORFEITED, "interrupted"),
        "seven": (VOIDED, ""),
        "eight": (FORFEITED, "engine"),
        "ten": (VOIDED, "crash"),
        "eleven": (FORFEITED, "crash"),
    }


def test_the_old_chain_is_kept_as_it_was_written(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path)
    last = ledger.store.read(lambda rows: rows.last_entry(LEGACY))
    assert (last.seq, last.hash) == (32, OLD_HEAD)
    connection = apsw.Connection(str(shutil.copy(OLD, tmp_path / "old.db")))
    before = connection.execute("SELECT hash, body FROM journal ORDER BY seq").fetchall()
    connection.close()
    assert (
        ledger.store.read(lambda rows: [(each.hash, each.body) for each in rows.entries(LEGACY)])
        == before
    )
    assert ledger.store.read(lambda rows: rows.chains()) == [LEGACY, "d", "e%2Ff"]


def test_the_old_contract_still_binds_and_the_account_goes_on(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.adopt(contract(Budget(2), "e/f"), Budget(2))
    paid(ledger, pure("0.5", "new", dataset="e/f"))
    assert ledger.balance("e/f").left.epsilon == 1
    assert verify(ledger).problems == ()


EDITS = {
    "a lower spending": """UPDATE account SET spent = replace(spent, '"rho":"4', '"rho":"3') WHERE dataset = 'd'""",
    "a longer cost": "UPDATE charge SET cost = replace(cost, '100000000000', '100000000001') WHERE question = 'one'",
    "another answer": "UPDATE answer SET body = x'00' WHERE question = 'one'",
    "a cut journal": "DELETE FROM journal WHERE seq = 32",
    "another state": "UPDATE charge SET state = 'voided' WHERE question = 'eight'",
    "wider gates": """UPDATE account SET gates = replace(gates, '"epsilon":"3', '"epsilon":"9')""",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_the_old_file_is_found_after_it_came_forward(path: Path, edit: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(EDITS[edit])
    assert connection.changes() > 0
    connection.close()
    assert verify(Ledger.open(path)).problems != ()


@pytest.mark.parametrize(
    "break_",
    [
        "UPDATE charge SET cost = 'x'",
        "DELETE FROM journal",
        "DROP TABLE answer",
        "UPDATE journal SET body = '{}'",
    ],
)
def test_an_old_file_that_cannot_come_forward_is_left_as_it_was(path: Path, break_: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(break_)
    connection.close()
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path)
    assert version(path) == 1
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM charge").fetchone() == (11,)
    connection.close()


def test_a_crash_on_the_way_forward_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sqlite_schema, "_account", crash)
    with pytest.raises(MemoryError):
        Ledger.open(path)
    monkeypatch.undo()
    assert version(path) == 1
    assert verify(Ledger.open(path)).problems == ()

# SPDX-License-Identifier: Apache-2.0
"""Tampering with the file, through another SQLite connection: verify finds it."""

import sys
from pathlib import Path

import apsw
import pytest

from sfumato.ledger import Ledger, verify
from tests.contracts.charges import head, in_state, opened, paid, pure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with two paid answers, a forfeit, a void and a thaw."""
    where = tmp_path / "l.db"
    ledger = opened(where)
    paid(ledger, pure("0.1", "one"), b"first answer")
    paid(ledger, pure("0.2", "two"), b"second answer")
    in_state(ledger, "forfeited", "three")
    in_state(ledger, "voided", "four")
    ledger.thaw("d")
    ledger.close()
    return where


def problems(path: Path) -> tuple[str, ...]:
    """What verify finds in a closed ledger."""
    ledger = Ledger.open(path)
    try:
        return verify(ledger).problems
    finally:
        ledger.close()


def tamper(path: Path, *statements: str) -> None:
    """What someone with the file can do; each statement must change something."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        before = connection.total_changes()
        connection.execute(statement)
        assert connection.total_changes() > before, statement
    connection.close()


def test_a_sound_ledger_has_no_problems_and_counts_what_it_holds(path: Path) -> None:
    ledger = Ledger.open(path)
    report = verify(ledger)
    assert report.problems == ()
    assert (report.entries, report.charges) == (1 + 3 + 3 + 3 + 2 + 1, 4)
    assert report.head == head(ledger)


def test_an_empty_ledger_is_sound(tmp_path: Path) -> None:
    report = verify(Ledger.open(tmp_path / "l.db"))
    assert (report.entries, report.charges, report.problems, report.head) == (0, 0, (), "")


EDITS = {
    "an edited answer": "UPDATE answer SET body = CAST('first answer!' AS BLOB) WHERE question = 'one'",
    "a longer cost": "UPDATE charge SET cost = replace(cost, '100000000000', '100000000001') WHERE question = 'one'",
    "a lower spending": """UPDATE account SET spent = replace(spent, '"epsilon":"4', '"epsilon":"3')""",
    "another contract": "UPDATE account SET contract = replace(contract, 'add-remove', 'replace-one')",
    "wider gates": """UPDATE account SET gates = replace(gates, '"epsilon":"1', '"epsilon":"9')""",
    "another state": "UPDATE charge SET state = 'voided' WHERE question = 'three'",
    "another question": "UPDATE charge SET question = 'other' WHERE question = 'one'",
    "another analyst": "UPDATE charge SET analyst = 'other' WHERE question = 'one'",
    "another statement": "UPDATE charge SET statement = 'other' WHERE question = 'one'",
    "another event": "UPDATE charge SET event = replace(event, 'laplace', 'gaussian') WHERE question = 'one'",
    "a journal body": "UPDATE journal SET body = replace(body, '\"one\"', '\"uno\"') WHERE kind = 'reserve'",
    "a journal time": "UPDATE journal SET at = '2001-01-01' WHERE seq = 2",
    "a journal kind": "UPDATE journal SET kind = 'void' WHERE kind = 'forfeit'",
    "the reason of a failure": "UPDATE charge SET reason = 'interrupted' WHERE question = 'three'",
    "a failure not yet seen": "UPDATE charge SET acknowledged = 0 WHERE question = 'three'",
    "an answer to another question": "UPDATE answer SET question = 'other' WHERE question = 'one'",
    "an answer to another statement": "UPDATE answer SET statement = 'other' WHERE question = 'one'",
    "an unknown kind": "UPDATE journal SET kind = 'miracle' WHERE kind = 'thaw'",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_row_is_found(path: Path, edit: str) -> None:
    tamper(path, EDITS[edit])
    assert problems(path) != ()


def test_the_finding_names_what_was_edited(path: Path) -> None:
    tamper(path, EDITS["a lower spending"])
    assert problems(path) == ("account 'd' is not the sum of its charges",)


@pytest.mark.parametrize("question", ["one", "three", "four"])
def test_a_deleted_charge_is_found(path: Path, question: str) -> None:
    tamper(path, f"DELETE FROM charge WHERE question = '{question}'")
    assert "is in only one of the journal and the table" in "".join(problems(path))


def test_a_deleted_answer_is_found(path: Path) -> None:
    tamper(path, "DELETE FROM answer WHERE question = 'one'")
    assert "is not the one that was committed" in "".join(problems(path))


def test_a_deleted_account_is_found(path: Path) -> None:
    tamper(path, "DELETE FROM account")
    assert "account 'd' is in only one of the journal and the table" in problems(path)


@pytest.mark.parametrize("seq", range(1, 13))
def test_a_deleted_journal_entry_is_found(path: Path, seq: int) -> None:
    tamper(path, f"DELETE FROM journal WHERE seq = {seq}")
    assert problems(path) != ()


def test_a_deleted_entry_whose_followers_are_renumbered_is_found(path: Path) -> None:
    tamper(path, "DELETE FROM journal WHERE seq = 6", "UPDATE journal SET seq = seq - 1 WHERE seq > 6")
    assert "the chain is broken at entry 6" in problems(path)


def test_a_swapped_answer_is_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE answer SET body = CASE question WHEN 'one' THEN CAST('second answer' AS BLOB) "
        "ELSE CAST('first answer' AS BLOB) END",
    )
    assert len([line for line in problems(path) if "is not the one that was committed" in line]) == 2


def test_answers_whose_questions_are_swapped_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE answer SET question = 'between' WHERE question = 'one'",
        "UPDATE answer SET question = 'one' WHERE question = 'two'",
        "UPDATE answer SET question = 'two' WHERE question = 'between'",
    )
    assert len([line for line in problems(path) if "is not the one that was committed" in line]) == 2


def test_a_charge_that_was_added_to_the_table_alone_is_found(path: Path) -> None:
    tamper(
        path,
        "INSERT INTO charge SELECT 'forged', dataset, analyst, state, 'free', statement, cost, event, reason, 0 "
        "FROM charge LIMIT 1",
    )
    assert "charge forged is in only one of the journal and the table" in problems(path)


def test_a_verify_that_never_looks_at_the_answers_would_be_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(path, EDITS["an edited answer"])
    monkeypatch.setattr(sys.modules["sfumato.ledger.verify"], "_compare_answers", lambda *_: None)
    assert problems(path) == ()

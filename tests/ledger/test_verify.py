# SPDX-License-Identifier: Apache-2.0
"""Tampering with the file, through another SQLite connection: verify finds it."""

import hashlib
import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from sfumato.errors import LedgerCorrupt
from sfumato.ledger import Ledger, verify
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.signed_heads import Signer
from tests.contracts.charges import head, in_state, opened, paid, pure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with two paid answers, a forfeit, a void and a thaw."""
    where = tmp_path / "l.db"
    ledger = opened(where)
    paid(ledger, replace(pure("0.1", "one"), key="k"), b"first answer")
    paid(ledger, pure("0.2", "two"), b"second answer", released=("p", "r"))
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
    """What someone with the file can do, who also takes away the head beside it; each statement
    must change something.
    """
    Path(f"{path}.head").unlink()
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
    last = ledger.store.peek("d")
    content = canonical_json({"d": [13, head(ledger)[-1]]})
    assert (last.seq, report.head) == (13, hashlib.sha256(content.encode()).hexdigest())


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
    "another account": "UPDATE charge SET account = 'd/unstated/other' WHERE question = 'one'",
    "another dataset": "UPDATE charge SET dataset = 'other' WHERE question = 'one'",
    "another entry": "UPDATE charge SET seq = 100 WHERE question = 'one'",
    "a key of sharing": "UPDATE charge SET shared = 'x' WHERE question = 'one'",
    "an answer to be shared": "UPDATE answer SET shared = 'x' WHERE question = 'one'",
    "another source": "UPDATE charge SET source = 'x' WHERE question = 'one'",
    "a held cost": """UPDATE account SET held = replace(held, '"rho":"0', '"rho":"1')""",
    "a frozen account": "UPDATE account SET frozen = 'no' WHERE id = 'd'",
    "a policy": "UPDATE account SET policy = '{\"sharing\":true}' WHERE id = 'd'",
    "an earlier period": "UPDATE account SET earlier = '[1]' WHERE id = 'd'",
    "a limit of an analyst": "UPDATE account SET gates = '{}' WHERE id <> 'd'",
    "another parent": "UPDATE account SET parent = 'd' WHERE id = 'd/unstated/owner'",
    "the head of the chain": "UPDATE account SET head = 'x' WHERE id = 'd'",
    "a bound key": "UPDATE key SET request = 'x'",
    "a forged key": "INSERT INTO key SELECT account, 'forged', request, charge, chain, 99 FROM key",
    "a lost key": "DELETE FROM key",
    "a part of another answer": "UPDATE part SET charge = (SELECT id FROM charge WHERE question = 'one')",
    "a forged part": "INSERT INTO part SELECT 'forged', charge, chain, seq FROM part LIMIT 1",
    "a lost part": "DELETE FROM part WHERE part = 'p'",
    "a part of another entry": "UPDATE part SET seq = 1 WHERE part = 'p'",
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
    expected = ("d", "d/unstated", "d/unstated/owner")
    assert problems(path) == tuple(
        f"account '{each}' is not the sum of its charges" for each in expected
    )


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


@pytest.mark.parametrize("seq", range(1, 14))
def test_a_deleted_journal_entry_is_found(path: Path, seq: int) -> None:
    tamper(path, f"DELETE FROM journal WHERE seq = {seq}")
    assert problems(path) != ()


def test_a_deleted_entry_whose_followers_are_renumbered_is_found(path: Path) -> None:
    tamper(
        path, "DELETE FROM journal WHERE seq = 6", "UPDATE journal SET seq = seq - 1 WHERE seq > 6"
    )
    assert "the chain is broken at entry 6 of 'd'" in problems(path)


def test_a_swapped_answer_is_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE answer SET body = CASE question WHEN 'one' THEN CAST('second answer' AS BLOB) "
        "ELSE CAST('first answer' AS BLOB) END",
    )
    assert (
        len([line for line in problems(path) if "is not the one that was committed" in line]) == 2
    )


def test_answers_whose_questions_are_swapped_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE answer SET question = 'between' WHERE question = 'one'",
        "UPDATE answer SET question = 'one' WHERE question = 'two'",
        "UPDATE answer SET question = 'two' WHERE question = 'between'",
    )
    assert (
        len([line for line in problems(path) if "is not the one that was committed" in line]) == 2
    )


def test_a_charge_that_was_added_to_the_table_alone_is_found(path: Path) -> None:
    tamper(
        path,
        "INSERT INTO charge SELECT 'forged', chain, 99, dataset, account, analyst, state, 'free', statement, shared, "
        "cost, source, reason, 0, 0, '', 0 FROM charge LIMIT 1",
    )
    assert "the charge of entry 99 of 'd' is in only one of the journal and the table" in problems(
        path
    )


def test_a_verify_that_never_looks_at_the_answers_would_be_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper(path, EDITS["an edited answer"])
    monkeypatch.setattr(sys.modules["sfumato.ledger.verify"], "_charge_differences", lambda *_: ())
    assert problems(path) == ()


def test_an_older_copy_is_found(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "old.db")
    ledger = Ledger.open(path)
    paid(ledger, pure("0.1", "later"))
    head = ledger.store.read(
        lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows)
    )
    assert verify(ledger, [head]).problems == ()
    old = Ledger.open(tmp_path / "old.db")
    assert verify(old).problems == ()
    assert "this is an older copy" in verify(old, [head]).problems[0]


def test_a_ledger_with_damaged_pages_is_a_problem_and_no_failure(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(4096 * 3, len(content), 4096):
        content[start : start + 64] = os.urandom(64)
    path.write_bytes(content)
    Path(f"{path}.head").unlink()
    try:
        ledger = Ledger.open(path)
    except LedgerCorrupt:
        return  # the damage lies where every opening looks
    assert verify(ledger).problems != ()


def test_what_anybody_charges_meanwhile_does_not_disturb_it(path: Path) -> None:
    ledger, stop = Ledger.open(path), threading.Event()

    def charge() -> None:
        for number in range(40):
            paid(ledger, pure("0.001", f"meanwhile {number}"))
        stop.set()

    thread = threading.Thread(target=charge)
    thread.start()
    while not stop.is_set():
        assert verify(ledger).problems == ()
    thread.join()
    assert verify(ledger).charges == 44

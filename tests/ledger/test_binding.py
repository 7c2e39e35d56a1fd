# SPDX-License-Identifier: Apache-2.0
"""Rows that were edited are found when they are used: accounts when they are charged, answers when
given.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from sfumato.errors import LedgerCorrupt
from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger.account_transaction import child
from sfumato.ledger.binding import (
    account_digest,
    accounts_digest,
    binding_entries,
    digests_at,
    moved_to,
)
from sfumato.ledger.journal import is_genuine
from sfumato.ledger.store.base import Rows, Store
from sfumato.privacy import Budget
from tests.contracts.charges import contract, in_state, opened, paid, pure

ANN = replace(pure("0.1", "ann's", analyst="ann"), purpose="research")
KEYED = replace(pure("0.1", "keyed"), key="k")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger: 0.4 of 1 are spent."""
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1", "one"), b"first answer", released=("p",))
    paid(ledger, pure("0.1", "two"), b"second answer")
    paid(ledger, ANN, b"ann's answer")
    paid(ledger, KEYED, b"keyed answer")
    ledger.close()
    return tmp_path / "l.db"


def tamper(path: Path, *statements: str, head: bool = False) -> None:
    """What someone with the file can do; ``head``: and with the head beside it."""
    if head:
        Path(f"{path}.head").unlink()
    connection = apsw.Connection(str(path))
    for statement in statements:
        before = connection.total_changes()
        connection.execute(statement)
        assert connection.total_changes() > before, statement
    connection.close()


LESS = """UPDATE account SET spent = replace(spent, '"epsilon":"4', '"epsilon":"1')"""
ACCOUNTS = {
    "a lower spending": LESS,
    "wider gates": """UPDATE account SET gates = replace(gates, '"epsilon":"1', '"epsilon":"9') WHERE id = 'd'""",
    "a contract": "UPDATE account SET contract = replace(contract, 'add-remove', 'replace-one') WHERE id = 'd'",
    "a held cost": """UPDATE account SET held = replace(held, '"rho":"0', '"rho":"1') WHERE id = 'd'""",
    "a policy": "UPDATE account SET policy = '{\"sharing\":true}' WHERE id = 'd'",
    "an earlier period": "UPDATE account SET earlier = '[1]' WHERE id = 'd'",
    "another entry": "UPDATE account SET moved = moved - 1 WHERE id = 'd'",
    "no entry": "UPDATE account SET moved = 0 WHERE id = 'd'",
    "an end of the chain that is not there": "UPDATE account SET seq = seq + 1 WHERE id = 'd'",
    "another hash": "UPDATE account SET head = 'x' WHERE id = 'd'",
    "an analyst's account": "UPDATE account SET gates = '' , frozen = 'x' WHERE id = 'd/unstated/owner'",
    "an entry that tells another digest": 'UPDATE journal SET body = replace(body, \'"moved":{"d":[\', '
    '\'"moved":{"d":[1\') WHERE seq = (SELECT max(seq) FROM journal)',
    "a chain that was cut": "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
}


@pytest.mark.parametrize("edit", ACCOUNTS)
def test_an_edited_account_takes_no_charge(path: Path, edit: str) -> None:
    tamper(path, ACCOUNTS[edit], head=True)
    ledger = Ledger.open(path)
    for act in (
        lambda: ledger.reserve(pure("0.05", "new")),
        lambda: ledger.freeze("d", purpose="unstated", analyst="owner"),
    ):
        for _ in range(2):
            with pytest.raises(LedgerCorrupt, match="it was edited"):
                act()


def test_an_account_in_front_of_a_chain_that_was_cut_takes_no_charge(path: Path) -> None:
    tamper(path, "UPDATE journal SET seq = 100 WHERE seq = 9", head=True)
    tamper_last = "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal WHERE seq < 100)"
    connection = apsw.Connection(str(path))
    connection.execute(tamper_last)
    connection.close()
    with pytest.raises(LedgerCorrupt, match="it was edited"):
        Ledger.open(path).reserve(pure("0.05", "new"))


def test_a_row_put_back_to_an_older_state_is_found_at_the_next_opening(path: Path) -> None:
    before = apsw.Connection(str(path))
    ((spent, moved),) = before.execute(
        "SELECT spent, moved FROM account WHERE id = 'd/unstated/owner'"
    ).fetchall()
    before.close()
    ledger = Ledger.open(path)
    paid(ledger, pure("0.1", "later"))
    ledger.close()
    tamper(
        path, f"UPDATE account SET spent = '{spent}', moved = {moved} WHERE id = 'd/unstated/owner'"
    )
    with pytest.raises(LedgerCorrupt, match="the accounts are not those of the head"):
        Ledger.open(path)


@pytest.mark.parametrize("edit", [each for each in ACCOUNTS if "entry that tells" not in each])
def test_an_edited_account_is_found_at_the_next_opening(path: Path, edit: str) -> None:
    tamper(path, ACCOUNTS[edit])
    if "hash" in edit or "end of the chain" in edit:
        with pytest.raises(LedgerCorrupt):
            Ledger.open(path).reserve(pure("0.05", "new"))
        return
    with pytest.raises(LedgerCorrupt, match="forgets what was spent"):
        Ledger.open(path)


def test_a_check_that_is_left_out_would_be_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as it was: 0.95 were admitted after 0.4 of 1
    tamper(path, LESS, head=True)
    monkeypatch.setattr(
        sys.modules["sfumato.ledger.account_transaction"], "require_bound", lambda *_: None
    )
    paid(Ledger.open(path), pure("0.8", "too much"))


def test_after_a_crash_the_accounts_are_those_of_the_head_and_of_what_followed(path: Path) -> None:
    child_process = os.fork()
    if child_process == 0:
        ledger = Ledger.open(path)
        paid(ledger, pure("0.1", "after the head"))
        in_state(ledger, "executing", "cut off")
        ledger.allocate("d", Budget("0.5"), purpose="fresh")
        os._exit(0)
    os.waitpid(child_process, 0)
    again = Ledger.open(path)
    assert verify(again).problems == ()
    before = again.store.read(digest)
    paid(again, pure("0.1", "more"))
    ends = {"d": again.store.peek("d").seq - 3}
    assert again.store.read(lambda rows: accounts_digest(digests_at(rows, ends))) == before


def digest(rows: Rows) -> str:
    """Of all accounts as they are."""
    return accounts_digest({each.id: account_digest(each) for each in rows.accounts()})


@pytest.mark.parametrize("account", ["d", "d/unstated/owner", "d/research"])
def test_after_a_crash_an_edit_is_found_whether_the_account_was_moved_since_or_not(
    path: Path, account: str
) -> None:
    kept = Path(f"{path}.head").read_bytes()
    ledger = Ledger.open(path)
    paid(ledger, pure("0.1", "after the head"))
    ledger.close()
    Path(f"{path}.head").write_bytes(kept)  # the head is as old as if the process had been killed
    reader = Ledger.open(path, read_only=True)
    reader.require_newest()
    reader.close()
    tamper(path, f"UPDATE account SET frozen = '' || '{{}}', gates = '' WHERE id = '{account}'")
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path)


def shared(ledger: Ledger) -> Request:
    """A request of another analyst for an answer that is shared."""
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure("0.1", "a"), shared="s"), b"first answer")
    return replace(pure("0.1", "b", analyst="bob"), shared="s")


GIVEN: dict[str, Callable[[Ledger], object]] = {
    "recalled": lambda ledger: ledger.recall(pure("0.1", "one")),
    "by its question": lambda ledger: ledger.answer("one"),
    "by its statement": lambda ledger: ledger.first_answer(
        ["statement of one"], "d/unstated/owner"
    ),
    "by a part": lambda ledger: ledger.released(["p"], "d/unstated/owner"),
    "bound to a new key": lambda ledger: ledger.recall(replace(pure("0.1", "one"), key="new")),
}


@pytest.mark.parametrize("way", GIVEN)
def test_a_forged_answer_is_not_given(path: Path, way: str) -> None:
    tamper(path, "UPDATE answer SET body = CAST('forged' AS BLOB) WHERE question = 'one'")
    with pytest.raises(LedgerCorrupt, match="is not the one that was committed"):
        GIVEN[way](Ledger.open(path))


def test_a_forged_answer_is_not_shared(path: Path) -> None:
    ledger = Ledger.open(path)
    request = shared(ledger)
    ledger.close()
    tamper(path, "UPDATE answer SET body = CAST('forged' AS BLOB) WHERE question = 'a'")
    with pytest.raises(LedgerCorrupt, match="is not the one that was committed"):
        Ledger.open(path).recall(request)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE answer SET question = 'one' || question; UPDATE answer SET question = 'one' WHERE question = 'onetwo'",
        "UPDATE answer SET charge = 'x' WHERE question = 'one'",
        "UPDATE answer SET seq = seq + 3 WHERE question = 'one'",
        "UPDATE answer SET shared = 'x' WHERE question = 'one'",
        "UPDATE charge SET seq = 100 WHERE question = 'one'",
        "UPDATE journal SET body = replace(body, '\"one\"', '\"uno\"') WHERE kind = 'reserve'",
        "DELETE FROM journal WHERE seq = 4",
    ],
)
def test_an_answer_to_another_question_is_not_given(path: Path, edit: str) -> None:
    tamper(path, *edit.split("; "))
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path).answer("one")


def test_a_recall_that_checks_nothing_would_be_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper(path, "UPDATE answer SET body = CAST('forged' AS BLOB) WHERE question = 'one'")
    monkeypatch.setattr(
        sys.modules["sfumato.ledger.answers"], "require_answer", lambda _, answer: answer
    )
    assert Ledger.open(path).recall(pure("0.1", "one")) == b"forged"


def test_a_forged_key_is_not_taken(path: Path) -> None:
    assert Ledger.open(path, read_only=True).recall(KEYED) == b"keyed answer"
    tamper(path, "UPDATE key SET charge = (SELECT id FROM charge WHERE question = 'one')")
    with pytest.raises(LedgerCorrupt, match="The idempotency key 'k' is not as it was bound"):
        Ledger.open(path).recall(KEYED)


def test_what_is_sound_is_given(path: Path) -> None:
    ledger = Ledger.open(path)
    assert (ledger.recall(pure("0.1", "one")), ledger.recall(ANN)) == (
        b"first answer",
        b"ann's answer",
    )
    assert ledger.released(["p"], "d/unstated/owner") == {"p": [b"first answer"]}
    assert ledger.recall(shared(ledger)) == b"first answer"
    assert ledger.recall(KEYED) == b"keyed answer"
    assert verify(ledger).problems == ()


def test_a_digest_is_of_every_field_but_the_end_of_the_chain() -> None:
    row = child("d/p")
    for name in row._fields:
        changed = row._replace(**{name: 7 if isinstance(getattr(row, name), int) else "x"})
        assert (account_digest(changed) == account_digest(row)) == (name in ("seq", "head")), name


def test_accounts_of_an_older_format_are_bound_a_hundred_an_entry() -> None:
    root = child("d")._replace(seq=5, head="h")
    bound = list(
        binding_entries([root, *(child(f"d/p{number}") for number in range(150)), child("e")])
    )
    assert [(entry.chain, entry.seq, len(after)) for entry, after in bound] == [
        *(("d", 6, 100), ("d", 7, 50), ("d", 8, 1)),
        ("e", 1, 1),
    ]
    assert all(is_genuine(entry) for entry, _ in bound)
    (last,) = bound[2][1]
    assert (last.seq, last.head, last.moved) == (8, bound[2][0].hash, 8)
    assert list(binding_entries([row for _, after in bound for row in after])) == []


def test_an_entry_says_what_moved_an_account_before() -> None:
    (after,), said = moved_to([child("d/p")._replace(moved=3)], 9)
    assert (after.moved, said) == (9, {"d/p": [3, account_digest(after)]})


def test_on_a_server_the_row_is_compared_at_every_charge(database: str) -> None:
    ledger = Ledger.open(database)
    ledger.adopt(contract(Budget(1)), Budget(1))
    paid(ledger, pure("0.1", "one"))
    store: Store = ledger.store

    def edit(rows: Rows) -> None:
        row = rows.lock(["d"])["d"]
        rows.put_account(row._replace(spent=row.held.replace(',"unbounded":"0"', "")))

    store.write(edit)
    with pytest.raises(LedgerCorrupt, match="it was edited"):
        ledger.reserve(pure("0.95", "two"))
    ledger.close()

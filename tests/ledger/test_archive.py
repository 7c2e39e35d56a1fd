# SPDX-License-Identifier: Apache-2.0
"""A ledger carried elsewhere as lines is the same ledger; an edited line is none."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorrupt, WrongUse
from sfumato.ledger import Ledger, verify
from sfumato.ledger.archive import lines, load
from sfumato.ledger.seal import Signer
from sfumato.ledger.store.base import Counts, Rows
from sfumato.ledger.store.sqlite import SQLite
from sfumato.privacy import Budget
from tests.contracts.charges import contract, in_state, opened, paid, pure

OLD = Path(__file__).parent / "data" / "format-1.sqlite"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Two datasets, every state, every act."""
    ledger = opened(tmp_path / "l.db", 3)
    ledger.adopt(contract(Budget(2), "e"), Budget(2))
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure("0.1", "one"), key="k", shared="any"), b"\x00first")
    ledger.recall(replace(pure("0.1", "two", analyst="bob"), shared="any", key="k"))
    ledger.recall(replace(pure("0.1", "one"), key="k2", shared="any"))
    paid(ledger, pure("0.5", "three", dataset="e"), b"", released=("p", "q"))
    in_state(ledger, "forfeited", "four")
    ledger.thaw("d")
    for state in ("forfeited", "voided", "reserved", "executing"):
        in_state(ledger, state, f"five {state}")
    ledger.allocate("d", Budget("0.5"), purpose="research")
    ledger.freeze("d", purpose="research", reason="r")
    ledger.refresh("e", Budget(1), reason="r")
    return ledger


def archive(ledger: Ledger) -> list[str]:
    """Its lines."""
    return ledger.store.read(lambda rows: list(lines(rows)))


def everything(rows: Rows) -> list[object]:
    """Every row, but for the leases, which mean nothing elsewhere."""
    history = [(row._replace(lease_until=0), answer) for row, answer in rows.history()]
    return [
        *rows.accounts(),
        *history,
        *rows.keys(),
        *rows.parts(),
        *(entry for chain in rows.chains() for entry in rows.entries(chain)),
    ]


def test_a_ledger_read_in_is_the_same_ledger(ledger: Ledger, tmp_path: Path) -> None:
    store = SQLite(tmp_path / "copy.db")
    count = load(store, archive(ledger))
    assert store.read(everything) == ledger.store.read(everything)
    assert count == verify(ledger).entries
    store.close()
    assert verify(Ledger.open(tmp_path / "copy.db")).problems == ()


def test_a_ledger_of_format_1_can_be_carried_too(tmp_path: Path) -> None:
    shutil.copy(OLD, tmp_path / "old.db")
    old = Ledger.open(tmp_path / "old.db")
    store = SQLite(tmp_path / "copy.db")
    load(store, archive(old))
    assert store.read(everything) == old.store.read(everything)


EDITS = {
    "an edited answer": lambda old: [line.replace('"answer":"AGZp', '"answer":"AGZq') for line in old],
    "an edited cost": lambda old: [line.replace("100000000000", "100000000001") for line in old],
    "a line less": lambda old: old[:5] + old[6:],
    "a line twice": lambda old: [*old[:5], *old[4:]],
    "two lines swapped": lambda old: [*old[:3], old[4], old[3], *old[5:]],
    "an answer less": lambda old: [line for line in old if '{"answer"' not in line[:10]],
    "an unknown kind": lambda old: [line.replace('"thaw"', '"melt"') for line in old],
    "a line that is no JSON": lambda old: [*old, "nonsense"],
    "a line of another shape": lambda old: [*old, "[1]"],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_archive_is_refused_and_leaves_the_store_empty(ledger: Ledger, tmp_path: Path, edit: str) -> None:
    old = archive(ledger)
    new = EDITS[edit](old)
    assert new != old
    store = SQLite(tmp_path / "copy.db")
    with pytest.raises(LedgerCorrupt):
        load(store, new)
    assert store.read(lambda rows: rows.counts()) == Counts(0, 0, 0, 0, 0, 0)
    assert load(store, old) == verify(ledger).entries


def test_the_end_of_an_archive_may_be_missing_unnoticed_and_a_head_tells(ledger: Ledger, tmp_path: Path) -> None:
    head = ledger.store.read(lambda rows: Signer(tmp_path / "key").sign("x", rows))
    store = SQLite(tmp_path / "copy.db")
    load(store, archive(ledger)[:-1])
    store.close()
    assert verify(Ledger.open(tmp_path / "copy.db"), [head]).problems != ()


@pytest.mark.parametrize("content", [[], [""], ["{}"], ['{"sfumato-archive":2}'], ["[]"], ["nonsense"]])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: list[str]) -> None:
    with pytest.raises(WrongUse, match="no archive of a ledger"):
        load(SQLite(tmp_path / "l.db"), content)


def test_a_ledger_that_holds_something_takes_no_other_history(ledger: Ledger) -> None:
    with pytest.raises(WrongUse, match="is not empty"):
        load(ledger.store, archive(ledger))


def test_a_ledger_whose_answer_is_missing_is_not_exported(ledger: Ledger) -> None:
    store = ledger.store
    assert isinstance(store, SQLite)
    store._connection.execute("DELETE FROM answer")
    with pytest.raises(LedgerCorrupt, match="is missing"):
        archive(ledger)

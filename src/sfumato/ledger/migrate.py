# SPDX-License-Identifier: Apache-2.0
"""Moves a ledger to another place, such that only one of the two ever charges.

1. The target is created, empty and marked as being filled: nobody can open it. 2. One transaction
in the source freezes every dataset and records the successor's place and identity, permanently: no
other ledger is ever filled from it, even if the successor is lost. 3. One transaction in the target
writes everything, verifies it, unfreezes what was not frozen before, and removes the mark.

If the process is killed at any point, at most one of the two charges; calling it again completes
the move.
"""

import json
from pathlib import Path

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerMoved, shown
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.archive import begin_filling, fill, history, require_empty
from sfumato.ledger.liveness import moved, moved_reason
from sfumato.ledger.signed_heads import Key
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import PREDECESSOR, SUCCEEDED_BY, SUCCESSOR, UNFINISHED, Rows, Store
from sfumato.ledger.store.open import open_store
from sfumato.ledger.verify import check, verify
from sfumato.privacy.event import Json


def migrate(source: str | Path, target: str | Path, *, key: Key = None) -> int:
    """Moves a ledger to an empty or new place; returns the number of entries in the target.

    The source remains readable and never charges again; opening it raises an error that names its
    successor. It keeps its identity and key. The target gets new ones: ``key`` (``Ledger.open``),
    by default stored beside a file.

    Guarantees:
        a source and its target never both charge
        a migration that was killed is finished by the next
        a source whose successor was lost or renamed fills no second one

    Raises:
        WrongUse: the target holds another ledger.
        LedgerMoved: the source has moved elsewhere, or its successor is no longer at the target.
        LedgerBusy: charges are under way in the source.
        LedgerCorrupt: the source does not verify; nothing was changed in it.
    """
    leaving = open_store(source, create=False)
    try:
        arriving = _target(leaving, target)
        try:
            entries = _moved(leaving, arriving)
            Ledger(arriving, key=key).close()  # leaves a signed head beside a file
            return entries
        finally:
            arriving.close()
    finally:
        leaving.close()


def _target(source: Store, place: str | Path) -> Store:
    """The store to fill. If the source has moved already, only its successor."""
    successor = source.read(lambda rows: rows.about(SUCCESSOR))
    try:
        return open_store(place, create=not successor)
    except LedgerMissing:
        raise _not_the_successor(source, successor, place) from None


def _not_the_successor(source: Store, successor: str, place: str | Path) -> LedgerMoved:
    return LedgerMoved(
        f"The ledger {source.place!r} has moved to {successor!r}, and at {shown(str(place))} is "
        "not that ledger.",
        remedy="Open the successor where it lies now, or restore its newest backup. If all are "
        "lost: "
        "'sfumato ledger export' and 'import' make a ledger of this one; its datasets stay frozen "
        "until "
        "the owner thaws them.",
    )


def _moved(source: Store, target: Store) -> int:
    successor = source.read(lambda rows: rows.about(SUCCESSOR))
    if successor not in ("", target.place):
        raise moved(source.place, successor)
    if successor and source.read(lambda rows: rows.about(SUCCEEDED_BY)) != target.identity:
        raise _not_the_successor(source, successor, target.place)
    has_arrived = False
    if successor:
        has_arrived = target.read(lambda rows: rows.about(PREDECESSOR)) == source.identity
    else:
        _leave(source, target)
    if not has_arrived:
        lines = source.read(lambda rows: list(history(rows)))
        target.write(lambda rows: _arrive(source, target, rows, lines))
        target.checkpoint()
    return target.read(lambda rows: rows.counts().entries)


def _leave(source: Store, target: Store) -> None:
    """Steps 1 and 2: afterwards the source does not charge."""
    target.write(lambda rows: begin_filling(target, rows, f"a migration from {source.place!r}"))
    ledger = Ledger(source)
    problems = verify(ledger).problems
    if problems:
        raise LedgerCorrupt(
            "The ledger does not say what happened, so it is not moved:\n"
            + "\n".join(problems[:50]),
            remedy="Restore the newest backup that verifies.",
        )

    def transaction(rows: Rows) -> None:
        roots = [row.id for row in rows.accounts() if not row.parent]
        rows.lock(roots)
        if rows.overdue(None, 1):
            raise LedgerBusy(
                "Charges are under way, so the ledger is not moved.",
                remedy="Try again when they ended.",
            )
        for root in roots:
            locked = LockedAccounts(rows, root)
            before = locked.root.frozen
            reason = moved_reason(target.place)
            locked.put(locked.root._replace(frozen=reason))
            move: dict[str, Json] = {"account": root, "to": target.place}
            locked.record("move", {**move, "frozen": before, "reason": reason})
            locked.save()
        rows.put_about(SUCCESSOR, target.place)
        rows.put_about(SUCCEEDED_BY, target.identity)

    source.write(transaction)
    source.checkpoint()


def _arrive(source: Store, target: Store, rows: Rows, lines: list[str]) -> None:
    """Step 3: fills the target completely, or not at all."""
    require_empty(target, rows)
    fill(rows, lines)
    problems = list(check(rows, []).problems)
    if problems:
        raise LedgerCorrupt("What arrived does not say what happened:\n" + "\n".join(problems[:50]))
    for root in [row.id for row in rows.accounts() if not row.parent]:
        locked = LockedAccounts(rows, root)
        last = rows.last_entry(root)
        if last is None or last.kind != "move":
            raise LedgerBusy(
                f"The dataset {root!r} was opened in {source.place!r} while that was being moved.",
                remedy="Close the sessions there, and thaw nothing.",
            )
        before = json.loads(last.body)["frozen"]
        locked.put(locked.root._replace(frozen=before))
        locked.record("arrive", {"account": root, "from": source.place, "frozen": before})
        locked.save()
    rows.put_about(PREDECESSOR, source.identity)
    rows.put_about(UNFINISHED, "")

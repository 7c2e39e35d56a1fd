# SPDX-License-Identifier: Apache-2.0
"""Whether a ledger may charge (RULES 27): not one that is being filled or recovered, nor one that has moved."""

from datetime import timedelta

from sfumato.errors import LedgerMoved, LedgerUnavailable, WrongUse
from sfumato.ledger.store.base import LOSS, SUCCESSOR, UNFINISHED, Rows, Store
from sfumato.ledger.store.open_mark import incomplete


def require_live(store: Store) -> None:
    """Refuses a ledger that must not charge, or not yet.

    Raises:
        LedgerMoved: it has a successor.
        LedgerUnavailable: what was to fill it did not end.
        LedgerIncomplete: it was being recovered, which did not end.
    """
    unfinished, loss, successor = store.read(
        lambda rows: [rows.about(name) for name in (UNFINISHED, LOSS, SUCCESSOR)]
    )
    if successor:
        raise moved(store.place, successor)
    if unfinished:
        raise LedgerUnavailable(
            f"The ledger {store.place!r} is not ready: {unfinished} was not finished.",
            remedy="Run it again. Nothing can be charged before.",
        )
    if loss:
        raise incomplete(store.place, loss)


def require_not_moved(rows: Rows, place: str) -> None:
    """In a unit of work: refuses where the ledger has moved since it was opened."""
    successor = rows.about(SUCCESSOR)
    if successor:
        raise moved(place, successor)


def moved(place: str, successor: str) -> LedgerMoved:
    """A ledger that lives elsewhere now."""
    return LedgerMoved(
        f"The ledger {place!r} has moved to {successor!r}.",
        remedy="Name that one. If the move was interrupted: sfumato ledger migrate --to, with the same place, finishes it.",
    )


def moved_reason(successor: str) -> str:
    """Why the accounts of a ledger that has moved are frozen."""
    return f"moved to {successor}"


def recovered_reason(reason: str) -> str:
    """Why the accounts of a ledger that has lost something are frozen."""
    return f"recovered, and something is missing: {reason}"


def lease_milliseconds(lease: timedelta) -> int:
    """How long a charge may be under way.

    Raises:
        WrongUse: less than a millisecond: everybody would close everybody's charges.
    """
    milliseconds = int(lease / timedelta(milliseconds=1))
    if milliseconds < 1:
        raise WrongUse(
            f"lease={lease!r}.",
            allowed="a millisecond or more, longer than the longest question takes",
        )
    return milliseconds

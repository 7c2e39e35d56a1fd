# SPDX-License-Identifier: Apache-2.0
"""Whether a ledger may be charged: not while it is filled or recovered, nor after it has moved.

``Ledger.open`` and ``spend`` ask it (RULES 27).
"""

from datetime import timedelta

from sfumato.errors import LedgerMoved, LedgerUnavailable, WrongUse
from sfumato.ledger.store.base import LOSS, SUCCESSOR, UNFINISHED, Rows, Store
from sfumato.ledger.store.open_mark import incomplete


def require_live(store: Store) -> None:
    """Refuses charges to a ledger that is incomplete, has moved, or may lack spending.

    Raises:
        LedgerMoved: the ledger was moved to another place.
        LedgerUnavailable: an import or a migration into it did not finish.
        LedgerIncomplete: its recovery did not finish.
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
    """Refuses a transaction if the ledger was migrated to another place since it was opened."""
    successor = rows.about(SUCCESSOR)
    if successor:
        raise moved(place, successor)


def moved(place: str, successor: str) -> LedgerMoved:
    """Returns the error for a ledger that was migrated to the place ``successor``."""
    return LedgerMoved(
        f"The ledger {place!r} has moved to {successor!r}.",
        remedy="Name that one. If the move was interrupted: sfumato ledger migrate --to, with the "
        "same place, finishes it.",
    )


def moved_reason(successor: str) -> str:
    """Returns the reason with which the accounts of a moved ledger are frozen."""
    return f"moved to {successor}"


def recovered_reason(reason: str) -> str:
    """Returns the reason with which the accounts of a recovered ledger are frozen."""
    return f"recovered, and something is missing: {reason}"


def lease_milliseconds(lease: timedelta) -> int:
    """Returns a lease in milliseconds.

    Raises:
        WrongUse: the lease is below a millisecond, so that all charges would be overdue at once.
    """
    milliseconds = int(lease / timedelta(milliseconds=1))
    if milliseconds < 1:
        raise WrongUse(
            f"lease={lease!r}.",
            allowed="a millisecond or more, longer than the longest question takes",
        )
    return milliseconds

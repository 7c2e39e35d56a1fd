# SPDX-License-Identifier: Apache-2.0
"""The transitions that end a charge without an answer: void, forfeit, suspend.

A voided charge costs nothing; a forfeited one its full cost; a suspended one counts in full until
another worker resumes it. ``spend`` and ``instalments`` run them within a transaction. Proof:
closing.proof.md.
"""

from collections.abc import Callable

from sfumato.errors import AccountFrozen, LeaseExpired, LedgerUnavailable
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.balance import charge_from_text
from sfumato.ledger.pieces import Pieces, fence_of
from sfumato.ledger.store.base import (
    COUNTED,
    EXECUTING,
    EXPIRED,
    FORFEITED,
    RESERVED,
    SUSPENDED,
    VOIDED,
    ChargeRow,
    Rows,
)
from sfumato.privacy.event import Json

# The reason of a charge with secret state that was forfeited when its worker ended in order.
_LET_GO = "secret state"
# The reason of a charge that was voided because another one replaces it.
EXCHANGED = "exchanged"
# The fence of a step that any worker may take. It is not None, which a worker that has lost its
# fence could pass.
ANY_WORKER = -1
# The number of ended leases that one transaction closes.
_AT_ONCE = 64


def close_overdue(rows: Rows, until: int | None, dataset: str, reason: str) -> int:
    """Ends the charges of a dataset whose lease (renewed by a live worker) expired; returns how
    many.

    ``until`` is in milliseconds of the store's clock; None closes all open charges. A reserved
    charge is voided, since nothing was read. An executing one is forfeited, or suspended if it is
    answered in instalments.
    """
    oldest = rows.overdue(None, 1, dataset)
    if not oldest or (until is not None and oldest[0].lease_until > until):
        return 0
    # read again under the lock of the dataset, which no other transaction can change
    rows.lock([dataset])
    closed = rows.overdue(until, _AT_ONCE, dataset)
    for row in closed:
        locked = LockedAccounts(rows, row.account)
        close(rows, locked, row, reason)
    return len(closed)


def close(rows: Rows, locked: LockedAccounts, row: ChargeRow, reason: str) -> None:
    """Ends an open charge: voids it if only reserved; if executing, suspends or forfeits it."""
    if row.state == RESERVED:
        void(rows, locked, row, reason)
    elif row.pieces:
        suspend(rows, locked, row, reason)
    else:
        forfeit(rows, locked, row, reason)


def close_for(until: Callable[[Rows], int | None], dataset: str, reason: str, rows: Rows) -> int:
    """Closes overdue charges of a dataset up to a time that is read in the same transaction.

    ``until`` computes this time from the rows of the store, in milliseconds; None closes all open
    charges. ``reason`` is recorded with each charge. Returns the number of charges closed.
    """
    return close_overdue(rows, until(rows), dataset, reason)


def void(rows: Rows, locked: LockedAccounts, row: ChargeRow, reason: str) -> None:
    """Voids a reserved charge: releases its cost on every account."""
    rows.put_charge(row._replace(state=VOIDED, reason=reason))
    locked.release(charge_from_text(row.cost))
    locked.record("void", {"charge": row.id, "reason": reason} if reason else {"charge": row.id})
    locked.save()


def give_up(rows: Rows, charge_id: str, reason: str) -> None:
    """Voids a charge if it is still reserved; else does nothing. ``reason`` goes into the journal."""
    unlocked = rows.charge(charge_id)
    if unlocked is None:
        return
    locked = LockedAccounts(rows, unlocked.account)
    row = rows.charge(charge_id)
    if row is not None and row.state == RESERVED:
        void(rows, locked, row, reason)


def forfeit(rows: Rows, locked: LockedAccounts, row: ChargeRow, reason: str) -> None:
    """Ends an executing charge without an answer: its cost is spent on every account."""
    rows.put_charge(row._replace(state=FORFEITED, reason=reason))
    locked.settle(charge_from_text(row.cost))
    locked.record("forfeit", {"charge": row.id, "reason": reason})
    locked.save()


def suspend(rows: Rows, locked: LockedAccounts, row: ChargeRow, reason: str) -> None:
    """Suspends an executing charge, whose cost stays reserved until a worker resumes it.

    If the worker has state that is not stored (``Pieces.secret``), nobody can resume the charge,
    and it is forfeited instead.
    """
    if Pieces.from_text(row.pieces).secret:
        forfeit(rows, locked, row, reason or _LET_GO)
        return
    failures = row.failures + (reason in COUNTED)
    rows.put_charge(row._replace(state=SUSPENDED, reason=reason, lease_until=0, failures=failures))
    locked.record("suspend", {"charge": row.id, "reason": reason})
    locked.save()


def execute(
    rows: Rows, charge_id: str, lease: int, pieces: Pieces | None = None
) -> AccountFrozen | None:
    """Marks a reserved charge as executing, before data is read; its lease is ``lease``
    milliseconds.

    From then on the cost is never refunded. If an account of the path was frozen meanwhile, the
    charge is voided and the error returned.
    """
    locked, row = at_step(rows, charge_id, RESERVED, EXECUTING)
    try:
        locked.require_open()
    except AccountFrozen as frozen:
        void(rows, locked, row, "frozen")
        return frozen
    text = pieces.to_text() if pieces else ""
    rows.put_charge(row._replace(state=EXECUTING, lease_until=rows.now() + lease, pieces=text))
    about: dict[str, Json] = {"places": pieces.places, "secret": pieces.secret} if pieces else {}
    locked.record("execute", {"charge": charge_id, **about})
    locked.save()
    return None


def at_step(
    rows: Rows, charge_id: str, before: str, after: str, fence: int = ANY_WORKER
) -> tuple[LockedAccounts, ChargeRow]:
    """Returns the locked accounts and the row of a charge, after checking its state and worker.

    ``before`` and ``after`` are the states around the step that follows. ``fence`` is the number of
    the worker; 0 for a charge with a single answer. Returns the locked accounts and the charge.

    Raises:
        LeaseExpired: the charge was closed when its lease had ended, or another worker has it.
        LedgerUnavailable: the charge is unknown, or in another state.
    """
    unlocked = rows.charge(charge_id)
    if unlocked is None:
        raise LedgerUnavailable(
            f"Charge {charge_id} is unknown, not {before}; it cannot become {after}."
        )
    locked = LockedAccounts(rows, unlocked.account, lambda: rows.charge(charge_id))
    row = rows.charge(charge_id) or unlocked
    if fence != ANY_WORKER and fence_of(row.pieces) != fence:
        raise _late(f"Charge {charge_id} is {row.state}, and another worker has it.")
    if row.state == before:
        return locked, row
    if row.reason == EXPIRED:
        raise _late(f"Charge {charge_id} is {row.state}, not {before}: its lease had ended.")
    raise LedgerUnavailable(
        f"Charge {charge_id} is {row.state}, not {before}; it cannot become {after}."
    )


def _late(problem: str) -> LeaseExpired:
    return LeaseExpired(problem, remedy="Ask again. What was computed meanwhile is not released.")

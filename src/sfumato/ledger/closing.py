# SPDX-License-Identifier: Apache-2.0
"""How a charge ends without an answer: voided, which costs nothing, or forfeited at full cost. Proof: closing.proof.md."""

from collections.abc import Callable

from sfumato.ledger.balance import charge_from_text
from sfumato.ledger.books import Books
from sfumato.ledger.store.base import FORFEITED, RESERVED, VOIDED, ChargeRow, Rows

# Of a charge that was voided to take another one in its place.
EXCHANGED = "exchanged"
# How many ended leases one unit of work closes.
_AT_ONCE = 64


def close_overdue(rows: Rows, until: int | None, dataset: str, reason: str) -> int:
    """Ends charges of a dataset whose lease ended at ``until`` (None: all that are open).

    What was only reserved is voided, for nothing was read; the rest is forfeited.
    """
    oldest = rows.overdue(None, 1, dataset)
    if not oldest or (until is not None and oldest[0].lease_until > until):
        return 0
    # under the lock of the dataset nothing moves: what is still overdue then, stays so
    rows.lock([dataset])
    closed = rows.overdue(until, _AT_ONCE, dataset)
    for row in closed:
        books = Books(rows, row.account)
        if row.state == RESERVED:
            void(rows, books, row, reason)
        else:
            forfeit(rows, books, row, reason)
    return len(closed)


def close_for(until: Callable[[Rows], int | None], dataset: str, reason: str, rows: Rows) -> int:
    return close_overdue(rows, until(rows), dataset, reason)


def void(rows: Rows, books: Books, row: ChargeRow, reason: str) -> None:
    """reserved -> voided: every account gets the cost back."""
    rows.put_charge(row._replace(state=VOIDED, reason=reason))
    books.let_go(charge_from_text(row.cost))
    books.note("void", {"charge": row.id, "reason": reason} if reason else {"charge": row.id})
    books.save()


def give_up(rows: Rows, charge_id: str, reason: str) -> None:
    """Voids a charge that is still reserved; any other stays as it is."""
    found = rows.charge(charge_id)
    if found is None:
        return
    books = Books(rows, found.account)
    row = rows.charge(charge_id)
    if row is not None and row.state == RESERVED:
        void(rows, books, row, reason)


def forfeit(rows: Rows, books: Books, row: ChargeRow, reason: str) -> None:
    """executing -> forfeited: every account has spent the cost."""
    rows.put_charge(row._replace(state=FORFEITED, reason=reason))
    books.settle(charge_from_text(row.cost))
    books.note("forfeit", {"charge": row.id, "reason": reason})
    books.save()

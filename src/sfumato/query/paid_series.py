# SPDX-License-Identifier: Apache-2.0
"""What an account has already paid for a series, looked up by the series or by its charge.

``Session.paid_series`` and ``Session.require_paid`` use it.
"""

from dataclasses import dataclass
from typing import Any

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.ledger.journal import canonical_json, read_json
from sfumato.ledger.owner import readable
from sfumato.ledger.pieces import Pieces
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import COMMITTED, EXECUTING, SUSPENDED, ChargeRow, Rows
from sfumato.privacy.event import event_to_json
from sfumato.query.asker import Asker
from sfumato.query.series import Series
from sfumato.query.task import Names, named

# The states of a charge that can be opened again.
_OPEN = (COMMITTED, EXECUTING, SUSPENDED)


@dataclass(frozen=True, slots=True)
class PaidSeries:
    """The state of a series (a question answered in pieces) that is paid for: its charge, and how
    many of its pieces are stored.

    ``places`` is the number of all places, ``begun`` of those that were begun, ``stored`` of those
    with a stored piece. A place that was begun and is not stored is lost, unless a worker is
    computing it at the moment.

    >>> PaidSeries("c0ffee", 4, 3, 2)
    run c0ffee: 2 of 4 pieces stored, 1 lost
    """

    charge: str
    places: int
    begun: int
    stored: int

    def __repr__(self) -> str:
        lost = self.begun - self.stored
        return f"run {self.charge}: {self.stored} of {self.places} pieces stored, {lost} lost"


def paid_series(
    series: Series,
    asker: Asker,
    ledger: Ledger,
) -> PaidSeries | None:
    """Returns the charge and the progress of a series that the asker's account has paid for; None
    if it has not.
    """
    names = _names(series, asker)

    def find(rows: Rows) -> PaidSeries | None:
        row = rows.under_way(names.question)
        if row is None:
            answer = rows.answer(names.question)
            row = None if answer is None else rows.charge(answer.charge)
        if row is None or not row.pieces:
            return None
        pieces = Pieces.from_text(row.pieces)
        stored = rows.stored_instalments(row.id)
        return PaidSeries(row.id, pieces.places, pieces.begun, stored)

    return readable(lambda: ledger.store.read(find))


def require_paid(
    series: Series,
    charge: object,
    asker: Asker,
    ledger: Ledger,
) -> None:
    """Raises unless ``charge`` has paid for exactly this series; the error says what differs.

    Raises:
        UnknownName: the asker's account has no such charge.
        WrongUse: the charge paid for another series or cost, or it ended without an answer.
    """

    def find(rows: Rows) -> tuple[ChargeRow, dict[str, Any]] | None:
        row = rows.charge(charge) if isinstance(charge, str) else None
        if row is None or row.account != asker.account:
            return None
        entry = rows.entry(row.chain, row.seq)
        return None if entry is None else (row, read_json(entry.body))

    row_and_body = readable(lambda: ledger.store.read(find))
    if row_and_body is None:
        raise UnknownName(
            f"No run {shown(charge)}.",
            allowed="the whole id of a charge that this account has paid",
            remedy="sfumato ledger log lists them.",
        )
    row, body = row_and_body
    if row.question != _names(series, asker).question:
        raise _another(series, row.id, body)
    if row.state not in _OPEN:
        raise WrongUse(
            f"Run {row.id} has ended without an answer.", remedy="It stays charged; begin another."
        )


def _another(
    series: Series,
    charge: str,
    body: dict[str, Any],
) -> WrongUse:
    """The error that says how a series differs from the one that a charge paid for."""
    line = body.get("line", "")
    if line != series.line:
        return WrongUse(
            f"Run {charge} is {line!r}, and this is {series.line!r}.",
            remedy="A run goes on with the recipe, data and version that it began with.",
        )
    if canonical_json(body["event"]) != canonical_json(event_to_json(series.event)):
        return WrongUse(
            f"Run {charge} has another cost or other noise.",
            remedy="A run goes on at the cost that it was paid for.",
        )
    return WrongUse(
        f"Run {charge} has another SELECT, label, setting or declaration.",
        remedy="A run goes on with the recipe, data and version that it began with.",
    )


def _names(series: Series, asker: Asker) -> Names:
    """The keys of a series."""
    return asker.names(*named(series), series.event)

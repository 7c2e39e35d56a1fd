# SPDX-License-Identifier: Apache-2.0
"""Holds a question: its whole cost is reserved, durably, and nothing is drawn or read yet.

Proof: hold.proof.md.
"""

from inspect import getattr_static
from typing import cast

from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import InProgress, Refused, WrongUse
from sfumato.exact.values import copied, is_same
from sfumato.ledger.request import Request
from sfumato.noise.entropy import token
from sfumato.query.charge import Terms, charged, opened_plan
from sfumato.query.payer import abandon
from sfumato.query.series import (
    SERIES,
    OpenSeries,
    Series,
    Worker,
    opened_series,
    places_of,
    request_of,
)
from sfumato.query.task import Stored, Task, named, require_members, require_task


class Hold:
    """A task or a series whose whole cost is reserved, made by ``Session.hold``.

    ``ask`` goes on with a task, ``open`` with a series. Leaving the ``with`` block before that
    voids the charge, and so does the end of the ledger's lease. What is stored or suspended
    already is not reserved again: ``charge`` is empty then.

    Guarantees:
        a held charge is voided unless it was used
        a hold pays for its own question alone
    """

    def __init__(self, asked: Task | Series, worker: Worker, request: Request, charge: str) -> None:
        self._asked = asked
        self._worker = worker
        self._request = request
        self.charge = charge
        self._used = False

    def ask(self, patience: Patience = ENDLESS) -> Stored:
        """Answers the held task, as ``Session.ask`` does.

        Raises:
            WrongUse: a series is held, or the charge was used before.
            LeaseExpired: it was held for longer than the ledger's lease; nothing is charged.
            Others as ``Session.ask``.
        """
        asked = self._asked
        if _is_series(asked):
            raise WrongUse("A series that is asked.", remedy="open()")
        worker = self._worker
        with worker.door.inside():
            terms = Terms(patience=patience, payer=self)
            return charged(cast(Task, asked), worker.asker, worker.engine, worker.ledger, terms)

    def open(self, patience: Patience = ENDLESS) -> OpenSeries:
        """Opens the held series, as ``Session.open_series`` does.

        Raises:
            WrongUse: a task is held, or the charge was used before.
            Others as ``ask`` and ``Session.open_series``.
        """
        asked = self._asked
        if not _is_series(asked):
            raise WrongUse("A task that is opened.", remedy="ask()")
        with self._worker.door.inside():
            return opened_series(cast(Series, asked), self._worker, patience, self)

    def recall(self, request: Request) -> bytes | None:
        """Returns the stored answer to a request, or None, as ``Ledger.recall`` does."""
        return self._worker.ledger.recall(request)

    def reserve(self, request: Request, charge_id: str) -> str:
        """Returns the id of the charge that pays for the held request; it can be used once.

        If no charge is held, because the answer was stored, a new one with the id ``charge_id`` is
        reserved.

        Raises:
            WrongUse: another request, or the charge was used before.
        """
        if not is_same(request, self._request) or self._used:
            raise WrongUse("Another question than the one that is held, or one that was asked.")
        self._used = True
        return self.charge or self._worker.ledger.reserve(request, charge_id)

    def close(self) -> None:
        """Voids the charge unless it was used."""
        if self.charge and not self._used:
            self._used = True
            abandon(self._worker.ledger, self.charge)

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Hold(charge {self.charge or 'none'})"


def held(asked: Task | Series, worker: Worker, patience: Patience) -> Hold:
    """Returns a ``Hold`` with the reserved cost of a task or a series, unless that is stored or
    suspended already.

    Raises:
        WrongUse: it has not the members of a task, or of a series.
        Others as ``charged`` and ``opened_series``; nothing was charged.
    """
    ledger, asker = worker.ledger, worker.asker
    if _is_series(asked):
        require_members(asked, "series", SERIES)
        series = cast(Series, asked)
        event = copied(series.event)
        places_of(event)
        request = request_of(series, event, asker)
        first = series.piece(1, {})
    else:
        require_task(asked)
        first = cast(Task, asked)
        whole = copied(first.event)
        names = asker.names(*named(first), whole)
        request = asker.request(whole, names, line=first.line)
    if ledger.recall(request) is not None or ledger.suspended(request.question):
        return Hold(asked, worker, request, "")
    # whatever can fail without the data fails here, while it is free
    opened_plan(first, asker, worker.engine, patience)
    charge = token()
    try:
        ledger.reserve(request, charge)
    except BaseException as failure:
        # a refusal reserved nothing
        if not isinstance(failure, Refused | WrongUse | InProgress):
            abandon(ledger, charge)
        raise
    return Hold(asked, worker, request, charge)


def _is_series(asked: object) -> bool:
    return getattr_static(asked, "piece", None) is not None

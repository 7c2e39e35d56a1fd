# SPDX-License-Identifier: Apache-2.0
"""Requests of analysts for another limit, and what the owner decided.

A request names the limit that is wanted, not an addition: approving it twice gives it once.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_path import Scope
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.service.credentials import new_id
from sfumato.service.refusals import LimitChanged, NotVisible, TooMany
from sfumato.service.state import Row, State
from sfumato.service.trail import Trail, moment

OPEN, APPROVED, DECLINED = "open", "approved", "declined"
_MOST_OPEN, _MOST_SHOWN = 20, 200


@dataclass(frozen=True, slots=True)
class LimitRequest:
    """A request: the account, the wanted limit, the limit that it had then, and its state."""

    id: str
    at: int
    scope: Scope
    wanted: Budget
    before: Budget
    reason: str
    state: str
    decided_by: str
    note: str

    def to_json(self) -> dict[str, Json]:
        """The request as its person and the owner see it."""
        return {
            "id": self.id,
            "at": moment(self.at),
            "dataset": self.scope.dataset,
            "purpose": self.scope.purpose,
            "analyst": self.scope.analyst,
            "wanted": limit_to_json(self.wanted),
            "before": limit_to_json(self.before),
            "reason": self.reason,
            "state": self.state,
            "decided_by": self.decided_by,
            "note": self.note,
        }


class Requests:
    """Analysts' requests for other budget limits, stored in the service's state file."""

    def __init__(self, state: State, trail: Trail, clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._trail = trail
        self._clock = clock

    def add(self, scope: Scope, wanted: Budget, before: Budget, reason: str) -> LimitRequest:
        """Stores an analyst's request to change an account's limit from ``before`` to ``wanted``.

        Raises:
            TooMany: the analyst has 20 open ones.
        """
        request_id = new_id()
        with self._state.changing():
            ((count,),) = self._state.rows(
                "SELECT COUNT(*) FROM requests WHERE person = ? AND state = ?",
                (scope.analyst, OPEN),
            )
            if count >= _MOST_OPEN:
                raise TooMany(f"You have {_MOST_OPEN} open requests.", 3600)
            self._state.rows(
                "INSERT INTO requests (id, at, dataset, purpose, person, wanted, before, reason, "
                "state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(request_id, int(self._clock()), scope.dataset, scope.purpose, scope.analyst),
                    *(_text(wanted), _text(before), reason, OPEN),
                ),
            )
            self._trail.record("request_made", scope.analyst, request_id)
        return self.find(request_id)

    def find(self, request_id: str) -> LimitRequest:
        """Returns the request for a limit with this id.

        Raises:
            NotVisible: there is none.
        """
        rows = self._state.rows(f"{_REQUEST} WHERE id = ?", (request_id,))
        if not rows:
            raise NotVisible
        return _request(rows[0])

    def newest(self, person: str | None = None) -> list[LimitRequest]:
        """Returns the newest 200 requests for limits, of one person or (None) of all."""
        where, values = ("WHERE person = ? ", (person,)) if person is not None else ("", ())
        rows = self._state.rows(
            f"{_REQUEST} {where}ORDER BY at DESC, rowid DESC LIMIT {_MOST_SHOWN}", values
        )
        return [_request(row) for row in rows]

    def decide(self, request_id: str, state: str, *, by: str, note: str) -> LimitRequest:
        """Stores the decision ``state`` (approved or declined) on an open request; returns it.

        Raises:
            NotVisible: there is no such request.
            LimitChanged: it was decided before.
        """
        with self._state.changing():
            self.require_open(request_id)
            self._state.rows(
                "UPDATE requests SET state = ?, decided_by = ?, note = ? WHERE id = ?",
                (state, by, note, request_id),
            )
            self._trail.record(f"request_{state}", by, request_id)
        return self.find(request_id)

    def require_open(self, request_id: str) -> LimitRequest:
        """Returns the request with this id, which must not be decided yet.

        Raises:
            NotVisible: there is no such request.
            LimitChanged: it was decided.
        """
        request = self.find(request_id)
        if request.state != OPEN:
            raise LimitChanged(f"The request was {request.state} by {request.decided_by!r}.")
        return request


_REQUEST = (
    "SELECT id, at, dataset, purpose, person, wanted, before, reason, state, decided_by, note "
    "FROM requests"
)


def _request(row: Row) -> LimitRequest:
    request_id, at, dataset, purpose, person, wanted, before, *others = row
    scope = Scope(dataset, purpose, person)
    return LimitRequest(request_id, at, scope, _budget(wanted), _budget(before), *others)


def limit_to_json(limit: Budget | None) -> Json:
    """Returns a budget limit as JSON with exact decimals; null if there is no limit.

    >>> limit_to_json(Budget("0.5"))
    {'epsilon': '0.5', 'delta': '0'}
    """
    if limit is None:
        return None
    return {"epsilon": decimal_text(limit.epsilon), "delta": decimal_text(limit.delta)}


def _text(limit: Budget) -> str:
    return json.dumps({"epsilon": str(limit.epsilon), "delta": str(limit.delta)})


def _budget(text: str) -> Budget:
    form = json.loads(text)
    return Budget(form["epsilon"], form["delta"])

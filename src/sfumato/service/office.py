# SPDX-License-Identifier: Apache-2.0
"""What owners and auditors do: limits, requests, people; log, heads, verify, report, metrics."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sfumato.config.load import default_key
from sfumato.errors import LedgerCorrupt, WrongUse, shown
from sfumato.ledger.account_path import Scope
from sfumato.ledger.metrics import Metrics, metrics
from sfumato.ledger.report import page
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.ledger.store.base import Rows
from sfumato.ledger.summary import summary
from sfumato.ledger.verify import verify
from sfumato.privacy.event import Json
from sfumato.query.account import amounts, left_amounts
from sfumato.service.desk import Desk, budget_of, require_text
from sfumato.service.people import Caller, People, Role
from sfumato.service.refusals import LimitChanged, NotVisible
from sfumato.service.requests import APPROVED, DECLINED, Requests, limit_to_json
from sfumato.service.served import Served
from sfumato.service.trail import Trail

T = TypeVar("T")
_MOST_ENTRIES = 1000


class Office:
    """The operations of owners and auditors in the service: limits, requests, people, and reports.

    The table of routes checks roles before a method is called.

    Guarantees:
        a grant is an account of the ledger
        a request is approved once and against the limit that it was made at
    """

    def __init__(self, desk: Desk, people: People, requests: Requests, trail: Trail) -> None:
        self._desk = desk
        self._people = people
        self._requests = requests
        self._trail = trail
        # an approval compares and sets a limit; nobody sets one in between
        self._limits = threading.Lock()
        self._readings = Readings()
        self._metrics: dict[int, Metrics] = {}

    def grant(
        self, caller: Caller, path: tuple[str, str, str], form: Mapping[str, Any]
    ) -> dict[str, Json]:
        """Sets the limit of a purpose's or a person's account; the journal records the caller.

        ``path`` is a dataset, a purpose, and a person or "".

        Raises:
            NotVisible: no such dataset.
            WrongUse: no such person, or an auditor; the limit is none.
        """
        served, scope = self._desk.visible(caller, path[0]), Scope(*path)
        if scope.analyst:
            person = self._people.find(scope.analyst)
            if person is None or person.disabled or person.role is Role.AUDITOR:
                raise WrongUse(
                    f"{shown(scope.analyst)} cannot have an account here.",
                    allowed="a person of the service who is no auditor",
                    remedy="POST /v1/people",
                )
        limit, reason = budget_of(form), require_text("reason", form.get("reason"))
        with self._limits:
            served.ledger.acting_as(caller.name).allocate(
                scope.dataset, limit, purpose=scope.purpose, analyst=scope.analyst, reason=reason
            )
        return _standing(served, scope)

    def accounts(self, caller: Caller, dataset: str) -> list[Json]:
        """Returns JSON of all accounts of a dataset: limit, spent, reserved, and what is left."""
        served = self._desk.visible(caller, dataset)
        scopes = [standing.scope for standing in served.ledger.accounts()]
        return [_standing(served, scope) for scope in scopes if scope.dataset == dataset]

    def freeze(self, caller: Caller, dataset: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Freezes a dataset, purpose or account, named in ``form``: new charges are refused."""
        served, scope = self._account(caller, dataset, form)
        reason = require_text("reason", form.get("reason"))
        served.ledger.acting_as(caller.name).freeze(
            scope.dataset, purpose=scope.purpose, analyst=scope.analyst, reason=reason
        )
        return _standing(served, scope)

    def thaw(self, caller: Caller, dataset: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Unfreezes a dataset, purpose or account, named in ``form``, and acknowledges failures.

        These are the failed charges on it and on the accounts below it.
        """
        served, scope = self._account(caller, dataset, form)
        reason = require_text("reason", form.get("reason"))
        failures = served.ledger.acting_as(caller.name).thaw(
            scope.dataset, purpose=scope.purpose, analyst=scope.analyst, reason=reason
        )
        return {**_standing(served, scope), "failures": failures}

    def _account(
        self, caller: Caller, dataset: str, form: Mapping[str, Any]
    ) -> tuple[Served, Scope]:
        served = self._desk.visible(caller, dataset)
        names = {}
        for name in ("purpose", "analyst"):
            names[name] = require_text(name, form.get(name), optional=True)
        return served, Scope(dataset, **names)

    def approve(self, caller: Caller, request_id: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Approves an analyst's request: sets the account's limit to the requested one.

        The journal records the request's id with the change.

        Raises:
            NotVisible: no such request.
            LimitChanged: it was decided, or the account has another limit than when it was made.
        """
        note = require_text("reason", form.get("reason"), optional=True)
        with self._limits:
            request = self._requests.require_open(request_id)
            scope, served = request.scope, self._desk.datasets.find(request.scope.dataset)
            if served is None:
                raise NotVisible
            limit = served.standing(scope).limit
            # the wanted limit already: a crash came between the ledger and here
            if limit != request.wanted:
                if limit != request.before:
                    raise LimitChanged(
                        "The account has another limit than when the request was made.",
                        remedy="Decline it; the analyst makes a new one.",
                    )
                served.ledger.acting_as(caller.name).allocate(
                    scope.dataset,
                    request.wanted,
                    purpose=scope.purpose,
                    analyst=scope.analyst,
                    reason=f"request {request.id}: {note or 'approved'}",
                )
            return self._requests.decide(request_id, APPROVED, by=caller.name, note=note).to_json()

    def decline(self, caller: Caller, request_id: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Declines an analyst's request for another limit; the account's limit stays unchanged."""
        note = require_text("reason", form.get("reason"), optional=True)
        with self._limits:
            return self._requests.decide(request_id, DECLINED, by=caller.name, note=note).to_json()

    def people(self) -> list[Json]:
        """Returns all people of the service as JSON."""
        return [person.to_json() for person in self._people.everybody()]

    def add_person(self, caller: Caller, form: Mapping[str, Any]) -> dict[str, Json]:
        """Adds a person to the service; returns the invitation with which they set a password."""
        try:
            role = Role(form.get("role", Role.ANALYST.value))
        except ValueError:
            raise WrongUse(
                "Another role.", allowed=", ".join(role.value for role in Role)
            ) from None
        name = form.get("name")
        # checked there, whatever its type
        self._people.add(name, role, by=caller.name)  # type: ignore[arg-type]
        return {"name": str(name), "invitation": self._people.invite(str(name), by=caller.name)}

    def disable(self, caller: Caller, name: str) -> dict[str, Json]:
        """Disables a person for good: they can no longer sign in, and their tokens end."""
        self._people.disable(name, by=caller.name)
        return {"name": name, "disabled": True}

    def reset(self, caller: Caller, name: str) -> dict[str, Json]:
        """Deletes a person's password and tokens; returns a new invitation to set a password."""
        return {"name": name, "invitation": self._people.reset(name, by=caller.name)}

    def log(self, caller: Caller, dataset: str, *, after: int, limit: int) -> list[Json]:
        """Returns a dataset's journal entries after entry ``after`` as JSON, at most 1,000."""
        served = self._desk.visible(caller, dataset)
        count = max(1, min(limit, _MOST_ENTRIES))

        def entries(rows: Rows) -> list[Json]:
            found: list[Json] = []
            for entry in islice(rows.entries(Scope(dataset).root, after), count):
                head: dict[str, Any] = {
                    "seq": entry.seq,
                    "at": entry.at,
                    "kind": entry.kind,
                    "hash": entry.hash,
                }
                found.append({**json.loads(entry.body), **head})
            return found

        return served.ledger.store.read(entries)

    def head(self, caller: Caller, dataset: str) -> str:
        """Returns a signed head (the last entry of every journal chain) as text, to store
        elsewhere.
        """
        served = self._desk.visible(caller, dataset)
        signer = Signer(default_key(served.declared))
        identity = served.ledger.store.identity
        return served.ledger.store.read(partial(signer.sign, identity)).to_text()

    def verify(self, caller: Caller, dataset: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Verifies a dataset's ledger: its journal against its rows and earlier signed heads.

        ``form`` may have these heads; the result is JSON, with the problems found.
        """
        served = self._desk.visible(caller, dataset)
        texts = form.get("heads") or []
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise WrongUse("heads that are no list of texts.", allowed="as GET head returned them")
        try:
            heads = [Head.from_text(text) for text in texts]
        except LedgerCorrupt as error:
            # what the caller kept is no head; the ledger is not to blame
            raise WrongUse(error.problem, remedy=error.remedy) from None

        def replay() -> dict[str, Json]:
            report = verify(served.ledger, heads)
            return {
                "sound": not report.problems,
                "entries": report.entries,
                "charges": report.charges,
                "head": report.head,
                "problems": list[Json](report.problems[:50]),
                "trail": self._trail.first_broken() is None,
            }

        return self._readings.read(served, ("verify", *texts), replay)

    def report(self, caller: Caller, dataset: str, language: str) -> str:
        """Returns a dataset's privacy report for a compliance officer, as an HTML page."""
        served = self._desk.visible(caller, dataset)
        return self._readings.read(
            served, ("report", language), lambda: page(summary(served.ledger, dataset), language)
        )

    def trail(self, *, after: int, limit: int) -> list[Json]:
        """Returns the entries of the audit trail of the service after an entry number, as JSON."""
        return list[Json](self._trail.entries(after, max(1, limit)))

    def metrics(self) -> str:
        """Returns the metrics of all ledgers of the service in the text format of Prometheus."""
        with self._limits:
            for ledger in self._desk.datasets.ledgers:
                self._metrics[id(ledger)] = metrics(ledger, self._metrics.get(id(ledger)))
            all_metrics = list(self._metrics.values())
        ages = [each.head_age for each in all_metrics if each.head_age is not None]
        merged = replace(
            all_metrics[0],
            kinds={key: many for each in all_metrics for key, many in each.kinds.items()},
            refusals={key: many for each in all_metrics for key, many in each.refusals.items()},
            rereads={key: many for each in all_metrics for key, many in each.rereads.items()},
            under_way=sum(each.under_way for each in all_metrics),
            head_age=max(ages, default=None),
            size=sum(each.size for each in all_metrics),
        )
        return merged.to_prometheus()


class Readings:
    """Long readings of a ledger: one at a time, each kept until its journal grows."""

    _MOST = 16

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[Json, Any]] = {}

    def read(self, served: Served, what: tuple[str, ...], work: Callable[[], T]) -> T:
        """The result of ``work``, or of the last time if no journal of the ledger has grown."""
        name = (served.name, *what)
        with self._lock:
            ends = served.ledger.store.read(_ends)
            kept = self._kept.get(name)
            if kept is not None and kept[0] == ends:
                result: T = kept[1]
                return result
            result = work()
            self._kept.pop(name, None)
            while len(self._kept) >= self._MOST:
                self._kept.pop(next(iter(self._kept)))
            self._kept[name] = ends, result
            return result


def _ends(rows: Rows) -> Json:
    """The hash of the last entry of each chain."""
    last = [rows.last_entry(chain) for chain in rows.chains()]
    return [entry.hash for entry in last if entry is not None]


def _standing(served: Served, scope: Scope) -> dict[str, Json]:
    standing = served.standing(scope)
    return {
        "account": scope.id,
        "purpose": scope.purpose,
        "analyst": scope.analyst,
        "limit": limit_to_json(standing.limit),
        "spent": amounts(standing.spent),
        "reserved": amounts(standing.reserved),
        "left": left_amounts(standing.left),
        "frozen": standing.frozen,
    }

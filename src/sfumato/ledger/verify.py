# SPDX-License-Identifier: Apache-2.0
"""Whether a ledger still says what happened.

The journal is replayed from its first entry: the chain must be whole, each charge must
cost what the accountant says of its event, each account must be the sum of its charges,
and each answer must be the bytes that were committed.
"""

import hashlib
import json
from dataclasses import dataclass, field

from sfumato.accounting.account import account
from sfumato.accounting.filter import NOTHING, Charge, charge_for
from sfumato.errors import SfumatoError
from sfumato.ledger.balance import charge_from_json, charge_to_json, gates_from_json
from sfumato.ledger.journal import Entry, canonical_json, is_intact
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.privacy.event import Json, event_from_json

_STEPS = {
    "execute": (RESERVED, EXECUTING),
    "commit": (EXECUTING, COMMITTED),
    "forfeit": (EXECUTING, FORFEITED),
    "void": (RESERVED, VOIDED),
}


# What a tampered text can raise while it is read.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, SfumatoError)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found: ``problems`` is empty for a sound ledger."""

    entries: int
    charges: int
    problems: tuple[str, ...]
    head: str


@dataclass(slots=True)
class _Replay:
    """The state that the journal implies."""

    problems: list[str] = field(default_factory=list)
    contracts: dict[str, tuple[str, str]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    reserved: dict[str, dict[str, Json]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    failures: dict[str, tuple[str, int]] = field(default_factory=dict)

    def apply(self, entry: Entry) -> None:
        body = json.loads(entry.body)
        if entry.kind == "account":
            contract = body["contract"]
            self.contracts[contract["dataset"]] = (canonical_json(contract), canonical_json(body["gates"]))
        elif entry.kind == "reserve":
            self.states[body["charge"]] = RESERVED
            self.reserved[body["charge"]] = body
            cost = charge_for(account(event_from_json(body["event"])))
            if charge_to_json(cost) != body["cost"]:
                self.problems.append(f"charge {body['charge']} does not cost what its event costs")
        elif entry.kind in _STEPS:
            before, after = _STEPS[entry.kind]
            if self.states.get(body["charge"]) != before:
                self.problems.append(f"entry {entry.seq} takes a charge to {after} that was not {before}")
            self.states[body["charge"]] = after
            if after == COMMITTED:
                self.answers[body["charge"]] = body["answer"]
            if after == FORFEITED:
                self.failures[body["charge"]] = (body["reason"], 0)
        elif entry.kind == "thaw":
            for charge, (reason, _) in self.failures.items():
                if self.reserved[charge]["dataset"] == body["dataset"]:
                    self.failures[charge] = (reason, 1)
        else:
            self.problems.append(f"entry {entry.seq} is of an unknown kind")

    def spent(self, dataset: str) -> Charge:
        """What a dataset's account must have spent."""
        paid = [body for charge, body in self.reserved.items() if self.states[charge] in (COMMITTED, FORFEITED)]
        costs = [
            charge_from_json(body["cost"])
            for body in paid
            if body["dataset"] == dataset and isinstance(body["cost"], dict)
        ]
        return sum(costs, NOTHING)


def verify(ledger: Ledger) -> Report:
    """Replays the journal against everything that is stored.

    What is taken off the end, from every table alike, leaves a ledger that was once true: keep
    ``head`` elsewhere and compare it.

    Guarantees:
        an edited row is found
        a deleted charge is found
        a swapped answer is found
    """
    replay, before = _Replay(), None
    replay.problems += [f"the file is damaged: {found}" for found in ledger.store.damage()]
    for entry in ledger.store.entries():
        if not is_intact(entry, before):
            replay.problems.append(f"the chain is broken at entry {entry.seq}")
        try:
            replay.apply(entry)
        except _UNREADABLE as error:
            replay.problems.append(f"entry {entry.seq} cannot be read ({type(error).__name__})")
        before = entry
    for compare in (_compare_accounts, _compare_charges, _compare_answers):
        try:
            compare(ledger, replay)
        except _UNREADABLE as error:
            replay.problems.append(f"a row cannot be read ({type(error).__name__})")
    return Report(
        before.seq if before else 0, len(replay.states), tuple(replay.problems), before.hash if before else ""
    )


def _compare_accounts(ledger: Ledger, replay: _Replay) -> None:
    stored = {row.dataset: row for row in ledger.store.accounts()}
    for dataset in stored.keys() | replay.contracts.keys():
        row, said = stored.get(dataset), replay.contracts.get(dataset)
        if row is None or said is None:
            replay.problems.append(f"account {dataset!r} is in only one of the journal and the table")
            continue
        if (row.contract, row.gates) != said:
            replay.problems.append(f"account {dataset!r} does not have the contract of the journal")
        spent = replay.spent(dataset)
        if row.spent != canonical_json(charge_to_json(spent)):
            replay.problems.append(f"account {dataset!r} is not the sum of its charges")
        if not gates_from_json(json.loads(said[1])).admits(spent):
            replay.problems.append(f"account {dataset!r} has spent beyond its gates")


def _compare_charges(ledger: Ledger, replay: _Replay) -> None:
    stored = {row.id: row for row in ledger.store.charges()}
    for charge in stored.keys() | replay.states.keys():
        row, body = stored.get(charge), replay.reserved.get(charge)
        if row is None or body is None:
            replay.problems.append(f"charge {charge} is in only one of the journal and the table")
            continue
        said = (body["dataset"], body["analyst"], body["question"], body["statement"])
        costs = (canonical_json(body["cost"]), canonical_json(body["event"]))
        if (row.dataset, row.analyst, row.question, row.statement) != said or (row.cost, row.event) != costs:
            replay.problems.append(f"charge {charge} is not the one of the journal")
        if (row.reason, row.acknowledged) != replay.failures.get(charge, ("", 0)):
            replay.problems.append(f"charge {charge} did not fail as the journal says")
        if row.state != replay.states[charge]:
            replay.problems.append(
                f"charge {charge} is {row.state} in the table and {replay.states[charge]} in the journal"
            )


def _compare_answers(ledger: Ledger, replay: _Replay) -> None:
    rows = list(ledger.store.answers())
    stored = {row.charge: row for row in rows}
    if len(stored) != len(rows):
        replay.problems.append("a charge has more than one answer")
    for charge in stored.keys() | replay.answers.keys():
        row, asked = stored.get(charge), replay.reserved.get(charge, {})
        found = (hashlib.sha256(row.body).hexdigest(), row.question, row.statement) if row else None
        if found != (replay.answers.get(charge), asked.get("question"), asked.get("statement")):
            replay.problems.append(f"the answer of charge {charge} is not the one that was committed")

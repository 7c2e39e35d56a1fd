# SPDX-License-Identifier: Apache-2.0
"""Who asks about what, and the keys of what they are answered (RULES 21)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from sfumato.ledger.account_path import UNSTATED, Scope
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Request
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.plan.relation import Filter, Relation, Scan, Semi, UnitJoin
from sfumato.plan.scope import nodes
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.privacy.event import Event, event_to_json
from sfumato.query.passes import Context
from sfumato.query.passes.prune import columns_above, prune
from sfumato.query.task import Names

# Raised whenever the same plan would come to mean something else.
SEMANTICS = 3
# The version of the stored form of an answer.
FORMAT = 4

# Of a dataset's contract: epsilon and delta, as they are stored.
Limit: TypeAlias = tuple[str, str]
# Whose the key of an answer is that may be shared: no analyst's, for no purpose.
_ANYBODY = ("", "")

# Of a row with several matches, or of equal rank, the choice depends on what else is read.
_SAME_WHATEVER_IS_READ = (Scan, Filter, UnitJoin, Semi)


class Planned(Protocol):
    """What the keys of a planned question are computed from."""

    @property
    def question(self) -> Question: ...

    @property
    def bounded(self) -> Bounded: ...

    @property
    def event(self) -> Event: ...


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks about what: everything an answer depends on besides the question.

    ``past`` are the limits under which formats of the ledger before 4 kept answers: their keys named
    the limit, and no purpose. ``limit`` is one of them where this asker names keys as they did.

    Guarantees:
        a limit is no part of a key
        a key names the account that pays
    """

    dataset: Dataset
    contract: Contract
    analyst: str
    purpose: str = UNSTATED
    past: tuple[Limit, ...] = ()
    limit: Limit | None = None
    _contract: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        about = self.contract.about_data()
        if self.limit is not None:
            about |= {"epsilon": self.limit[0], "delta": self.limit[1]}
        # as it stands in every key: the JSON string of a JSON text
        object.__setattr__(self, "_contract", canonical_json(canonical_json(about)))

    def about(self, dataset: Dataset) -> "Asker":
        """The same asker about the same data under other limits of its units."""
        return self if dataset is self.dataset else replace(self, dataset=dataset)

    @property
    def account(self) -> str:
        """The id of the account that pays."""
        return Scope(self.dataset.name, self.purpose, self.analyst).id

    @property
    def earlier(self) -> tuple["Asker", ...]:
        """The same asker as formats before 4 named it, once for each limit of that time."""
        return tuple(replace(self, limit=limit) for limit in self.past)

    def names(self, kind: str, form: str, event: Event) -> Names:
        """The keys of the answer to a task of any kind but SQL.

        Guarantees:
            tasks that differ have different keys
        """
        asked = {"kind": canonical_json(kind), "form": canonical_json(form)}
        done = {**asked, "event": canonical_json(event_to_json(event))}
        own, statement = self._key(self._own, **done), self._key(self._own, **asked)
        return Names(own, statement, self._key(_ANYBODY, **done), kind=kind)

    def request(self, event: Event, names: Names, key: str = "") -> Request:
        """What the ledger is asked for; ``key`` is the caller's idempotency key."""
        about = (self.dataset.name, self.analyst, names.question, names.statement, event)
        return Request(
            *about,
            purpose=self.purpose,
            shared=names.shared,
            key=key,
            earlier=names.earlier,
            kind=names.kind,
        )

    def question_key(self, planned: Planned) -> str:
        """The key of one answer (RULES 21): plan, constants, bounds, mechanism, version, account."""
        return self.question_keys(planned, form(planned.bounded))[0]

    def question_keys(self, planned: Planned, plan: str) -> tuple[str, str]:
        """The key of one answer, and that of the same answer whoever asks; ``plan`` is the form of the plan."""
        question = plan, form(planned.question.output), canonical_json(event_to_json(planned.event))
        return self._plan_key(self._own, *question), self._plan_key(_ANYBODY, *question)

    def part_forms(self, planned: Planned, plan: str) -> list[str]:
        """By its place, the form of each part whatever else is asked beside it; empty where it is none of its own."""
        bounded = planned.bounded
        if bounded.tracked.raw.is_open:
            return [""] * len(bounded.parts)
        # what is asked for by itself is what it is: the compiler has pruned it
        if len(bounded.parts) == 1:
            return [plan]
        relations: dict[frozenset[str], Relation] = {}
        parts = [self._alone(bounded, place, relations) for place in range(len(bounded.parts))]
        # they have few relations, each of which is written once, as is the aggregate of each
        shared = {id(each): each for each in (part.tracked.raw.relation for part in parts)}
        known = aggregate_forms(bounded) | {name: form(each) for name, each in shared.items()}
        return [form(part, known) for part in parts]

    def part_keys(self, forms: Sequence[str]) -> tuple[str, ...]:
        """The key of each part by its form; empty where it has none."""
        return tuple(self._plan_key(self._own, each) if each else "" for each in forms)

    def _alone(
        self, bounded: Bounded, place: int, relations: dict[frozenset[str], Relation]
    ) -> Bounded:
        """A part as it would be asked for by itself: without the columns that only others read.

        ``relations``: what is left of the relation, by the columns that a part reads of it.
        """
        part = bounded.only([place])
        raw = part.tracked.raw
        if not all(isinstance(each, _SAME_WHATEVER_IS_READ) for each in nodes(raw.relation)):
            return part
        read = columns_above(raw)
        if read not in relations:
            relations[read] = prune(raw, Context(self.dataset, bounded.norm)).relation
        alone = replace(raw, relation=relations[read])
        return replace(part, tracked=replace(part.tracked, raw=alone))

    def statement_key(self, question: Question) -> str:
        """The key of a statement whatever it was paid for."""
        return self._plan_key(self._own, form(question.raw), form(question.output))

    @property
    def _own(self) -> tuple[str, str]:
        return self.analyst, self.purpose

    def _key(self, whose: tuple[str, str], **facts: str) -> str:
        """The hash of canonical JSON; what is long and in several keys is given as it stands there."""
        analyst, purpose = whose
        facts |= {
            "analyst": canonical_json(analyst),
            "contract": self._contract,
            "semantics": str(SEMANTICS),
            "version": canonical_json(self.dataset.version),
        }
        if self.limit is None:
            facts["purpose"] = canonical_json(purpose)
        text = ",".join(f'"{name}":{facts[name]}' for name in sorted(facts))
        return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()

    def _plan_key(
        self, whose: tuple[str, str], plan: str, output: str = "null", event: str = "null"
    ) -> str:
        """The key of an answer, or of a part of one, that is a plan."""
        return self._key(whose, plan=plan, output=output, event=event, format=str(FORMAT))


def aggregate_forms(bounded: Bounded) -> dict[int, str]:
    """By ``id``, the form of each aggregate of a question, which its plan names several times."""
    return {id(part.aggregate): form(part.aggregate) for part in bounded.parts}

# SPDX-License-Identifier: Apache-2.0
"""The asker of a question, and the keys under which its answers are stored (RULES 21).

A session has one ``Asker``; ``release``, ``charge`` and ``series`` compute keys and ledger requests
with it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from sfumato.ledger.account_path import UNSTATED, Scope
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Request
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.plan.levels import Levels
from sfumato.plan.question import Question
from sfumato.plan.relation import Filter, Relation, Scan, Semi, UnitJoin
from sfumato.plan.scope import nodes
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.privacy.event import Event, event_to_json
from sfumato.query.passes import Context
from sfumato.query.passes.prune import columns_above, prune
from sfumato.query.task import Names

# Increased whenever the same plan would be computed in another way.
SEMANTICS = 3
# The version of the stored form of an answer.
FORMAT = 4

# The epsilon and delta of a dataset's contract, as they are stored.
Limit: TypeAlias = tuple[str, str]
# The analyst and purpose in the key of an answer that may be shared.
_ANYBODY = ("", "")

# The rows of these relations do not depend on which columns are read. Others choose among several
# matching or equally ranked rows by all columns that are read.
_SAME_WHATEVER_IS_READ = (Scan, Filter, UnitJoin, Semi)


class Planned(Protocol):
    """The members of a planned question from which its keys are computed."""

    @property
    def question(self) -> Question: ...

    @property
    def plan(self) -> Bounded | Levels: ...

    @property
    def event(self) -> Event: ...


@dataclass(frozen=True, slots=True)
class Asker:
    """The analyst, purpose and dataset of a question, which determine the paying account and the
    cache keys of answers.

    ``past`` has the limits under which ledger formats before 4 stored answers: their keys contained
    the limit, and no purpose. If ``limit`` is set, this asker computes keys as these formats did.

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
        # every key contains this: the contract as JSON, encoded as a JSON string
        object.__setattr__(self, "_contract", canonical_json(canonical_json(about)))

    def about(self, dataset: Dataset) -> "Asker":
        """Returns the same asker for a dataset with other limits of its units declared."""
        if dataset is self.dataset:
            return self
        return replace(self, dataset=dataset)

    @property
    def account(self) -> str:
        """The id of the account that pays for the asker's questions."""
        return Scope(self.dataset.name, self.purpose, self.analyst).id

    @property
    def path(self) -> tuple[str, str, str]:
        """The names of the accounts that pay, from the top: dataset, purpose and analyst."""
        return self.dataset.name, self.purpose, self.analyst

    @property
    def earlier(self) -> tuple["Asker", ...]:
        """Askers that compute keys as ledger formats before 4 did, one for each past limit."""
        return tuple(replace(self, limit=limit) for limit in self.past)

    def names(
        self,
        kind: str,
        form: str,
        event: Event,
    ) -> Names:
        """Returns the cache keys of the answer to a task that is not SQL, from its kind, form and
        event.

        Guarantees:
            tasks that differ have different keys
        """
        asked = {"kind": canonical_json(kind), "form": canonical_json(form)}
        done = {**asked, "event": canonical_json(event_to_json(event))}
        own = self._key(self._own, **done)
        statement = self._key(self._own, **asked)
        shared = self._key(_ANYBODY, **done)
        return Names(own, statement, shared, kind=kind)

    def request(
        self,
        event: Event,
        names: Names,
        key: str = "",
        line: str = "",
    ) -> Request:
        """Returns the ledger request that charges an event.

        ``key`` is an idempotency key, ``line`` what the ledger shows of the task.
        """
        return Request(
            self.dataset.name,
            self.analyst,
            names.question,
            names.statement,
            event,
            purpose=self.purpose,
            shared=names.shared,
            key=key,
            earlier=names.earlier,
            kind=names.kind,
            line=line,
        )

    def question_key(self, planned: Planned) -> str:
        """Returns the cache key of a SQL answer: a hash of plan, bounds, mechanism, version and
        account.
        """
        own, _ = self.question_keys(planned, form(planned.plan))
        return own

    def question_keys(self, planned: Planned, plan: str) -> tuple[str, str]:
        """Returns two keys of a SQL answer: one for this account only, one for sharing between
        accounts.

        ``plan`` is the canonical form of the plan.
        """
        output = form(planned.question.output)
        event = canonical_json(event_to_json(planned.event))
        own = self._plan_key(self._own, plan, output, event)
        shared = self._plan_key(_ANYBODY, plan, output, event)
        return own, shared

    def part_forms(self, bounded: Bounded, plan: str) -> list[str]:
        """Returns the canonical form of each part (aggregate) of a plan, as if it were a question
        by itself.

        Another question with the same part has the same form, so it can reuse the part. A form is
        empty if the part cannot be reused: the groups of an open plan depend on all its parts.
        ``plan`` is the canonical form of the plan.
        """
        if bounded.tracked.raw.is_open:
            return [""] * len(bounded.parts)
        # a plan with one part is in that form already: the compiler has pruned it
        if len(bounded.parts) == 1:
            return [plan]
        relations: dict[frozenset[str], Relation] = {}
        parts = [self._alone(bounded, place, relations) for place in range(len(bounded.parts))]
        # parts share few relations, so the form of each relation and aggregate is computed once
        known = aggregate_forms(bounded)
        for part in parts:
            relation = part.tracked.raw.relation
            if id(relation) not in known:
                known[id(relation)] = form(relation)
        return [form(part, known) for part in parts]

    def part_keys(self, forms: Sequence[str]) -> tuple[str, ...]:
        """Returns the cache key of each part of a plan; empty for a part that cannot be reused.

        ``forms`` are the results of ``part_forms``.
        """
        return tuple(self._plan_key(self._own, plan) if plan else "" for plan in forms)

    def _alone(
        self,
        bounded: Bounded,
        place: int,
        relations: dict[frozenset[str], Relation],
    ) -> Bounded:
        """One part as a plan of its own, without the columns that only other parts read.

        ``relations`` caches the pruned relation by the set of columns that a part reads.
        """
        part = bounded.only([place])
        raw = part.tracked.raw
        if not all(isinstance(node, _SAME_WHATEVER_IS_READ) for node in nodes(raw.relation)):
            return part
        read = columns_above(raw)
        if read not in relations:
            relations[read] = prune(raw, Context(self.dataset, bounded.norm)).relation
        alone = replace(raw, relation=relations[read])
        return replace(part, tracked=replace(part.tracked, raw=alone))

    def statement_key(self, question: Question) -> str:
        """Returns the cache key of a SQL statement, which is the same at every price."""
        return self._plan_key(self._own, form(question.raw), form(question.output))

    @property
    def _own(self) -> tuple[str, str]:
        """The analyst and the purpose that this asker puts into keys."""
        return self.analyst, self.purpose

    def _key(self, whose: tuple[str, str], **facts: str) -> str:
        """The SHA-256 of the facts as canonical JSON; the values of ``facts`` are JSON already."""
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
        self,
        whose: tuple[str, str],
        plan: str,
        output: str = "null",
        event: str = "null",
    ) -> str:
        """The key of the answer to a SQL question, or of one of its parts."""
        return self._key(
            whose,
            plan=plan,
            output=output,
            event=event,
            format=str(FORMAT),
        )


def aggregate_forms(plan: Bounded | Levels) -> dict[int, str]:
    """Returns the canonical form of each aggregate of a plan, by the ``id`` of the object, as a
    cache.

    A plan contains the same aggregate several times, and its form is long.
    """
    questions = (plan,) if isinstance(plan, Bounded) else plan.questions
    parts = [part for bounded in questions for part in bounded.parts]
    return {id(part.aggregate): form(part.aggregate) for part in parts}

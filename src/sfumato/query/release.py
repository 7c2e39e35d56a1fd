# SPDX-License-Identifier: Apache-2.0
"""The SQL statement as a task: charges it, releases its parts and stores the answer.

``statements`` calls ``release`` with an ``Asked``; ``charge.charged`` runs the ``SqlTask``. Proof:
release.proof.md.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sfumato.engines.base import Codes, Engine
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.ledger.request import SQL, Keys, Request
from sfumato.ledger.spend import Ledger
from sfumato.metadata.column import ColumnType, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.levels import Levels
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey
from sfumato.privacy.event import Event, Json
from sfumato.query.add_noise import cells_of, every_group, noisy
from sfumato.query.answer_rows import merged, stacked
from sfumato.query.asker import Asker, aggregate_forms
from sfumato.query.charge import Terms, charged
from sfumato.query.choose import Planned
from sfumato.query.curator import Curator
from sfumato.query.estimate import Released, Total
from sfumato.query.explain import bias, bounding, protection
from sfumato.query.payer import Payer
from sfumato.query.rounding import Move, move_of
from sfumato.query.table import answer_body
from sfumato.query.task import Names

# The type of a key column in an answer, by the name of the declared type.
_KEY_TYPES = {
    "Integer": "integer",
    "Real": "real",
    "Date": "date",
    "Boolean": "boolean",
    "Timestamp": "timestamp",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A planned SQL question with its asker and the cache keys of its answer and parts."""

    planned: Planned
    asker: Asker
    question: str
    shared: str
    statement: str
    parts: tuple[str, ...]
    earlier: tuple[Keys, ...] = ()
    earlier_parts: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, planned: Planned, asker: Asker) -> "Asked":
        """Returns the planned question with all its cache keys."""
        plan = form(planned.plan, aggregate_forms(planned.plan))
        forms = []
        if planned.levels:
            for level in planned.levels:
                forms += asker.part_forms(level.bounded, form(level.bounded))
        else:
            forms = asker.part_forms(planned.bounded, plan)
        earlier = []
        for past in asker.earlier:
            question, shared = past.question_keys(planned, plan)
            earlier.append(Keys(question, past.statement_key(planned.question), shared))
        question, shared = asker.question_keys(planned, plan)
        return cls(
            planned,
            asker,
            question,
            shared,
            asker.statement_key(planned.question),
            asker.part_keys(forms),
            tuple(earlier),
            tuple(past.part_keys(forms) for past in asker.earlier),
        )

    @property
    def fresh(self) -> Planned:
        """The plan of the aggregates that are not stored yet; the whole plan if all are stored."""
        return self.planned.fresh or self.planned

    @property
    def event(self) -> Event:
        """The privacy event of the aggregates that are not stored yet."""
        return self.fresh.event

    @property
    def names(self) -> Names:
        """The keys of the answer, and of the parts (aggregates) that it releases for the first
        time.
        """
        planned = self.planned
        kept = self.parts if planned.stores_parts else ()
        new = tuple(key for place, key in enumerate(kept) if key and place not in planned.stored)
        if planned.stored:
            # another account must not get this answer for the price of its new parts alone
            unshared = tuple(replace(keys, shared="") for keys in self.earlier)
            return Names(self.question, self.statement, "", unshared, new)
        return Names(self.question, self.statement, self.shared, self.earlier, new)

    def request(self, key: str = "") -> Request:
        """Returns the ledger request for the aggregates that are not stored; ``key`` is an
        idempotency key.
        """
        return self.asker.request(self.event, self.names, key)


@dataclass(frozen=True, slots=True)
class _Preface:
    """The contents of an answer that do not depend on released numbers; computed before the charge.

    ``moves`` states for each part how far rounding may move the values that it reads.
    """

    facts: dict[str, Json]
    key_types: list[str]
    moves: list[Move | None]

    @classmethod
    def of(cls, asked: Asked) -> "_Preface":
        """Computes the texts on protection, bounding and bias, the cost, and the types of keys."""
        planned = asked.planned
        dataset = asked.asker.dataset
        bounded = planned.bounded
        question = planned.question
        limits = [line for each in planned.questions for line in bounding(each)]
        distortions = [line for each in planned.questions for line in bias(each)]
        facts: dict[str, Json] = {
            "dataset": dataset.name,
            "statement": question.text,
            "cost": planned.cost.to_json(),
            "protected": list[Json](protection(dataset, bounded.tracked.unit)),
            "bounded": list[Json](dict.fromkeys(limits)),
            "bias": list[Json](dict.fromkeys([*distortions, *question.bias])),
            "notes": list[Json](planned.notes),
            "parts": list[Json](asked.parts) if planned.stores_parts else [],
        }
        key_types = [key_type(key) for key in bounded.tracked.raw.keys]
        return cls(facts, key_types, [move_of(part.aggregate) for part in bounded.parts])


@dataclass(frozen=True, slots=True)
class SqlTask:
    """A planned SQL question as a task, which ``charged`` reserves, runs and stores."""

    asked: Asked
    preface: _Preface

    @classmethod
    def of(cls, asked: Asked) -> "SqlTask":
        """Returns the task of a planned question, with the parts of its answer that do not depend
        on released numbers.

        Guarantees:
            an error in the texts of an answer charges nothing
        """
        return cls(asked, _Preface.of(asked))

    @property
    def kind(self) -> str:
        """The kind of the task, which is always ``SQL``."""
        return SQL

    @property
    def line(self) -> str:
        """The line for the ledger, always empty: a statement may quote private knowledge of its
        asker.
        """
        return ""

    @property
    def form(self) -> str:
        """The canonical form of the plan and its output; the keys are in ``Asked.names``."""
        planned = self.asked.planned
        return f"[{form(planned.plan)},{form(planned.question.output)}]"

    @property
    def event(self) -> Event:
        """The privacy event of the parts that no earlier answer released."""
        return self.asked.event

    @property
    def cells(self) -> tuple[int | None, ...]:
        """The number of noisy integers of each additive mechanism, if the groups are declared."""
        return cells_of(self.asked.fresh)

    @property
    def size(self) -> int | None:
        """The bound on the answer's bytes: always None, since groups may not be public."""
        return None

    def ready(self, declarations: Dataset) -> Bounded | Levels:
        """Returns the plan of the parts that no earlier answer released."""
        return self.asked.fresh.plan

    def run(self, curator: Curator) -> bytes:
        """Runs the plan and returns the answer as bytes."""
        groups, parts = noisy(self.asked.fresh, curator)
        return _body(self, curator.charge, groups, parts)


def release(
    asked: Asked,
    engine: Engine,
    ledger: Ledger,
    *,
    key: str = "",
    patience: Patience = ENDLESS,
    payer: Payer | None = None,
) -> bytes:
    """Returns the stored answer of a planned question, after charging it if it is new.

    ``payer`` pays instead of the ledger.

    Guarantees:
        what is stored already is not charged

    Raises:
        As ``charged``.
    """
    planned = asked.planned
    task = SqlTask.of(asked)
    if planned.fresh is not None:
        terms = Terms(key, patience, payer, asked.names)
        return charged(task, asked.asker, engine, ledger, terms).body
    request = asked.request(key)
    stored = (payer or ledger).recall(request)
    if stored is not None:
        return stored
    ledger.reread(request, {part.charge for part in planned.stored.values()})
    groups = every_group(planned.bounded.tracked.raw.keys)
    return _body(task, planned.stored[0].charge, groups, [])


def _body(
    task: SqlTask,
    charge: str,
    groups: Sequence[Codes],
    released: Sequence[Released],
) -> bytes:
    """The bytes of an answer, from the newly ``released`` parts and the stored ones."""
    planned = task.asked.planned
    preface = task.preface
    output = planned.question.output
    keys = planned.bounded.tracked.raw.keys
    parts = list(_every_part(planned, released))
    if not planned.levels:
        rows = merged(output, parts, groups)
    else:
        every = [every_group(level.bounded.tracked.raw.keys) for level in planned.levels]
        rows = stacked(output, parts, planned.levels, every)
    shown: list[list[Json]] = []
    for codes in rows.codes:
        shown.append([_shown(key, code) for key, code in zip(keys, codes, strict=True)])
    facts: dict[str, Json] = {"charge_id": charge, **preface.facts}
    return answer_body(facts, output, rows, preface.key_types, shown, preface.moves)


def _every_part(planned: Planned, released: Sequence[Released]) -> Iterator[Released]:
    """The parts of an answer in order, both the stored ones and the newly ``released`` ones."""
    new = iter(released)
    for place in range(len(planned.parts)):
        stored = planned.stored.get(place)
        yield next(new) if stored is None else stored.released


def _shown(key: GroupKey, code: int | str | Total | None) -> Json:
    """The value of a key as an answer shows it; a date or timestamp as an ISO 8601 string."""
    kind = key.value.type
    if code is None or isinstance(code, Total):
        return None
    if isinstance(kind, Text) or isinstance(code, str):
        return code
    value = kind.decode(code)
    if isinstance(value, datetime.date):
        return str(value)
    return value


def key_type(key: GroupKey) -> str:
    """Returns the type of a group key's column, as an answer states it."""
    return type_of(key.value.type)


def type_of(kind: ColumnType) -> str:
    """Returns the name of a declared column type, as an answer states it.

    >>> from sfumato.metadata.column import Integer, Text
    >>> type_of(Integer(0, 9)), type_of(Text())
    ('integer', 'text')
    """
    if isinstance(kind, Timestamp) and not kind.zone:
        return "local time"
    return _KEY_TYPES.get(type(kind).__name__, "text")

# SPDX-License-Identifier: Apache-2.0
"""Questions in SQL as tasks: today's first kind of question. Proof: release.proof.md."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.engines.base import Codes, Engine
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.ledger.request import SQL, Keys, Request
from sfumato.ledger.spend import Ledger
from sfumato.metadata.column import Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.show import form
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey
from sfumato.privacy.event import Event, Json
from sfumato.query.add_noise import cells_of, every_group, noisy
from sfumato.query.asker import Asker, aggregate_forms
from sfumato.query.charge import Terms, charged
from sfumato.query.choose import Planned
from sfumato.query.curator import Curator
from sfumato.query.estimate import Released
from sfumato.query.explain import bias, bounding, protection
from sfumato.query.payer import Payer
from sfumato.query.rounding import move_of
from sfumato.query.table import answer_body, merged
from sfumato.query.task import Names


@dataclass(frozen=True, slots=True)
class Asked:
    """A planned question of somebody, and the keys under which its answer and its parts are stored.

    ``shared`` is the key of its answer whoever asks. ``earlier`` and ``earlier_parts`` are the same
    keys as formats of the ledger before 4 named them. ``statement`` is the key of the statement
    at any price.
    """

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
        """With its keys, each computed once."""
        plan = form(planned.bounded, aggregate_forms(planned.bounded))
        forms = asker.part_forms(planned, plan)
        named = []
        for past in asker.earlier:
            question, shared = past.question_keys(planned, plan)
            named.append(Keys(question, past.statement_key(planned.question), shared))
        return cls(
            planned,
            asker,
            *asker.question_keys(planned, plan),
            asker.statement_key(planned.question),
            asker.part_keys(forms),
            tuple(named),
            tuple(past.part_keys(forms) for past in asker.earlier),
        )

    @property
    def kind(self) -> str:
        """SQL."""
        return SQL

    @property
    def line(self) -> str:
        """Nothing: a statement may quote what its asker knows."""
        return ""

    @property
    def form(self) -> str:
        """The whole plan and its output; its keys are named by ``names``."""
        return f"[{form(self.planned.bounded)},{form(self.planned.question.output)}]"

    @property
    def fresh(self) -> Planned:
        """What of it has to be released; all of it where everything is stored."""
        return self.planned.fresh or self.planned

    @property
    def event(self) -> Event:
        """What the part that is new does to the data."""
        return self.fresh.event

    @property
    def cells(self) -> tuple[int | None, ...]:
        """Of each additive part of declared groups the number of its integers."""
        return cells_of(self.fresh)

    @property
    def size(self) -> int | None:
        """No public bound: groups may not be."""
        return None

    def ready(self, declarations: Dataset) -> Bounded:
        """The plan of what is new."""
        return self.fresh.bounded

    def run(self, curator: Curator) -> bytes:
        """The bytes of the answer."""
        groups, parts = noisy(self.fresh, curator)
        return _body(curator.charge, self, groups, parts)

    @property
    def names(self) -> Names:
        """Its keys, with those of the parts that are released by it."""
        planned = self.planned
        # the rows of grouping sets are sums: their parts are none that could be read again
        kept = () if planned.question.output.sets else self.parts
        new = tuple(key for place, key in enumerate(kept) if key and place not in planned.stored)
        if planned.stored:
            # an answer of which a part was paid for elsewhere is not to be had for the price of the rest
            unshared = tuple(replace(each, shared="") for each in self.earlier)
            return Names(self.question, self.statement, "", unshared, new)
        return Names(self.question, self.statement, self.shared, self.earlier, new)

    def request(self, key: str = "") -> Request:
        """What the ledger is asked for, of what is not stored; ``key`` is the caller's idempotency key."""
        return self.asker.request(self.event, self.names, key)


def release(
    asked: Asked,
    engine: Engine,
    ledger: Ledger,
    *,
    key: str = "",
    patience: Patience = ENDLESS,
    payer: Payer | None = None,
) -> bytes:
    """The stored answer to a planned question, charged once. ``payer`` takes the cost, where it is not the ledger.

    Guarantees:
        what is stored already is not charged

    Raises:
        As ``charged``.
    """
    planned = asked.planned
    if planned.fresh is not None:
        return charged(
            asked, asked.asker, engine, ledger, Terms(key, patience, payer, asked.names)
        ).body
    request = asked.request(key)
    stored = (payer or ledger).recall(request)
    if stored is not None:
        return stored
    ledger.reread(request, {each.charge for each in planned.stored.values()})
    return _body(planned.stored[0].charge, asked, every_group(planned.bounded.tracked.raw.keys), [])


def _body(
    charge: str, asked: Asked, groups: Sequence[Codes], released: Sequence[Released]
) -> bytes:
    """The bytes of an answer: parts ``released`` now, and those that are stored."""
    planned, asker = asked.planned, asked.asker
    bounded, output, new = planned.bounded, planned.question.output, iter(released)
    parts = [
        planned.stored[place].released if place in planned.stored else next(new)
        for place in range(len(bounded.parts))
    ]
    keys = bounded.tracked.raw.keys
    facts: dict[str, Json] = {
        "charge_id": charge,
        "dataset": asker.dataset.name,
        "statement": planned.question.text,
        "cost": planned.cost.to_json(),
        "protected": list[Json](protection(asker.dataset, bounded.tracked.unit)),
        "bounded": list[Json](bounding(bounded)),
        "bias": list[Json]([*bias(bounded), *planned.question.bias]),
        "notes": list[Json](planned.notes),
        "parts": [] if output.sets else list[Json](asked.parts),
    }
    rows = merged(output, parts, groups)
    types = [_key_type(key) for key in keys]
    shown = [
        [_shown(key, code) for key, code in zip(keys, codes, strict=True)] for codes in rows.codes
    ]
    moves = [move_of(part.aggregate) for part in bounded.parts]
    return answer_body(facts, output, rows, types, shown, moves)


def _shown(key: GroupKey, code: int | str | None) -> Json:
    kind = key.value.type
    if isinstance(kind, Text) or isinstance(code, str):
        return code
    value = None if code is None else kind.decode(code)
    return value.isoformat() if isinstance(value, datetime.date) else value


def _key_type(key: GroupKey) -> str:
    return {"Integer": "integer", "Real": "real", "Date": "date", "Boolean": "boolean"}.get(
        type(key.value.type).__name__, "text"
    )

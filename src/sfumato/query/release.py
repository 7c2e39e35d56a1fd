# SPDX-License-Identifier: Apache-2.0
"""Where the two flows meet: the only place in which exact integers get their noise.

The order is the guarantee: reserve (durable), draw the noise, mark executing (durable),
read, add, commit the bytes (durable), return them. Proof: release.proof.md.
"""

import datetime
import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.engines.base import Codes, Engine, Integers
from sfumato.errors import EngineFailed
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.ledger.tree import UNSTATED
from sfumato.metadata.column import Column, Text
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.noise.entropy import token
from sfumato.plan.aggregate import width
from sfumato.plan.show import canonical, title
from sfumato.privacy.event import Json, event_to_json
from sfumato.query.choose import Planned
from sfumato.query.estimate import Released, units_of
from sfumato.query.explain import bias, bounding, protection
from sfumato.query.table import FORMAT, answer_body
from sfumato.sql.lower import Question

# Raised whenever the same plan would come to mean something else.
SEMANTICS = 1


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks about what: everything an answer depends on besides the question."""

    dataset: Dataset
    contract: Contract
    analyst: str
    purpose: str = UNSTATED

    def request(self, planned: Planned, key: str = "") -> Request:
        """What the ledger is asked for; ``key`` is the caller's idempotency key."""
        question, statement = self.question_key(planned), self.statement_key(planned.question)
        shared = replace(self, analyst="").question_key(planned)
        names = (self.dataset.name, self.analyst, question, statement, planned.event)
        return Request(*names, purpose=self.purpose, shared=shared, key=key)

    def question_key(self, planned: Planned) -> str:
        """The key of one answer (RULES 21): plan, constants, bounds, mechanism, version, asker."""
        return self._key(canonical(planned.bounded), canonical(planned.question.output), event_to_json(planned.event))

    def statement_key(self, question: Question) -> str:
        """The key of a statement whatever it was paid for."""
        return self._key(canonical(question.raw), canonical(question.output), None)

    def _key(self, plan: Json, output: Json, event: Json) -> str:
        facts: Json = {
            "plan": plan,
            "output": output,
            "event": event,
            "contract": canonical_json(self.contract.to_json()),
            "version": self.dataset.version,
            "analyst": self.analyst,
            "semantics": SEMANTICS,
            "format": FORMAT,
        }
        return hashlib.sha256(canonical_json(facts).encode()).hexdigest()


def release(planned: Planned, asker: Asker, engine: Engine, ledger: Ledger, *, key: str = "") -> bytes:
    """The stored answer to a planned question, charged once.

    Guarantees:
        the debit comes before the noise and the noise before the read
        the same question gives the same bytes
        a failure after the read is forfeited
        the answer is stored before it is returned

    Raises:
        BudgetExceeded, AccountFrozen: nothing was charged.
        KeyUsed: the idempotency key is bound to something else; nothing was charged.
        EngineFailed: the charge is forfeited.
    """
    request = asker.request(planned, key)
    with ledger.one_at_a_time():
        stored = ledger.recall(request)
        return stored if stored is not None else _charged(planned, asker, engine, ledger, request)


def _charged(planned: Planned, asker: Asker, engine: Engine, ledger: Ledger, request: Request) -> bytes:
    """Reserve, draw, execute, read, commit: in this order."""
    charge = ledger.reserve(request)
    try:
        groups = every_group(planned.bounded.tracked.raw.keys)
        noise = [
            mechanism.draw(len(groups) * width(part.aggregate))
            for mechanism, part in zip(planned.mechanisms, planned.bounded.parts, strict=True)
        ]
        sampling_key = token()
    except BaseException:
        ledger.void(charge)
        raise
    ledger.execute(charge)
    body: bytes | None = None
    try:
        exact = engine.run(planned.bounded, sampling_key)
        body = _body(charge, planned, asker, _noisy(planned, groups, exact, noise))
        del exact
    except Exception:
        ledger.forfeit(charge, "engine")
    except BaseException:
        ledger.forfeit(charge, "interrupted")
        raise
    if body is None:
        # raised outside the handler: whatever it was, its text could quote a value
        raise EngineFailed()
    ledger.commit(charge, body)
    return body


def every_group(keys: Sequence[Column]) -> list[Codes]:
    """Every declared combination of keys, missing last where it is declared."""
    return list(itertools.product(*(_codes(key) for key in keys)))


def _codes(key: Column) -> list[int | None]:
    kind = key.type
    assert not isinstance(kind, Text), "lowering admits no Text key"
    codes: list[int | None] = list(range(kind.lower_code, kind.upper_code + 1))
    return codes if kind.missing is None else [*codes, None]


def _noisy(
    planned: Planned, groups: Sequence[Codes], exact: Integers, noise: Sequence[Sequence[int]]
) -> list[Released]:
    """Each part's integers plus its noise; a group without rows is zeros."""
    parts, offset = [], 0
    total = sum(width(part.aggregate) for part in planned.bounded.parts)
    zeros = (0,) * total
    for mechanism, part, drawn in zip(planned.mechanisms, planned.bounded.parts, noise, strict=True):
        size = width(part.aggregate)
        flat = [value for group in groups for value in exact.get(group, zeros)[offset : offset + size]]
        noisy = mechanism.release(flat, drawn)
        values = tuple(noisy[start : start + size] for start in range(0, len(noisy), size))
        unit, lower, span = units_of(part.aggregate, planned.bounded.refinement)
        parts.append(Released(title(part.aggregate), mechanism.noise, unit, lower, span, values))
        offset += size
    return parts


def _body(charge: str, planned: Planned, asker: Asker, parts: list[Released]) -> bytes:
    bounded = planned.bounded
    keys = bounded.tracked.raw.keys
    groups = every_group(keys)
    facts: dict[str, Json] = {
        "charge_id": charge,
        "dataset": asker.dataset.name,
        "statement": planned.question.text,
        "cost": planned.cost.to_json(),
        "protected": list[Json](protection(asker.dataset, bounded)),
        "bounded": list[Json](bounding(bounded)),
        "bias": list[Json](bias(bounded)),
        "notes": list[Json](planned.notes),
    }
    types = [_key_type(key) for key in keys]
    shown = [[_shown(key, code) for key, code in zip(keys, group, strict=True)] for group in groups]
    return answer_body(facts, planned.question.output, parts, groups, types, shown)


def _shown(key: Column, code: int | None) -> Json:
    kind = key.type
    assert not isinstance(kind, Text), "lowering admits no Text key"
    value = None if code is None else kind.decode(code)
    return value.isoformat() if isinstance(value, datetime.date) else value


def _key_type(key: Column) -> str:
    return {"Integer": "integer", "Real": "real", "Date": "date", "Boolean": "boolean"}.get(
        type(key.type).__name__, "text"
    )

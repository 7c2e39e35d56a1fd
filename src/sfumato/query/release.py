# SPDX-License-Identifier: Apache-2.0
"""Where the two flows meet: the only place in which exact integers get their noise.

The order is the guarantee: reserve (durable), draw the noise, mark executing (durable),
read, add, commit the bytes (durable), return them. Proof: release.proof.md.
"""

import datetime
import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from sfumato.engines.base import Codes, Engine, Exact
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import Cancelled, EngineFailed, InProgress, Refused, WrongUse
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Keys, Request
from sfumato.ledger.spend import Ledger
from sfumato.ledger.tree import UNSTATED, Scope
from sfumato.metadata.column import Text
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.noise.entropy import token
from sfumato.plan.relation import Filter, Relation, Scan, Semi, UnitJoin
from sfumato.plan.scope import nodes
from sfumato.plan.show import form
from sfumato.plan.status import Bounded
from sfumato.plan.value import GroupKey
from sfumato.privacy.event import Json, event_to_json
from sfumato.query.choose import Planned
from sfumato.query.estimate import Released
from sfumato.query.explain import bias, bounding, protection
from sfumato.query.noisy import drawn_before, every_group, noisy
from sfumato.query.passes import Context
from sfumato.query.passes.prune import columns_above, prune
from sfumato.query.payer import Payer, abandon
from sfumato.query.table import FORMAT, answer_body, merged
from sfumato.sql.lower import Question

T = TypeVar("T")

# Raised whenever the same plan would come to mean something else.
SEMANTICS = 3

# Of a dataset's contract: epsilon and delta, as they are stored.
Limit: TypeAlias = tuple[str, str]
# Whose the key of an answer is that may be shared: no analyst's, for no purpose.
_ANYBODY = ("", "")

# Of a row with several matches, or of equal rank, the choice depends on what else is read.
_SAME_WHATEVER_IS_READ = (Scan, Filter, UnitJoin, Semi)


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

    def question_key(self, planned: Planned) -> str:
        """The key of one answer (RULES 21): plan, constants, bounds, mechanism, version, account."""
        return self.question_keys(planned, form(planned.bounded))[0]

    def question_keys(self, planned: Planned, plan: str) -> tuple[str, str]:
        """The key of one answer, and that of the same answer whoever asks; ``plan`` is the form of the plan."""
        question = plan, form(planned.question.output), canonical_json(event_to_json(planned.event))
        return self._key(self._own, *question), self._key(_ANYBODY, *question)

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
        # they have few relations, each of which is written once
        shared = {id(each): each for each in (part.tracked.raw.relation for part in parts)}
        known = {name: form(each) for name, each in shared.items()}
        return [form(part, known) for part in parts]

    def part_keys(self, forms: Sequence[str]) -> tuple[str, ...]:
        """The key of each part by its form; empty where it has none."""
        return tuple(self._key(self._own, each) if each else "" for each in forms)

    def _alone(self, bounded: Bounded, place: int, relations: dict[frozenset[str], Relation]) -> Bounded:
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
        return self._key(self._own, form(question.raw), form(question.output))

    @property
    def _own(self) -> tuple[str, str]:
        return self.analyst, self.purpose

    def _key(self, whose: tuple[str, str], plan: str, output: str = "null", event: str = "null") -> str:
        """The hash of canonical JSON; what is long and in several keys is given as it stands there."""
        analyst, purpose = whose
        facts = {
            "analyst": canonical_json(analyst),
            "contract": self._contract,
            "event": event,
            "format": str(FORMAT),
            "output": output,
            "plan": plan,
            "purpose": canonical_json(purpose),
            "semantics": str(SEMANTICS),
            "version": canonical_json(self.dataset.version),
        }
        if self.limit is not None:
            del facts["purpose"]
        text = ",".join(f'"{name}":{fact}' for name, fact in facts.items())
        return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Asked:
    """A planned question of somebody, and the keys under which its answer and its parts are stored.

    ``shared`` is the key of its answer whoever asks. ``earlier`` and ``earlier_parts`` are the same
    keys as formats of the ledger before 4 named them.
    """

    planned: Planned
    asker: Asker
    question: str
    shared: str
    parts: tuple[str, ...]
    earlier: tuple[Keys, ...] = ()
    earlier_parts: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, planned: Planned, asker: Asker) -> "Asked":
        """With its keys, each computed once."""
        plan = form(planned.bounded)
        forms = asker.part_forms(planned, plan)
        named = []
        for past in asker.earlier:
            question, shared = past.question_keys(planned, plan)
            named.append(Keys(question, past.statement_key(planned.question), shared))
        return cls(
            planned,
            asker,
            *asker.question_keys(planned, plan),
            asker.part_keys(forms),
            tuple(named),
            tuple(past.part_keys(forms) for past in asker.earlier),
        )

    @property
    def new(self) -> list[str]:
        """The keys of the parts that are released by this question."""
        # the rows of grouping sets are sums: their parts are none that could be read again
        if self.planned.question.output.sets:
            return []
        return [key for place, key in enumerate(self.parts) if key and place not in self.planned.stored]

    def request(self, key: str = "") -> Request:
        """What the ledger is asked for, of what is not stored; ``key`` is the caller's idempotency key."""
        planned, asker, earlier = self.planned, self.asker, self.earlier
        # an answer of which a part was paid for elsewhere is not to be had for the price of the rest
        shared = "" if planned.stored else self.shared
        if planned.stored:
            earlier = tuple(replace(each, shared="") for each in earlier)
        event = (planned.fresh or planned).event
        names = (asker.dataset.name, asker.analyst, self.question, asker.statement_key(planned.question), event)
        return Request(*names, purpose=asker.purpose, shared=shared, key=key, earlier=earlier)


# How long a caller waits before it asks again for what somebody else asks elsewhere, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25


def release(
    asked: Asked,
    engine: Engine,
    ledger: Ledger,
    *,
    key: str = "",
    patience: Patience = ENDLESS,
    payer: Payer | None = None,
) -> bytes:
    """The stored answer to a planned question, charged once.

    ``payer`` takes the cost, where it is not the ledger. Nobody waits for a stored answer; who asks what is
    being answered waits for it, here and in other processes.

    Guarantees:
        the debit comes before the noise and the noise before the read
        the same question gives the same bytes
        a failure after the read is forfeited
        the answer is stored before it is returned
        what is stored already is not charged
        who asks what is being answered gets the stored bytes
        a caller who waits no longer pays only for what may have been read

    Raises:
        BudgetExceeded, AccountFrozen: nothing was charged.
        KeyUsed: the idempotency key is bound to something else; nothing was charged.
        Cancelled: the caller waits no longer.
        EngineFailed: the charge is forfeited.
    """
    request, paying = asked.request(key), payer or ledger
    return persistently(lambda: _once(asked, engine, ledger, request, patience, paying), patience)


def persistently(ask: Callable[[], T], patience: Patience) -> T:
    """What a question gives, asked again and again while it is in progress elsewhere.

    It ends: who asks elsewhere has an answer, fails, or is gone when the lease ends.

    Raises:
        Cancelled: the caller waits no longer; nothing was charged.
    """
    pause = _FIRST_PAUSE
    while True:
        with suppress(InProgress):
            return ask()
        patience.pause(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _once(
    asked: Asked,
    engine: Engine,
    ledger: Ledger,
    request: Request,
    patience: Patience,
    payer: Payer,
) -> bytes:
    """The stored answer, or a new one; nobody else asks the same here meanwhile.

    Raises:
        InProgress: somebody else does, in another process; nothing was charged.
    """
    stored = payer.recall(request)
    if stored is not None:
        return stored
    with ledger.turns.of(asked.question, None if patience.is_endless else patience.require) as waited:
        # what somebody else has answered meanwhile is there now
        stored = payer.recall(request) if waited else None
        return _new(asked, engine, ledger, request, patience, payer) if stored is None else stored


def _new(
    asked: Asked,
    engine: Engine,
    ledger: Ledger,
    request: Request,
    patience: Patience,
    payer: Payer,
) -> bytes:
    """The answer to a question that has none yet."""
    fresh = asked.planned.fresh
    if fresh is None:
        ledger.reread(request, {each.charge for each in asked.planned.stored.values()})
        groups = every_group(asked.planned.bounded.tracked.raw.keys)
        return _body(asked.planned.stored[0].charge, asked, groups, [])
    patience.require()
    engine.wait(patience)
    # what cannot be emitted fails here, while it is free
    read = engine.ready(fresh.bounded, token(), patience)
    return _charged(asked, fresh, read, ledger, lambda charge: payer.reserve(request, charge), patience)


def _charged(
    asked: Asked,
    fresh: Planned,
    read: Callable[[], Exact],
    ledger: Ledger,
    reserve: Callable[[str], str],
    patience: Patience,
) -> bytes:
    """Reserve, draw, execute, read, commit: in this order. ``fresh`` is what of the question is new."""
    # its id is known before it is taken: an interrupted caller does not see what it was given
    charge, body, failed = token(), None, "engine"
    try:
        charge = reserve(charge)
        noise = drawn_before(fresh)
        patience.require()
        ledger.execute(charge)
        try:
            exact = read()
            groups, parts = noisy(fresh, exact, noise)
            body = _body(charge, asked, groups, parts)
            del exact
        except Exception as failure:
            failed = "cancelled" if isinstance(failure, Cancelled) else "engine"
        # outside that handler: no error from here on has one beside it whose text could quote a value
        if body is not None:
            ledger.commit(charge, body, released=asked.new)
            return body
        ledger.forfeit(charge, failed)
    except (Refused, WrongUse, InProgress):
        # nothing was taken
        raise
    except BaseException:
        abandon(ledger, charge)
        raise
    raise Cancelled(paid=True) if failed == "cancelled" else EngineFailed()


def _body(charge: str, asked: Asked, groups: Sequence[Codes], released: Sequence[Released]) -> bytes:
    """The bytes of an answer: parts ``released`` now, and those that are stored."""
    planned, asker = asked.planned, asked.asker
    bounded, output, new = planned.bounded, planned.question.output, iter(released)
    parts = [
        planned.stored[place].released if place in planned.stored else next(new) for place in range(len(bounded.parts))
    ]
    keys = bounded.tracked.raw.keys
    facts: dict[str, Json] = {
        "charge_id": charge,
        "dataset": asker.dataset.name,
        "statement": planned.question.text,
        "cost": planned.cost.to_json(),
        "protected": list[Json](protection(asker.dataset, bounded)),
        "bounded": list[Json](bounding(bounded)),
        "bias": list[Json]([*bias(bounded), *planned.question.bias]),
        "notes": list[Json](planned.notes),
        "parts": [] if output.sets else list[Json](asked.parts),
    }
    rows = merged(output, parts, groups)
    types = [_key_type(key) for key in keys]
    shown = [[_shown(key, code) for key, code in zip(keys, codes, strict=True)] for codes in rows.codes]
    return answer_body(facts, output, rows, types, shown)


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

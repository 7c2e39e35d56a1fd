# SPDX-License-Identifier: Apache-2.0
"""A question of a study, as it travels, and what it compiles to at every party alike."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from math import exp, expm1, pi
from typing import Any, TypeAlias

from sfumato.accounting import order_price
from sfumato.accounting.account import account
from sfumato.config.model import recipe_of
from sfumato.errors import (
    InvalidDeclaration,
    InvalidNumber,
    UnsupportedSql,
    WrongUse,
    shown,
)
from sfumato.exact.rational import Number, decimal_text, to_fraction
from sfumato.federated.answers import question_of
from sfumato.federated.declaration import Declared
from sfumato.federated.joint import Exchange, JointSeries, JointTask, most_integers
from sfumato.federated.messages import canonical
from sfumato.learning.additive import Additive, LogisticRegression
from sfumato.learning.bag import Bag
from sfumato.learning.examples_of import Examples
from sfumato.learning.kmeans import KMeans
from sfumato.learning.naive_bayes import NaiveBayes
from sfumato.learning.order import FullBatch
from sfumato.learning.pca import PCA
from sfumato.learning.recipe import Asked, OneRelease, Recipe, Run
from sfumato.learning.ridge import Ridge
from sfumato.metadata.clip import Values
from sfumato.metadata.contract import Contract
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Composed, Event, Json, Repeated, SharedNoise, event_to_json
from sfumato.query.answer import Answer
from sfumato.query.asker import Asker
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.cost import Cost, cost_of_steps
from sfumato.query.price import price
from sfumato.query.release import Asked as AskedSql
from sfumato.query.release import SqlTask
from sfumato.query.subqueries import Resolver, Step

# The models all of whose steps are sums over persons.
RECIPES = (Additive, LogisticRegression, Ridge, NaiveBayes, KMeans, PCA)
# Of a rho this part is left unused at first: shares of rounded noise cost a little more.
_UNUSED = Fraction(1, 2**30)
_HALVINGS = 20
# What an interval may miss in addition without saying so.
_SMALL = 1e-6

Decoded: TypeAlias = Callable[[bytes, str], Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a study and the rho it may cost: a SQL statement, or a model to fit to its
    rows.
    """

    sql: str
    rho: str
    label: str | None = None
    model: str = ""

    @classmethod
    def of(
        cls,
        sql: str,
        rho: Number,
        recipe: Recipe[Any] | None = None,
        label: str | None = None,
    ) -> "Question":
        """Builds the question from the arguments of ``Study.query`` or ``Study.fit``.

        Raises:
            WrongUse, InvalidNumber: a recipe that is not additive, or an invalid rho.
        """
        if not isinstance(sql, str):
            raise WrongUse(f"sql={shown(sql)}.", allowed="a text")
        amount = decimal_text(to_fraction("rho", rho))
        return cls(sql, amount, label, "" if recipe is None else canonical(_settings(recipe)))

    @classmethod
    def from_json(cls, form: Json) -> "Question":
        """Reads a question from the JSON of a proposal.

        Raises:
            InvalidDeclaration: the JSON is not a question.
        """
        if isinstance(form, dict) and set(form) == {"sql", "rho", "label", "model"}:
            sql, rho, label, model = (form[key] for key in ("sql", "rho", "label", "model"))
            is_text = isinstance(sql, str) and isinstance(rho, str) and isinstance(model, str)
            if is_text and isinstance(label, str | None):
                return cls(sql, rho, label, model)
        raise InvalidDeclaration("No question of this version.")

    def to_json(self) -> dict[str, Json]:
        """Returns the question as JSON, for a proposal."""
        return {"sql": self.sql, "rho": self.rho, "label": self.label, "model": self.model}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A question to a study, planned: the task that each site runs, and how the answer is decoded.

    ``planned`` is what a single curator with as much noise would run; expected errors come from it.
    """

    asked: JointTask | JointSeries
    planned: Planned | OneRelease[Any] | Run[Any]
    decode: Decoded

    @property
    def cost(self) -> Cost:
        """The privacy cost of the question at each site."""
        return _cost_of(self.asked.event)

    @property
    def form_hash(self) -> str:
        """The SHA-256 of everything that determines the answer, besides the privacy event."""
        return hashlib.sha256(self.asked.form.encode()).hexdigest()

    @property
    def event_hash(self) -> str:
        """The SHA-256 of the privacy event that each site charges."""
        return hashlib.sha256(canonical(event_to_json(self.asked.event)).encode()).hexdigest()

    @property
    def question(self) -> str:
        """The id of the question, which all its runs share."""
        return question_of({"form": self.form_hash, "event": self.event_hash})


def compiled(question: Question, study: Declared, exchange: Exchange | None = None) -> Compiled:
    """Plans a question to a study from its declarations alone, so that all parties get the same
    plan.

    The noise is that of a curator with ``Terms.portion`` of the rho; where the sum of shares costs
    more than the rho, a little less is planned for.

    Raises:
        Refused, WrongUse: the language, the model or the rho forbid it; nothing is charged.
    """
    ours = exchange or Exchange()
    rho = to_fraction("rho", question.rho)
    try:
        made = _attempt(question, study, ours, rho * (1 - _UNUSED))
    except _TooNarrow:
        raise _no_noise(question, study, rho) from None
    if _costs(made) <= rho:
        return made
    low, high = Fraction(0), rho
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        attempt = _attempt(question, study, ours, middle)
        if _costs(attempt) <= rho:
            low, made = middle, attempt
        else:
            high = middle
    if not low:
        raise _no_noise(question, study, rho)
    return made


def _no_noise(question: Question, study: Declared, rho: Fraction) -> InvalidNumber:
    return InvalidNumber(
        f"rho = {question.rho}: the noise of a share would be below one step of the lattice.",
        allowed=f"at most about {_largest_rho(question, study, rho)}",
        remedy="State a smaller rho, or bounds that allow for finer steps.",
    )


def _costs(made: Compiled) -> Fraction:
    """The rho of the event of a question."""
    cost = account(made.asked.event).rho
    assert cost is not None, "shares have a rho"
    return cost


def _largest_rho(question: Question, study: Declared, above: Fraction) -> str:
    """The largest rho that fits, rounded down to two digits; ``above`` is too large."""
    low, high = Fraction(0), above
    while high - low > high / 100:
        middle = (low + high) / 2
        try:
            _attempt(question, study, Exchange(), middle)
        except _TooNarrow:
            high = middle
        else:
            low = middle
    return f"{float(low) * 0.95:.2g}"


def _attempt(
    question: Question,
    study: Declared,
    exchange: Exchange,
    rho: Fraction,
) -> Compiled:
    """The question with the noise of a curator that pays a portion of this rho.

    Raises:
        _TooNarrow: a share has too little of it.
    """
    compile_at = _model if question.model else _statement
    return compile_at(question, study, exchange, rho * study.terms.portion)


class _TooNarrow(Exception):
    """A share of noise that is too narrow."""


def _require_wide(task: JointTask | JointSeries) -> None:
    """Raises ``_TooNarrow`` unless the event of a task exists."""
    try:
        _ = task.event
    except InvalidDeclaration:
        raise _TooNarrow from None


def _statement(
    question: Question,
    study: Declared,
    exchange: Exchange,
    rho: Fraction,
) -> Compiled:
    """A SQL statement as a joint task."""
    dataset = study.dataset
    step = Resolver(question.sql, None, price(rho=rho), dataset, Values.TABLE).resolve(_refuse)
    planned = plan_for_price(step.question, step.dataset, step.price)
    if planned.bounded.tracked.raw.is_open:
        raise UnsupportedSql(
            "A question whose groups are not public, so several sites cannot add them up.",
            remedy="Declare the groups: a Category, an Integer with bounds, a Boolean.",
        )
    # only the texts of the answer name this asker: each site charges its own account
    asker = Asker(step.dataset, Contract.of(step.dataset, Budget(1, "1e-9")), study.name)
    task = SqlTask.of(AskedSql.of(planned, asker))
    joint = JointTask(task, study.terms, 1, exchange)
    _require_wide(joint)
    joint = replace(joint, most=most_integers(task))
    facts = {
        **task.preface.facts,
        "cost": _cost_of(joint.event).to_json(),
        "notes": [*planned.notes, *_notes(study, joint.event)],
        "parts": [],
    }
    told = replace(task, preface=replace(task.preface, facts=facts))
    return Compiled(replace(joint, inner=told), planned, lambda body, charge: Answer(body))


def _model(
    question: Question,
    study: Declared,
    exchange: Exchange,
    rho: Fraction,
) -> Compiled:
    """A model as a joint task or series."""
    recipe = recipe_of("the model", _settings_of(question))
    if not isinstance(recipe, RECIPES):
        raise _not_additive(recipe)
    examples = Examples.of(study.dataset, question.sql, question.label)
    planned = recipe.planned(examples, Asked(rho=rho), ())
    joint: JointTask | JointSeries
    if isinstance(planned, OneRelease):
        joint = JointTask(planned.task, study.terms, most_integers(planned.task), exchange)
    elif isinstance(planned, Run):
        most = most_integers(planned.series.piece(1, {}))
        joint = JointSeries(planned.series, study.terms, most, exchange)
    else:
        raise _not_additive(recipe)
    _require_wide(joint)
    made = planned.made
    cost = _cost_of(joint.event)
    return Compiled(joint, planned, lambda body, charge: made(body, cost, charge))


def _cost_of(event: Event) -> Cost:
    return cost_of_steps(order_price.price(event, ()), "study", event)


def _notes(study: Declared, event: Event) -> list[str]:
    """What an answer says about its noise."""
    terms = study.terms
    shared = (
        f"The sum over {terms.sites} sites, each with a share of the noise: the cost holds while "
        f"at most {terms.colluders} of them pool what they know."
    )
    notes = [shared]
    excess = excess_misses(float(min(_variances(event))), terms.sites)
    if excess > _SMALL:
        notes.append(f"An interval may miss more often than it states, by a share of {excess:.1g}.")
    return notes


def excess_misses(variance: float, sites: int) -> float:
    """Returns by which share an interval for a sum of shares misses more often than it states.

    Intervals are computed with one discrete Gaussian of the sum's variance; no outcome of the sum
    is likelier than there by more than a factor of e^tau (Kairouz, Liu, Steinke 2021, Theorem 1).
    ``variance`` is the parameter of one share.
    """
    tau = sum(10 * exp(-2 * pi**2 * variance * k / (k + 1)) for k in range(1, sites))
    return expm1(tau)


def _variances(event: Event) -> Iterator[Fraction]:
    """The variance parameters of the shares of an event."""
    if isinstance(event, SharedNoise):
        yield event.noise.sigma_squared
    elif isinstance(event, Repeated):
        yield from _variances(event.event)
    elif isinstance(event, Composed):
        for part in event.events:
            yield from _variances(part)


def _settings(recipe: Recipe[Any]) -> dict[str, Any]:
    """The settings of a recipe as its section [models.NAME] states them."""
    if not isinstance(recipe, RECIPES):
        raise _not_additive(recipe)
    form: dict[str, Any] = {"recipe": type(recipe).__name__}
    for each in fields(recipe):
        value = getattr(recipe, each.name)
        if each.name == "order":
            if not isinstance(value, FullBatch):
                raise WrongUse(f"order={shown(value)} in a study.", allowed="FullBatch()")
            continue
        form[each.name] = _plain(value)
    return form


def _settings_of(question: Question) -> dict[str, Any]:
    """The settings of a model that travelled.

    Raises:
        InvalidDeclaration: they are none.
    """
    with suppress(ValueError, RecursionError):
        form = json.loads(question.model)
        if isinstance(form, dict):
            return form
    raise InvalidDeclaration("No model of this version.")


def _plain(value: Any) -> Any:
    """A setting as JSON and TOML have it."""
    if isinstance(value, Bag):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise WrongUse(f"A setting {shown(value)} in a study.", allowed="numbers, texts and lists")


def _not_additive(recipe: object) -> WrongUse:
    return WrongUse(
        f"recipe={shown(recipe)} in a study.",
        allowed=", ".join(kind.__name__ for kind in RECIPES),
        remedy="Every step of these is a sum over persons, which sites can add up.",
    )


def _refuse(step: Step) -> Any:
    """Refuses scalar sub-queries and limits that would be learnt: each is a question of its own."""
    if step.limit:
        raise UnsupportedSql(
            f"{step.limit} is sf.AUTO in a study.", remedy=f"Declare {step.limit} with a number."
        )
    raise UnsupportedSql(
        "A scalar sub-query in a study: it is an answer of its own.",
        remedy="Ask it first, and write its number in its place.",
    )

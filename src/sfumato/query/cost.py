# SPDX-License-Identifier: Apache-2.0
"""The cost of a question or task, with one item for each part.

Answers, previews and models show it; it is stored in the JSON of an answer.
"""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import DELTA_INCREMENTS, INCREMENTS, Charge
from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import float_up
from sfumato.ledger.balance import increments_text
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise, RoundedGaussian
from sfumato.noise.truncated import Cut, Truncated
from sfumato.plan.stages import Part
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    BestOf,
    Composed,
    Design,
    DeviceReport,
    Event,
    Json,
    PoissonSample,
    Repeated,
    Sampled,
    Selection,
    SharedNoise,
    Stream,
    Thresholded,
)
from sfumato.privacy.unit import Relation
from sfumato.query.reserved import plan_of
from sfumato.show.render import html_table

_SHOWN = ("release", "mechanism", "parameter", "sensitivity", "epsilon", "rho", "delta")
# The epsilon of Gaussian noise, which is not pure.
_UNBOUNDED = "unbounded"
# No part has been paid for.
NEW: Mapping[int, str] = MappingProxyType({})
# A device that holds another value: one fewer of the one, one more of the other.
_REPLACED = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
# The mechanism of an item that an earlier charge paid for; its parameter names the charge.
_EARLIER = "read from an earlier answer"
_NORMS = {Norm.L1: "L1", Norm.L2: "squared L2", Norm.LINF: "Linf"}


@dataclass(frozen=True, slots=True)
class Cost:
    """The charge of a question, in exact decimals as in the ledger, and its items.

    ``epsilon`` is "unbounded" for Gaussian noise, which is not pure; ``rho`` is the cost at the
    zCDP gate.
    """

    epsilon: str
    rho: str
    delta: str
    items: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, Json]:
        """The cost as it is stored in the JSON of an answer."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "items": [dict(item) for item in self.items],
        }

    @property
    def charge(self) -> Charge:
        """The cost as a charge in the ledger's integers."""
        pure = None if self.epsilon == "unbounded" else int(Fraction(self.epsilon) * INCREMENTS)
        rho, delta = Fraction(self.rho) * INCREMENTS, Fraction(self.delta) * DELTA_INCREMENTS
        return Charge(pure, int(rho), int(delta))

    @property
    def earlier(self) -> tuple[str, ...]:
        """The ids of earlier charges that paid for parts of the answer."""
        return tuple(dict.fromkeys(item["parameter"] for item in self.items if is_earlier(item)))

    @property
    def is_earlier(self) -> bool:
        """Whether earlier charges paid for all parts, so that the answer costs nothing now."""
        return bool(self.items) and all(map(is_earlier, self.items))

    def _repr_html_(self) -> str:
        body = [_cells(item) for item in self.items]
        return f"{html_table(_SHOWN, body)}<p>{html.escape(str(self))}</p>"

    def __str__(self) -> str:
        earlier = " and ".join(self.earlier)
        if self.is_earlier:
            return f"nothing now, paid before by {earlier}"
        spent = f"epsilon = {self.epsilon}"
        if self.epsilon == "unbounded":
            spent = f"rho = {self.rho}"
        if self.delta != "0":
            spent += f", delta = {float_up(Fraction(self.delta)):.3g}"
        return f"{spent} (the rest was paid before by {earlier})" if earlier else spent


def is_earlier(item: Mapping[str, str]) -> bool:
    """Returns whether the aggregate of this cost item was paid by an earlier charge."""
    return item.get("mechanism") == _EARLIER


def _cells(item: Mapping[str, str]) -> list[str]:
    """The cells of an item for people."""
    cells = dict(item)
    if is_earlier(item):
        cells |= {"epsilon": "paid before", "rho": "", "delta": ""}
    elif item["epsilon"] == "unbounded":
        cells["epsilon"] = "none (Gaussian noise)"
    return [cells[name] for name in _SHOWN]


def cost_of(
    charge: Charge,
    parts: tuple[Part, ...],
    events: tuple[Event, ...],
    paid: Mapping[int, str] = NEW,
) -> Cost:
    """Returns the cost of a question, with an item for each of its aggregates (``parts``), which
    are released through ``events``.

    ``paid`` maps the index of each reused part to the id of the charge that paid for it.
    """
    items = []
    for place, (part, event) in enumerate(zip(parts, events, strict=True)):
        if place in paid:
            items.append(_paid_item(part, paid[place]))
        else:
            items.append(_item(part.aggregate.title, event, event))
    return _cost(charge, items)


def total_cost(costs: Sequence[Cost]) -> Cost:
    """Returns the cost of several questions that are charged together."""
    sums = []
    for name in ("epsilon", "rho", "delta"):
        amounts = [str(getattr(cost, name)) for cost in costs]
        is_bounded = _UNBOUNDED not in amounts
        whole = sum(map(Fraction, amounts), Fraction(0)) if is_bounded else None
        sums.append(_UNBOUNDED if whole is None else decimal_text(whole))
    epsilon, rho, delta = sums
    return Cost(epsilon, rho, delta, tuple(item for cost in costs for item in cost.items))


def cost_of_steps(charge: Charge, title: str, event: Event) -> Cost:
    """Returns the cost of a privacy event, with an item for each distinct step; ``title`` names the
    release.
    """
    times_of: dict[Event, int] = {}
    for step, times in _steps(plan_of(event), 1):
        times_of[step] = times_of.get(step, 0) + times
    items = []
    for step, times in times_of.items():
        release = title
        if times > 1:
            release = f"{title}, {times:,} times"
        items.append(_item(release, step, Repeated(step, times)))
    return _cost(charge, items)


def _cost(charge: Charge, items: Iterable[dict[str, str]]) -> Cost:
    """A charge in exact decimals, with its items."""
    delta = decimal_text(Fraction(charge.delta, DELTA_INCREMENTS))
    epsilon = increments_text(charge.epsilon)
    rho = increments_text(charge.rho)
    return Cost(epsilon, rho, delta, tuple(items))


def _steps(event: Event, times: int) -> Iterator[tuple[Event, int]]:
    """Yields the basic steps of an event (not compositions), each with its number of repetitions."""
    if isinstance(event, Composed):
        for inner in event.events:
            yield from _steps(inner, times)
    elif isinstance(event, Repeated):
        yield from _steps(event.event, times * event.times)
    else:
        yield event, times


def _losses(event: Event) -> dict[str, str]:
    """The epsilon, rho and delta of an event as exact decimals."""
    try:
        profile = account(event)
    except InvalidDeclaration:
        # it has a cost only as a part of the whole
        return {"epsilon": "unbounded", "rho": "in the total", "delta": "0"}
    return {
        "epsilon": "unbounded" if profile.epsilon is None else decimal_text(profile.epsilon),
        "rho": decimal_text(profile.rho),
        "delta": decimal_text(profile.delta),
    }


def _paid_item(part: Part, charge: str) -> dict[str, str]:
    """The item of a part that an earlier charge paid for."""
    distance = part.distance
    return {
        "release": part.aggregate.title,
        "mechanism": _EARLIER,
        "parameter": f"charge {charge[:12]}",
        "sensitivity": f"{_NORMS[distance.norm]} {distance.value} steps",
        **dict.fromkeys(("epsilon", "rho", "delta"), "0"),
    }


def _item(release: str, step: Event, charged: Event) -> dict[str, str]:
    """The item of a release through ``step``; its cost is that of the event ``charged``."""
    name, parameter, distance = _mechanism_texts(step)
    return {
        "release": release,
        "mechanism": name,
        "parameter": parameter,
        "sensitivity": f"{_NORMS[distance.norm]} {distance.value} steps",
        **_losses(charged),
    }


def _mechanism_texts(event: Event) -> tuple[str, str, Distance]:
    """The mechanism of an event in words, its parameter in words, and its sensitivity."""
    match event:
        case AdditiveNoise(noise, distance):
            law, parameter = _law_texts(noise)
            name = law if isinstance(noise, RoundedGaussian) else f"discrete {law}"
            return name, parameter, distance
        case SharedNoise(noise, _, _, distance):
            law, parameter = _law_texts(noise)
            shared = f"{parameter} a site, {event.shares} sites counted"
            return f"shares of discrete {law}", shared, distance
        case Stream(AdditiveNoise() as noise, ticks):
            name, parameter, distance = _mechanism_texts(noise)
            return name, f"{parameter}, in {ticks:,} ticks", distance
        case Thresholded(AdditiveNoise(noise, distance), threshold, keys):
            law, parameter = _law_texts(noise)
            shown = f"{parameter}, shown from {threshold} units on, at most {keys} groups a unit"
            return f"discrete {law} and a threshold", shown, distance
        case Composed((Repeated(Selection(_, _, distance), times), *_) as selections):
            every = [repeated.event for repeated in selections if isinstance(repeated, Repeated)]
            rates = _distinct(str(step.rate) for step in every if isinstance(step, Selection))
            levels = f"{len(selections)} selections a group, {times} groups"
            name = "exponential mechanism over the values of the range"
            return name, f"rate {rates}, {levels}", distance
        case Selection(rule, rate, distance, _):
            return f"selection by {rule.value.replace('_', ' ')}", f"rate {rate}", distance
        case DeviceReport():
            return "report of a device", event.kind.replace("_", " "), _REPLACED
        case Sampled(design, inner):
            return _on_a_sample(design, inner)
        case BestOf(events):
            return _best_of(event, events)
        case _:
            raise TypeError(f"{type(event).__name__} is nothing that a question is planned with")


def _best_of(event: BestOf, runs: tuple[Event, ...]) -> tuple[str, str, Distance]:
    """``_mechanism_texts`` for the best of several runs."""
    steps = [_mechanism_texts(step) for run in runs for step, _ in _steps(run, 1)]
    names = _distinct(name for name, _, _ in steps)
    _, _, first_distance = steps[0]
    expected = f"{float_up(event.law.mean.upper):.1f} runs on average, of {len(runs)} kinds"
    return f"best of a secret number of runs of {names}", expected, first_distance


def _on_a_sample(design: Design, inner: Event) -> tuple[str, str, Distance]:
    """``_mechanism_texts`` for an event on a sample."""
    steps = [_mechanism_texts(step) for step, _ in _steps(inner, 1)]
    names = _distinct(name for name, _, _ in steps)
    parameters = _distinct(parameter for _, parameter, _ in steps)
    _, _, first_distance = steps[0]
    shown = f"{parameters}, {_design_text(design)}"
    return f"{names}, on a sample of the units", shown, first_distance


def _distinct(words: Iterable[str]) -> str:
    """The distinct words in order, separated by commas."""
    return ", ".join(dict.fromkeys(words))


def _design_text(design: Design) -> str:
    """The rate or size of a sampling design, in words."""
    if isinstance(design, PoissonSample):
        return f"rate {design.rate}"
    return f"{design.size} of {design.population}"


def _law_texts(noise: Noise | Cut) -> tuple[str, str]:
    """The name of a noise law, and its parameter in words."""
    match noise:
        case DiscreteLaplace(scale):
            return "Laplace", f"scale {scale}"
        case RoundedGaussian(sigma):
            return "rounded Gaussian", f"sigma {sigma}"
        case DiscreteGaussian():
            return "Gaussian", f"sigma^2 {noise.sigma_squared}"
        case Truncated(law, _, upper):
            name, parameter = _law_texts(law)
            return f"truncated {name}", f"{parameter}, at most {upper}"
        case _:
            raise TypeError(f"{type(noise).__name__} is nothing that a question is planned with")

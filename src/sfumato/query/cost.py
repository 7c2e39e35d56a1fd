# SPDX-License-Identifier: Apache-2.0
"""What a question costs, item by item."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import DELTA_UNIT, Charge
from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import float_up
from sfumato.ledger.balance import units_text
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.noise.truncated import Cut, Truncated
from sfumato.plan.show import title
from sfumato.plan.stages import Part
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    Composed,
    Design,
    Event,
    Json,
    PoissonSample,
    Repeated,
    Sampled,
    Selection,
    Thresholded,
)

# No part is paid for already.
NEW: Mapping[int, str] = MappingProxyType({})
_NORMS = {Norm.L1: "L1", Norm.L2: "squared L2", Norm.LINF: "Linf"}


@dataclass(frozen=True, slots=True)
class Cost:
    """The charge (exact decimals, as the ledger books it) and its items.

    ``epsilon`` is "unbounded" where Gaussian noise has no pure loss; ``rho`` is what the
    zCDP gate books.
    """

    epsilon: str
    rho: str
    delta: str
    items: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, Json]:
        """As in the JSON of an answer."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "items": [dict(i) for i in self.items],
        }

    def __str__(self) -> str:
        spent = f"rho = {self.rho}" if self.epsilon == "unbounded" else f"epsilon = {self.epsilon}"
        return (
            spent if self.delta == "0" else f"{spent}, delta = {float_up(Fraction(self.delta)):.3g}"
        )


def cost_of(
    charge: Charge,
    parts: tuple[Part, ...],
    events: tuple[Event, ...],
    paid: Mapping[int, str] = NEW,
) -> Cost:
    """A cost with its items: ``parts`` released through ``events``, but for those that a charge has ``paid``."""
    items = tuple(
        _paid_item(part, paid[place]) if place in paid else _item(part, event)
        for place, (part, event) in enumerate(zip(parts, events, strict=True))
    )
    return Cost(
        units_text(charge.epsilon),
        units_text(charge.rho),
        decimal_text(Fraction(charge.delta, DELTA_UNIT)),
        items,
    )


def cost_of_steps(charge: Charge, title: str, event: Event) -> Cost:
    """A cost with an item for each different step of an event; ``title`` says what they release."""
    steps: dict[Event, int] = {}
    for each, times in _steps(event, 1):
        steps[each] = steps.get(each, 0) + times
    items = tuple(_step_item(title, each, times) for each, times in steps.items())
    delta = decimal_text(Fraction(charge.delta, DELTA_UNIT))
    return Cost(units_text(charge.epsilon), units_text(charge.rho), delta, items)


def _steps(event: Event, times: int) -> Iterator[tuple[Event, int]]:
    """The steps of an event that are no compositions, and how often each is taken."""
    if isinstance(event, Composed):
        for each in event.events:
            yield from _steps(each, times)
    elif isinstance(event, Repeated):
        yield from _steps(event.event, times * event.times)
    else:
        yield event, times


def _step_item(title: str, event: Event, times: int) -> dict[str, str]:
    name, parameter, distance = _described(event)
    return {
        "release": title if times == 1 else f"{title}, {times:,} times",
        "mechanism": name,
        "parameter": parameter,
        "sensitivity": f"{_NORMS[distance.norm]} {distance.value} steps",
        **_losses(Repeated(event, times)),
    }


def _losses(event: Event) -> dict[str, str]:
    profile = account(event)
    return {
        "epsilon": "unbounded" if profile.epsilon is None else decimal_text(profile.epsilon),
        "rho": decimal_text(profile.rho),
        "delta": decimal_text(profile.delta),
    }


def _paid_item(part: Part, charge: str) -> dict[str, str]:
    distance = part.distance
    return {
        "release": title(part.aggregate),
        "mechanism": "read from an earlier answer",
        "parameter": f"charge {charge[:12]}",
        "sensitivity": f"{_NORMS[distance.norm]} {distance.value} steps",
        **dict.fromkeys(("epsilon", "rho", "delta"), "0"),
    }


def _item(part: Part, event: Event) -> dict[str, str]:
    name, parameter, distance = _described(event)
    return {
        "release": title(part.aggregate),
        "mechanism": name,
        "parameter": parameter,
        "sensitivity": f"{_NORMS[distance.norm]} {distance.value} steps",
        **_losses(event),
    }


def _described(event: Event) -> tuple[str, str, Distance]:
    """The mechanism, its parameter and what it hides, in words."""
    match event:
        case AdditiveNoise(noise, distance):
            return f"discrete {_law(noise)[0]}", _law(noise)[1], distance
        case Thresholded(AdditiveNoise(noise, distance), threshold, keys):
            law, parameter = _law(noise)
            shown = f"{parameter}, shown from {threshold} units on, at most {keys} groups a unit"
            return f"discrete {law} and a threshold", shown, distance
        case Composed((Repeated(Selection(_, _, distance), times), *_) as selections):
            every = [each.event for each in selections if isinstance(each, Repeated)]
            rates = dict.fromkeys(str(each.rate) for each in every if isinstance(each, Selection))
            levels = f"{len(selections)} selections a group, {times} groups"
            return (
                "exponential mechanism on a public grid",
                f"rate {', '.join(rates)}, {levels}",
                distance,
            )
        case Selection(rule, rate, distance, _):
            return f"selection by {rule.value.replace('_', ' ')}", f"rate {rate}", distance
        case Sampled(design, inner):
            steps = [_described(each) for each, _ in _steps(inner, 1)]
            names, parameters = (
                _all(name for name, _, _ in steps),
                _all(parameter for _, parameter, _ in steps),
            )
            return (
                f"{names}, on a sample of the units",
                f"{parameters}, {_drawn(design)}",
                steps[0][2],
            )
        case _:
            raise TypeError(f"{type(event).__name__} is nothing that a question is planned with")


def _all(words: Iterable[str]) -> str:
    """Each once."""
    return ", ".join(dict.fromkeys(words))


def _drawn(design: Design) -> str:
    """How a sample is drawn, in words."""
    return (
        f"rate {design.rate}"
        if isinstance(design, PoissonSample)
        else f"{design.size} of {design.population}"
    )


def _law(noise: Noise | Cut) -> tuple[str, str]:
    match noise:
        case DiscreteLaplace(scale):
            return "Laplace", f"scale {scale}"
        case DiscreteGaussian():
            return "Gaussian", f"sigma^2 {noise.sigma_squared}"
        case Truncated(law, _, upper):
            name, parameter = _law(law)
            return f"truncated {name}", f"{parameter}, at most {upper}"
        case _:
            raise TypeError(f"{type(noise).__name__} is nothing that a question is planned with")

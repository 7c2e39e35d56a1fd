# SPDX-License-Identifier: Apache-2.0
"""What a plan fixed in advance amounts to: uses of dominating pairs, Gaussians, deltas.

One table, event type -> pairs. Proof: dominate.proof.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.accounting.account import account
from sfumato.accounting.loss import Atoms, Gaussian, Ramp, Sampled
from sfumato.accounting.loss.aim import Part
from sfumato.accounting.loss.pair import MAX_MU
from sfumato.exact.rounding import sqrt_up
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import event as kinds
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Event

# shifts of integers that are followed one by one
_MOST_SHIFT = 2**14
# discrete Gaussian noise whose points are gone through
MOST_VARIANCE = 2**24

AnyPair: TypeAlias = Atoms | Ramp | Gaussian | Sampled


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """What a fixed plan amounts to: uses of dominating pairs, the mu^2 of all Gaussians, deltas of events.

    ``pure`` is the exact sum of the largest losses, None where they have no bound.
    """

    pairs: tuple[tuple[AnyPair, int], ...] = ()
    squared: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    pure: Fraction | None = Fraction(0)

    @classmethod
    def of(cls, event: Event) -> "FixedPlan | None":
        """None where an event has a cost but no pair."""
        rule = _ROUTES.get(type(event))
        return rule(event) if rule is not None else _known(event)

    @property
    def size(self) -> int:
        return sum(times for _, times in self.pairs)

    def times(self, count: int) -> "FixedPlan":
        """So many of the same."""
        return FixedPlan(
            tuple((pair, count * times) for pair, times in self.pairs),
            count * self.squared,
            count * self.delta,
            None if self.pure is None else count * self.pure,
        )

    @classmethod
    def total(cls, plans: Sequence["FixedPlan"]) -> "FixedPlan":
        """One after the other, equal pairs counted."""
        counts: dict[AnyPair, int] = {}
        for plan in plans:
            for pair, times in plan.pairs:
                counts[pair] = counts.get(pair, 0) + times
        pure = [plan.pure for plan in plans if plan.pure is not None]
        return cls(
            tuple(counts.items()),
            sum((plan.squared for plan in plans if plan.squared), Fraction(0)),
            sum((plan.delta for plan in plans if plan.delta), Fraction(0)),
            sum(pure, Fraction(0)) if len(pure) == len(plans) else None,
        )

    def apart(self) -> tuple[Fraction, Fraction, Fraction]:
        """Coarsely: the sum of bounded losses, the mu^2 of Gaussians taken whole, and what neither of them holds."""
        bounded, squared, outside = Fraction(0), self.squared, Fraction(0)
        for pair, times in self.pairs:
            inner = pair.pair if isinstance(pair, Sampled) else pair
            if isinstance(inner, Gaussian):
                squared += times * Fraction(inner.mu * (1 + 2.0**-40)) ** 2
            else:
                bounded += times * Fraction(pair.worst + pair.rounding)
                outside += times * Fraction(inner.outside) if isinstance(inner, Atoms) else 0
        return bounded, squared, outside

    def parts(self) -> tuple[Part, ...]:
        """The pairs, and the Gaussians as few more."""
        parts = [Part(pair, times) for pair, times in self.pairs]
        if self.squared:
            mu = float(sqrt_up(self.squared))
            copies = max(1, math.ceil((mu / MAX_MU) ** 2 * 1.01))
            parts.append(Part(Gaussian(mu / math.sqrt(copies)), copies))
        return tuple(parts)


def _one(pair: Atoms | Ramp, pure: Fraction, delta: Fraction = Fraction(0)) -> FixedPlan:
    return FixedPlan(((pair, 1),), Fraction(0), delta, pure)


def _known(event: Event) -> FixedPlan | None:
    """Nothing but its pure cost is known."""
    cost = account(event)
    if cost.epsilon is None:
        return None
    if cost.epsilon == 0:
        return FixedPlan(delta=cost.delta)
    return _one(Atoms.pure(float(cost.epsilon)), cost.epsilon, cost.delta)


def _additive(event: kinds.AdditiveNoise) -> FixedPlan | None:
    noise, distance = event.noise, event.distance
    cells = event.cells if distance.norm is Norm.LINF else None
    if isinstance(noise, DiscreteLaplace) and (distance.norm is Norm.L1 or cells is not None):
        shift = math.floor(distance.value) * (cells or 1)
        if 1 <= shift <= _MOST_SHIFT:
            return _one(Atoms.discrete_laplace(float(1 / noise.scale), shift), shift / noise.scale)
    if isinstance(noise, DiscreteGaussian) and (distance.norm is Norm.L2 or cells is not None):
        moved = math.floor(distance.value)
        # only entries that move by 1: their number is bounded, and each has this pair
        if 1 <= moved < (4 if cells is None else 2) and noise.sigma_squared <= MOST_VARIANCE:
            pair = Atoms.discrete_gaussian(float(noise.sigma_squared), 1)
            return FixedPlan(((pair, cells or moved),), pure=None)
    return _known(event)


def _continuous(event: kinds.ContinuousNoise) -> FixedPlan:
    if event.law is kinds.ContinuousLaw.GAUSSIAN:
        return FixedPlan(squared=event.distance.value / event.scale**2, pure=None)
    epsilon = event.distance.value / event.scale
    return _one(Ramp(float(epsilon), tips=True), epsilon)


def _selection(event: kinds.Selection) -> FixedPlan | None:
    epsilon = account(event).epsilon
    if event.rule is kinds.Rule.EXPONENTIAL and epsilon is not None:
        return _one(Ramp(float(epsilon), tips=False), epsilon)
    return _known(event)


def _thresholded(event: kinds.Thresholded) -> FixedPlan | None:
    """The noise on shared keys; its own delta is that of the whole."""
    cost, inner = account(event), _additive(event.additive)
    return None if inner is None else FixedPlan(inner.pairs, inner.squared, cost.delta, inner.pure)


def _sampled(event: kinds.Sampled) -> FixedPlan | None:
    if not isinstance(event.design, kinds.PoissonSample):
        return _known(event)
    inner = FixedPlan.of(event.event)
    if inner is None or event.design.rate == 1:
        return inner
    rate, parts = event.design.rate, inner.parts()
    if len(parts) != 1 or parts[0].times != 1 or not isinstance(parts[0].pair, Atoms | Ramp | Gaussian):
        return _known(event)
    pure = None if inner.pure is None else account(event).epsilon
    return FixedPlan(((Sampled(parts[0].pair, float(rate)), 1),), Fraction(0), rate * inner.delta, pure)


def _composed(event: kinds.Composed) -> FixedPlan | None:
    plans = [FixedPlan.of(each) for each in event.events]
    known = [plan for plan in plans if plan is not None]
    return FixedPlan.total(known) if len(known) == len(plans) else None


def _repeated(event: kinds.Repeated) -> FixedPlan | None:
    plan = FixedPlan.of(event.event)
    return None if plan is None else plan.times(event.times)


_ROUTES: dict[type, Callable[[Any], FixedPlan | None]] = {
    kinds.AdditiveNoise: _additive,
    kinds.ContinuousNoise: _continuous,
    kinds.Selection: _selection,
    kinds.BoundedRange: lambda event: _one(Ramp(float(event.eta), tips=False), event.eta),
    kinds.RandomizedResponse: lambda event: _one(Atoms.response(float(event.epsilon), event.categories), event.epsilon),
    kinds.Thresholded: _thresholded,
    kinds.Stream: lambda event: FixedPlan.of(event.noise),
    kinds.Sampled: _sampled,
    kinds.Composed: _composed,
    kinds.Repeated: _repeated,
}

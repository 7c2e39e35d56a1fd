# SPDX-License-Identifier: Apache-2.0
"""Reduces a fixed plan to dominating pairs, Gaussians and deltas.

One table, event type -> pairs. Proof: dominating_pairs.proof.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from sfumato.accounting.account import account
from sfumato.accounting.loss import (
    Atoms,
    Gaussian,
    Ramp,
    Replaced,
    Sampled,
    Swapped,
    SwappedNormal,
    shifted,
)
from sfumato.accounting.loss.edges import MAX_LOSS
from sfumato.accounting.loss.pair import MAX_MU
from sfumato.accounting.loss.swapped import MOST_RATE
from sfumato.accounting.loss.tuning import Part
from sfumato.accounting.own_delta import NONE, OwnDelta
from sfumato.exact.rounding import sqrt_up
from sfumato.noise import Binomial, DiscreteGaussian, DiscreteLaplace, Skellam
from sfumato.privacy import event as kinds
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Event
from sfumato.privacy.unit import Relation

# The largest integer shift whose losses are enumerated.
_MOST_SHIFT = 2**14
# The most steps of a shift whose losses are added one by one.
_MOST_STEPS = 64
# The most cells that each count as a use of a pair.
_MOST_CELLS = 10**6
# Above any loss that a pair takes; still exact as a float.
_REFUSED = Fraction(10**9)
# The largest variance of discrete Gaussian noise whose values are enumerated.
MOST_VARIANCE = 2**24

AnyPair: TypeAlias = Atoms | Ramp | Gaussian | Sampled | Replaced | Swapped | SwappedNormal


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """A fixed plan as uses of dominating pairs, the mu^2 of all Gaussians, and deltas of events.

    ``pure`` is the exact sum of the largest losses, None if they are unbounded. ``exists``: some
    neighbours attain each pair, so its loss is a lower bound too.

    Guarantees:
        own deltas are those of independent failures
    """

    pairs: tuple[tuple[AnyPair, int], ...] = ()
    squared: Fraction = Fraction(0)
    own: OwnDelta = NONE
    pure: Fraction | None = Fraction(0)
    exists: bool = True

    @classmethod
    def of(cls, event: Event) -> "FixedPlan | None":
        """Reduces an event; None if it has a cost but no pair."""
        rule = _ROUTES.get(type(event))
        return rule(event) if rule is not None else _known(event)

    @property
    def size(self) -> int:
        return sum(times for _, times in self.pairs)

    @property
    def reached(self) -> bool:
        """Whether neighbours exist that attain the composition of all pairs.

        The pair of a bounded range is the worst of several mechanisms, one for each epsilon: in a
        composition none attains it. Nor do any if a unit is replaced; ``one_way`` is attained.
        """
        alone = self.size + bool(self.squared) <= 1
        pairs = [pair for pair, _ in self.pairs]
        if any(isinstance(pair, Replaced) for pair in pairs):
            return False
        return self.exists and (alone or not any(_is_ranged(pair) for pair in pairs))

    @property
    def one_way(self) -> "FixedPlan | None":
        """The plan with a pair that two neighbours attain in place of each worst pair of a replaced
        unit.

        None if the plan has no sample in which a unit is replaced.
        """
        if not any(isinstance(pair, Replaced) for pair, _ in self.pairs):
            return None
        pairs = tuple(
            (pair.one_way if isinstance(pair, Replaced) else pair, times)
            for pair, times in self.pairs
        )
        return replace(self, pairs=pairs)

    def times(self, count: int) -> "FixedPlan":
        """The plan repeated ``count`` times."""
        return FixedPlan(
            tuple((pair, count * times) for pair, times in self.pairs),
            count * self.squared,
            self.own.times(count),
            None if self.pure is None else count * self.pure,
            self.exists,
        )

    @classmethod
    def total(cls, plans: Sequence["FixedPlan"]) -> "FixedPlan":
        """The sequential composition of plans; equal pairs are merged."""
        counts: dict[AnyPair, int] = {}
        for plan in plans:
            for pair, times in plan.pairs:
                counts[pair] = counts.get(pair, 0) + times
        pure = [plan.pure for plan in plans if plan.pure is not None]
        return cls(
            tuple(counts.items()),
            sum((plan.squared for plan in plans if plan.squared), Fraction(0)),
            reduce(OwnDelta.either, (plan.own for plan in plans), NONE),
            sum(pure, Fraction(0)) if len(pure) == len(plans) else None,
            all(plan.exists for plan in plans),
        )

    def apart(self) -> tuple[Fraction, Fraction, Fraction]:
        """A coarse summary: the sum of bounded losses, the mu^2 of Gaussians, and the deltas of the
        rest.
        """
        bounded, squared, outside = Fraction(0), self.squared, Fraction(0)
        for pair, times in self.pairs:
            inner = pair.pair if isinstance(pair, Sampled | Replaced) else pair
            if isinstance(inner, SwappedNormal):
                # replacing a unit moves the mean twice as far as adding one
                squared += times * (2 * Fraction(inner.mu * (1 + 2.0**-40))) ** 2
            elif isinstance(inner, Gaussian):
                squared += times * Fraction(inner.mu * (1 + 2.0**-40)) ** 2
            else:
                bounded += times * Fraction(pair.worst + pair.rounding.at(pair.worst))
                outside += (
                    times * Fraction(inner.outside) if isinstance(inner, Atoms | Swapped) else 0
                )
        return bounded, squared, outside

    def parts(self) -> tuple[Part, ...]:
        """The pairs, with the Gaussians as a few more."""
        parts = [Part(pair, times) for pair, times in self.pairs]
        if self.squared:
            mu = float(sqrt_up(self.squared))
            copies = max(1, math.ceil((mu / MAX_MU) ** 2 * 1.01))
            parts.append(Part(Gaussian(mu / math.sqrt(copies)), copies))
        return tuple(parts)

    @property
    def widest_range(self) -> float | None:
        """The largest range, if the plan has only mechanisms of bounded range; else None."""
        if not self.pairs or self.squared or self.own.upper:
            return None
        ranged = all(isinstance(pair, Ramp) and not pair.tips for pair, _ in self.pairs)
        return max(pair.worst for pair, _ in self.pairs) if ranged else None


def _as_float(loss: Fraction) -> float:
    """The nearest float; infinity becomes a large number that pairs refuse."""
    return float(min(loss, _REFUSED))


def _is_ranged(pair: AnyPair) -> bool:
    inner = pair.pair if isinstance(pair, Sampled) else pair
    return isinstance(inner, Ramp) and not inner.tips


def _one(pair: Atoms | Ramp, pure: Fraction, times: int = 1, *, exists: bool = True) -> FixedPlan:
    return FixedPlan(((pair, times),), pure=times * pure, exists=exists)


def _known(event: Event) -> FixedPlan | None:
    """The plan of an event of which only the cost is known: PureEvent, ApproxEvent."""
    cost, exists = account(event), isinstance(event, kinds.PureEvent | kinds.ApproxEvent)
    if cost.epsilon is None:
        return None
    own = OwnDelta.of(min(cost.delta, Fraction(1)))
    if cost.epsilon == 0:
        return FixedPlan(own=own, exists=exists)
    return replace(_one(Atoms.pure(_as_float(cost.epsilon)), cost.epsilon, exists=exists), own=own)


def _additive(event: kinds.AdditiveNoise) -> FixedPlan | None:
    noise, plan = event.noise, None
    if isinstance(noise, DiscreteLaplace):
        plan = _laplace(noise, event)
    elif isinstance(noise, DiscreteGaussian):
        plan = _gaussian(noise, event)
    elif isinstance(noise, Skellam | Binomial):
        plan = _log_concave(noise, event)
    return _known(event) if plan is None else plan


def _laplace(noise: DiscreteLaplace, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """The pair of discrete Laplace noise; the L1 distance is in one entry, that of Linf in each."""
    moved = math.floor(event.distance.value)
    norm = event.distance.norm
    cells = 1 if norm is Norm.L1 else event.cells if norm is Norm.LINF else None
    if cells is None or cells > _MOST_CELLS or not 1 <= moved <= _MOST_SHIFT:
        return None
    return _one(
        Atoms.discrete_laplace(_as_float(1 / noise.scale), moved), moved / noise.scale, cells
    )


def _gaussian(noise: DiscreteGaussian, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """Discrete Gaussian noise on entries that move by at most 1: their number is bounded, and each
    has this pair.
    """
    moved, norm = math.floor(event.distance.value), event.distance.norm
    if norm is Norm.L2 and moved < 4:
        entries = min(moved, event.cells or moved)
    else:
        return None if norm is Norm.L1 else _far_gaussian(noise, event)
    if not entries or noise.sigma_squared > MOST_VARIANCE:
        return None
    return FixedPlan(
        ((Atoms.discrete_gaussian(float(noise.sigma_squared), 1), entries),), pure=None
    )


def _far_gaussian(noise: DiscreteGaussian, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """Discrete Gaussian noise on one integer, or on each of several, moved by the most: smaller
    shifts lose less.
    """
    moves, sigma = _moves(event), math.sqrt(noise.sigma_squared)
    if moves is None or not 1 <= moves[0] <= _MOST_SHIFT or noise.sigma_squared > MOST_VARIANCE:
        return None
    if moves[0] * (28 * sigma + moves[0] + 4) > 2 * MAX_LOSS * sigma**2:
        return None
    return FixedPlan(
        ((Atoms.discrete_gaussian(float(noise.sigma_squared), moves[0]), moves[1]),), pure=None
    )


def _moves(event: kinds.AdditiveNoise) -> tuple[int, int] | None:
    """How far each integer can move, and how many can, if both are known; an L2 distance is
    squared.
    """
    if (
        event.cells is None
        or event.cells > _MOST_CELLS
        or (event.cells > 1 and event.distance.norm is not Norm.LINF)
    ):
        return None
    value = math.floor(event.distance.value)
    return math.isqrt(value) if event.distance.norm is Norm.L2 else value, event.cells


def _log_concave(noise: Skellam | Binomial, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """Log-concave noise on one integer, or on each of several, moved by the most."""
    moves = _moves(event)
    if moves is None or not 1 <= moves[0] <= _MOST_STEPS:
        return None
    pair = shifted(noise, moves[0])
    return None if pair is None else FixedPlan(((pair, moves[1]),), pure=None)


def _continuous(event: kinds.ContinuousNoise) -> FixedPlan:
    if event.law is kinds.ContinuousLaw.GAUSSIAN:
        return FixedPlan(squared=event.distance.value / event.scale**2, pure=None)
    epsilon = event.distance.value / event.scale
    return _one(Ramp(_as_float(epsilon), tips=True), epsilon)


def _selection(event: kinds.Selection) -> FixedPlan | None:
    epsilon = account(event).epsilon
    if event.rule is kinds.Rule.EXPONENTIAL and epsilon is not None:
        whole = event.distance.value.denominator == 1
        return _one(Ramp(_as_float(epsilon), tips=False), epsilon, exists=whole)
    return _known(event)


def _thresholded(event: kinds.Thresholded) -> FixedPlan | None:
    """The noise on shared keys; the threshold's own delta is added for the whole."""
    cost, inner = account(event), _additive(event.additive)
    return None if inner is None else replace(inner, own=OwnDelta.of(cost.delta), exists=False)


def _stream(event: kinds.Stream) -> FixedPlan | None:
    """Continual release: one participation attains its bound; for several this is unknown."""
    inner = FixedPlan.of(event.noise)
    if inner is None or event.noise.distance.value == event.column:
        return inner
    return replace(inner, exists=False)


def _sampled(event: kinds.Sampled) -> FixedPlan | None:
    if not isinstance(event.design, kinds.PoissonSample | kinds.FixedSample):
        return _known(event)
    if (
        isinstance(event.design, kinds.PoissonSample)
        and event.design.relation is Relation.REPLACE_ONE
    ):
        return _replaced(event)
    inner = FixedPlan.of(event.event)
    if inner is None or event.design.rate == 1:
        return inner
    inner = _merged(event.event) or inner
    rate, parts = event.design.rate, inner.parts()
    if (
        len(parts) != 1
        or parts[0].times != 1
        or not isinstance(parts[0].pair, Atoms | Ramp | Gaussian)
    ):
        return _known(event)
    poisson = isinstance(event.design, kinds.PoissonSample)
    # only for sums is a sample without the unit distributed as a sample of the other dataset
    summed = isinstance(event.event, kinds.AdditiveNoise | kinds.ContinuousNoise)
    return FixedPlan(
        (((Sampled if poisson else Replaced)(parts[0].pair, float(rate)), 1),),
        own=OwnDelta.of(rate * inner.own.upper),
        pure=None if inner.pure is None else account(event).epsilon,
        exists=inner.exists and not inner.own.upper and (poisson or summed),
    )


def _replaced(event: kinds.Sampled) -> FixedPlan | None:
    """A Poisson sample in which one unit is replaced: the pair of opposite losses, by the type of
    noise.
    """
    inner, rate = FixedPlan.of(event.event), float(event.design.rate)
    if inner is None or inner.own.upper:
        return _known(event)
    if event.design.rate > MOST_RATE:
        # a rate near 1: bounded by two steps without sampling
        if isinstance(event.event, kinds.ContinuousNoise) and inner.squared:
            return FixedPlan(squared=4 * inner.squared, pure=None, exists=rate == 1)
        return _known(event)
    if inner.pure is None:
        pair = _opposite(event.event, rate)
        return None if pair is None else FixedPlan(((pair, 1),), pure=None, exists=inner.exists)
    if inner.pure == 0:
        return inner
    laplace = _opposite_laplace(event.event, rate)
    if laplace is not None:
        return FixedPlan(((laplace, 1),), pure=account(event).epsilon, exists=inner.exists)
    pair = Swapped.laplace(_as_float(inner.pure), 1, rate)
    exists = isinstance(event.event, kinds.PureEvent)
    return FixedPlan(((pair, 1),), pure=account(event).epsilon, exists=exists)


def _opposite_laplace(event: Event, rate: float) -> Swapped | None:
    """The pair of discrete Laplace noise used once; None of other noise or of many steps."""
    if not isinstance(event, kinds.AdditiveNoise) or not isinstance(event.noise, DiscreteLaplace):
        return None
    steps = math.floor(event.distance.value)
    if event.distance.norm is not Norm.L1 or steps > _MOST_SHIFT:
        return None
    return Swapped.laplace(_as_float(1 / event.noise.scale), steps, rate)


def _opposite(event: Event, rate: float) -> Swapped | SwappedNormal | None:
    """The pair of Gaussian noise used once."""
    if isinstance(event, kinds.ContinuousNoise):
        mu = float(sqrt_up(event.distance.value / event.scale**2))
        return SwappedNormal(mu, rate) if mu <= MAX_MU else None
    if not isinstance(event, kinds.AdditiveNoise) or not isinstance(event.noise, DiscreteGaussian):
        return None
    lone = event.cells == 1 and math.floor(event.distance.value) == 1
    variance = event.noise.sigma_squared
    return Swapped.gaussian(float(variance), rate) if lone and variance <= MOST_VARIANCE else None


def _merged(event: Event) -> FixedPlan | None:
    """Laplace noise on several cells as one pair: the whole shift in one of them."""
    if not isinstance(event, kinds.AdditiveNoise) or not isinstance(event.noise, DiscreteLaplace):
        return None
    shift = math.floor(event.distance.value) * (event.cells or 1)
    if (
        event.distance.norm is not Norm.LINF
        or event.cells in (None, 1)
        or not 1 <= shift <= _MOST_SHIFT
    ):
        return None
    return _one(
        Atoms.discrete_laplace(_as_float(1 / event.noise.scale), shift),
        shift / event.noise.scale,
        exists=False,
    )


def _composed(event: kinds.Composed) -> FixedPlan | None:
    plans = [FixedPlan.of(part) for part in event.events]
    known = [plan for plan in plans if plan is not None]
    return FixedPlan.total(known) if len(known) == len(plans) else None


def _repeated(event: kinds.Repeated) -> FixedPlan | None:
    plan = FixedPlan.of(event.event)
    return None if plan is None else plan.times(event.times)


_ROUTES: dict[type, Callable[[Any], FixedPlan | None]] = {
    kinds.AdditiveNoise: _additive,
    kinds.ContinuousNoise: _continuous,
    kinds.Selection: _selection,
    kinds.BoundedRange: lambda event: _one(Ramp(_as_float(event.eta), tips=False), event.eta),
    kinds.RandomizedResponse: lambda event: _one(
        Atoms.response(_as_float(event.epsilon), event.categories), event.epsilon
    ),
    kinds.Thresholded: _thresholded,
    kinds.Stream: _stream,
    kinds.Sampled: _sampled,
    kinds.Composed: _composed,
    kinds.Repeated: _repeated,
    kinds.Nonadaptive: lambda event: FixedPlan.of(event.event),
}

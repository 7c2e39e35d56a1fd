# SPDX-License-Identifier: Apache-2.0
"""Reduces a fixed plan to dominating pairs, Gaussian mechanisms and deltas, for its curve.

A dominating pair is the worst pair of output distributions of an event (``loss.pair``). One table
has the pairs of each event type. Proof: dominating_pairs.proof.md.
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
from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    RoundedGaussian,
    Skellam,
)
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
    """A plan fixed in advance: dominating pairs with their uses, Gaussian mechanisms, deltas.

    ``squared`` is the mu^2 of all Gaussian mechanisms, ``own`` the deltas that events spend
    themselves. ``pure`` is the exact sum of the largest losses, None if they are unbounded.
    ``exists``: some neighbours attain each pair, so its loss is a lower bound too.

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
        """Reduces an event to dominating pairs; None if it has a cost but no pair."""
        rule = _ROUTES.get(type(event), _known)
        return rule(event)

    @property
    def size(self) -> int:
        return sum(times for _, times in self.pairs)

    @property
    def reached(self) -> bool:
        """Whether some neighbouring data sets attain the composition: the curve is exact.

        The pair of a bounded range is the worst of several mechanisms, so nothing attains it in a
        composition; nor if a unit is replaced. ``one_way`` is attained.
        """
        pairs = [pair for pair, _ in self.pairs]
        if not self.exists or any(isinstance(pair, Replaced) for pair in pairs):
            return False
        alone = self.size + bool(self.squared) <= 1
        return alone or not any(_is_ranged(pair) for pair in pairs)

    @property
    def one_way(self) -> "FixedPlan | None":
        """The plan with pairs that neighbours attain, in place of those of replaced units.

        None if the plan has no sample in which a unit is replaced.
        """
        pairs: list[tuple[AnyPair, int]] = []
        for pair, times in self.pairs:
            if isinstance(pair, Replaced):
                pairs.append((pair.one_way, times))
            else:
                pairs.append((pair, times))
        if tuple(pairs) == self.pairs:
            return None
        return replace(self, pairs=tuple(pairs))

    def times(self, count: int) -> "FixedPlan":
        """The plan repeated ``count`` times."""
        return FixedPlan(
            pairs=tuple((pair, count * times) for pair, times in self.pairs),
            squared=count * self.squared,
            own=self.own.times(count),
            pure=None if self.pure is None else count * self.pure,
            exists=self.exists,
        )

    @classmethod
    def total(cls, plans: Sequence["FixedPlan"]) -> "FixedPlan":
        """The sequential composition of plans; equal pairs are merged."""
        counts: dict[AnyPair, int] = {}
        for plan in plans:
            for pair, times in plan.pairs:
                counts[pair] = counts.get(pair, 0) + times
        squares = (plan.squared for plan in plans if plan.squared)
        own = (plan.own for plan in plans)
        pure = [plan.pure for plan in plans if plan.pure is not None]
        bounded = len(pure) == len(plans)
        return cls(
            pairs=tuple(counts.items()),
            squared=sum(squares, Fraction(0)),
            own=reduce(OwnDelta.either, own, NONE),
            pure=sum(pure, Fraction(0)) if bounded else None,
            exists=all(plan.exists for plan in plans),
        )

    def apart(self) -> tuple[Fraction, Fraction, Fraction]:
        """Returns the sum of bounded losses, the mu^2 of Gaussians, and the mass left out."""
        bounded = outside = Fraction(0)
        squared = self.squared
        for pair, times in self.pairs:
            inner = pair.pair if isinstance(pair, Sampled | Replaced) else pair
            if isinstance(inner, Gaussian | SwappedNormal):
                mu = Fraction(inner.mu * (1 + 2.0**-40))
                if isinstance(inner, SwappedNormal):
                    # replacing a unit moves the mean twice as far as adding one
                    mu *= 2
                squared += times * mu**2
                continue
            worst = pair.worst + pair.rounding.at(pair.worst)
            bounded += times * Fraction(worst)
            if isinstance(inner, Atoms | Swapped):
                outside += times * Fraction(inner.outside)
        return bounded, squared, outside

    def parts(self) -> tuple[Part, ...]:
        """Returns the dominating pairs with their numbers of uses, Gaussian ones included."""
        parts = [Part(pair, times) for pair, times in self.pairs]
        if self.squared:
            mu = float(sqrt_up(self.squared))
            copies = max(1, math.ceil((mu / MAX_MU) ** 2 * 1.01))
            parts.append(Part(Gaussian(mu / math.sqrt(copies)), copies))
        return tuple(parts)

    @property
    def widest_range(self) -> float | None:
        """The widest loss range (eta) of a mechanism; None if some range is not bounded."""
        if not self.pairs or self.squared or self.own.upper:
            return None
        pairs = [pair for pair, _ in self.pairs]
        if not all(isinstance(pair, Ramp) and not pair.tips for pair in pairs):
            return None
        return max(pair.worst for pair in pairs)


def _as_float(loss: Fraction) -> float:
    """The nearest float; infinity becomes a large number that pairs refuse."""
    return float(min(loss, _REFUSED))


def _is_ranged(pair: AnyPair) -> bool:
    inner = pair.pair if isinstance(pair, Sampled) else pair
    return isinstance(inner, Ramp) and not inner.tips


def _one(pair: Atoms | Ramp, pure: Fraction, times: int = 1, *, exists: bool = True) -> FixedPlan:
    """The plan of ``times`` uses of one pair, whose largest loss is ``pure``."""
    return FixedPlan(((pair, times),), pure=times * pure, exists=exists)


def _unbounded(pair: AnyPair, times: int = 1, *, exists: bool = True) -> FixedPlan:
    """The plan of ``times`` uses of one pair whose losses have no largest one."""
    return FixedPlan(((pair, times),), pure=None, exists=exists)


def _known(event: Event) -> FixedPlan | None:
    """The plan of an event of which only the cost is known: PureEvent, ApproxEvent."""
    cost = account(event)
    if cost.epsilon is None:
        return None
    exists = isinstance(event, kinds.PureEvent | kinds.ApproxEvent)
    own = OwnDelta.of(min(cost.delta, Fraction(1)))
    if cost.epsilon == 0:
        return FixedPlan(own=own, exists=exists)
    pair = Atoms.pure(_as_float(cost.epsilon))
    plan = _one(pair, cost.epsilon, exists=exists)
    return replace(plan, own=own)


def _additive(event: kinds.AdditiveNoise) -> FixedPlan | None:
    noise = event.noise
    plan = None
    if isinstance(noise, DiscreteLaplace):
        plan = _laplace(noise, event)
    elif isinstance(noise, DiscreteGaussian):
        plan = _gaussian(noise, event)
    elif isinstance(noise, Skellam | Binomial):
        plan = _log_concave(noise, event)
    elif isinstance(noise, RoundedGaussian):
        # a function of continuous noise, whose pair no neighbours are shown to attain
        plan = FixedPlan(squared=2 * account(event).rho, pure=None, exists=False)
    if plan is None:
        return _known(event)
    return plan


def _laplace(noise: DiscreteLaplace, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """The pair of discrete Laplace noise; the L1 distance is in one entry, that of Linf in each."""
    moved = math.floor(event.distance.value)
    cells = None
    if event.distance.norm is Norm.L1:
        cells = 1
    elif event.distance.norm is Norm.LINF:
        cells = event.cells
    if cells is None or cells > _MOST_CELLS or not 1 <= moved <= _MOST_SHIFT:
        return None
    pair = Atoms.discrete_laplace(_as_float(1 / noise.scale), moved)
    return _one(pair, moved / noise.scale, cells)


def _gaussian(noise: DiscreteGaussian, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """Discrete Gaussian noise on entries that move by at most 1: their number is bounded, and each
    has this pair.
    """
    moved = math.floor(event.distance.value)
    norm = event.distance.norm
    if norm is Norm.L1:
        return None
    if norm is not Norm.L2 or moved >= 4:
        return _far_gaussian(noise, event)
    entries = min(moved, event.cells or moved)
    if not entries or noise.sigma_squared > MOST_VARIANCE:
        return None
    pair = Atoms.discrete_gaussian(float(noise.sigma_squared), 1)
    return _unbounded(pair, entries)


def _far_gaussian(noise: DiscreteGaussian, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """Discrete Gaussian noise on one integer, or on each of several, moved by the most: smaller
    shifts lose less.
    """
    moves = _moves(event)
    if moves is None or noise.sigma_squared > MOST_VARIANCE:
        return None
    shift, cells = moves
    if not 1 <= shift <= _MOST_SHIFT:
        return None
    sigma = math.sqrt(noise.sigma_squared)
    if shift * (28 * sigma + shift + 4) > 2 * MAX_LOSS * sigma**2:
        return None
    pair = Atoms.discrete_gaussian(float(noise.sigma_squared), shift)
    return _unbounded(pair, cells)


def _moves(event: kinds.AdditiveNoise) -> tuple[int, int] | None:
    """How far each integer can move, and how many can, if both are known; an L2 distance is
    squared.
    """
    cells = event.cells
    norm = event.distance.norm
    if cells is None or cells > _MOST_CELLS:
        return None
    if cells > 1 and norm is not Norm.LINF:
        return None
    moved = math.floor(event.distance.value)
    if norm is Norm.L2:
        moved = math.isqrt(moved)
    return moved, cells


def _log_concave(noise: Skellam | Binomial, event: kinds.AdditiveNoise) -> FixedPlan | None:
    """Log-concave noise on one integer, or on each of several, moved by the most."""
    moves = _moves(event)
    if moves is None:
        return None
    shift, cells = moves
    if not 1 <= shift <= _MOST_STEPS:
        return None
    pair = shifted(noise, shift)
    if pair is None:
        return None
    return _unbounded(pair, cells)


def _continuous(event: kinds.ContinuousNoise) -> FixedPlan:
    if event.law is kinds.ContinuousLaw.GAUSSIAN:
        return FixedPlan(squared=event.distance.value / event.scale**2, pure=None)
    epsilon = event.distance.value / event.scale
    pair = Ramp(_as_float(epsilon), tips=True)
    return _one(pair, epsilon)


def _selection(event: kinds.Selection) -> FixedPlan | None:
    epsilon = account(event).epsilon
    if event.rule is not kinds.Rule.EXPONENTIAL or epsilon is None:
        return _known(event)
    pair = Ramp(_as_float(epsilon), tips=False)
    whole = event.distance.value.denominator == 1
    return _one(pair, epsilon, exists=whole)


def _thresholded(event: kinds.Thresholded) -> FixedPlan | None:
    """The noise on shared keys; the threshold's own delta is added for the whole."""
    own = OwnDelta.of(account(event).delta)
    inner = _additive(event.additive)
    if inner is None:
        return None
    return replace(inner, own=own, exists=False)


def _stream(event: kinds.Stream) -> FixedPlan | None:
    """Continual release: one participation attains its bound; else or in L1 this is unknown."""
    inner = _known(event) if event.noise.distance.norm is Norm.L1 else FixedPlan.of(event.noise)
    if inner is None or event.noise.distance.value == event.column:
        return inner
    return replace(inner, exists=False)


def _sampled(event: kinds.Sampled) -> FixedPlan | None:
    design = event.design
    if not isinstance(design, kinds.PoissonSample | kinds.FixedSample):
        return _known(event)
    poisson = isinstance(design, kinds.PoissonSample)
    if poisson and design.relation is Relation.REPLACE_ONE:
        return _replaced(event)
    inner = FixedPlan.of(event.event)
    if inner is None or design.rate == 1:
        return inner
    inner = _merged(event.event) or inner
    lone = _lone_pair(inner)
    own = OwnDelta.of(design.rate * inner.own.upper)
    if lone is None and not inner.pairs:
        # Gaussians too narrow for a pair: their sample counts as the whole
        return replace(inner, own=own, exists=False)
    if lone is None:
        return _known(event)
    pair: AnyPair = Replaced(lone, float(design.rate))
    if poisson:
        pair = Sampled(lone, float(design.rate))
    # only for sums is a sample without the unit distributed as a sample of the other dataset
    summed = isinstance(event.event, kinds.AdditiveNoise | kinds.ContinuousNoise)
    return FixedPlan(
        pairs=((pair, 1),),
        own=own,
        pure=None if inner.pure is None else account(event).epsilon,
        exists=inner.exists and not inner.own.upper and (poisson or summed),
    )


def _lone_pair(plan: FixedPlan) -> Atoms | Ramp | Gaussian | None:
    """The pair of a plan with one use of one symmetric pair; else None."""
    parts = plan.parts()
    if len(parts) != 1 or parts[0].times != 1:
        return None
    pair = parts[0].pair
    if isinstance(pair, Atoms | Ramp | Gaussian):
        return pair
    return None


def _replaced(event: kinds.Sampled) -> FixedPlan | None:
    """A Poisson sample in which one unit is replaced: the pair of opposite losses, by the type of
    noise.
    """
    inner = FixedPlan.of(event.event)
    rate = float(event.design.rate)
    if inner is None or inner.own.upper:
        return _known(event)
    if event.design.rate > MOST_RATE or inner.squared > MAX_MU**2:
        # a rate near 1, or noise too narrow for a pair: bounded by two steps without sampling
        if _is_normal(event.event) and inner.squared:
            exists = inner.exists and rate == 1
            return FixedPlan(squared=4 * inner.squared, pure=None, exists=exists)
        return _known(event)
    if inner.pure is None:
        normal = _opposite(event.event, rate)
        if normal is None:
            return None
        return _unbounded(normal, exists=inner.exists)
    if inner.pure == 0:
        return inner
    pair = _opposite_laplace(event.event, rate)
    exists = inner.exists
    if pair is None:
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


def _is_normal(event: Event) -> bool:
    """Whether an event is a function of continuous noise: Gaussian, if losses have no bound."""
    rounded = isinstance(event, kinds.AdditiveNoise) and isinstance(event.noise, RoundedGaussian)
    return isinstance(event, kinds.ContinuousNoise) or rounded


def _opposite(event: Event, rate: float) -> Swapped | SwappedNormal | None:
    """The pair of Gaussian noise used once."""
    if _is_normal(event):
        mu = float(sqrt_up(2 * account(event).rho))
        if mu > MAX_MU:
            return None
        return SwappedNormal(mu, rate)
    if not isinstance(event, kinds.AdditiveNoise) or not isinstance(event.noise, DiscreteGaussian):
        return None
    lone = event.cells == 1 and math.floor(event.distance.value) == 1
    variance = event.noise.sigma_squared
    if not lone or variance > MOST_VARIANCE:
        return None
    return Swapped.gaussian(float(variance), rate)


def _merged(event: Event) -> FixedPlan | None:
    """Laplace noise on several cells as one pair: the whole shift in one of them."""
    if not isinstance(event, kinds.AdditiveNoise) or not isinstance(event.noise, DiscreteLaplace):
        return None
    if event.distance.norm is not Norm.LINF or event.cells in (None, 1):
        return None
    scale = event.noise.scale
    shift = math.floor(event.distance.value) * (event.cells or 1)
    if not 1 <= shift <= _MOST_SHIFT:
        return None
    pair = Atoms.discrete_laplace(_as_float(1 / scale), shift)
    return _one(pair, shift / scale, exists=False)


def _composed(event: kinds.Composed) -> FixedPlan | None:
    plans = [FixedPlan.of(part) for part in event.events]
    known = [plan for plan in plans if plan is not None]
    if len(known) < len(plans):
        return None
    return FixedPlan.total(known)


def _repeated(event: kinds.Repeated) -> FixedPlan | None:
    plan = FixedPlan.of(event.event)
    if plan is None:
        return None
    return plan.times(event.times)


def _bounded_range(event: kinds.BoundedRange) -> FixedPlan:
    return _one(Ramp(_as_float(event.eta), tips=False), event.eta)


def _response(event: kinds.RandomizedResponse) -> FixedPlan:
    pair = Atoms.response(_as_float(event.epsilon), event.categories)
    return _one(pair, event.epsilon)


_ROUTES: dict[type, Callable[[Any], FixedPlan | None]] = {
    kinds.AdditiveNoise: _additive,
    kinds.ContinuousNoise: _continuous,
    kinds.Selection: _selection,
    kinds.BoundedRange: _bounded_range,
    kinds.RandomizedResponse: _response,
    kinds.Thresholded: _thresholded,
    kinds.Stream: _stream,
    kinds.Sampled: _sampled,
    kinds.Composed: _composed,
    kinds.Repeated: _repeated,
    kinds.Nonadaptive: lambda event: FixedPlan.of(event.event),
}

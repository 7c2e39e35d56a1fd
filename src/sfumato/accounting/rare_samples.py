# SPDX-License-Identifier: Apache-2.0
"""The curve of Gaussian noise on samples, where the noise alone would hide next to nothing.

A unit is then protected only by not being drawn. Proof: rare_samples.proof.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from sfumato.accounting.account import account
from sfumato.accounting.closed import Normal, loss_of, no_finite_epsilon, spare_of
from sfumato.accounting.decimals import ONE, UP, above
from sfumato.accounting.own_delta import NONE
from sfumato.exact.bracket import Bounds
from sfumato.exact.rational import Number
from sfumato.exact.rounding import float_up
from sfumato.noise import RoundedGaussian
from sfumato.privacy.event import (
    AdditiveNoise,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    FixedSample,
    PoissonSample,
    Repeated,
    Sampled,
)
from sfumato.privacy.unit import Relation

# The largest squared mu for which other bounds are better, so that none is searched for here.
_WIDE = 3
# The largest number of draws of a unit that is looked at.
_MOST_DRAWS = 10_000
# How many numbers of draws are tried, from the first possible one on.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class RareSamples:
    """The privacy curve of ``times`` Poisson samples with Gaussian noise, where a unit is rarely
    drawn; it has upper bounds only.

    ``squared`` is the mu^2 of the noise of one sample, ``rate`` the probability that a unit is
    drawn. delta(epsilon) <= P(a unit is drawn more than k times) + delta of k Gaussians, for every
    k.

    Guarantees:
        samples of noise that hides nothing cost at most their draws
    """

    squared: Fraction
    rate: Fraction
    times: int

    @classmethod
    def of(cls, event: Event) -> Self | None:
        """Returns the curve of repeated samples of narrow Gaussian noise; None for any other event."""
        times, step = 1, event
        while isinstance(step, Repeated):
            times, step = times * step.times, step.event
        if not isinstance(step, Sampled) or not _is_gaussian(step.event):
            return None
        design, squared = step.design, 2 * account(step.event).rho
        if not isinstance(design, PoissonSample | FixedSample):
            return None
        if isinstance(design, PoissonSample) and design.relation is Relation.REPLACE_ONE:
            # a replaced unit moves the mean twice as far as one that enters or leaves
            squared *= 4
        return cls(squared, design.rate, times) if squared > _WIDE else None

    def epsilon(self, delta: Number) -> Bounds:
        spare, _ = spare_of(delta, NONE)
        if spare == 0:
            raise no_finite_epsilon()
        if self.times * self.rate <= spare:
            return Bounds(None, 0.0)
        bounds = [Normal(self.times * self.squared).epsilon(spare).upper]
        possible = ((k, chance) for k, chance in self._chances() if chance < spare)
        for (draws, chance), _ in zip(possible, range(_TRIES), strict=False):
            bounds.append(Normal(draws * self.squared).epsilon(spare - chance).upper)
        return Bounds(None, min(bounds))

    def delta(self, epsilon: Number) -> Bounds:
        loss = loss_of(epsilon)

        def spent(draws: int) -> Fraction:
            return Fraction(Normal(draws * self.squared).delta(loss).upper)

        chances = list(self._chances())
        # one term falls with the draws and the other grows: near where they cross, the sum is least
        low, high = 0, len(chances)
        while low < high:
            middle = (low + high) // 2
            if spent(middle) < chances[middle][1]:
                low = middle + 1
            else:
                high = middle
        near = chances[max(low - 1, 0) : low + 1]
        bounds = [spent(self.times), *(chance + spent(draws) for draws, chance in near)]
        return Bounds(None, float_up(min(bounds)))

    def _chances(self) -> Iterator[tuple[int, Fraction]]:
        """Upper bounds of the chance that a unit is drawn more than k times, for k = 0, 1, ..."""
        rate, chance = above(self.rate), ONE
        for draws in range(min(self.times, _MOST_DRAWS)):
            # the expected number of sets of draws + 1 steps that all draw the unit
            share = above(Fraction(self.times - draws, draws + 1))
            chance = UP.multiply(chance, UP.multiply(share, rate))
            yield draws, min(Fraction(chance), Fraction(1))


def _is_gaussian(event: Event) -> bool:
    """Whether an event is Gaussian noise, or a function of it."""
    if isinstance(event, ContinuousNoise):
        return event.law is ContinuousLaw.GAUSSIAN
    return isinstance(event, AdditiveNoise) and isinstance(event.noise, RoundedGaussian)

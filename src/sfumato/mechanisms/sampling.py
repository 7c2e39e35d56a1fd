# SPDX-License-Identifier: Apache-2.0
"""Runs a mechanism on a secret random sample of the units, which lowers its privacy cost.

Source: Balle, Barthe, Gaboardi, "Privacy Amplification by Subsampling" (NeurIPS 2018), Theorems 8
and 9. Proof: sampling.proof.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number
from sfumato.exact.rounding import float_up
from sfumato.mechanisms.deviation import deviation
from sfumato.mechanisms.selection import count
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.coin import Bernoulli
from sfumato.noise.uniform import subset
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import Design, Event, FixedSample, PoissonSample, Sampled
from sfumato.privacy.unit import Relation

One = TypeVar("One")
Statistic = TypeVar("Statistic", contravariant=True)
Released = TypeVar("Released", covariant=True)


class Inner(Protocol[Statistic, Released]):
    """The interface of the mechanism that runs on the sample."""

    def event(self, distance: Distance) -> Event:
        """Returns the event of a release whose sensitivity is ``distance``."""
        ...

    def release(self, exact: Statistic, /) -> Released:
        """Returns the private answer to an exact statistic of the sample."""
        ...


def sample_units(design: Design, units: Sequence[One], entropy: Entropy = SYSTEM) -> list[One]:
    """Draws a random sample of the units, in their order; it must stay secret.

    Only what a mechanism computes from it may be released.

    Guarantees:
        a poisson sample takes each unit by a coin of its own
        a fixed sample is uniform over subsets of its size

    Raises:
        InvalidDeclaration: the number of units is not the population of a fixed sample, which is
            public under replace-one; or the design is another one.

    >>> sample_units(FixedSample(2, 2), ["ada", "blaise"])
    ['ada', 'blaise']
    """
    indices = _chosen(design, len(units), entropy)
    return [units[index] for index in indices.tolist()]


def chosen_units(design: Design, units: int, entropy: Entropy = SYSTEM) -> Integers:
    """Draws a random sample of ``units`` units as ascending indices; the number may be private.

    A fixed sample is drawn from the indices of its declared population. Those at or above ``units``
    are drawn too, and dropped. Units beyond the population are never drawn. So no number of units
    can make it fail.

    Guarantees:
        a fixed sample is one of the places of its population

    >>> chosen_units(FixedSample(3, 3), units=2).tolist()
    [0, 1]
    """
    if isinstance(design, FixedSample):
        places = subset(design.population, design.size, entropy)
        return places[places < units]
    return _chosen(design, units, entropy)


@dataclass(frozen=True, slots=True)
class SamplingMechanism(Generic[Statistic, Released]):
    """A mechanism that runs ``inner`` on a secret random sample of the units, drawn again for each
    release.

    The cost falls from epsilon to ln(1 + q (e^epsilon - 1)), about q epsilon, where q is the
    sampling rate. Several questions on one sample must be one ``inner``.

    Guarantees:
        the event names the design that is drawn
        a sample under another relation is refused
        the sampling error covers as often as stated

    >>> from fractions import Fraction
    >>> from sfumato.accounting import account
    >>> from sfumato.mechanisms.additive import laplace
    >>> from sfumato.privacy.distance import Norm
    >>> one = Distance(Norm.L1, Fraction(1))
    >>> plain = laplace(one, epsilon=1)
    >>> sampled = SamplingMechanism(PoissonSample(Fraction(1, 100)), plain)
    >>> float(account(plain.event(one)).epsilon), float(account(sampled.event(one)).epsilon)
    (1.0, 0.0170368...)

    The price is accuracy. For 10,000 people the noise is within 300, the sampling error within:

    >>> plain.error("0.95") * 100, round(sampled.error("0.95", units=10_000))
    (300, 2828)
    """

    design: Design
    inner: Inner[Statistic, Released]

    def __post_init__(self) -> None:
        _checked(self.design)

    def event(self, distance: Distance) -> Sampled:
        """Returns the privacy event of a release; ``distance`` is the sensitivity of the inner
        statistic to one unit.
        """
        if distance.relation is not self.design.relation:
            raise InvalidDeclaration(
                f"{type(self.design).__name__} for neighbours under {distance.relation.value}.",
                allowed=f"{self.design.relation.value}, for which its amplification is proved",
            )
        return Sampled(self.design, self.inner.event(distance))

    def release(
        self,
        units: Sequence[One],
        statistic: Callable[[list[One]], Statistic],
        entropy: Entropy = SYSTEM,
    ) -> Released:
        """Draws a new sample and returns the inner mechanism's answer for ``statistic`` of it.

        Divide a count or a sum by ``design.rate``.
        """
        sample = sample_units(self.design, units, entropy)
        return self.inner.release(statistic(sample))

    def error(self, confidence: Number, units: int) -> float:
        """Returns a bound h of the sampling error of a count, which holds with the given
        confidence.

        The error is |sampled count / rate - count|, proved for both designs and a true count of at
        most ``units``: ``deviation`` (Hoeffding or Bernstein). The noise, ``inner.error(confidence)
        / rate``, is added to it.
        """
        rate = self.design.rate
        if rate == 1:
            return 0.0
        spread = deviation(count("units", units), rate * (1 - rate), confidence)
        return float_up(spread / rate)


def _chosen(design: Design, units: int, entropy: Entropy) -> Integers:
    """The indices of the sample, ascending."""
    _checked(design)
    if isinstance(design, PoissonSample):
        return np.flatnonzero(Bernoulli(design.rate).sample(units, entropy))
    if units != design.population:
        raise InvalidDeclaration(
            f"Another number of units than the {design.population} of the sample's population.",
            allowed="all units of the population, whose number is public",
        )
    return subset(units, design.size, entropy)


def _checked(design: object) -> None:
    if isinstance(design, PoissonSample) and design.relation is not Relation.ADD_REMOVE:
        raise InvalidDeclaration(
            f"A Poisson sample for neighbours under {design.relation.value}.",
            allowed="PoissonSample(rate): "
            "what is drawn here is stated for units that enter or leave",
        )
    if not isinstance(design, PoissonSample | FixedSample):
        raise InvalidDeclaration(
            f"A sample by {type(design).__name__}.", allowed="PoissonSample or FixedSample"
        )

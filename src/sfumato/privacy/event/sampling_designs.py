# SPDX-License-Identifier: Apache-2.0
"""Sampling designs: how a secret random sample of the units is drawn (RULES 19)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy.event.check import check_count, exact_positive
from sfumato.privacy.unit import Relation

__all__ = ["Design", "FixedSample", "PoissonSample", "WithReplacementSample"]


@dataclass(frozen=True, slots=True)
class PoissonSample:
    """A sampling design in which each unit is in the sample independently with probability
    ``rate``.

    ``relation`` is the neighbour relation of the whole dataset. Under replace-one, the inner event
    is still stated for add-remove neighbours: the size of a Poisson sample is secret, so the sample
    without one unit is a neighbour of it.

    >>> PoissonSample(Fraction(1, 100), Relation.REPLACE_ONE).relation.value
    'replace-one'
    """

    rate: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_positive("The rate of a sample", self.rate))
        if self.rate > 1:
            raise InvalidNumber(
                f"A sampling rate of {self.rate}.", allowed="greater than 0 and at most 1"
            )
        if not isinstance(self.relation, Relation):
            raise InvalidDeclaration(
                f"A relation of type {type(self.relation).__name__}.", allowed="a Relation"
            )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A sample of ``size`` from ``population`` units, amplified under replace-one."""

    size: int
    population: int

    def __post_init__(self) -> None:
        check_count("size", self.size)
        check_count("population", self.population)

    @property
    def relation(self) -> Relation:
        """The neighbour relation for which amplification is proved (RULES 19)."""
        return Relation.REPLACE_ONE

    @property
    def rate(self) -> Fraction:
        """The expected number of draws of one unit; without replacement, its probability."""
        return Fraction(self.size, self.population)


@dataclass(frozen=True, slots=True)
class FixedSample(_Drawn):
    """A sampling design that draws a uniform random subset of ``size`` of ``population`` units.

    >>> FixedSample(size=10, population=1000).rate
    Fraction(1, 100)
    """

    def __post_init__(self) -> None:
        # no super(): a slotted dataclass is a new class, which a bare super() does not know
        _Drawn.__post_init__(self)
        if self.size > self.population:
            raise InvalidNumber(
                f"A sample of {self.size} from {self.population}.", allowed="at most the population"
            )


@dataclass(frozen=True, slots=True)
class WithReplacementSample(_Drawn):
    """A sampling design of ``size`` independent uniform draws from ``population`` units, with
    replacement.

    A unit that is drawn k times is in the sample k times.

    >>> WithReplacementSample(size=10, population=1000).relation.value
    'replace-one'
    """


Design: TypeAlias = PoissonSample | FixedSample | WithReplacementSample

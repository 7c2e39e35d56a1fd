# SPDX-License-Identifier: Apache-2.0
"""How a secret random sample of the units is drawn, each for its own neighbour relation (RULES 19)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy.event.check import check_count, exact_positive
from sfumato.privacy.unit import Relation


@dataclass(frozen=True, slots=True)
class PoissonSample:
    """Each unit is in the sample independently with probability ``rate``.

    ``relation``: of the neighbours of the whole. Where one unit is replaced by another, what is done to
    the sample is still stated for a unit that enters or leaves it (add-remove): the size of a Poisson
    sample is secret, so that one unit less is a neighbour of it.

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
    """``size`` draws from ``population`` units; what amplifies under the replacement of one unit."""

    size: int
    population: int

    def __post_init__(self) -> None:
        check_count("size", self.size)
        check_count("population", self.population)

    @property
    def relation(self) -> Relation:
        """The neighbour relation under which its amplification is proved (RULES 19)."""
        return Relation.REPLACE_ONE

    @property
    def rate(self) -> Fraction:
        """The expected number of times that a given unit is drawn; where none repeats, its probability."""
        return Fraction(self.size, self.population)


@dataclass(frozen=True, slots=True)
class FixedSample(_Drawn):
    """``size`` of ``population`` units, without replacement, every subset equally likely."""

    def __post_init__(self) -> None:
        # no super(): a slotted dataclass is a new class, which a bare super() does not know
        _Drawn.__post_init__(self)
        if self.size > self.population:
            raise InvalidNumber(
                f"A sample of {self.size} from {self.population}.", allowed="at most the population"
            )


@dataclass(frozen=True, slots=True)
class WithReplacementSample(_Drawn):
    """``size`` draws from ``population`` units, with replacement: independent and uniform, repeats allowed.

    A unit that is drawn k times counts k times in what is done to the sample.
    """


Design: TypeAlias = PoissonSample | FixedSample | WithReplacementSample

# SPDX-License-Identifier: Apache-2.0
"""The kinds of events: what a mechanism did to the data, as frozen data.

Each names the very distribution that was drawn from, so that any accountant can work out
what it cost, now or in ten years.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import Noise
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Independent noise added to every integer of a statistic of this sensitivity.

    ``cells``: the number of integers, which only an Linf sensitivity needs.
    """

    noise: Noise
    distance: Distance
    cells: int | None = None

    def __post_init__(self) -> None:
        if self.cells is not None:
            _count("cells", self.cells)


class Rule(Enum):
    """How a candidate is selected by its score u_i, for a rate c > 0.

    ``EXPONENTIAL``: with probability proportional to exp(c u_i). ``PERMUTE_AND_FLIP``: the
    first, in a random order, whose coin of bias exp(c (u_i - max u)) falls heads.
    """

    EXPONENTIAL = "exponential"
    PERMUTE_AND_FLIP = "permute_and_flip"


@dataclass(frozen=True, slots=True)
class Selection:
    """One candidate selected by its score; ``distance`` bounds the change of each score (Linf).

    ``monotone``: between neighbours all scores move in the same direction.
    """

    rule: Rule
    rate: Fraction
    distance: Distance
    monotone: bool = False

    def __post_init__(self) -> None:
        _positive("The rate of a selection", self.rate)
        _linf(self.distance)


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """The index of the largest integer score after independent noise, ties to the first.

    ``gap``: also how far it is above the least noisy score that would still have won.
    ``distance`` is Linf, over the scores.
    """

    noise: Noise
    distance: Distance
    monotone: bool = False
    gap: bool = False

    def __post_init__(self) -> None:
        _linf(self.distance)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Above threshold: each integer answer, plus noise, is compared with a noisy threshold.

    Stops after ``positives`` answers above. ``gap``: each of these also tells how far it is
    above the noisy threshold.
    """

    threshold_noise: Noise
    query_noise: Noise
    distance: Distance
    positives: int
    monotone: bool = False
    gap: bool = False

    def __post_init__(self) -> None:
        _linf(self.distance)
        _count("positives", self.positives)


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """One of k categories, reported truly with probability e^epsilon / (e^epsilon + k - 1)."""

    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        if isinstance(self.categories, bool) or not isinstance(self.categories, int) or self.categories < 2:
            raise InvalidDeclaration(f"{self.categories} categories.", allowed="2 or more")


@dataclass(frozen=True, slots=True)
class Thresholded:
    """Noisy numbers of units per unknown key, shown only where at least ``threshold``.

    ``additive`` is the noise on the counts; a unit is in at most ``keys`` keys.
    """

    additive: AdditiveNoise
    threshold: int
    keys: int

    def __post_init__(self) -> None:
        _count("keys", self.keys)
        if not isinstance(self.additive, AdditiveNoise):
            raise InvalidDeclaration(f"A threshold on {type(self.additive).__name__}.", allowed="AdditiveNoise")


@dataclass(frozen=True, slots=True)
class PoissonSample:
    """Each unit is in the sample independently with probability ``rate``."""

    rate: Fraction

    def __post_init__(self) -> None:
        _positive("The rate of a sample", self.rate)
        if self.rate > 1:
            raise InvalidNumber(f"A sampling rate of {self.rate}.", allowed="greater than 0 and at most 1")

    @property
    def relation(self) -> Relation:
        """The neighbour relation under which its amplification is proved (RULES 19)."""
        return Relation.ADD_REMOVE


@dataclass(frozen=True, slots=True)
class FixedSample:
    """``size`` of ``population`` units, without replacement, every subset equally likely."""

    size: int
    population: int

    def __post_init__(self) -> None:
        _count("size", self.size)
        _count("population", self.population)
        if self.size > self.population:
            raise InvalidNumber(f"A sample of {self.size} from {self.population}.", allowed="at most the population")

    @property
    def relation(self) -> Relation:
        """The neighbour relation under which its amplification is proved (RULES 19)."""
        return Relation.REPLACE_ONE

    @property
    def rate(self) -> Fraction:
        """The probability that a given unit is in the sample."""
        return Fraction(self.size, self.population)


Design: TypeAlias = PoissonSample | FixedSample


@dataclass(frozen=True, slots=True)
class Sampled:
    """``event`` done to a secret random sample of the units, drawn once for all of it."""

    design: Design
    event: "Event"


@dataclass(frozen=True, slots=True)
class Composed:
    """All of these, one after the other (sequential composition)."""

    events: tuple["Event", ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same event ``times`` times, each chosen after seeing the earlier answers."""

    event: "Event"
    times: int

    def __post_init__(self) -> None:
        _count("times", self.times)


Event: TypeAlias = (
    AdditiveNoise
    | Selection
    | NoisyMax
    | SparseVector
    | RandomizedResponse
    | Thresholded
    | Sampled
    | Composed
    | Repeated
)


def _positive(name: str, value: Fraction) -> None:
    if value <= 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="greater than 0")


def _count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidNumber(f"{name} = {value!r}.", allowed="an integer >= 1")


def _linf(distance: Distance) -> None:
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Scores bounded in {distance.norm.value}.", allowed="the change of each score: Distance(Norm.LINF, ...)"
        )

# SPDX-License-Identifier: Apache-2.0
"""The kinds of events: what a mechanism did to the data, as frozen data.

Each names the very distribution that was drawn from, so that any accountant can work out
what it cost, now or in ten years.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.noise import DiscreteGaussian, Noise
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event.check import (
    check_count,
    check_noise,
    check_scores,
    exact,
    exact_positive,
)
from sfumato.privacy.event.sampling_designs import Design
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
        check_noise(self.noise)
        if self.cells is not None:
            check_count("cells", self.cells)


class ContinuousLaw(Enum):
    """A law on the real numbers."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


@dataclass(frozen=True, slots=True)
class ContinuousNoise:
    """Noise of a continuous law, as real arithmetic would add it: sfumato itself never draws it.

    It is for what others ran (DP-SGD in floats, another library's ledger): its cost is that of
    the ideal law, and says nothing of the floats. ``scale``: of Gaussian noise the standard
    deviation, with an L2 distance; of Laplace noise the b of e^(-|x| / b), with an L1 distance.

    >>> ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction("1.1"), Distance(Norm.L2, Fraction(1))).scale
    Fraction(11, 10)
    """

    law: ContinuousLaw
    scale: Fraction
    distance: Distance

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact_positive("The scale of a noise", self.scale))
        norm = Norm.L2 if self.law is ContinuousLaw.GAUSSIAN else Norm.L1
        if self.distance.norm is not norm:
            raise InvalidDeclaration(
                f"{self.law.value.capitalize()} noise under an {self.distance.norm.value} bound.",
                allowed=f"Distance(Norm.{norm.name}, ...)",
            )


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
        object.__setattr__(self, "rate", exact_positive("The rate of a selection", self.rate))
        check_scores(self.distance)


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
        check_noise(self.noise)
        check_scores(self.distance)


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
        check_noise(self.threshold_noise)
        check_noise(self.query_noise)
        check_scores(self.distance)
        check_count("positives", self.positives)


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """One of k categories, reported truly with probability e^epsilon / (e^epsilon + k - 1)."""

    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))
        if (
            isinstance(self.categories, bool)
            or not isinstance(self.categories, int)
            or self.categories < 2
        ):
            raise InvalidDeclaration(f"{self.categories} categories.", allowed="2 or more")


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """Any mechanism whose loss, over all outputs, lies in an interval of length ``eta`` (Durfee, Rogers 2019)."""

    eta: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", exact_positive("eta", self.eta))


@dataclass(frozen=True, slots=True)
class PureEvent:
    """A mechanism of which nothing is known but that it is epsilon-DP."""

    epsilon: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True)
class ApproxEvent:
    """A mechanism of which nothing is known but that it is (epsilon, delta)-DP."""

    epsilon: Fraction
    delta: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact("epsilon", self.epsilon))
        object.__setattr__(self, "delta", exact("delta", self.delta))
        if self.epsilon < 0:
            raise InvalidNumber(f"epsilon = {self.epsilon}.", allowed="0 or greater")
        if not 0 <= self.delta <= 1:
            raise InvalidNumber(f"delta = {self.delta}.", allowed="0 or greater, and at most 1")


@dataclass(frozen=True, slots=True)
class Thresholded:
    """Noisy numbers of units per unknown key, shown only where at least ``threshold``.

    ``additive`` is the noise on the counts; a unit is in at most ``keys`` keys.
    """

    additive: AdditiveNoise
    threshold: int
    keys: int

    def __post_init__(self) -> None:
        check_count("keys", self.keys)
        if type(self.threshold) is not int:
            raise InvalidNumber(f"A threshold of {shown(self.threshold)}.", allowed="an integer")
        if not isinstance(self.additive, AdditiveNoise):
            raise InvalidDeclaration(
                f"A threshold on {type(self.additive).__name__}.", allowed="AdditiveNoise"
            )


@dataclass(frozen=True, slots=True)
class Sampled:
    """``event`` done to a secret random sample of the units, drawn once for all of it."""

    design: Design
    event: "Event"

    def __post_init__(self) -> None:
        _events((self.event,))
        if not isinstance(self.design, Design):
            raise InvalidDeclaration(
                f"A sample drawn by {type(self.design).__name__}.",
                allowed="PoissonSample, FixedSample, WithReplacementSample",
            )


@dataclass(frozen=True, slots=True)
class Shuffled:
    """``reports`` units send one report each, all made by ``event``; who sent which is not told.

    ``event`` is what one unit does alone to its own value, so its neighbours are two values: replace-one.
    """

    event: RandomizedResponse | PureEvent
    reports: int

    def __post_init__(self) -> None:
        check_count("reports", self.reports)
        local = isinstance(self.event, RandomizedResponse | PureEvent)
        if (
            not local
            or getattr(self.event, "relation", Relation.REPLACE_ONE) is not Relation.REPLACE_ONE
        ):
            raise InvalidDeclaration(
                f"Shuffled reports made by {shown(self.event)}.",
                allowed="RandomizedResponse, or PureEvent(epsilon, Relation.REPLACE_ONE)",
            )


@dataclass(frozen=True, slots=True)
class Group:
    """``event``, where the protected unit is up to ``size`` of the units that ``event`` is about.

    For those who change together, a household of four, or a person with at most four rows.
    """

    event: "Event"
    size: int

    def __post_init__(self) -> None:
        _events((self.event,))
        check_count("size", self.size)


@dataclass(frozen=True, slots=True)
class Stream:
    """Noisy running answers over ``steps`` steps from one noise: a tree, or a factorised matrix.

    What is released is a processing of C x + noise, x the steps' inputs and C lower triangular
    (the encoder). ``noise`` is Gaussian and its L2 distance is already that of C x: all that the
    at most ``participations`` steps of a unit, at least ``separation`` apart, can move it. The
    input of a step may depend on earlier answers. ``column``: the largest squared norm by which
    ONE participation can move C x.

    A binary tree over 8 steps, each unit in one of them: 1 + log2(8) nodes change by 1.

    >>> four = Distance(Norm.L2, Fraction(4))
    >>> tree = Stream(AdditiveNoise(DiscreteGaussian(10), four), steps=8, column=Fraction(4))
    >>> tree.participations, tree.most
    (1, Fraction(4, 1))
    """

    noise: AdditiveNoise | ContinuousNoise
    steps: int
    column: Fraction
    participations: int = 1
    separation: int = 1

    def __post_init__(self) -> None:
        for name in ("steps", "participations", "separation"):
            check_count(name, getattr(self, name))
        object.__setattr__(self, "column", exact_positive("column", self.column))
        law = (
            self.noise.noise
            if isinstance(self.noise, AdditiveNoise)
            else getattr(self.noise, "law", None)
        )
        if not (isinstance(law, DiscreteGaussian) or law is ContinuousLaw.GAUSSIAN):
            raise InvalidDeclaration(
                f"A stream with {shown(self.noise)}.", allowed="Gaussian noise with an L2 distance"
            )
        if self.participations > 1 + (self.steps - 1) // self.separation:
            raise InvalidDeclaration(
                f"{self.participations} participations, {self.separation} steps apart, in {self.steps} steps.",
                allowed="1 + (steps - 1) // separation at most",
            )
        distance = self.noise.distance
        if distance.norm is not Norm.L2 or distance.value < self.column:
            raise InvalidDeclaration(
                f"A stream of {distance.norm.value} distance {distance.value}.",
                allowed=f"the squared L2 distance of all participations, at least that of one, {self.column}",
            )

    @property
    def most(self) -> Fraction:
        """participations^2 * column: no squared distance is larger (the triangle inequality)."""
        return self.participations**2 * self.column


@dataclass(frozen=True, slots=True)
class Composed:
    """All of these, one after the other (sequential composition)."""

    events: tuple["Event", ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))


@dataclass(frozen=True, slots=True)
class Parallel:
    """Each on a part of its own: a unit is in one part at a time (parallel composition, McSherry 2009).

    Only inside one plan whose proof of stability says so (RULES 8), never across charges.
    Under replace-one each event is at the distance of a unit that enters, leaves or changes.
    """

    events: tuple["Event", ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))
        if not self.events:
            raise InvalidDeclaration(
                "A parallel composition of nothing.", allowed="one event or more"
            )


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same event ``times`` times, each chosen after seeing the earlier answers."""

    event: "Event"
    times: int

    def __post_init__(self) -> None:
        _events((self.event,))
        check_count("times", self.times)


@dataclass(frozen=True, slots=True)
class Nonadaptive:
    """``event``, whose parts are all asked with scores and statistics that were fixed before the first answer.

    Only where no score, statistic, candidate or parameter depends on an earlier answer: then several
    exponential mechanisms lose less than where the next scores follow from the last choice.
    """

    event: "Event"

    def __post_init__(self) -> None:
        _events((self.event,))


Event: TypeAlias = (
    AdditiveNoise
    | ContinuousNoise
    | Selection
    | NoisyMax
    | SparseVector
    | RandomizedResponse
    | BoundedRange
    | PureEvent
    | ApproxEvent
    | Thresholded
    | Sampled
    | Shuffled
    | Group
    | Stream
    | Composed
    | Parallel
    | Repeated
    | Nonadaptive
)


def _events(events: Iterable[object]) -> tuple[Event, ...]:
    """Refuses parts that are no events: nothing could be said of them."""
    if not isinstance(events, Iterable):
        raise InvalidDeclaration(
            f"Events in a {type(events).__name__}.", allowed="a tuple of events"
        )
    listed = []
    for each in events:
        if not isinstance(each, Event):
            raise InvalidDeclaration(
                f"An event of an unknown kind: {type(each).__name__}.", allowed="sfumato's events"
            )
        listed.append(each)
    return tuple(listed)

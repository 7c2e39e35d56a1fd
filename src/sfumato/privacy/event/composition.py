# SPDX-License-Identifier: Apache-2.0
"""Events made of other events: thresholds, samples, groups, streams and compositions.

``Event`` is the union of all event types. ``events`` says how an event is stored.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, NegativeBinomial, RoundedGaussian
from sfumato.privacy.distance import Norm
from sfumato.privacy.event.check import check_count, exact_positive
from sfumato.privacy.event.events import (
    AdditiveNoise,
    ContinuousLaw,
    ContinuousNoise,
    PureEvent,
    RandomizedResponse,
    SingleEvent,
)
from sfumato.privacy.event.reports import WHOLE, DeviceReport, Report
from sfumato.privacy.event.sampling_designs import Design
from sfumato.privacy.unit import Relation

__all__ = [
    "BestOf",
    "Block",
    "ChosenReport",
    "Composed",
    "Event",
    "Group",
    "JointReport",
    "Nonadaptive",
    "Parallel",
    "Repeated",
    "Sampled",
    "Shuffled",
    "Stream",
    "Thresholded",
]


@dataclass(frozen=True, slots=True)
class Thresholded:
    """Noisy counts of units for undeclared keys; a key and its count are shown from ``threshold``
    on.

    ``additive`` is the noise on the counts; a unit has at most ``keys`` keys.

    >>> from sfumato.privacy import Distance
    >>> counts = AdditiveNoise(DiscreteGaussian(3), Distance(Norm.L2, Fraction(1)))
    >>> Thresholded(counts, threshold=20, keys=1).threshold
    20
    """

    kind: ClassVar[str] = "thresholded"
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
    """``event`` applied to a secret random sample of the units, drawn once for the whole event.

    >>> from sfumato.privacy.event import PoissonSample
    >>> Sampled(PoissonSample(Fraction(1, 100)), PureEvent(Fraction(1))).design.rate
    Fraction(1, 100)
    """

    kind: ClassVar[str] = "sampled"
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
    """The shuffle model: ``reports`` units send one report each, and nobody sees who sent which.

    ``event`` is the local randomizer that each unit applies to its own value. Neighbours differ in
    the value of one unit, so the relation is replace-one.

    >>> Shuffled(RandomizedResponse(Fraction(1), 2), reports=10_000).reports
    10000
    """

    kind: ClassVar[str] = "shuffled"
    event: "RandomizedResponse | PureEvent | Report | ChosenReport | JointReport"
    reports: int

    def __post_init__(self) -> None:
        check_count("reports", self.reports)
        local = isinstance(self.event, RandomizedResponse | PureEvent | DeviceReport)
        if not local or self.event.relation is not Relation.REPLACE_ONE:
            raise InvalidDeclaration(
                f"Shuffled reports made by {shown(self.event)}.",
                allowed="RandomizedResponse, a report of a device, or "
                "PureEvent(epsilon, Relation.REPLACE_ONE)",
            )


@dataclass(frozen=True, slots=True)
class ChosenReport(DeviceReport):
    """One of several reports of a device; which one is chosen at random, independent of its value.

    The choice is part of the report. ``weights`` over 2^64 are the probabilities of the ``events``.

    >>> from sfumato.privacy.event import BitReport
    >>> half = 1 << 63
    >>> few, many = BitReport(half + half // 2), BitReport(half + half // 3)
    >>> ChosenReport((few, many), weights=(half, half)).odds
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "chosen_report"
    events: tuple["Event", ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))
        object.__setattr__(self, "weights", tuple(self.weights))
        known = all(isinstance(event, DeviceReport) for event in self.events)
        whole = all(type(weight) is int and weight > 0 for weight in self.weights)
        if not known or not whole or len(self.events) != len(self.weights) or not self.events:
            raise InvalidDeclaration(
                "A choice of reports that is none.", allowed="reports of a device, a weight each"
            )
        if sum(self.weights) != WHOLE:
            raise InvalidDeclaration("Weights that do not add up to 2^64.")

    @property
    def odds(self) -> Fraction:
        """The largest odds of any of its reports."""
        return max(event.odds for event in self.events if isinstance(event, DeviceReport))


@dataclass(frozen=True, slots=True)
class JointReport(DeviceReport):
    """Several reports of one value of a device, drawn independently and sent together.

    >>> from sfumato.privacy.event import BitReport
    >>> half = 1 << 63
    >>> bit = BitReport(half + half // 2)
    >>> JointReport((bit, bit)).odds
    Fraction(9, 1)
    """

    kind: ClassVar[str] = "joint_report"
    events: tuple["Event", ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))
        known = all(isinstance(event, DeviceReport) for event in self.events)
        if not known or not self.events:
            raise InvalidDeclaration(
                "Joint reports that are none.", allowed="one report of a device, or more"
            )

    @property
    def odds(self) -> Fraction:
        """The product of the odds of its reports."""
        reports = (event.odds for event in self.events if isinstance(event, DeviceReport))
        return math.prod(reports, start=Fraction(1))


@dataclass(frozen=True, slots=True)
class Group:
    """Group privacy: the cost of ``event`` where up to ``size`` of its units change together.

    For example a household of four persons, or a person with at most four rows.

    >>> Group(PureEvent(Fraction(1)), size=4).size
    4
    """

    kind: ClassVar[str] = "group"
    event: "Event"
    size: int

    def __post_init__(self) -> None:
        _events((self.event,))
        check_count("size", self.size)


@dataclass(frozen=True, slots=True)
class Stream:
    """Continual release over ``steps`` steps: a tree mechanism or a matrix factorisation.

    The answers are post-processing of C x + noise, where x are the inputs of the steps and C, the
    encoder, is lower triangular. ``noise`` is Gaussian, or discrete Laplace. Its distance (L2, or
    L1) is the sensitivity of C x to a unit with at most ``participations`` steps that are at least
    ``separation`` apart. The input of a step may depend on earlier answers. ``column`` is the
    largest norm (squared in L2) of a change of C x by ONE participation.

    A binary tree over 8 steps, where each unit has one step: 1 + log2(8) nodes change by 1.

    >>> from sfumato.privacy import Distance
    >>> four = Distance(Norm.L2, Fraction(4))
    >>> tree = Stream(AdditiveNoise(DiscreteGaussian(10), four), steps=8, column=Fraction(4))
    >>> tree.participations, tree.most
    (1, Fraction(4, 1))
    """

    kind: ClassVar[str] = "stream"
    noise: AdditiveNoise | ContinuousNoise
    steps: int
    column: Fraction
    participations: int = 1
    separation: int = 1

    def __post_init__(self) -> None:
        for name in ("steps", "participations", "separation"):
            check_count(name, getattr(self, name))
        object.__setattr__(self, "column", exact_positive("column", self.column))
        norm = _norm_of_stream(self.noise)
        if norm is None:
            raise InvalidDeclaration(
                f"A stream with {shown(self.noise)}.",
                allowed="Gaussian noise with an L2 distance, discrete Laplace noise with L1",
            )
        if self.participations > 1 + (self.steps - 1) // self.separation:
            raise InvalidDeclaration(
                f"{self.participations} participations, {self.separation} steps apart, "
                f"in {self.steps} steps.",
                allowed="1 + (steps - 1) // separation at most",
            )
        distance = self.noise.distance
        if distance.norm is not norm or distance.value < self.column:
            raise InvalidDeclaration(
                f"A stream of {distance.norm.value} distance {distance.value}.",
                allowed=f"the {norm.value} distance (squared in L2) of all participations, "
                f"at least that of one, {self.column}",
            )

    @property
    def most(self) -> Fraction:
        """An upper bound of the sensitivity: participations * column (in L2 participations^2 *
        column).

        Source: the triangle inequality.
        """
        times = self.participations
        if self.noise.distance.norm is Norm.L2:
            times = times**2
        return times * self.column


def _norm_of_stream(noise: object) -> Norm | None:
    """The norm that the noise of a stream takes; None if no stream may have it."""
    if isinstance(noise, ContinuousNoise):
        return Norm.L2 if noise.law is ContinuousLaw.GAUSSIAN else None
    if not isinstance(noise, AdditiveNoise):
        return None
    return _NORMS_OF_STREAMS.get(type(noise.noise))


_NORMS_OF_STREAMS: dict[type, Norm] = {
    DiscreteGaussian: Norm.L2,
    RoundedGaussian: Norm.L2,
    DiscreteLaplace: Norm.L1,
}


@dataclass(frozen=True, slots=True)
class Composed:
    """Sequential composition: all of these events, one after another.

    >>> len(Composed((PureEvent(Fraction(1)), PureEvent(Fraction(2)))).events)
    2
    """

    kind: ClassVar[str] = "composed"
    events: tuple["Event", ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))


@dataclass(frozen=True, slots=True)
class Parallel:
    """Parallel composition: each event on a disjoint part of the units (McSherry 2009).

    Valid only inside one plan with a stability proof (RULES 8), never across charges. Under
    replace-one, the distance of each event covers a unit that enters, leaves or changes its part.

    >>> len(Parallel((PureEvent(Fraction(1)), PureEvent(Fraction(2)))).events)
    2
    """

    kind: ClassVar[str] = "parallel"
    events: tuple["Event", ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))
        if not self.events:
            raise InvalidDeclaration(
                "A parallel composition of nothing.", allowed="one event or more"
            )


@dataclass(frozen=True, slots=True)
class Repeated:
    """Adaptive composition of ``times`` copies of one event.

    >>> Repeated(PureEvent(Fraction(1, 10)), times=10).times
    10
    """

    kind: ClassVar[str] = "repeated"
    event: "Event"
    times: int

    def __post_init__(self) -> None:
        _events((self.event,))
        check_count("times", self.times)


@dataclass(frozen=True, slots=True)
class Nonadaptive:
    """Nonadaptive composition: all of ``event`` was fixed before its first answer.

    Valid only if no score, statistic, candidate or parameter depends on an earlier answer. Then
    several exponential mechanisms cost less than under adaptive composition.

    >>> from sfumato.privacy import Distance, Rule, Selection
    >>> one = Selection(Rule.EXPONENTIAL, Fraction(1), Distance(Norm.LINF, Fraction(1)))
    >>> Nonadaptive(Repeated(one, 100)).event.times
    100
    """

    kind: ClassVar[str] = "nonadaptive"
    event: "Event"

    def __post_init__(self) -> None:
        _events((self.event,))


@dataclass(frozen=True, slots=True)
class Block:
    """A plan that was fixed before its first answer and is charged as a whole (RULES 7).

    Its privacy curve proves ``epsilon`` at ``delta``. A block is a whole charge: it is a part of no
    other event.

    >>> Block(PureEvent(Fraction(1, 2)), Fraction(1, 2), Fraction(1, 10**6)).epsilon
    Fraction(1, 2)
    """

    kind: ClassVar[str] = "block"
    event: "Event"
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _events((self.event,))
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, exact_positive(name, getattr(self, name)))
        if self.delta >= 1 or isinstance(self.event, Block):
            raise InvalidDeclaration(
                f"A block of {type(self.event).__name__} with delta = {shown(self.delta)}.",
                allowed="a plan that is no block, and a delta below 1",
            )


@dataclass(frozen=True, slots=True)
class BestOf:
    """The best outcome of a secret number of runs; all other outcomes are dropped.

    Each run does one of ``events``, chosen uniformly and independently of the data; the best of
    their outcomes, in a total order of all outcomes, is returned. The number of runs is drawn from
    ``NegativeBinomial(shape, stop)``. Neither it nor any other outcome is ever released.

    Source: Papernot and Steinke 2022, Theorem 2.

    >>> half = PureEvent(Fraction(1, 2))
    >>> BestOf((half,), Fraction(0), Fraction(1, 10)).law.shape
    Fraction(0, 1)
    """

    kind: ClassVar[str] = "best_of"
    events: tuple["Event", ...]
    shape: Fraction
    stop: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events))
        law = NegativeBinomial(self.shape, self.stop)
        object.__setattr__(self, "shape", law.shape)
        object.__setattr__(self, "stop", law.stop)
        if not self.events or any(isinstance(event, Block) for event in self.events):
            raise InvalidDeclaration(
                "The best of runs of nothing, or of blocks.", allowed="one event or more"
            )

    @property
    def law(self) -> NegativeBinomial:
        """The law of the number of runs."""
        return NegativeBinomial(self.shape, self.stop)


Event: TypeAlias = (
    SingleEvent
    | Report
    | ChosenReport
    | JointReport
    | Thresholded
    | Sampled
    | Shuffled
    | Group
    | Stream
    | Composed
    | Parallel
    | Repeated
    | Nonadaptive
    | BestOf
    | Block
)


def _events(events: Iterable[object]) -> tuple[Event, ...]:
    """Refuses parts that are not events, since their cost is unknown."""
    if not isinstance(events, Iterable):
        raise InvalidDeclaration(
            f"Events in a {type(events).__name__}.", allowed="a tuple of events"
        )
    listed = []
    for event in events:
        if not isinstance(event, Event):
            raise InvalidDeclaration(
                f"An event of an unknown kind: {type(event).__name__}.", allowed="sfumato's events"
            )
        listed.append(event)
    return tuple(listed)

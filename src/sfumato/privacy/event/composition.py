# SPDX-License-Identifier: Apache-2.0
"""Events that are made of others: thresholds, samples, groups, streams and compositions.

``Event`` is any event. How an event is written is said in ``events``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.noise import DiscreteGaussian
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
from sfumato.privacy.event.sampling_designs import Design
from sfumato.privacy.unit import Relation

__all__ = [
    "Composed",
    "Event",
    "Group",
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
    """Noisy counts of units for undeclared keys, released only if at least ``threshold``.

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
    """The shuffle model: ``reports`` units send one report each; the senders are hidden.

    ``event`` is the local randomizer that each unit applies to its own value. Its neighbours are
    two values, so the relation is replace-one.

    >>> Shuffled(RandomizedResponse(Fraction(1), 2), reports=10_000).reports
    10000
    """

    kind: ClassVar[str] = "shuffled"
    event: RandomizedResponse | PureEvent
    reports: int

    def __post_init__(self) -> None:
        check_count("reports", self.reports)
        local = isinstance(self.event, RandomizedResponse | PureEvent)
        if not local or self.event.relation is not Relation.REPLACE_ONE:
            raise InvalidDeclaration(
                f"Shuffled reports made by {shown(self.event)}.",
                allowed="RandomizedResponse, or PureEvent(epsilon, Relation.REPLACE_ONE)",
            )


@dataclass(frozen=True, slots=True)
class Group:
    """Group privacy: ``event``, where up to ``size`` of its units change together.

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
    encoder, is lower triangular. ``noise`` is Gaussian. Its L2 distance is the sensitivity of C x
    to a unit with at most ``participations`` steps that are at least ``separation`` apart. The
    input of a step may depend on earlier answers. ``column`` is the largest squared norm by which
    ONE participation can change C x.

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
        if not _is_gaussian(self.noise):
            raise InvalidDeclaration(
                f"A stream with {shown(self.noise)}.", allowed="Gaussian noise with an L2 distance"
            )
        if self.participations > 1 + (self.steps - 1) // self.separation:
            raise InvalidDeclaration(
                f"{self.participations} participations, {self.separation} steps apart, "
                f"in {self.steps} steps.",
                allowed="1 + (steps - 1) // separation at most",
            )
        distance = self.noise.distance
        if distance.norm is not Norm.L2 or distance.value < self.column:
            raise InvalidDeclaration(
                f"A stream of {distance.norm.value} distance {distance.value}.",
                allowed="the squared L2 distance of all participations, "
                f"at least that of one, {self.column}",
            )

    @property
    def most(self) -> Fraction:
        """An upper bound of the squared distance: participations^2 * column.

        Source: the triangle inequality.
        """
        return self.participations**2 * self.column


def _is_gaussian(noise: object) -> bool:
    if isinstance(noise, AdditiveNoise):
        return isinstance(noise.noise, DiscreteGaussian)
    return isinstance(noise, ContinuousNoise) and noise.law is ContinuousLaw.GAUSSIAN


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


Event: TypeAlias = (
    SingleEvent
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
    """Refuses parts that are not events, since nothing is known of their cost."""
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

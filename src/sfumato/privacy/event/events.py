# SPDX-License-Identifier: Apache-2.0
"""Events: what a mechanism did to the data, as frozen values.

An event describes the exact distribution that was sampled, so that any accountant can compute
its cost, now or in ten years. ``kind`` is its name in JSON. Its JSON form follows from the names,
types and defaults of its fields (``serialization``), so none of these can ever change.

An event that follows from nothing else states its ``relation`` and its ``guarantee``, which is
what it costs. The other events are priced by a rule of ``accounting.account``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar, TypeAlias

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
from sfumato.privacy.guarantee import ApproxDP, BoundedRangeDP, PureDP
from sfumato.privacy.unit import Relation

__all__ = [
    "AdditiveNoise",
    "ApproxEvent",
    "BoundedRange",
    "Composed",
    "ContinuousLaw",
    "ContinuousNoise",
    "Event",
    "Group",
    "NoisyMax",
    "Nonadaptive",
    "Parallel",
    "PureEvent",
    "RandomizedResponse",
    "Repeated",
    "Rule",
    "Sampled",
    "Selection",
    "Shuffled",
    "SparseVector",
    "Stream",
    "Thresholded",
]


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Independent noise added to each integer of a statistic with sensitivity ``distance``.

    ``cells`` is the number of integers; only an Linf sensitivity needs it.

    >>> AdditiveNoise(DiscreteGaussian(3), Distance(Norm.L2, Fraction(1))).noise
    DiscreteGaussian(sigma_squared=Fraction(9, 1))
    """

    kind: ClassVar[str] = "additive_noise"
    noise: Noise
    distance: Distance
    cells: int | None = None

    def __post_init__(self) -> None:
        check_noise(self.noise)
        if self.cells is not None:
            check_count("cells", self.cells)


class ContinuousLaw(Enum):
    """A distribution on the real numbers.

    >>> ContinuousLaw("laplace")
    <ContinuousLaw.LAPLACE: 'laplace'>
    """

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


@dataclass(frozen=True, slots=True)
class ContinuousNoise:
    """Noise of a continuous distribution, in real arithmetic. sfumato itself never samples it.

    Used to account for releases of other programs (DP-SGD in floats, another library's ledger).
    Its cost is that of the ideal distribution and does not cover floating-point effects.
    ``scale`` is the standard deviation of Gaussian noise, with an L2 distance, or the b of Laplace
    noise with density ~ e^(-|x| / b), with an L1 distance.

    >>> one = Distance(Norm.L2, Fraction(1))
    >>> ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction("1.1"), one).scale
    Fraction(11, 10)
    """

    kind: ClassVar[str] = "continuous_noise"
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
    """How a candidate is selected from the scores u_i, at a rate c > 0.

    ``EXPONENTIAL``: with probability proportional to exp(c u_i). ``PERMUTE_AND_FLIP``: in random
    order, each candidate is accepted with probability exp(c (u_i - max u)); the first one wins.

    >>> Rule("exponential")
    <Rule.EXPONENTIAL: 'exponential'>
    """

    EXPONENTIAL = "exponential"
    PERMUTE_AND_FLIP = "permute_and_flip"


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of one candidate by score; ``distance`` bounds the change of each score (Linf).

    ``monotone``: between neighbours all scores change in the same direction.

    >>> Selection(Rule.EXPONENTIAL, Fraction(1, 2), Distance(Norm.LINF, Fraction(1))).rate
    Fraction(1, 2)
    """

    kind: ClassVar[str] = "selection"
    rule: Rule
    rate: Fraction
    distance: Distance
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_positive("The rate of a selection", self.rate))
        check_scores(self.distance)


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Report noisy max: the index of the largest integer score plus noise; the first wins ties.

    ``gap``: also releases by how much it exceeds the smallest noisy score that would have won.
    ``distance`` bounds the change of each score (Linf).

    >>> one = Distance(Norm.LINF, Fraction(1))
    >>> NoisyMax(DiscreteGaussian(3), one, gap=True).monotone
    False
    """

    kind: ClassVar[str] = "noisy_max"
    noise: Noise
    distance: Distance
    monotone: bool = False
    gap: bool = False

    def __post_init__(self) -> None:
        check_noise(self.noise)
        check_scores(self.distance)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Sparse vector: compares each integer answer, plus noise, with a noisy threshold.

    Stops after ``positives`` answers above it. ``gap``: also releases by how much each of these
    exceeds the noisy threshold.

    >>> one, noise = Distance(Norm.LINF, Fraction(1)), DiscreteGaussian(3)
    >>> SparseVector(noise, noise, one, positives=5).positives
    5
    """

    kind: ClassVar[str] = "sparse_vector"
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
    """k-ary randomized response: the true category with probability e^eps / (e^eps + k - 1).

    >>> RandomizedResponse(Fraction(1), categories=4).categories
    4
    """

    kind: ClassVar[str] = "randomized_response"
    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))
        is_int = isinstance(self.categories, int) and not isinstance(self.categories, bool)
        if not is_int or self.categories < 2:
            raise InvalidDeclaration(f"{self.categories} categories.", allowed="2 or more")

    @property
    def relation(self) -> Relation:
        """Replace-one: a report shows that there is a unit, and hides its value."""
        return Relation.REPLACE_ONE

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP. Proof: mechanisms/response.proof.md."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """Any mechanism whose loss over all outputs lies in an interval of length ``eta``.

    Source: Durfee, Rogers 2019.

    >>> BoundedRange(Fraction(1, 2)).eta
    Fraction(1, 2)
    """

    kind: ClassVar[str] = "bounded_range"
    eta: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", exact_positive("eta", self.eta))

    @property
    def guarantee(self) -> BoundedRangeDP:
        """What is known of the mechanism."""
        return BoundedRangeDP(self.eta)


@dataclass(frozen=True, slots=True)
class PureEvent:
    """Any epsilon-DP mechanism.

    >>> PureEvent(Fraction(1, 2)).relation.value
    'add-remove'
    """

    kind: ClassVar[str] = "pure"
    epsilon: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))

    @property
    def guarantee(self) -> PureDP:
        """What is known of the mechanism."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class ApproxEvent:
    """Any (epsilon, delta)-DP mechanism.

    >>> ApproxEvent(Fraction(1), Fraction("1e-6")).delta
    Fraction(1, 1000000)
    """

    kind: ClassVar[str] = "approximate"
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

    @property
    def guarantee(self) -> ApproxDP:
        """What is known of the mechanism."""
        return ApproxDP(self.epsilon, self.delta)


@dataclass(frozen=True, slots=True)
class Thresholded:
    """Noisy counts of units for undeclared keys, released only if at least ``threshold``.

    ``additive`` is the noise on the counts; a unit has at most ``keys`` keys.

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

    >>> one = Selection(Rule.EXPONENTIAL, Fraction(1), Distance(Norm.LINF, Fraction(1)))
    >>> Nonadaptive(Repeated(one, 100)).event.times
    100
    """

    kind: ClassVar[str] = "nonadaptive"
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

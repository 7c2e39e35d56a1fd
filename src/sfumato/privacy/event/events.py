# SPDX-License-Identifier: Apache-2.0
"""Basic events: what one mechanism did to the data, as frozen values.

An event describes the exact distribution that was sampled, so that any accountant can compute its
cost, now or in ten years. ``composition`` has the events that are made of others. ``kind`` is the
name of an event in JSON. Its JSON form follows from the names, types and defaults of its fields
(``serialization``), so none of these can ever change.

An event whose cost is a single guarantee states its ``relation`` and its ``guarantee``. The other
events are priced by a rule of ``accounting.account``.
"""

import re
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
from sfumato.privacy.guarantee import ApproxDP, BoundedRangeDP, PureDP
from sfumato.privacy.unit import Relation

__all__ = [
    "AdditiveNoise",
    "ApproxEvent",
    "BoundedRange",
    "ContinuousLaw",
    "ContinuousNoise",
    "NoisyMax",
    "PureEvent",
    "RandomizedResponse",
    "Rule",
    "Selection",
    "SharedNoise",
    "SparseVector",
]

_ROSTER = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Independent noise added to each integer of a statistic with sensitivity ``distance``.

    ``cells`` is the number of integers; only an Linf sensitivity needs it.

    >>> from sfumato.noise import DiscreteGaussian
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


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """One site's share of a sum over sites, which alone can be read: integers plus noise, masked.

    ``noise`` is the law of the draw that one site adds to each of at most ``cells`` integers. At
    least ``least`` sites of the ``roster`` (the hash of their names and keys) take part, of which
    ``colluders`` may know their own noise: ``shares`` draws are counted. ``distance`` is that of
    the integers of one site, and a unit may be in ``overlap`` sites.

    >>> from sfumato.noise import DiscreteGaussian
    >>> one = Distance(Norm.L2, Fraction(1))
    >>> SharedNoise(DiscreteGaussian(3), 3, 1, one, 10, 1, "5a" * 32).shares
    2
    """

    kind: ClassVar[str] = "shared_noise"
    noise: DiscreteGaussian
    least: int
    colluders: int
    distance: Distance
    cells: int
    overlap: int
    roster: str

    def __post_init__(self) -> None:
        for name in ("least", "colluders", "cells", "overlap"):
            check_count(name, getattr(self, name))
        noise = self.noise
        # wider noise is no int64
        if not isinstance(noise, DiscreteGaussian) or not 1 <= noise.sigma_squared <= 2**100:
            raise InvalidDeclaration(
                f"Shares of the noise {noise}.", allowed="DiscreteGaussian, sigma^2 from 1 to 2^100"
            )
        if self.shares < 2:
            raise InvalidDeclaration(
                f"{self.least} sites, {self.colluders} of which may collude.",
                allowed="2 or more sites beside those that may collude",
            )
        where = self.distance
        if where.norm is not Norm.L2 or where.relation is not Relation.ADD_REMOVE:
            raise InvalidDeclaration(
                f"Shares of a statistic bounded in {where.norm.value}, {where.relation.value}.",
                allowed="an L2 bound for a unit that is added or removed",
            )
        if type(self.roster) is not str or not _ROSTER.fullmatch(self.roster):
            raise InvalidDeclaration(
                f"Shares of the roster {shown(self.roster)}.", allowed="a SHA-256 in hexadecimal"
            )

    @property
    def shares(self) -> int:
        """The number of draws that are unknown to whoever sees the sum."""
        return self.least - self.colluders


class ContinuousLaw(Enum):
    """The kind of a continuous noise distribution: Gaussian or Laplace.

    >>> ContinuousLaw("laplace")
    <ContinuousLaw.LAPLACE: 'laplace'>
    """

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


@dataclass(frozen=True, slots=True)
class ContinuousNoise:
    """Noise of a continuous distribution, in real arithmetic. sfumato itself never samples it.

    Used to account for releases of other programs (DP-SGD in floats, another library's ledger). Its
    cost is that of the ideal distribution and does not cover floating-point effects. ``scale`` is
    the standard deviation of Gaussian noise (then ``distance`` is in L2), or the b of Laplace noise
    with density ~ e^(-|x| / b) (then it is in L1).

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

    ``gap``: also releases by how much the winner's noisy score exceeds the smallest one that would
    have won. ``distance`` bounds the change of each score (Linf).

    >>> from sfumato.noise import DiscreteGaussian
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

    >>> from sfumato.noise import DiscreteGaussian
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
        if type(self.categories) is not int or self.categories < 2:
            raise InvalidDeclaration(f"{self.categories} categories.", allowed="2 or more")

    @property
    def relation(self) -> Relation:
        """Replace-one: a report hides a person's value, but not that the person took part."""
        return Relation.REPLACE_ONE

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP. Proof: mechanisms/response.proof.md."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """Any mechanism whose privacy loss, over all outputs, lies in an interval of length ``eta``.

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
        """The guarantee that the event states: a bounded range of eta."""
        return BoundedRangeDP(self.eta)


@dataclass(frozen=True, slots=True)
class PureEvent:
    """The event of a mechanism of which only its epsilon is known: it is epsilon-DP.

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
        """The guarantee that the event states: epsilon-DP."""
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
        """The guarantee that the event states: (epsilon, delta)-DP."""
        return ApproxDP(self.epsilon, self.delta)


SingleEvent: TypeAlias = (
    AdditiveNoise
    | SharedNoise
    | ContinuousNoise
    | Selection
    | NoisyMax
    | SparseVector
    | RandomizedResponse
    | BoundedRange
    | PureEvent
    | ApproxEvent
)

# SPDX-License-Identifier: Apache-2.0
"""Events of telemetry: the report of one device, whose probabilities are integers over 2^64.

A device draws words of 64 bits and compares them with these integers, so the probabilities stated
here are exactly those drawn from. ``odds`` is the largest ratio between the probabilities of one
report under two values; epsilon is its logarithm. Proof: reports.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rounding import log_up
from sfumato.privacy.event.check import check_count
from sfumato.privacy.guarantee import PureDP
from sfumato.privacy.unit import Relation

__all__ = [
    "BitReport",
    "CategoryReport",
    "DeviceReport",
    "HashedReport",
    "LineReport",
    "ProjectiveReport",
    "Report",
    "UnaryReport",
    "WindowReport",
]

# What the probabilities of a report are integers over.
WHOLE = 1 << 64


class DeviceReport:
    """The base class of the events of a telemetry report: it hides a device's value, not its
    existence.

    >>> BitReport(3 << 62).relation.value
    'replace-one'

    Guarantees:
        a report costs the logarithm of its odds rounded up
    """

    __slots__ = ()

    @property
    def odds(self) -> Fraction:
        """The largest ratio, over all reports, of the report's probabilities under two values:
        e^epsilon.
        """
        raise NotImplementedError

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the report: the logarithm of the odds, rounded up."""
        return log_up(self.odds)

    @property
    def relation(self) -> Relation:
        """Replace-one: a report hides a device's value, but not that the device took part."""
        return Relation.REPLACE_ONE

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of a report: epsilon-DP for the value of the device."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class CategoryReport(DeviceReport):
    """A report of one of k categories, drawn by weights over 2^64.

    The true category has weight ``truth``, each other one ``other``.

    >>> half = 1 << 63
    >>> CategoryReport(truth=half + (half >> 1), other=half >> 1, categories=2).odds
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "category_report"
    truth: int
    other: int
    categories: int

    def __post_init__(self) -> None:
        check_count("categories", self.categories)
        _check_one_draw(self.truth, 1, self.other, self.categories - 1)

    @property
    def odds(self) -> Fraction:
        """The weight of the true category over that of another one."""
        return _odds(self.truth, self.other)


@dataclass(frozen=True, slots=True)
class HashedReport(DeviceReport):
    """A report of a bucket of a public hash function that the device drew independently of its
    value.

    The bucket of the value has weight ``truth``, each other bucket weight ``other`` (over 2^64).

    >>> half = 1 << 63
    >>> HashedReport(truth=half + (half >> 1), other=half >> 1, buckets=2).odds
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "hashed_report"
    truth: int
    other: int
    buckets: int

    def __post_init__(self) -> None:
        check_count("buckets", self.buckets)
        _check_one_draw(self.truth, 1, self.other, self.buckets - 1)

    @property
    def odds(self) -> Fraction:
        """The weight of the true bucket over that of another one."""
        return _odds(self.truth, self.other)


@dataclass(frozen=True, slots=True)
class ProjectiveReport(DeviceReport):
    """A report of a point of the projective space of ``dimension`` coordinates over a field.

    The field has ``prime`` elements. A value is a hyperplane; each of its points has weight
    ``near``, each other point weight ``far`` (over 2^64). Source: Feldman, Nelson, Nguyen, Talwar,
    "Private Frequency Estimation via Projective Geometry" (ICML 2022).

    >>> quarter = 1 << 62
    >>> ProjectiveReport(near=quarter * 2, far=quarter, prime=2, dimension=2).odds
    Fraction(2, 1)
    """

    kind: ClassVar[str] = "projective_report"
    near: int
    far: int
    prime: int
    dimension: int

    def __post_init__(self) -> None:
        check_count("prime", self.prime)
        check_count("dimension", self.dimension)
        if not _is_prime(self.prime) or not 2 <= self.dimension <= 32:
            raise InvalidDeclaration(
                f"Points of {self.dimension} coordinates over {self.prime}.",
                allowed="2 to 32 coordinates, and a prime below 2^16",
            )
        beyond = self.prime ** (self.dimension - 1)
        _check_one_draw(self.near, (beyond - 1) // (self.prime - 1), self.far, beyond)

    @property
    def odds(self) -> Fraction:
        """The weight of a point on the hyperplane over that of another point."""
        return _odds(self.near, self.far)


@dataclass(frozen=True, slots=True)
class UnaryReport(DeviceReport):
    """A report of ``bits`` independent bits, some of which belong to the value.

    A bit of the value is 1 with probability ``kept`` / 2^64, any other bit with ``added`` / 2^64.
    At most ``hashes`` bits belong to a value (1: one-hot encoding; more: Bloom filter).

    >>> half = 1 << 63
    >>> UnaryReport(kept=half, added=half >> 1, bits=8, hashes=1).odds
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "unary_report"
    kept: int
    added: int
    bits: int
    hashes: int

    def __post_init__(self) -> None:
        check_count("bits", self.bits)
        check_count("hashes", self.hashes)
        _check_chance("kept", self.kept)
        _check_chance("added", self.added)
        if self.hashes > self.bits:
            raise InvalidDeclaration(
                f"{self.hashes} hashes of {self.bits} bits.", allowed="at most one a bit"
            )

    @property
    def odds(self) -> Fraction:
        """The product of the ratios of all bits in which two values can differ.

        At most ``hashes`` bits belong only to the first value, and as many only to the second.
        """
        one = Fraction(self.kept, self.added) * Fraction(WHOLE - self.added, WHOLE - self.kept)
        return max(one, 1 / one) ** self.hashes


@dataclass(frozen=True, slots=True)
class BitReport(DeviceReport):
    """A report of one bit of the value, chosen by a public rule that was drawn before.

    The reported bit is the true one with probability ``truth`` / 2^64.

    >>> half = 1 << 63
    >>> BitReport(truth=half + (half >> 1)).odds
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "bit_report"
    truth: int

    def __post_init__(self) -> None:
        _check_chance("truth", self.truth)

    @property
    def odds(self) -> Fraction:
        """The probability of the true bit over that of the other one."""
        return _odds(self.truth, WHOLE - self.truth)


@dataclass(frozen=True, slots=True)
class LineReport(DeviceReport):
    """A report of one bit, which is 1 with a probability that grows linearly with a number.

    It is ``low`` / 2^64 for the smallest number and ``high`` / 2^64 for the largest. Source: Duchi,
    Jordan, Wainwright, "Minimax Optimal Procedures for Locally Private Estimation" (JASA 2018).

    >>> quarter = 1 << 62
    >>> LineReport(low=quarter, high=3 * quarter).odds
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "line_report"
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_chance("low", self.low)
        _check_chance("high", self.high)

    @property
    def odds(self) -> Fraction:
        """The larger ratio between the probabilities of a 1, or a 0, at both ends."""
        return max(_odds(self.low, self.high), _odds(WHOLE - self.low, WHOLE - self.high))


@dataclass(frozen=True, slots=True)
class WindowReport(DeviceReport):
    """A report of one of ``window`` + ``moves`` positions; those near the value are more likely.

    A value is a number from 0 to ``moves``, at which its window of ``window`` positions begins. A
    position in it has weight ``near``, any other weight ``far``. Source: Wang et al., "Collecting
    and Analyzing Multidimensional Data with Local Differential Privacy" (ICDE 2019), on a lattice.

    >>> quarter = 1 << 62
    >>> WindowReport(near=quarter, far=quarter // 2, window=3, moves=2).odds
    Fraction(2, 1)
    """

    kind: ClassVar[str] = "window_report"
    near: int
    far: int
    window: int
    moves: int

    def __post_init__(self) -> None:
        check_count("window", self.window)
        check_count("moves", self.moves)
        _check_one_draw(self.near, self.window, self.far, self.moves)

    @property
    def odds(self) -> Fraction:
        """The weight of a position in the window over that of another one."""
        return _odds(self.near, self.far)


Report: TypeAlias = (
    CategoryReport
    | HashedReport
    | ProjectiveReport
    | UnaryReport
    | BitReport
    | LineReport
    | WindowReport
)


def _odds(one: int, other: int) -> Fraction:
    """The larger of two weights over the smaller."""
    return Fraction(max(one, other), min(one, other))


def _check_chance(name: str, chance: object) -> None:
    """Refuses a weight that is not an integer strictly between 0 and 2^64.

    A report with any other weight has no finite epsilon.
    """
    if type(chance) is not int or not 0 < chance < WHOLE:
        raise InvalidDeclaration(
            f"{name} = {shown(chance)} of a report.", allowed="an integer from 1 to 2^64 - 1"
        )


def _check_one_draw(
    weight: int,
    many: int,
    rest: int,
    others: int,
) -> None:
    """Refuses weights that one uniform word cannot have: they do not add up to 2^64."""
    _check_chance("a weight", weight)
    _check_chance("a weight", rest)
    if weight * many + rest * others != WHOLE:
        raise InvalidDeclaration(
            "The weights of a report do not add up to 2^64.",
            allowed=f"{many} x weight + {others} x other weight = 2^64",
        )


def _is_prime(number: int) -> bool:
    """Whether a number below 2^16 is prime; false for any other."""
    if not 2 <= number < 1 << 16:
        return False
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))

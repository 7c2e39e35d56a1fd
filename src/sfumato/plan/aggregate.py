# SPDX-License-Identifier: Apache-2.0
"""What is computed of the rows of a group: integers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.metadata.column import Text
from sfumato.plan.value import Value


@dataclass(frozen=True, slots=True)
class CountRows:
    """COUNT(*): one integer, 1 a row."""


@dataclass(frozen=True, slots=True)
class CountValues:
    """COUNT(value): one integer, 1 a row whose value is not missing."""

    value: Value


@dataclass(frozen=True, slots=True)
class CountUnits:
    """COUNT(DISTINCT unit): one integer, 1 a unit."""


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """COUNT(DISTINCT value): the distinct values among at most ``max_rows`` kept of each unit (RULES 14)."""

    value: Value


@dataclass(frozen=True, slots=True)
class Sum:
    """SUM(value): one integer in lattice steps; a unit's total is clipped (RULES 15)."""

    value: Value


@dataclass(frozen=True, slots=True)
class Mean:
    """AVG(value): the pair (sum of u, sum of w - u), u the code above the lower bound, w the
    range; a row adds w to the pair's L1 norm whatever its value (RULES 15)."""

    value: Value


@dataclass(frozen=True, slots=True)
class Variance:
    """VARIANCE(value): the triple (sum of u^2, of 2u(w-u), of (w-u)^2), which adds up to w^2 a
    row; u as for ``Mean`` but in at most ``grid`` levels, each of ``coarse`` codes.

    A level is less than a millionth of the range, and what it moves is inside every interval.
    """

    value: Value
    grid: int = 2**26

    @property
    def coarse(self) -> int:
        """How many codes a level has."""
        kind = self.value.numeric
        return -(-(kind.upper_code - kind.lower_code) // self.grid)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a value on a public grid: the weight of the rows in each of ``leaves`` cells.

    Leaf j holds the codes from lower + j coarse up to the next. ``levels``: the wanted
    quantiles, ascending, each its own selection from the same leaves (RULES 17).
    """

    value: Value
    levels: tuple[Fraction, ...]

    @property
    def coarse(self) -> int:
        """How many codes a leaf has."""
        return -(-self.value.type.size // _LEAVES) if not isinstance(self.value.type, Text) else 1

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        assert not isinstance(self.value.type, Text), "lowering admits no text here"
        return -(-self.value.type.size // self.coarse)


Linear: TypeAlias = CountRows | CountValues | Sum | Mean | Variance
Aggregate: TypeAlias = Linear | CountUnits | CountDistinct | Quantiles

_LEAVES = 2**10


def width(aggregate: Aggregate) -> int:
    """How many integers a group has."""
    match aggregate:
        case Mean():
            return 2
        case Variance():
            return 3
        case Quantiles():
            return aggregate.leaves
        case CountRows() | CountValues() | CountUnits() | CountDistinct() | Sum():
            return 1
        case _:
            raise unknown(aggregate)


def levels(aggregate: Variance | Mean) -> int:
    """The range w of the amounts that a row adds up to: codes for a mean, levels for a variance."""
    kind = aggregate.value.numeric
    whole = kind.upper_code - kind.lower_code
    return -(-whole // aggregate.coarse) if isinstance(aggregate, Variance) else whole


def largest(aggregate: Aggregate) -> int:
    """The largest L1 norm that one row can add: its natural scale, in the aggregate's integers."""
    match aggregate:
        case Sum(value):
            return max(abs(value.numeric.lower_code), abs(value.numeric.upper_code), 1)
        case Mean():
            return levels(aggregate)
        case Variance():
            return levels(aggregate) ** 2
        case CountRows() | CountValues() | CountUnits() | CountDistinct() | Quantiles():
            return 1
        case _:
            raise unknown(aggregate)


def read_value(aggregate: Aggregate) -> Value | None:
    """The value that an aggregate reads of a row."""
    return None if isinstance(aggregate, CountRows | CountUnits) else aggregate.value


def never_negative(aggregate: Aggregate) -> bool:
    """Whether no row can lower any of the integers."""
    if not isinstance(aggregate, Aggregate):
        raise unknown(aggregate)
    return not isinstance(aggregate, Sum) or aggregate.value.numeric.lower_code >= 0

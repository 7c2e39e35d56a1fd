# SPDX-License-Identifier: Apache-2.0
"""Aggregates: the integers that are computed from the rows of one group."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.metadata.column import Text
from sfumato.plan.value import Value


@dataclass(frozen=True, slots=True)
class CountRows:
    """COUNT(*): one integer; each row adds 1.

    >>> width(CountRows()), largest(CountRows())
    (1, 1)
    """


@dataclass(frozen=True, slots=True)
class CountValues:
    """COUNT(value): one integer; each row whose value is not NULL adds 1.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(0, 120)))
    >>> width(CountValues(age)), largest(CountValues(age))
    (1, 1)
    """

    value: Value


@dataclass(frozen=True, slots=True)
class CountUnits:
    """COUNT(DISTINCT unit): one integer; each unit with a row in the group adds 1.

    >>> read_value(CountUnits()) is None
    True
    """


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """COUNT(DISTINCT value), over at most ``max_rows`` distinct values of each unit (RULES 14).

    >>> from sfumato.metadata.column import Category, Column
    >>> sex = Value.of(Column("sex", Category("F", "M")))
    >>> width(CountDistinct(sex)), largest(CountDistinct(sex))
    (1, 1)
    """

    value: Value


@dataclass(frozen=True, slots=True)
class Sum:
    """SUM(value): one integer, in lattice steps; the total of each unit is clipped (RULES 15).

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(0, 120)))
    >>> largest(Sum(age)), never_negative(Sum(age))
    (120, True)
    """

    value: Value


@dataclass(frozen=True, slots=True)
class Mean:
    """AVG(value): the pair (sum of u, sum of w - u).

    u is the code less the lower bound, w the range. Each row adds exactly w to the L1 norm of
    the pair, whatever its value (RULES 15).

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(20, 120)))
    >>> width(Mean(age)), largest(Mean(age))
    (2, 100)
    """

    value: Value


@dataclass(frozen=True, slots=True)
class Variance:
    """VARIANCE(value): the triple (sum of u^2, sum of 2u(w-u), sum of (w-u)^2).

    Each row adds w^2 to its L1 norm. u is as for ``Mean``, but rounded down to one of at most
    ``grid`` levels of ``coarse`` codes each. A level is less than a millionth of the range, and
    every interval includes the error of this rounding.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(20, 120)))
    >>> width(Variance(age)), largest(Variance(age)), Variance(age).coarse
    (3, 10000, 1)
    """

    value: Value
    grid: int = 2**26

    @property
    def coarse(self) -> int:
        """The number of codes in a level."""
        kind = self.value.numeric
        return -(-(kind.upper_code - kind.lower_code) // self.grid)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a value: the weight of the rows in each of ``leaves`` cells of a public grid.

    Leaf j has the ``coarse`` codes that begin at lower + j coarse. ``levels`` are the requested
    quantiles, ascending; each is selected separately from the same leaves (RULES 17).

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(0, 4095)))
    >>> median = Quantiles(age, (Fraction(1, 2),))
    >>> median.coarse, median.leaves
    (4, 1024)
    """

    value: Value
    levels: tuple[Fraction, ...]

    @property
    def coarse(self) -> int:
        """The number of codes in a leaf."""
        if isinstance(self.value.type, Text):
            return 1
        return -(-self.value.type.size // _LEAVES)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        assert not isinstance(self.value.type, Text), "lowering admits no text here"
        return -(-self.value.type.size // self.coarse)


Linear: TypeAlias = CountRows | CountValues | Sum | Mean | Variance
Aggregate: TypeAlias = Linear | CountUnits | CountDistinct | Quantiles

_LEAVES = 2**10


def width(aggregate: Aggregate) -> int:
    """The number of integers an aggregate has in each group."""
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
    """The range w of u (see ``Mean``): in codes for a mean, in levels for a variance."""
    kind = aggregate.value.numeric
    codes = kind.upper_code - kind.lower_code
    if isinstance(aggregate, Variance):
        return -(-codes // aggregate.coarse)
    return codes


def largest(aggregate: Aggregate) -> int:
    """The largest amount that one row can add to the L1 norm of the aggregate's integers."""
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
    """The value that an aggregate reads from each row; None if it reads none."""
    return None if isinstance(aggregate, CountRows | CountUnits) else aggregate.value


def never_negative(aggregate: Aggregate) -> bool:
    """Whether a row can never decrease any of the integers."""
    if not isinstance(aggregate, Aggregate):
        raise unknown(aggregate)
    return not isinstance(aggregate, Sum) or aggregate.value.numeric.lower_code >= 0

# SPDX-License-Identifier: Apache-2.0
"""What is computed of the rows of a group: integers, one or two a group."""

from dataclasses import dataclass
from typing import TypeAlias

from sfumato.metadata.column import Boolean, Column, Integer, Real


@dataclass(frozen=True, slots=True)
class CountRows:
    """COUNT(*): one integer, 1 a row."""


@dataclass(frozen=True, slots=True)
class CountValues:
    """COUNT(column): one integer, 1 a row whose value is not missing."""

    column: Column


@dataclass(frozen=True, slots=True)
class CountUnits:
    """COUNT(DISTINCT unit): one integer, 1 a unit."""


@dataclass(frozen=True, slots=True)
class Sum:
    """SUM(column): one integer in lattice steps; a unit's total is clipped (RULES 15)."""

    column: Column


@dataclass(frozen=True, slots=True)
class Mean:
    """AVG(column): the pair (sum of u, sum of w - u), u the code above the lower bound, w the
    range; a row adds w to the pair's L1 norm whatever its value (RULES 15)."""

    column: Column


Aggregate: TypeAlias = CountRows | CountValues | CountUnits | Sum | Mean


def width(aggregate: Aggregate) -> int:
    """How many integers a group has."""
    return 2 if isinstance(aggregate, Mean) else 1


def largest(aggregate: Aggregate) -> int:
    """The largest L1 norm that one row can add: its natural scale, in lattice steps."""
    match aggregate:
        case Sum(column):
            codes = numeric(column)
            return max(abs(codes.lower_code), abs(codes.upper_code))
        case Mean(column):
            codes = numeric(column)
            return codes.upper_code - codes.lower_code
        case _:
            return 1


def numeric(column: Column) -> Integer | Real | Boolean:
    """The column's type, which is one that can be added up."""
    assert isinstance(column.type, Integer | Real | Boolean), "lowering admits no other type here"
    return column.type


def never_negative(aggregate: Aggregate) -> bool:
    """Whether no row can lower any of the integers."""
    return not isinstance(aggregate, Sum) or numeric(aggregate.column).lower_code >= 0

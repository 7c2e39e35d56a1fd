# SPDX-License-Identifier: Apache-2.0
"""The integers that are sums over rows, as DuckDB SQL: from a few sums of a (unit, group).

``n`` is the number of its rows; of a value ``v0``, ``m_v0`` is the number of those that are
not NULL, ``s_v0`` their sum; of its levels for a variance, ``t_...`` their sum, ``q_...``
that of their squares. Aggregates of one value share them. ``narrow``: 64 bits hold all that is
computed, whatever the rows (``fits``); else sums are HUGEINT. Proof: linear_aggregates.proof.md.
"""

from collections.abc import Mapping

from sfumato.plan.aggregate import (
    Aggregate,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Sum,
    Variance,
    levels,
)
from sfumato.plan.scalar import Scalar

Names = Mapping[Scalar, str]

# A unit has fewer rows in a group.
_ROWS = 2**36


def fits(aggregate: Aggregate, limit: int | None) -> bool:
    """Whether 64 bits hold every intermediate result of a unit in a group."""
    if limit is None:
        return False
    match aggregate:
        case CountRows() | CountUnits() | CountValues():
            return True
        case Sum(read) | Mean(read):
            low, high = read.numeric.lower_code, read.numeric.upper_code
            return max(abs(low), abs(high), high - low) * limit * _ROWS < 2**62
        case Variance():
            return 4 * levels(aggregate) ** 2 * limit * _ROWS < 2**62
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def sums(aggregate: Aggregate, names: Names, *, narrow: bool = False) -> dict[str, str]:
    """What an aggregate needs of the rows of a group: names, and SQL over the values."""
    match aggregate:
        case CountRows() | CountUnits():
            return {}
        case CountValues(read):
            return _count(names[read.expression])
        case Sum(read):
            return _sum(names[read.expression], narrow=narrow)
        case Mean(read):
            return _count(names[read.expression]) | _sum(names[read.expression], narrow=narrow)
        case Variance(read):
            name, scale = names[read.expression], _scale(aggregate, names)
            level = f"(({name} - ({read.numeric.lower_code})) // {aggregate.coarse})"
            found = {
                f"t_{scale}": _added(level, narrow=narrow),
                f"q_{scale}": _added(f"{level} * {level}", narrow=narrow),
            }
            return _count(name) | found
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def _count(name: str) -> dict[str, str]:
    return {f"m_{name}": f"count({name})"}


def _sum(name: str, *, narrow: bool) -> dict[str, str]:
    return {f"s_{name}": _added(name, narrow=narrow)}


def _added(read: str, *, narrow: bool) -> str:
    """A sum is HUGEINT; without any row it is 0."""
    return (
        f"coalesce(TRY_CAST(sum({read}) AS BIGINT), 0)" if narrow else f"coalesce(sum({read}), 0)"
    )


def _scale(aggregate: Variance, names: Names) -> str:
    """One name for each value, as the levels of a type cut it."""
    low = aggregate.value.numeric.lower_code
    return f"{names[aggregate.value.expression]}_{'below' if low < 0 else 'from'}{abs(low)}_{aggregate.coarse}"


def integers(aggregate: Aggregate, names: Names, *, narrow: bool = False) -> list[str]:
    """The integers of an aggregate, from its sums."""
    wide = "" if narrow else "::HUGEINT"
    match aggregate:
        case CountRows() | CountUnits():
            return ["n"]
        case CountValues(read):
            return [f"m_{names[read.expression]}"]
        case Sum(read):
            return [f"s_{names[read.expression]}"]
        case Mean(read):
            count, total, kind = (
                f"m_{names[read.expression]}",
                f"s_{names[read.expression]}",
                read.numeric,
            )
            return [
                f"{total} - ({kind.lower_code}) * {count}{wide}" if kind.lower_code else total,
                f"({kind.upper_code}) * {count}{wide} - {total}",
            ]
        case Variance(read):
            count, scale, top = (
                f"m_{names[read.expression]}",
                _scale(aggregate, names),
                levels(aggregate),
            )
            once, square = f"t_{scale}", f"q_{scale}"
            return [
                square,
                f"2 * ({top} * {once} - {square})",
                f"{count}{wide} * {top * top} - {2 * top} * {once} + {square}",
            ]
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def clipped(
    aggregate: Aggregate, names: Names, limit: int | None, *, narrow: bool = False
) -> list[str]:
    """The same, as if the group had at most ``limit`` rows of the unit."""
    whole = integers(aggregate, names, narrow=narrow)
    match aggregate:
        case _ if limit is None:
            return [f"({each})::HUGEINT" for each in whole]
        case CountRows() | CountValues():
            return [f"least({whole[0]}, {limit})"]
        case Sum(read):
            low, high = (
                limit * min(read.numeric.lower_code, 0),
                limit * max(read.numeric.upper_code, 0),
            )
            return [
                f"CASE WHEN {whole[0]} < {low} THEN {low} WHEN {whole[0]} > {high} THEN {high} ELSE {whole[0]} END"
            ]
        case Mean(read) | Variance(read):
            count = f"m_{names[read.expression]}"
            return [
                f"CASE WHEN {count} > {limit} THEN (({each}) * {limit}) // nullif({count}, 0) ELSE {each} END"
                for each in whole
            ]
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")

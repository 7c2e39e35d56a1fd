# SPDX-License-Identifier: Apache-2.0
"""The aggregates that are sums over rows, as DuckDB SQL over a few sums of each (unit, group).

``n`` is its number of rows. For a value ``v0``, ``m_v0`` is the number of rows where it is not NULL
and ``s_v0`` the sum; for a variance, ``t_...`` is the sum of the levels and ``q_...`` the sum of
their squares. Aggregates of the same value share these columns. With ``narrow``, 64 bits are enough
for every intermediate result (``fits``); otherwise sums are HUGEINT. Proof:
linear_aggregates.proof.md.
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
from sfumato.plan.value import Value

Names = Mapping[Scalar, str]

# A unit has fewer rows than this in a group.
_ROWS = 2**36


def fits(aggregate: Aggregate, limit: int | None) -> bool:
    """Whether 64 bits are enough for every intermediate result of one unit in one group."""
    if limit is None:
        return False
    match aggregate:
        case CountRows() | CountUnits() | CountValues():
            return True
        case Sum(read) | Mean(read):
            low = read.numeric.lower_code
            high = read.numeric.upper_code
            return max(abs(low), abs(high), high - low) * limit * _ROWS < 2**62
        case Variance():
            return 4 * levels(aggregate) ** 2 * limit * _ROWS < 2**62
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def sums(
    aggregate: Aggregate,
    names: Names,
    *,
    narrow: bool = False,
) -> dict[str, str]:
    """Returns the sums over the rows of a group that an aggregate needs, by column name."""
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
            name = names[read.expression]
            scale = _scale(aggregate, names)
            level = f"(({name} - ({read.numeric.lower_code})) // {aggregate.coarse})"
            squares = {
                f"t_{scale}": _added(level, narrow=narrow),
                f"q_{scale}": _added(f"{level} * {level}", narrow=narrow),
            }
            return _count(name) | squares
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def _count(name: str) -> dict[str, str]:
    return {f"m_{name}": f"count({name})"}


def _sum(name: str, *, narrow: bool) -> dict[str, str]:
    total = _added(name, narrow=narrow)
    return {f"s_{name}": total}


def _added(read: str, *, narrow: bool) -> str:
    """Returns the sum of an expression: HUGEINT unless narrow, and 0 without any row."""
    if narrow:
        return f"coalesce(TRY_CAST(sum({read}) AS BIGINT), 0)"
    return f"coalesce(sum({read}), 0)"


def _scale(aggregate: Variance, names: Names) -> str:
    """Returns a name for a value as the levels of its type cut it; equal cuts have equal names."""
    low = aggregate.value.numeric.lower_code
    sign = "below" if low < 0 else "from"
    return f"{names[aggregate.value.expression]}_{sign}{abs(low)}_{aggregate.coarse}"


def integers(
    aggregate: Aggregate,
    names: Names,
    *,
    narrow: bool = False,
) -> list[str]:
    """Returns the integers of an aggregate as expressions over its ``sums``."""
    wide = "" if narrow else "::HUGEINT"
    match aggregate:
        case CountRows() | CountUnits():
            return ["n"]
        case CountValues(read):
            return [f"m_{names[read.expression]}"]
        case Sum(read):
            return [f"s_{names[read.expression]}"]
        case Mean(read):
            name = names[read.expression]
            kind = read.numeric
            count = f"m_{name}"
            total = f"s_{name}"
            above = total
            if kind.lower_code:
                above = f"{total} - ({kind.lower_code}) * {count}{wide}"
            return [above, f"({kind.upper_code}) * {count}{wide} - {total}"]
        case Variance(read):
            scale = _scale(aggregate, names)
            top = levels(aggregate)
            count = f"m_{names[read.expression]}"
            once = f"t_{scale}"
            square = f"q_{scale}"
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
    """Returns the integers of an aggregate, clipped to those of at most ``limit`` rows."""
    whole = integers(aggregate, names, narrow=narrow)
    if limit is None:
        return [f"({integer})::HUGEINT" for integer in whole]
    match aggregate:
        case CountRows() | CountValues():
            return [f"least({whole[0]}, {limit})"]
        case Sum(read):
            return [_between(whole[0], *_ends(read, limit))]
        case Mean(read) | Variance(read):
            count = f"m_{names[read.expression]}"
            return [_scaled(integer, count, limit) for integer in whole]
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def _ends(read: Value, limit: int) -> tuple[int, int]:
    """Returns the smallest and the largest sum of at most ``limit`` rows."""
    kind = read.numeric
    return limit * min(kind.lower_code, 0), limit * max(kind.upper_code, 0)


def _between(total: str, low: int, high: int) -> str:
    """Clips an expression to a range."""
    return (
        f"CASE WHEN {total} < {low} THEN {low} WHEN {total} > {high} THEN {high} ELSE {total} END"
    )


def _scaled(integer: str, count: str, limit: int) -> str:
    """Scales an integer of ``count`` rows down to ``limit`` rows if there are more."""
    scaled = f"(({integer}) * {limit}) // nullif({count}, 0)"
    return f"CASE WHEN {count} > {limit} THEN {scaled} ELSE {integer} END"

# SPDX-License-Identifier: Apache-2.0
"""Linear aggregates (counts, sums, means, variances) as SQL over sums of each (unit, group).

``n`` is the number of rows. For a value ``v0``, ``m_v0`` is the number of rows where it is not NULL
and ``s_v0`` the sum; for a variance, ``t_...`` is the sum of the levels and ``q_...`` the sum of
their squares. Aggregates of the same value share these columns. With ``narrow``, 64 bits are enough
for every intermediate result (``fits``); otherwise sums are HUGEINT. Proof:
linear_aggregates.proof.md.
"""

from collections.abc import Mapping

from sfumato.engines import sql_tree as sql
from sfumato.plan.aggregate import (
    Aggregate,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Sum,
    Variance,
)
from sfumato.plan.scalar import Scalar
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import Value

Names = Mapping[Scalar, str]

# A unit has fewer rows than this in a group.
_ROWS = 2**36


def fits(aggregate: Aggregate, limit: int | None) -> bool:
    """Whether no intermediate result of an aggregate exceeds 64 bits for a unit of at most
    ``limit`` rows in a group.
    """
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
            return 4 * aggregate.levels**2 * limit * _ROWS < 2**62
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def sums(
    aggregate: Aggregate,
    names: Names,
    *,
    narrow: bool = False,
) -> dict[str, sql.Expression]:
    """Returns the SQL sums (COUNT, SUM) from which an aggregate is computed, by the name of the
    column that holds each.
    """
    match aggregate:
        case CountValues(read) | CountUnitsWhere(read):
            return _count(names[read.expression])
        case CountRows() | CountUnits():
            return {}
        case Sum(read):
            return _sum(names[read.expression], narrow=narrow)
        case Mean(read):
            return _count(names[read.expression]) | _sum(names[read.expression], narrow=narrow)
        case Variance(read):
            name = names[read.expression]
            scale = _scale(aggregate, names)
            level = _level(aggregate, name)
            squares = {
                f"t_{scale}": _added(level, narrow=narrow),
                f"q_{scale}": _added(level * level, narrow=narrow),
            }
            return _count(name) | squares
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def _level(aggregate: Variance, name: str) -> sql.Expression:
    """Returns the level of a value: how many steps it lies above the least one."""
    above = shifted(sql.Column(name), aggregate.value.numeric.lower_code)
    return sql.Paren(sql.Paren(above) // aggregate.coarse)


def shifted(value: sql.Expression, least: int) -> sql.Expression:
    """Returns a code minus the least code, as SQL."""
    return value - sql.Paren(sql.Constant(least))


def _count(name: str) -> dict[str, sql.Expression]:
    return {f"m_{name}": sql.aggregate("count", sql.Column(name))}


def _sum(name: str, *, narrow: bool) -> dict[str, sql.Expression]:
    return {f"s_{name}": _added(sql.Column(name), narrow=narrow)}


def _added(read: sql.Expression, *, narrow: bool) -> sql.Expression:
    """Returns the sum of an expression: HUGEINT unless narrow, and 0 without any row."""
    total: sql.Expression = sql.aggregate("sum", read)
    if narrow:
        total = sql.TryCast(total, sql.SqlType.BIGINT)
    return or_zero(total)


def or_zero(value: sql.Expression) -> sql.Expression:
    """Returns a value with 0 in place of NULL, as SQL."""
    return sql.call("coalesce", value, 0)


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
) -> list[sql.Expression]:
    """Returns the SQL of an aggregate's exact integers, computed from the columns of its
    ``sums``.
    """
    match aggregate:
        case CountValues(read) | CountUnitsWhere(read):
            return [sql.Column(f"m_{names[read.expression]}")]
        case CountRows() | CountUnits():
            return [sql.Column("n")]
        case Sum(read):
            return [sql.Column(f"s_{names[read.expression]}")]
        case Mean(read):
            return _mean(read, names[read.expression], narrow=narrow)
        case Variance():
            return _variance(aggregate, names, narrow=narrow)
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def _mean(read: Value, name: str, *, narrow: bool) -> list[sql.Expression]:
    """Returns the sum of the distances from the least code, and from the greatest one."""
    total = sql.Column(f"s_{name}")
    count = _wide(sql.Column(f"m_{name}"), narrow=narrow)
    low = read.numeric.lower_code
    above: sql.Expression = total
    if low:
        above = total - _product(low, count)
    return [above, _product(read.numeric.upper_code, count) - total]


def _variance(aggregate: Variance, names: Names, *, narrow: bool) -> list[sql.Expression]:
    """Returns three sums over the level u of T: of u^2, of 2 u (T - u) and of (T - u)^2."""
    scale = _scale(aggregate, names)
    top = aggregate.levels
    count = _wide(sql.Column(f"m_{names[aggregate.value.expression]}"), narrow=narrow)
    once = sql.Column(f"t_{scale}")
    square = sql.Column(f"q_{scale}")
    rest = sql.Binary("-", sql.Constant(top) * once, square)
    squares = count * (top * top)
    twice = sql.Constant(2 * top) * once
    return [
        square,
        sql.Constant(2) * sql.Paren(rest),
        squares - twice + square,
    ]


def _wide(value: sql.Expression, *, narrow: bool) -> sql.Expression:
    """Casts to HUGEINT unless 64 bits are enough."""
    if narrow:
        return value
    return sql.Typed(value, sql.SqlType.HUGEINT)


def _product(factor: int, value: sql.Expression) -> sql.Expression:
    return sql.Paren(sql.Constant(factor)) * value


def clipped(
    aggregate: Aggregate, names: Names, limit: int | None, *, narrow: bool = False
) -> list[sql.Expression]:
    """Returns the SQL of an aggregate's exact integers for one unit, clipped to the range that
    ``limit`` rows can reach.
    """
    whole = integers(aggregate, names, narrow=narrow)
    if limit is None:
        return [sql.Typed(sql.Paren(integer), sql.SqlType.HUGEINT) for integer in whole]
    match aggregate:
        case CountRows() | CountValues():
            return [sql.call("least", whole[0], limit)]
        case Sum(read):
            return [_between(whole[0], *_ends(read, limit))]
        case Mean(read) | Variance(read):
            count = sql.Column(f"m_{names[read.expression]}")
            return [_scaled(integer, count, limit) for integer in whole]
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")


def _ends(read: Value, limit: int) -> tuple[int, int]:
    """Returns the smallest and the largest sum of at most ``limit`` rows."""
    kind = read.numeric
    return limit * min(kind.lower_code, 0), limit * max(kind.upper_code, 0)


def _between(total: sql.Expression, low: int, high: int) -> sql.Expression:
    """Clips an expression to a range."""
    least = sql.Constant(low)
    most = sql.Constant(high)
    branches = (total < least, least), (total > most, most)
    return sql.Case(branches, total)


def _scaled(integer: sql.Expression, count: sql.Expression, limit: int) -> sql.Expression:
    """Scales an integer of ``count`` rows down to ``limit`` rows if there are more."""
    product = sql.Paren(integer) * limit
    scaled = sql.Paren(product) // sql.call("nullif", count, 0)
    is_heavy = count > limit
    return sql.Case(((is_heavy, scaled),), integer)

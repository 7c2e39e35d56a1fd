# SPDX-License-Identifier: Apache-2.0
"""SQL trees for the limits of a unit: the groups in which it is counted, and its weight in them.

``emit`` uses it between the rows of groups and their sums. Proof: unit_limits.proof.md.
"""

from dataclasses import replace

from sfumato.engines import sql_tree as sql
from sfumato.engines.group_sampling import Order
from sfumato.engines.grouped_rows import key_names, select
from sfumato.engines.relation import UNIT
from sfumato.plan.scope import is_one_group
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm

# A unit has fewer than 2^36 rows. If its count in each group is at most _SQUARED, the squares of
# these counts add up to less than 2^63; they always add up to less than _UTMOST.
_SQUARED = 2**26
_UTMOST = 2**80
ROWS, WEIGHT, _TOTAL = sql.columns(["n", "weight", "total"])


def kept(plan: Bounded) -> int | None:
    """Returns the largest number of groups in which a unit is counted; None: in all."""
    limits = plan.tracked.limits
    return least(limits.groups, limits.total)


def least(*limits: int | None) -> int | None:
    """Returns the smallest limit that is set; None if none is."""
    return min((limit for limit in limits if limit is not None), default=None)


def is_placed(plan: Bounded, *, counted: bool) -> bool:
    """Whether a statement must rank the groups of each unit, because a limit can bind."""
    raw = plan.tracked.raw
    return is_spread(plan) and kept(plan) is not None and (raw.is_open or counted)


def is_spread(plan: Bounded) -> bool:
    """Whether a unit can have rows in several groups."""
    raw = plan.tracked.raw
    return not is_one_group(raw.relation, [key.value.expression for key in raw.keys])


def placed(plan: Bounded, pairs: sql.Query, order: Order, *, counted: bool) -> sql.Query:
    """Adds the column ``place``, the rank of a group in its unit, to (unit, group) rows if needed.

    If keys are open, also drops the rows beyond the group limit.
    """
    if not is_placed(plan, counted=counted):
        return pairs
    number = sql.Window(sql.Aggregate("row_number"), (UNIT,), group_order(plan))
    place = sql.Column("place")
    shown = [sql.Star(), number.named(place)]
    every = select(shown, order.placed(pairs, key_names(plan)))
    if not plan.tracked.raw.is_open:
        return every
    return replace(select([sql.Star()], every), where=at_most(place, kept(plan)))


def weighed(plan: Bounded, pairs: sql.Query, norm: Norm, *, windows: bool) -> sql.Query:
    """Adds the column ``weight``, the weight of the unit, to (unit, group) rows.

    The weight depends on a sum over all rows of the unit, which is joined or computed by a window.
    """
    most = most_rows(plan)
    if most is None:
        return select([sql.Star(), sql.number(plan.refinement).named(WEIGHT)], pairs)
    size, kind = _size(plan, norm)
    weight = _weight(plan, norm, most)
    added = sql.aggregate("sum", size)
    if not is_spread(plan):
        total = size.named(_TOTAL)
    elif windows:
        total = sql.TryCast(sql.Window(added, (UNIT,)), kind).named(_TOTAL)
    else:
        return _joined(plan, pairs, weight, sql.TryCast(added, kind).named(_TOTAL))
    return select([sql.Star(), weight.named(WEIGHT)], select([sql.Star(), total], pairs))


def _joined(plan: Bounded, pairs: sql.Query, weight: sql.Expression, total: sql.As) -> sql.Query:
    """Joins (unit, group) rows to the weights of their units; ``total`` adds up rows of a unit.

    Most units have full weight and need no row in the join: it is cheapest with few.
    """
    named = sql.Named("pairs", pairs, materialized=True)
    table = sql.Item(sql.Table("pairs"))
    totals = select([UNIT, total], sql.Select((sql.Star(),), table), [UNIT])
    # a unit whose total no type holds counts nothing; without a weight the join would count it whole
    safe = sql.call("coalesce", weight, 0).named(WEIGHT)
    cut = replace(
        select([sql.Star()], select([UNIT, safe], totals)), where=plan.refinement > WEIGHT
    )
    same = sql.Column("unit", "pairs").equals(sql.Column("unit", "u"))
    items = sql.Star("pairs"), sql.call("coalesce", WEIGHT, plan.refinement).named(WEIGHT)
    joined = sql.Join("LEFT JOIN", sql.Item(cut, "u"), same)
    return sql.With((named,), sql.Select(items, table, (joined,)))


def _size(plan: Bounded, norm: Norm) -> tuple[sql.Expression, sql.SqlType]:
    """Returns what a (unit, group) row adds to the ``total`` of its unit, and the type of that."""
    limit = plan.tracked.limits.rows
    size: sql.Expression = ROWS if limit is None else cut_to(ROWS, limit)
    if norm is Norm.L1:
        return size, sql.SqlType.BIGINT
    if limit is None or limit > _SQUARED:
        wide = sql.Typed(size, sql.SqlType.HUGEINT)
        return wide * size, sql.SqlType.HUGEINT
    return size * size, sql.SqlType.BIGINT


def cut_to(value: sql.Expression, limit: int | None) -> sql.Expression:
    assert limit is not None, "there is a limit"
    return sql.call("least", value, limit)


def most_rows(plan: Bounded) -> int | None:
    """Returns the limit of a unit's rows over all groups; None if no unit can exceed it."""
    limits = plan.tracked.limits
    spread = is_spread(plan) and not plan.tracked.raw.is_open
    return limits.in_all if spread else limits.total


def _weight(plan: Bounded, norm: Norm, most: int) -> sql.Expression:
    """Returns the weight of a unit as a function of its ``total`` (RULES 13).

    For f the refinement and R the row limit of a group it is floor(f min(1, most / total)) in L1
    and floor(f sqrt(min(1, R most / total))) in L2, where ``total`` is a sum of squares.
    """
    fine = plan.refinement
    limit = plan.tracked.limits.in_group
    assert limit is not None, "what bounds all rows bounds those of a group"
    if norm is Norm.L1:
        return sql.TryCast(_least_share(fine, fine * most), sql.SqlType.BIGINT)
    squares = min(limit * most, _UTMOST)
    # f^2 <= 2^40, where the floor of a correctly rounded root is the integer root
    smallest = sql.TryCast(_least_share(fine**2, fine**2 * squares), sql.SqlType.DOUBLE)
    root = sql.call("floor", sql.call("sqrt", smallest))
    return sql.TryCast(root, sql.SqlType.BIGINT)


def _least_share(whole: int, divided: int) -> sql.Expression:
    """Returns the lesser of a number and of what another one, divided by ``total``, gives."""
    share = _whole(divided) // _TOTAL
    return sql.call("least", sql.number(whole), share)


def _whole(number: int) -> sql.Expression:
    """Returns an integer literal in the type that fits it."""
    kind = sql.SqlType.BIGINT if number < 2**63 else sql.SqlType.HUGEINT
    return sql.Typed(sql.Constant(number), kind)


def group_order(plan: Bounded) -> tuple[sql.Expression, ...]:
    """Returns the ORDER BY list that ranks the groups of a unit; it has no ties."""
    return sql.Column("h"), *(sql.Ordered(key, nulls="FIRST") for key in key_names(plan))


def refined(plan: Bounded, value: sql.Expression) -> sql.Expression:
    """Returns a number of units or rows, multiplied by the number of steps of full weight."""
    return value * plan.refinement


def at_most(value: sql.Expression, most: int | None) -> sql.Expression:
    assert most is not None, "there is a limit"
    return value <= most

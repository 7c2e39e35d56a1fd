# SPDX-License-Identifier: Apache-2.0
"""The sensitivity argument: how far apart the integers of neighbouring datasets can be.

The passes call it to compute every distance of a plan. Each rule is a lemma of stability.proof.md.
R is the limit of a unit's rows in a group, G the number of groups in which a unit counts, T the
limit of its rows in total, s the largest amount that one row adds (``largest``), f the refinement.
In a prepared layout, R and T are the number of rows of a unit that an aggregate counts
(``Tracked.counted``).
"""

from fractions import Fraction

from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountUnits,
    Quantiles,
    Sum,
)
from sfumato.plan.relation import Relation as Rows
from sfumato.plan.relation import is_single
from sfumato.plan.scope import is_one_group
from sfumato.plan.stages import Tracked
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation

# A weight is a multiple of 2^-20: it loses at most a millionth, and its square stays exact.
_FINE = 2**20


def refinement(plan: Tracked) -> int:
    """Returns the integer factor by which row weights below 1 are multiplied to be integers; 1 if
    all weights are 1.
    """
    if plan.unit is None or plan.kept is not None or is_single(plan.raw.relation):
        # a unit has one row, or its rows count separately: every weight is 1
        return 1
    limits = plan.limits
    # with open keys, groups beyond the limit are dropped, not weighted; one group is not spread
    spread = limits.groups is not None and plan.groups is not None
    if spread:
        keys = [key.value.expression for key in plan.raw.keys]
        spread = not is_one_group(plan.raw.relation, keys)
    weighs = limits.total is not None or spread
    aggregates = plan.raw.aggregates
    linear = any(not isinstance(item, CountUnits | CountDistinct) for item in aggregates)
    # rows of a unit beyond its row limit have smaller weights, which a leaf must be able to hold
    shared = any(isinstance(item, Quantiles) for item in aggregates)
    if (weighs and linear) or shared:
        return _FINE
    return 1


def distance(
    aggregate: Aggregate,
    plan: Tracked,
    norm: Norm,
    relation: Relation,
    fine: int,
) -> Distance:
    """Returns the sensitivity of an aggregate's integers between neighbouring data sets.

    For quantiles it is in Linf: the change in the weight of any set of leaves in one group;
    ``occupied`` bounds the number of groups. ``fine`` is the refinement: the integer that a row
    with full weight adds.

    Guarantees:
        neighbours differ by at most the distance

    The neighbour relation is applied last: a removed unit takes its contribution away; a replaced
    unit takes one away and adds another.
    """
    assert norm is not Norm.LINF, "a plan is bounded in L1 or in L2"
    if isinstance(aggregate, Quantiles):
        rows, _, _ = _limits(aggregate, plan)
        return Distance(Norm.LINF, Fraction(rows * fine), relation)
    one = _contribution(aggregate, plan, norm)
    scale = fine if norm is Norm.L1 else fine * fine
    if relation is Relation.REPLACE_ONE:
        one = _replaced(aggregate, plan, norm, one)
    return Distance(norm, Fraction(one * scale), relation)


def occupied(aggregate: Aggregate, plan: Tracked) -> int:
    """Returns the largest number of groups whose quantiles one unit can change at full weight.

    A unit in more groups has smaller weights in them.

    Guarantees:
        a unit moves the quantiles of no more groups
    """
    rows, groups, total = _limits(aggregate, plan)
    return min(groups, -(-total // rows))


def full_weight(unit: str | None, relation: Rows) -> int:
    """Returns the integer weight, in a cube, of a row whose unit is within its row limit.

    It is 1 if no weight can be smaller.
    """
    if unit is None or is_single(relation):
        return 1
    return _FINE


def marginal(
    most: int,
    fine: int,
    norm: Norm,
    relation: Relation,
) -> Distance:
    """Returns the sensitivity of a marginal whose rows have the weight floor(f min(1, T / N)).

    T is ``most``, f is ``fine``, and N is the number of rows of the unit. In Linf it bounds the
    change in the L1 distance between the marginal and a public table of integers.

    Guarantees:
        neighbours move no marginal by more
    """
    one = most * fine
    units = 2 if relation is Relation.REPLACE_ONE else 1
    return Distance(norm, Fraction(units * one * (one if norm is Norm.L2 else 1)), relation)


def _contribution(aggregate: Aggregate, plan: Tracked, norm: Norm) -> int:
    """The largest norm (L1, or L2 squared) of what one unit adds to a part's integers."""
    rows, groups, total = _limits(aggregate, plan)
    size = aggregate.largest
    if norm is Norm.L1:
        return size * min(groups * rows, total)
    return size * size * min(groups * rows * rows, rows * total)


def _limits(aggregate: Aggregate, plan: Tracked) -> tuple[int, int, int]:
    """The limits (R, G, T) that are enforced for this part."""
    if plan.unit is None:
        return 1, 1, 1
    limits = plan.limits
    if plan.kept is not None:
        rows = plan.counted(aggregate)
        touched = rows if plan.groups is None else min(rows, plan.groups)
        if isinstance(aggregate, CountUnits):
            return 1, touched, touched
        return rows, touched, rows
    groups = limits.groups if limits.groups is not None else plan.groups
    assert groups is not None, "the pass 'limit' refuses open keys without a group limit"
    touched_groups = groups if limits.total is None else min(groups, limits.total)
    if isinstance(aggregate, CountUnits):
        return 1, touched_groups, touched_groups
    assert limits.rows is not None, (
        "the pass 'limit' refuses a linear aggregate without a row limit"
    )
    if isinstance(aggregate, CountDistinct):
        values = limits.rows if limits.total is None else min(limits.rows, limits.total)
        return values, touched_groups, values * touched_groups
    total = limits.rows * groups if limits.total is None else limits.total
    return limits.rows, groups, total


def _replaced(
    aggregate: Aggregate,
    plan: Tracked,
    norm: Norm,
    one: int,
) -> int:
    """The norm of the difference of two contributions, each of norm at most ``one``."""
    single = plan.groups == 1 and aggregate.width == 1
    if single and isinstance(aggregate, Sum):
        # one integer between M * min(lower, 0) and M * max(upper, 0)
        codes, (rows, _, total) = aggregate.value.numeric, _limits(aggregate, plan)
        reach = (max(codes.upper_code, 0) - min(codes.lower_code, 0)) * min(rows, total)
        if norm is Norm.L1:
            return reach
        return reach * reach
    if single:
        return one
    # |a - b|_1 <= |a|_1 + |b|_1; |a - b|_2^2 <= |a|_2^2 + |b|_2^2 where no entry is negative
    if norm is Norm.L1 or aggregate.never_negative:
        return one * 2
    return one * 4

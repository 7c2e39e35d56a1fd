# SPDX-License-Identifier: Apache-2.0
"""THE sensitivity argument: how far apart the integers of neighbours can be.

One rule per step of a bounded plan; each is a lemma of stability.proof.md. R is the row
limit (rows of a unit in a group), G the groups that a unit counts in, T its rows in all, s
the largest amount that one row adds (``largest``), f the refinement. Of a prepared layout an
aggregate counts so many rows of a unit in all (``Tracked.counted``): they are R and T.
"""

from fractions import Fraction

from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountUnits,
    Quantiles,
    Sum,
    largest,
    never_negative,
    width,
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
    """Into how many pieces a lattice step is cut: one where no weight can be below one."""
    if plan.unit is None or plan.kept is not None or is_single(plan.raw.relation):
        # one row a unit, or each by itself: every weight is one
        return 1
    limits = plan.limits
    # of an open key the groups beyond the limit are dropped, not weighed; one group alone is counted whole
    spread = limits.groups is not None and plan.groups is not None
    spread = spread and not is_one_group(
        plan.raw.relation, [key.value.expression for key in plan.raw.keys]
    )
    weighs = limits.total is not None or spread
    linear = any(not isinstance(each, CountUnits | CountDistinct) for each in plan.raw.aggregates)
    # the rows of a unit beyond the limit weigh less each: a leaf would lose its part of one
    shared = any(isinstance(each, Quantiles) for each in plan.raw.aggregates)
    return _FINE if (weighs and linear) or shared else 1


def distance(
    aggregate: Aggregate, plan: Tracked, norm: Norm, relation: Relation, fine: int
) -> Distance:
    """The distance of one part's integers between neighbouring datasets.

    Of quantiles it is in Linf: how far the weight of any set of leaves of one group moves;
    ``occupied`` says over how many groups.

    Guarantees:
        neighbours differ by at most the distance

    The rule of the neighbour relation comes last: a removed unit takes away its own
    contribution; a replaced one takes one away and adds another.
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
    """In how many groups one unit counts in full; in more of them only with weights of that sum.

    Guarantees:
        a unit moves the quantiles of no more groups
    """
    rows, groups, total = _limits(aggregate, plan)
    return min(groups, -(-total // rows))


def full_weight(unit: str | None, relation: Rows) -> int:
    """The weight of a row of a cube whose unit has no more rows than count: one where no weight can be below it."""
    return 1 if unit is None or is_single(relation) else _FINE


def marginal(most: int, fine: int, norm: Norm, relation: Relation) -> Distance:
    """The distance of any one marginal between neighbours, if the rows of a unit weigh floor(f min(1, T / N)) each.

    In Linf that of one number: the L1 distance of the marginal to a public table of integers.

    Guarantees:
        neighbours move no marginal by more
    """
    one = most * fine
    units = 2 if relation is Relation.REPLACE_ONE else 1
    return Distance(norm, Fraction(units * one * (one if norm is Norm.L2 else 1)), relation)


def _contribution(aggregate: Aggregate, plan: Tracked, norm: Norm) -> int:
    """The largest norm (L1, or L2 squared) that one unit adds to a part's integers."""
    rows, groups, total = _limits(aggregate, plan)
    size = largest(aggregate)
    if norm is Norm.L1:
        return size * min(groups * rows, total)
    return size * size * min(groups * rows * rows, rows * total)


def _limits(aggregate: Aggregate, plan: Tracked) -> tuple[int, int, int]:
    """(R, G, T) as far as they are known to hold for this part."""
    if plan.unit is None:
        return 1, 1, 1
    limits = plan.limits
    if plan.kept is not None:
        rows = plan.counted(aggregate)
        touched = rows if plan.groups is None else min(rows, plan.groups)
        return (1, touched, touched) if isinstance(aggregate, CountUnits) else (rows, touched, rows)
    groups = limits.groups if limits.groups is not None else plan.groups
    assert groups is not None, "the pass 'limit' refuses open keys without a group limit"
    kept = groups if limits.total is None else min(groups, limits.total)
    if isinstance(aggregate, CountUnits):
        return 1, kept, kept
    assert limits.rows is not None, (
        "the pass 'limit' refuses a linear aggregate without a row limit"
    )
    if isinstance(aggregate, CountDistinct):
        values = limits.rows if limits.total is None else min(limits.rows, limits.total)
        return values, kept, values * kept
    return limits.rows, groups, limits.rows * groups if limits.total is None else limits.total


def _replaced(aggregate: Aggregate, plan: Tracked, norm: Norm, one: int) -> int:
    """The norm of the difference of two units' contributions, each of norm at most ``one``."""
    single = plan.groups == 1 and width(aggregate) == 1
    if single and isinstance(aggregate, Sum):
        # one integer between M * min(lower, 0) and M * max(upper, 0)
        codes, (rows, _, total) = aggregate.value.numeric, _limits(aggregate, plan)
        reach = (max(codes.upper_code, 0) - min(codes.lower_code, 0)) * min(rows, total)
        return reach if norm is Norm.L1 else reach * reach
    if single:
        return one
    # |a - b|_1 <= |a|_1 + |b|_1; |a - b|_2^2 <= |a|_2^2 + |b|_2^2 where no entry is negative
    return one * 2 if norm is Norm.L1 or never_negative(aggregate) else one * 4

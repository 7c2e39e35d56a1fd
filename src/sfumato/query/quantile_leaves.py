# SPDX-License-Identifier: Apache-2.0
"""Chooses what quantiles are selected from: every code, or the leaves of a grid.

Every code is the rule. A grid is for what could be too much to collect or to select from: an
engine whose data may not fit on one machine, and very many groups. Declarations alone decide.
"""

from collections.abc import Iterator
from dataclasses import replace

from sfumato.errors import WrongUse
from sfumato.plan.aggregate import Aggregate, Quantiles, quantiles
from sfumato.plan.stages import Raw
from sfumato.query.auto_limits import declared_groups

# The most leaves of all groups together that are always collected.
MOST_LEAVES = 2**22
# Up to this many groups, every code with a row is collected from a local engine.
MOST_GROUPS = 2**12


def with_leaves(raw: Raw, *, ends: bool, collects_codes: bool) -> Raw:
    """Sets from how coarse a grid the quantiles of a plan are selected (the leaves of the grid).

    With ``ends``, the ends of their intervals are selected too. ``collects_codes``: the engine can
    collect every code that has a row, so no grid is needed for its sake.

    Raises:
        WrongUse: ends, and nothing in the plan is a quantile.
    """
    if not any(isinstance(aggregate, Quantiles) for aggregate in raw.aggregates):
        if ends:
            raise WrongUse(
                "interval=True, and nothing in this question is a quantile.",
                remedy="Leave interval= out: every other number has its interval already.",
            )
        return raw
    groups = declared_groups(raw)

    def chosen() -> Iterator[Aggregate]:
        for aggregate in raw.aggregates:
            if isinstance(aggregate, Quantiles):
                leaf = codes_of_leaf(aggregate.codes, groups, collects_codes=collects_codes)
                yield quantiles(aggregate.value, aggregate.levels, leaf=leaf, ends=ends)
            else:
                yield aggregate

    return replace(raw, aggregates=tuple(chosen()))


def codes_of_leaf(codes: int, groups: int | None, *, collects_codes: bool) -> int:
    """The number of codes of a leaf, of a value with so many codes; ``groups`` is None if private.

    >>> codes_of_leaf(10**7, 20, collects_codes=True)
    1
    >>> codes_of_leaf(10**7, 20, collects_codes=False)
    48
    >>> codes_of_leaf(10**7, 10**5, collects_codes=True)
    243903
    """
    most_groups = MOST_GROUPS if groups is None else groups
    if (collects_codes and most_groups <= MOST_GROUPS) or most_groups * codes <= MOST_LEAVES:
        return 1
    leaves = max(MOST_LEAVES // most_groups, 1)
    return -(-codes // leaves)

# SPDX-License-Identifier: Apache-2.0
"""Chooses the candidates of quantiles: every code of the range, or the leaves of a grid.

Every code is the rule. A grid is used if too many codes would have to be collected or scored: with
an engine whose data may not fit on one machine, and with very many groups. Declarations alone
decide. ``choose`` calls ``with_leaves``.
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
    """Returns the plan with the width, in codes, of the candidates (leaves) from which its
    quantiles are selected.

    With ``ends``, the ends of their intervals are selected too. ``collects_codes`` is true if the
    engine can collect every code that has a row.

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
    """Returns the number of codes in a leaf, for a value with ``codes`` codes.

    ``groups`` is the number of groups; None if it is private.

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

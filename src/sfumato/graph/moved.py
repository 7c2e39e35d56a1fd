# SPDX-License-Identifier: Apache-2.0
"""Distances of statistics of graphs, from those of one edge or node that is added or removed.

Proof: moved.proof.md.
"""

from fractions import Fraction

from sfumato.errors import InvalidDeclaration
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation


def moved(plan: BoundedGraph, norm: Norm, **by: int) -> Distance:
    """The distance in a norm, of those that are given for one edge or node added or removed.

    ``l1``, ``l2`` (squared) or ``linf``. A replaced one is removed, and another is added: twice
    as far, four times as far in squared L2.

    Raises:
        InvalidDeclaration: nothing is proved in this norm.
    """
    name = norm.value.lower()
    if name not in by:
        raise InvalidDeclaration(
            f"A statistic of a graph in {norm.value}.", allowed=", ".join(by).upper()
        )
    times = 1
    if plan.neighbours is Relation.REPLACE_ONE:
        times = 4 if norm is Norm.L2 else 2
    return Distance(norm, Fraction(times * by[name]), plan.neighbours)


def require_unit(plan: BoundedGraph, *, node: bool) -> None:
    """Raises InvalidDeclaration unless the unit of a graph is that of a statistic."""
    if type(plan) is not BoundedGraph or (plan.nodes is not None) is not node:
        raise InvalidDeclaration(
            "A statistic of another unit.",
            allowed=f"a graph whose unit is sf.{'Node' if node else 'Edge'}",
        )

# SPDX-License-Identifier: Apache-2.0
"""A join of units to one row each, taken apart: the rows of a unit can be added up before it. Proof: preaggregation.proof.md."""

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.engines.filter_pushdown import conjuncts
from sfumato.plan.relation import Filter, Relation, UnitJoin
from sfumato.plan.scalar import Field, Scalar, leaves
from sfumato.plan.scope import provided
from sfumato.plan.stages import Raw
from sfumato.plan.value import Value


@dataclass(frozen=True, slots=True)
class Apart:
    """What is added up by unit (``source``), and the one row that decides in which group that counts (``other``).

    ``tests``: what has to be TRUE of the two together, read of ``other`` alone.
    """

    source: Relation
    other: Relation
    outer: bool
    tests: tuple[Scalar, ...]


def taken_apart(raw: Raw, values: Iterable[Value]) -> Apart | None:
    """A question whose ``values`` are all read of the one side of a join, and its keys of the other; else None.

    Guarantees:
        sums before a join are those after it
    """
    relation, tests = raw.relation, list[Scalar]()
    while isinstance(relation, Filter):
        tests += conjuncts(relation.predicate)
        relation = relation.source
    if not isinstance(relation, UnitJoin):
        return None
    source, own = relation.source, {column.name for column in provided(relation.source)}
    there = {column.name for column in provided(relation.other)}
    later = []
    for test in tests:
        if _names([test]) <= own:
            source = Filter(source, test)
        elif _names([test]) <= there:
            later.append(test)
        else:
            return None
    if not _names(key.value.expression for key in raw.keys) <= there:
        return None
    if not _names(value.expression for value in values) <= own:
        return None
    return Apart(source, relation.other, relation.outer, tuple(later))


def _names(expressions: Iterable[Scalar]) -> set[str]:
    """The columns that expressions read."""
    return {
        leaf.column.name for each in expressions for leaf in leaves(each) if isinstance(leaf, Field)
    }

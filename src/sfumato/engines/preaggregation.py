# SPDX-License-Identifier: Apache-2.0
"""Splits a join so that the many rows of a unit are summed before they are joined to its one row.

``emit`` uses it to join fewer rows. Proof: preaggregation.proof.md.
"""

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
    """A join split into two sides, so that the side with many rows of each unit can be summed by
    unit before the join.

    ``source`` is summed by unit; the row of ``other`` gives the group. ``tests`` must be TRUE for a
    joined row; they read columns of ``other`` only.
    """

    source: Relation
    other: Relation
    outer: bool
    tests: tuple[Scalar, ...]


def taken_apart(raw: Raw, values: Iterable[Value]) -> Apart | None:
    """Splits the join of a question, so that one side can be summed by unit before the join;
    returns None if that is not possible.

    ``values`` must read only one side of the join, and the group keys only the other.

    Guarantees:
        sums before a join are those after it
    """
    relation = raw.relation
    tests = list[Scalar]()
    while isinstance(relation, Filter):
        tests += conjuncts(relation.predicate)
        relation = relation.source
    if not isinstance(relation, UnitJoin):
        return None
    source = relation.source
    own = {column.name for column in provided(relation.source)}
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
    """Returns the names of the columns that expressions read."""
    names = set()
    for expression in expressions:
        for leaf in leaves(expression):
            if isinstance(leaf, Field):
                names.add(leaf.column.name)
    return names

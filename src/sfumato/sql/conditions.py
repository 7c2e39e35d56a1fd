# SPDX-License-Identifier: Apache-2.0
"""Conjunctions: of the syntax tree taken apart, and of lowered tests as a filter."""

from collections.abc import Sequence

from sqlglot import exp

from sfumato.plan.relation import Filter, Ranked, Relation
from sfumato.plan.scalar import And, Field, Member, Scalar


def passing(relation: Relation, tests: Sequence[Scalar]) -> Relation:
    """Returns the relation of the rows for which every test is TRUE.

    ``rank = 1`` becomes a filter directly above ROW_NUMBER: the plan then has one row a unit.
    """
    if isinstance(relation, Ranked):
        first = Member(Field(relation.column), (1,))
        if first in tests:
            relation = Filter(relation, first)
            tests = [test for test in tests if test != first]
    if not tests:
        return relation
    return Filter(relation, conjunction(tests))


def conjunction(tests: Sequence[Scalar]) -> Scalar:
    """Returns one test that is TRUE where all of some tests are."""
    if len(tests) == 1:
        return tests[0]
    return And(tuple(tests))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Returns the operands of a SQL condition joined by AND, nested ones too.

    Any other condition is its own single operand.
    """
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [test for operand in node.flatten() for test in conjuncts(operand)]
    return [node]

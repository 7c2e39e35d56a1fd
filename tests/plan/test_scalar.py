# SPDX-License-Identifier: Apache-2.0
"""Expressions as trees: their leaves, their children, their comparisons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Field,
    FloorDivide,
    IsNull,
    Key,
    Member,
    Not,
    Operation,
    Or,
    children,
    compares,
    leaves,
)
from tests.plan.expressions import NUMBERS, TESTS, X, Y


@given(st.integers(), st.integers())
def test_the_six_comparisons_are_their_signs(one, other):
    truths = [compares(op, one, other) for op in Comparison]
    assert truths == [
        one == other,
        one != other,
        one < other,
        one <= other,
        one > other,
        one >= other,
    ]
    assert [op.value for op in Comparison] == ["=", "<>", "<", "<=", ">", ">="]


def test_leaves_are_found_in_order_with_repeats():
    x, y = Field(X), Field(Y)
    inner = And(
        (Compare(Comparison.LT, x, y), Not(Or((IsNull(y), Member(x, (1,)), Constant(True)))))
    )
    assert leaves(inner) == [x, y, y, x]
    assert leaves(Arithmetic(Operation.ADD, Key(0), Estimate(1))) == [Key(0), Estimate(1)]
    assert leaves(Case(((IsNull(x), y),), x)) == [x, y, x]


@given(st.one_of(NUMBERS, TESTS))
def test_every_field_of_a_tree_is_among_its_leaves(expression):
    # the text of a tree names each field once for each leaf
    assert repr(expression).count("Field(") == len(leaves(expression))
    assert all(repr(each) in repr(expression) for each in children(expression))


@pytest.mark.parametrize("divisor", (0, -1))
def test_a_divisor_is_positive(divisor):
    with pytest.raises(ValueError, match="a divisor of"):
        FloorDivide(Field(X), divisor)

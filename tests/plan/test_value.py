# SPDX-License-Identifier: Apache-2.0
"""A value keeps within its declared range, and a key names each group once."""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.plan import value as values
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Arithmetic, Case, Constant, Field, Operation
from sfumato.plan.value import GroupKey, Value
from tests.contracts.effort import examples
from tests.plan.expressions import COLUMNS, NAME, NUMBERS, ROWS, SHARE, YES, X, Y, reader

SUM = Arithmetic(Operation.ADD, Field(X), Field(Y))


@settings(max_examples=examples(4), deadline=None)
@given(NUMBERS, ROWS, st.integers(-20, 0), st.integers(1, 20))
def test_the_codes_lie_within_the_declared_range(expression, row, low, high):
    try:
        made = Value("v", sf.Integer(low, high), expression)
    except ValueError:
        assume(False)
    code = evaluate(made.expression, reader(row))
    assert code is None or low <= code <= high


@pytest.mark.parametrize(("low", "high"), [(-4, 10), (-5, 9)])
def test_a_value_that_may_leave_its_range_is_refused(low, high, monkeypatch):
    assert Value("v", sf.Integer(-5, 10), SUM).type == sf.Integer(-5, 10)
    with pytest.raises(ValueError, match="v may leave the range"):
        Value("v", sf.Integer(low, high), SUM)
    monkeypatch.setattr(values, "span", lambda expression: None)
    Value("v", sf.Integer(low, high), SUM)


def test_a_name_is_no_part_of_a_value():
    one, other = Value("x + y", sf.Integer(-5, 10), SUM), Value("y + x", sf.Integer(-5, 10), SUM)
    assert one == other and len({one, other}) == 1
    assert one != Value("x + y", sf.Integer(-5, 11), SUM)
    assert one != Value("x + y", sf.Integer(-5, 10), Field(X))


@pytest.mark.parametrize("column", COLUMNS)
def test_a_declared_column_is_a_value(column):
    assert Value.of(column) == Value(column.name, column.type, Field(column))


def test_what_can_be_added_up_has_a_step():
    assert (Value.of(X).step, Value.of(SHARE).step, Value.of(YES).step) == (1, Fraction(1, 2), 1)
    with pytest.raises(AssertionError, match="lowering admits no other type"):
        _ = Value.of(NAME).numeric


def test_a_text_and_a_code_are_not_mixed_up():
    with pytest.raises(ValueError, match="v is no text"):
        Value("v", sf.Text(), Field(X))
    with pytest.raises(TypeError, match="name is a text"):
        Value("v", sf.Integer(0, 1), Field(NAME))


def test_a_choice_among_codes_is_no_text():
    with pytest.raises(ValueError, match="is no text"):
        Value("v", sf.Text(), Case(((Constant(True), Constant(1)),), Constant(None)))


@pytest.mark.parametrize("codes", [(0, 0), (1, 0), (0, 1, 1), (0, 2, 1)])
def test_no_group_is_declared_twice(codes):
    assert GroupKey(Value.of(X), tuple(sorted(set(codes)))).size == len(set(codes))
    with pytest.raises(ValueError, match="not ascending"):
        GroupKey(Value.of(X), codes)


def test_a_key_has_a_group():
    with pytest.raises(ValueError, match="has no group"):
        GroupKey(Value.of(X), ())
    assert GroupKey(Value.of(X), (), missing=True).size == 1


def test_missing_is_a_group_more_and_an_open_key_has_no_number():
    assert GroupKey(Value.of(X), (1, 4)).size == 2
    assert GroupKey(Value.of(X), (1, 4), missing=True).size == 3
    assert GroupKey(Value.of(NAME), None).size is None

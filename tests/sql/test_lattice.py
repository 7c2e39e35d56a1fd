# SPDX-License-Identifier: Apache-2.0
"""Numbers of different steps meet on one lattice; rounding is to the nearest and within a step."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.metadata.column import MAX_CODE, Column, Real
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Arithmetic, Constant, Field, Operation
from sfumato.plan.span import span
from sfumato.sql import lattice
from sfumato.sql.lattice import aligned, clipped, common_step, fitted, floored, lattice_step, onto

STEPS = st.builds(Fraction, st.integers(1, 40), st.integers(1, 40))
CODES = st.integers(-1000, 1000)
X = Field(Column("x", Real(-1000, 1000, step=1)))


def at(expression, code):
    return evaluate(expression, lambda leaf: code)


@given(CODES, STEPS, st.builds(Fraction, st.integers(-40, 40), st.integers(1, 40)))
def test_the_floor_of_a_linear_function_is_exact(code, ratio, shift):
    assert at(floored(X, ratio, shift), code) == math.floor(code * ratio + shift)
    assert floored(Constant(code), ratio, shift) == Constant(math.floor(code * ratio + shift))


@given(CODES, STEPS, STEPS)
def test_another_lattice_is_exact_where_its_step_divides_else_the_nearest(code, step, target):
    error = abs(at(onto(X, step, target), code) * target - code * step)
    assert error == 0 if (step / target).denominator == 1 else error <= target / 2


@given(st.lists(STEPS, min_size=1, max_size=4))
def test_the_common_step_is_the_greatest_that_divides_all(steps):
    common = common_step(steps)
    multiples = [step / common for step in steps]
    assert all(each.denominator == 1 for each in multiples)
    assert math.gcd(*(int(each) for each in multiples)) == 1


def test_two_numbers_meet_exactly_where_the_codes_fit():
    step, (one, other) = aligned([(X, Fraction(1, 4)), (X, Fraction(1, 6))])
    assert (step, at(one, 7) * step, at(other, 7) * step) == (Fraction(1, 12), Fraction(7, 4), Fraction(7, 6))


def test_too_fine_a_lattice_gives_way_to_that_of_the_range():
    fine = Fraction(1, 2**60)
    step, (one, other) = aligned([(X, Fraction(1)), (X, fine)])
    assert step == lattice_step(Fraction(2000)) == Fraction(1, 1024)
    assert at(one, 3) * step == 3
    assert abs(at(other, 999) * step - 999 * fine) <= step / 2


@given(st.integers(-MAX_CODE, MAX_CODE), st.integers(1, 2**20))
def test_a_fitted_number_stays_near_and_within_the_codes(code, factor):
    wide = Field(Column("w", Real(-MAX_CODE, MAX_CODE, step=1)))
    product = Arithmetic(Operation.MULTIPLY, wide, Constant(factor % 1000 + 1))
    expression, step = fitted(product, Fraction(1))
    low, high = span(expression)
    assert -MAX_CODE <= low <= high <= MAX_CODE
    assert abs(at(expression, code) * step - code * (factor % 1000 + 1)) <= step / 2


def test_a_number_that_fits_is_left_as_it_is():
    assert fitted(X, Fraction(1, 3)) == (X, Fraction(1, 3))


def test_a_narrow_range_far_from_zero_fits_too():
    far = Arithmetic(Operation.ADD, X, Constant(5 * MAX_CODE))
    expression, step = fitted(far, Fraction(1))
    assert step == 8 and max(span(expression)) <= MAX_CODE


@pytest.mark.parametrize(
    ("width", "step"), [(2**20, 1), (2**20 - 1, Fraction(1, 2)), (0, 1), (Fraction(1, 3), Fraction(1, 2**22))]
)
def test_the_step_of_a_range_is_a_millionth_of_it(width, step):
    assert lattice_step(Fraction(width)) == step


def test_a_clip_is_a_clip_and_keeps_null():
    expression = clipped(X, -2, 3)
    assert [at(expression, code) for code in (-9, -2, 0, 3, 9, None)] == [-2, -2, 0, 3, 3, None]
    assert span(expression) == (-2, 3)


def test_a_rounding_that_is_lost_is_noticed(monkeypatch):
    monkeypatch.setattr(lattice, "FloorDivide", lambda operand, divisor: operand)
    assert at(floored(X, Fraction(1, 2)), 7) != 3

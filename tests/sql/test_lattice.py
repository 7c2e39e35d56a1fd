# SPDX-License-Identifier: Apache-2.0
"""Numbers of different steps meet on one lattice; rounding is to the nearest and within a step."""

import math
from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Column, Real
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Arithmetic, Constant, Field, Operation
from sfumato.plan.value_range import span
from sfumato.sql import lattice
from sfumato.sql.lattice import (
    aligned,
    clipped,
    common_step,
    finest_step,
    fitted,
    floored,
    largest,
    moved,
    onto,
)

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
    assert (step, at(one, 7) * step, at(other, 7) * step) == (
        Fraction(1, 12),
        Fraction(7, 4),
        Fraction(7, 6),
    )


@given(
    st.integers(0, MAX_CODE),
    st.integers(1, 2**40),
    st.integers(1, 2**30),
    st.integers(-(2**30), 2**30),
)
def test_a_floor_whose_product_would_pass_64_bits_is_exact_too(code, factor, under, extra):
    ratio, shift = Fraction(factor, under), Fraction(extra, under)
    assume(MAX_CODE * ratio + abs(shift) < 2**60)
    wide = Field(Column("w", Real(0, MAX_CODE, step=1)))
    expression = floored(wide, ratio, shift)
    span(expression)
    assert at(expression, code) == math.floor(code * ratio + shift)


def test_too_fine_a_lattice_gives_way_to_the_finest_that_fits():
    fine = Fraction(1, 2**60)
    step, (one, other) = aligned([(X, Fraction(1)), (X, fine)])
    assert step == finest_step(Fraction(1000)) == Fraction(1, 2**41)
    assert largest(one) == 1000 * 2**41 <= MAX_CODE < 2000 * 2**42
    assert at(one, 3) * step == 3 and moved(Fraction(1), step) == 0
    assert abs(at(other, 999) * step - 999 * fine) <= moved(fine, step) == step / 2


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


@given(st.fractions(Fraction(1, 10**9), 10**9))
def test_the_finest_step_keeps_a_range_within_the_codes_by_a_bit_or_two(size):
    codes = size / finest_step(size)
    assert MAX_CODE // 8 < codes <= MAX_CODE // 2
    assert finest_step(Fraction(0)) == 1


def test_a_clip_is_a_clip_and_keeps_null():
    expression = clipped(X, -2, 3)
    assert [at(expression, code) for code in (-9, -2, 0, 3, 9, None)] == [-2, -2, 0, 3, 3, None]
    assert span(expression) == (-2, 3)


def test_a_rounding_that_is_lost_is_noticed(monkeypatch):
    monkeypatch.setattr(lattice, "FloorDivide", lambda operand, divisor: operand)
    assert at(floored(X, Fraction(1, 2)), 7) != 3

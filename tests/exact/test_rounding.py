# SPDX-License-Identifier: Apache-2.0
"""Every rounding errs in the direction of its name; python-flint's balls are the truth."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.exact import rounding
from sfumato.exact.rounding import (
    exp_down,
    exp_up,
    float_down,
    float_up,
    log_down,
    log_up,
    sqrt_down,
    sqrt_up,
)
from tests.contracts.effort import examples

PRECISION = 600
EXPONENTS = st.one_of(
    st.fractions(min_value=-2000, max_value=2000, max_denominator=10**30),
    st.fractions(
        min_value=Fraction(-1, 10**40), max_value=Fraction(1, 10**40), max_denominator=10**90
    ),
)
POSITIVE = st.one_of(
    st.fractions(min_value=Fraction(1, 10**60), max_denominator=10**60),
    st.builds(
        lambda base, power: base * Fraction(10) ** power, st.integers(1, 99), st.integers(-390, 390)
    ),
    st.integers(-60, 60).map(
        lambda power: 1 + Fraction(10) ** -abs(power) * (1 if power > 0 else -1) / 2
    ),
)
EXTREME_EXPONENTS = [Fraction(text) for text in ("-9999", "-10000", "1e5", "1e-200", "-1e-200")]
EXTREME_POSITIVE = [Fraction(10) ** power for power in (-400, -50, 50, 400)] + [
    1 + Fraction(1, 10**100)
]


def ball(number: Fraction) -> arb:
    """A ball around ``number``, far narrower than what is tested."""
    return arb(fmpq(number.numerator, number.denominator))


def brackets(down: Fraction, up: Fraction, truth: Callable[[arb], arb], number: Fraction) -> bool:
    """Whether ``down <= truth(number) <= up`` for certain, and within 1e-45 of each other."""
    before, ctx.prec = ctx.prec, PRECISION
    try:
        value = truth(ball(number))
        outward = ball(down) <= value <= ball(up)
        return bool(outward and ball(up) - ball(down) <= abs(value) * arb("1e-20") + arb("1e-45"))
    finally:
        ctx.prec = before


@given(EXPONENTS)
@settings(deadline=None, max_examples=examples(2))
def test_exp_is_bracketed(number: Fraction) -> None:
    assert brackets(exp_down(number), exp_up(number), arb.exp, number)


@pytest.mark.parametrize("number", EXTREME_EXPONENTS, ids=float)
def test_exp_is_bracketed_at_extremes(number: Fraction) -> None:
    assert brackets(exp_down(number), exp_up(number), arb.exp, number)
    assert exp_down(number) > 0


@pytest.mark.parametrize(
    "number", [Fraction(-10_001), Fraction(-(10**5)), Fraction(-(10**10)), Fraction(-(10**400))]
)
def test_exp_far_below_zero_is_bracketed_without_its_digits(number: Fraction) -> None:
    assert 0 <= exp_down(number) <= exp_up(number) <= Fraction(1, 10**4300)
    # e^x falls, so a bound of e^-10001 from above bounds all of these
    assert bool(ball(exp_up(number)) > arb(-10_001).exp())
    assert exp_down(number) == 0 or number >= -10_001


@given(EXPONENTS)
@settings(deadline=None)
def test_exp_is_within_its_stated_accuracy(number: Fraction) -> None:
    spread = exp_up(number) - exp_down(number)
    # the exponent itself is rounded to fifty digits, which |number| <= 2000 magnifies
    assert spread <= exp_up(number) * (1 + abs(number)) * Fraction(4, 10**48)


@given(POSITIVE)
@settings(deadline=None, max_examples=examples(2))
def test_log_is_bracketed(number: Fraction) -> None:
    assert brackets(log_down(number), log_up(number), arb.log, number)


@pytest.mark.parametrize(
    "number", EXTREME_POSITIVE, ids=lambda number: f"{number.numerator.bit_length()}bits"
)
def test_log_is_bracketed_at_extremes(number: Fraction) -> None:
    assert log_down(number) < log_up(number)
    before, ctx.prec = ctx.prec, PRECISION
    try:
        assert bool(ball(log_down(number)) <= ball(number).log() <= ball(log_up(number)))
    finally:
        ctx.prec = before


def test_exp_of_zero_and_log_of_one_are_exact() -> None:
    assert exp_down(Fraction(0)) == exp_up(Fraction(0)) == 1
    assert log_down(Fraction(1)) == log_up(Fraction(1)) == 0


@given(st.one_of(st.just(Fraction(0)), POSITIVE))
@settings(deadline=None, max_examples=examples(2))
def test_sqrt_is_bracketed_by_its_squares(number: Fraction) -> None:
    down, up = sqrt_down(number), sqrt_up(number)
    assert 0 <= down * down <= number <= up * up
    assert up - down <= Fraction(1, 2**79) * max(up, Fraction(1, number.denominator))


@given(st.fractions(min_value=0, max_denominator=10**40))
@settings(deadline=None)
def test_sqrt_is_exact_on_squares(root: Fraction) -> None:
    assert sqrt_down(root * root) == sqrt_up(root * root) == root


@given(
    st.one_of(st.fractions(max_denominator=10**50), POSITIVE, POSITIVE.map(lambda number: -number))
)
@settings(deadline=None, max_examples=examples(2))
def test_floats_are_the_nearest_ones_outward(number: Fraction) -> None:
    down, up = float_down(number), float_up(number)
    assert as_fraction(down) <= number <= as_fraction(up)
    assert as_fraction(math.nextafter(down, math.inf)) > number
    assert as_fraction(math.nextafter(up, -math.inf)) < number


def as_fraction(value: float) -> Fraction:
    """The exact value of a float; infinities count as beyond every number tested here."""
    return Fraction(10) ** 1000 * (1 if value > 0 else -1) if math.isinf(value) else Fraction(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(deadline=None)
def test_a_float_is_kept(value: float) -> None:
    assert float_down(Fraction(value)) == value == float_up(Fraction(value))


def test_floats_saturate_on_the_safe_side() -> None:
    largest, smallest = 1.7976931348623157e308, 5e-324
    huge, tiny = Fraction(10) ** 400, Fraction(1, 10**400)
    assert (float_down(huge), float_up(huge)) == (largest, math.inf)
    assert (float_down(-huge), float_up(-huge)) == (-math.inf, -largest)
    assert (float_down(tiny), float_up(tiny)) == (0.0, smallest)
    assert (float_down(-tiny), float_up(-tiny)) == (-smallest, 0.0)


@pytest.mark.parametrize("number", [Fraction(1), Fraction(5, 2), Fraction(-700)], ids=str)
def test_the_bracket_notices_a_bound_that_takes_no_step_outward(
    monkeypatch: pytest.MonkeyPatch, number: Fraction
) -> None:
    def nearest(function: str, value: Fraction, rounding_mode: str) -> Fraction:
        context = rounding._context(rounding_mode)
        return Fraction(getattr(context, function)(rounding._decimal(value, rounding_mode)))

    monkeypatch.setattr(rounding, "_outward", nearest)
    assert not brackets(exp_down(number), exp_up(number), arb.exp, number)

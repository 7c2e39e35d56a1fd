# SPDX-License-Identifier: Apache-2.0
"""Decimals that round outward, against arbitrary precision balls."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import decimals
from sfumato.accounting.decimals import above, below, exp_above, exp_below, log_above

NUMBERS = st.fractions(min_value=-1000, max_value=1000) | st.fractions(min_value=-1, max_value=1)


def number(value: Decimal | Fraction) -> arb:
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def outward(value: Fraction) -> bool:
    """Whether all bounds are on their sides of the truth."""
    with ctx.workprec(600):
        power = number(value).exp()
        sides = bool(number(exp_below(value)) < power) and bool(power < number(exp_above(value)))
        if value > 0:
            sides = sides and bool(number(value).log() <= number(log_above(above(value))))
    return sides and below(value) <= value <= above(value)


@given(NUMBERS)
def test_exponentials_and_logarithms_are_on_their_sides(value):
    assert outward(value)
    assert exp_above(value) - exp_below(value) <= exp_above(value) * Decimal("1e-32")


def test_the_context_of_the_thread_is_not_asked():
    with localcontext() as context:
        context.prec = 3
        assert outward(Fraction(1, 7)) and outward(Fraction(-50, 3))


def test_the_logarithm_of_one_is_zero():
    assert log_above(Decimal(1)) == 0 and outward(Fraction(1))


@pytest.mark.parametrize("value", [Fraction(-10_001), Fraction(-(10**12))])
def test_far_below_zero_there_are_no_more_digits(value):
    assert exp_below(value) == 0 and exp_above(value) == Decimal("1e-4342")


@pytest.mark.parametrize("name", ["UP", "DOWN"])
def test_rounding_to_the_nearest_is_noticed(monkeypatch, name):
    nearest = decimals.UP.copy()
    nearest.rounding = "ROUND_HALF_EVEN"
    monkeypatch.setattr(decimals, name, nearest)
    assert not all(
        outward(Fraction(1, each)) and outward(Fraction(-2, each))
        for each in (3, 7, 11, 13, 17, 19)
    )

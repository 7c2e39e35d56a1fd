# SPDX-License-Identifier: Apache-2.0
"""e^-x in integers: against the balls of python-flint, at every precision."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.exact.exponential import exp_scaled
from tests.contracts.effort import examples

RATIOS = st.fractions(min_value=0, max_value=5000, max_denominator=10**40)
EDGES = [
    Fraction(1, 2**300),
    Fraction(1, 128),
    Fraction(127, 128),
    Fraction(1),
    Fraction(2),
    Fraction(255, 256),
    Fraction(709),
]


def truth(x: Fraction, precision: int) -> arb:
    """2^precision e^-x as a ball with 100 bits to spare."""
    with ctx.workprec(precision + 100 + int(x).bit_length()):
        return (-arb(fmpq(x.numerator, x.denominator))).exp() * arb(2) ** precision


def is_bounded(
    scaled: Callable[[int, int, int], tuple[int, int]], x: Fraction, precision: int
) -> bool:
    """Whether the bounds hold the truth for certain, and are at most 2 apart."""
    lower, upper = scaled(x.numerator, x.denominator, precision)
    value = truth(x, precision)
    with ctx.workprec(precision + 200):
        return (
            0 <= lower <= upper <= lower + 2
            and bool(arb(lower) <= value)
            and bool(value <= arb(upper))
        )


@given(RATIOS, st.integers(0, 400))
@settings(deadline=None, max_examples=examples(4))
def test_the_scaled_exponential_lies_between_its_bounds(x: Fraction, precision: int) -> None:
    assert is_bounded(exp_scaled, x, precision)


@pytest.mark.parametrize("precision", [0, 1, 31, 64, 1000, 20_000])
@pytest.mark.parametrize("x", EDGES, ids=str)
def test_the_bounds_hold_at_the_edges_of_the_halvings(x: Fraction, precision: int) -> None:
    assert is_bounded(exp_scaled, x, precision)


@given(st.integers(0, 600), st.integers(-3, 3))
@settings(deadline=None)
def test_where_the_result_becomes_nothing_it_is_between_zero_and_one(
    precision: int, off: int
) -> None:
    # the early exit at precision + 2, and the last exponents that are worked out
    x = Fraction(max(8 * (precision + 2) + off, 0), 8)
    assert is_bounded(exp_scaled, x, precision)


def test_the_ratio_need_not_be_in_lowest_terms() -> None:
    assert exp_scaled(6, 4, 50) == exp_scaled(3, 2, 50)
    assert exp_scaled(0, 7, 9) == (512, 512)


def test_the_bounds_notice_a_float() -> None:
    def by_float(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
        value = int(math.exp(-numerator / denominator) * 2**precision)
        return value, value + 1

    assert is_bounded(by_float, Fraction(1, 3), 20)
    assert not all(is_bounded(by_float, Fraction(k, 7), 80) for k in range(1, 20))


def test_the_bounds_notice_a_series_without_guard_bits() -> None:
    def unguarded(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
        term = value = 1 << precision
        for index in range(1, 4 * precision + 40):
            term = term * numerator // (denominator * index)
            value += -term if index % 2 else term
        return value, value + 1

    assert not all(is_bounded(unguarded, Fraction(k, 7), 80) for k in range(1, 20))

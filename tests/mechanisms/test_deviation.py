# SPDX-License-Identifier: Apache-2.0
"""The deviation of a sum of coins, against the exact law of the sum."""

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.mechanisms import deviation as module
from sfumato.mechanisms.deviation import deviation

CONFIDENCES = ["0.5", "0.9", "0.999", "0.999999999"]


def beyond(law: list[Fraction], reach: Fraction) -> Fraction:
    """The exact mass of a law on 0 .. n that is further than ``reach`` from its mean."""
    mean = sum(value * mass for value, mass in enumerate(law))
    return sum((mass for value, mass in enumerate(law) if abs(value - mean) > reach), Fraction(0))


def sum_of(biases: list[Fraction]) -> list[Fraction]:
    """The exact law of a sum of independent coins."""
    law = [Fraction(1)]
    for bias in biases:
        law = [
            (law[value] if value < len(law) else 0) * (1 - bias)
            + (law[value - 1] if value else 0) * bias
            for value in range(len(law) + 1)
        ]
    return law


def holds(biases: list[Fraction], confidence: str) -> bool:
    """Whether a sum of these coins stays within its deviation often enough."""
    variance = max((bias * (1 - bias) for bias in biases), default=Fraction(0))
    reach = module.deviation(len(biases), variance, confidence)
    return beyond(sum_of(biases), reach) <= 1 - Fraction(confidence)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("bias", ["1/2", "1/10", "1/1000", "999/1000", "0"])
@pytest.mark.parametrize("coins", [1, 2, 7, 40])
def test_a_sum_of_coins_stays_within_its_deviation(coins, bias, confidence):
    assert holds([Fraction(bias)] * coins, confidence)


@given(
    st.lists(st.fractions(0, 1, max_denominator=20), min_size=1, max_size=12),
    st.sampled_from(CONFIDENCES),
)
@settings(deadline=None)
def test_a_sum_of_unlike_coins_stays_within_its_deviation(biases, confidence):
    assert holds(biases, confidence)


def test_the_exact_law_notices_the_bound_of_a_normal_law(monkeypatch):
    def normal(coins, variance, confidence):
        logarithm = Fraction(
            *float(module.log_up(2 / (1 - Fraction(confidence)))).as_integer_ratio()
        )
        return module.sqrt_up(2 * coins * variance * logarithm)

    monkeypatch.setattr(module, "deviation", normal)
    assert not holds([Fraction(1, 1000)] * 7, "0.999")


def test_a_sum_without_replacement_stays_within_the_same_deviation():
    for population, marked, size in [(12, 5, 3), (30, 2, 10), (25, 20, 20), (9, 9, 4)]:
        ways = comb(population, size)
        law = [
            Fraction(comb(marked, k) * comb(population - marked, size - k), ways)
            for k in range(size + 1)
        ]
        rate = Fraction(size, population)
        for confidence in CONFIDENCES:
            assert beyond(law, deviation(marked, rate * (1 - rate), confidence)) <= 1 - Fraction(
                confidence
            )


def test_coins_that_are_nearly_sure_deviate_less():
    fair, sure = (
        deviation(10**6, variance, "0.95") for variance in (Fraction(1, 4), Fraction(1, 10**4))
    )
    # Hoeffding sqrt(n ln(40) / 2), Bernstein's leading term sqrt(2 n v ln(40))
    assert 1358 < fair < 1359 and 27 < sure < 30
    assert deviation(3, Fraction(1, 4), "0.999999999999") == 3
    assert deviation(0, Fraction(0), "0.9") == 0


@pytest.mark.parametrize("confidence", [0, 1, "1.5", float("nan"), None])
def test_a_confidence_outside_of_the_open_unit_is_refused(confidence):
    with pytest.raises(InvalidNumber):
        deviation(10, Fraction(1, 4), confidence)

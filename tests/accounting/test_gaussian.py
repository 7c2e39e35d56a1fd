# SPDX-License-Identifier: Apache-2.0
"""The discrete Gaussian's curve against a sum over all outputs.

What tutorials get wrong, in numbers.
"""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from sfumato.accounting import gaussian as curve
from sfumato.accounting import gaussian_delta, gaussian_for
from sfumato.errors import InvalidNumber
from sfumato.noise import DiscreteGaussian


def hockey_stick(sigma_squared: Fraction, shift: int, epsilon: Fraction) -> arb:
    """The sum of (P(y) - e^epsilon P(y - shift))_+ over all y that matter, in ball arithmetic."""
    ctx.prec = 200
    reach = 20 * math.isqrt(int(sigma_squared)) + 20
    v2 = 2 * arb(sigma_squared.numerator) / sigma_squared.denominator
    weights = {y: (-arb(y * y) / v2).exp() for y in range(-reach - shift, reach + 1)}
    factor = (arb(epsilon.numerator) / epsilon.denominator).exp()
    terms = (weights[y] - factor * weights[y - shift] for y in range(-reach, reach + 1))
    return sum((term for term in terms if term > 0), arb(0)) / sum(weights.values())


def continuous_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """Balle and Wang (2018), Theorem 8: the continuous law."""
    half, middle = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return float(norm.cdf(half - middle) - math.exp(epsilon) * norm.cdf(-half - middle))


CASES = [
    (Fraction(1, 4), 1, "0.5"),
    (Fraction(1), 1, "1"),
    (Fraction(9), 2, "0.3"),
    (Fraction(400), 7, "2"),
    (Fraction(63 * 63), 64, "1"),
    (Fraction(65 * 65), 64, "1"),
    (Fraction(100 * 100), 30, "0.1"),
    (Fraction(70 * 70), 300, "9"),
    (Fraction(400 * 400), 300, "1"),
]


@pytest.mark.parametrize(("variance", "sensitivity", "epsilon"), CASES, ids=str)
def test_the_discrete_curve_lies_between_its_bounds(
    variance: Fraction, sensitivity: int, epsilon: str
) -> None:
    stated = gaussian_delta(DiscreteGaussian(sigma_squared=variance), sensitivity, epsilon)
    shifts = (
        range(1, sensitivity + 1)
        if sensitivity <= 64
        else (1, sensitivity // 2, sensitivity - 64, sensitivity)
    )
    truth = max(float(hockey_stick(variance, shift, Fraction(epsilon)).mid()) for shift in shifts)
    assert stated.lower <= truth * (1 + 1e-12) and truth <= stated.upper * (1 + 1e-12)
    assert stated.width <= 1e-3 * stated.upper


@given(
    st.fractions(Fraction(1, 4), 100),
    st.integers(1, 6),
    st.fractions(Fraction(1, 20), 3, max_denominator=50),
)
@settings(deadline=None)
def test_the_curve_holds_for_any_variance(
    variance: Fraction, shift: int, epsilon: Fraction
) -> None:
    stated = gaussian_delta(DiscreteGaussian(sigma_squared=variance), shift, epsilon)
    assert float(hockey_stick(variance, shift, epsilon).mid()) <= stated.upper * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [64, 70, 100, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_bound_of_smaller_shifts_covers_each_of_them(sigma: int, epsilon: float) -> None:
    noise, largest = DiscreteGaussian(sigma), 2 * sigma
    bound = curve._smaller_shifts(noise, largest, Fraction(str(epsilon)))
    for shift in (1, sigma // 4, sigma, largest - 1, largest):
        assert gaussian_delta_of(noise, shift, epsilon) <= bound


def gaussian_delta_of(noise: DiscreteGaussian, shift: int, epsilon: float) -> float:
    return curve._one_shift(noise, shift, Fraction(str(epsilon))).lower


@pytest.mark.parametrize(
    ("epsilon", "delta", "squared", "entries"),
    [
        ("1", "1e-6", 1, 1),
        ("0.1", "1e-5", 10**6, 1),
        ("8", "1e-9", 25, 1),
        ("1", "1e-6", 50, 10),
        ("0.5", "1e-12", 2, None),
    ],
)
def test_the_calibrated_gaussian_keeps_its_delta(
    epsilon: str, delta: str, squared: int, entries: int | None
) -> None:
    noise = gaussian_for(epsilon, delta, sensitivity_squared=Fraction(squared), entries=entries)
    worst = gaussian_delta(noise, math.isqrt(squared), epsilon).upper
    assert worst <= float(delta)
    # nearly least: an entry's noise is within one part in a thousand of too little
    if entries == 1:
        less = DiscreteGaussian(sigma_squared=noise.sigma_squared * Fraction(999, 1000))
        assert gaussian_delta(less, math.isqrt(squared), epsilon).lower > float(delta)


def test_the_continuous_formula_gives_the_discrete_law_too_little_noise() -> None:
    # RULES 20: at sigma near one the jumps of the integers matter
    sigma = brentq(lambda s: continuous_delta(s, 1, 3) - 1e-6, 0.1, 10)
    true = hockey_stick(Fraction(str(round(sigma, 6))) ** 2, 1, Fraction(3))
    assert float(true.mid()) > 1.2e-6
    ours = gaussian_for("3", "1e-6", sensitivity_squared=Fraction(1), entries=1)
    assert float(hockey_stick(ours.sigma_squared, 1, Fraction(3)).mid()) <= 1e-6


def test_the_classic_formula_wastes_and_then_fails() -> None:
    def classic(epsilon: float) -> Fraction:
        return Fraction(str(round(1000 * math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon, 6)))

    needed = gaussian_for(
        "0.1", "1e-5", sensitivity_squared=Fraction(10**6), entries=1
    ).sigma_squared
    assert round(float(classic(0.1) ** 2 / needed - 1), 2) == 1.48
    assert gaussian_delta(DiscreteGaussian(classic(8.41)), 1000, "8.41").upper < 1e-5
    assert gaussian_delta(DiscreteGaussian(classic(8.43)), 1000, "8.43").lower > 1e-5


def test_the_formula_with_the_log_below_the_line_gives_a_delta_of_a_sixth() -> None:
    # sensitivity / (epsilon sqrt(2 ln(2/delta))), found in tutorials
    wrong = 1000 / (0.1 * math.sqrt(2 * math.log(2 / 1e-5)))
    assert round(wrong) == 2024
    assert round(gaussian_delta(DiscreteGaussian(2024), 1000, "0.1").lower, 3) == 0.157


@pytest.mark.parametrize("sensitivity", [0, -1, True, 1.5])
def test_a_sensitivity_is_a_whole_number_of_steps(sensitivity: object) -> None:
    with pytest.raises(InvalidNumber):
        gaussian_delta(DiscreteGaussian(1), sensitivity, 1)


def test_the_curve_notices_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right = curve._one_shift
    monkeypatch.setattr(
        curve,
        "_one_shift",
        lambda noise, shift, loss: right(
            DiscreteGaussian(sigma_squared=noise.sigma_squared * 2), shift, loss
        ),
    )
    stated = gaussian_delta(DiscreteGaussian(3), 1, 1)
    assert float(hockey_stick(Fraction(9), 1, Fraction(1)).mid()) > stated.upper

# SPDX-License-Identifier: Apache-2.0
"""Skellam and binomial noise on one integer, against all outcomes of exact laws."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from sfumato.accounting import curve, log_concave
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.dominating_pairs import FixedPlan
from sfumato.accounting.log_concave import LogConcave
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import Binomial, Skellam
from sfumato.privacy import AdditiveNoise, Distance, Norm, Repeated

LAWS = [
    (Skellam("0.5"), 1),
    (Skellam(4), 3),
    (Skellam(30), 2),
    (Binomial(12, "0.5"), 2),
    (Binomial(25, "0.2"), 1),
    (Binomial(25, "0.8"), 3),
]
EPSILONS = ("0", "0.1", "1", "2.5")


def probabilities(noise: Skellam | Binomial) -> dict[int, arb]:
    """Skellam by Bessel functions, e^(-2 rate) I_x(2 rate); binomial by counting."""
    if isinstance(noise, Binomial):
        bias = noise.probability
        exact = [
            math.comb(noise.trials, k) * bias**k * (1 - bias) ** (noise.trials - k)
            for k in range(noise.trials + 1)
        ]
        return {k: arb(each.numerator) / arb(each.denominator) for k, each in enumerate(exact)}
    twice = arb((2 * noise.rate).numerator) / arb((2 * noise.rate).denominator)
    return {x: twice.bessel_i(abs(x)) * (-twice).exp() for x in range(-200, 201)}


def exact_delta(noise: Skellam | Binomial, shift: int, epsilon: str) -> float:
    """The largest over all shifts and both directions, outcome by outcome."""
    with ctx.workprec(256):
        law, odds, found = probabilities(noise), arb(epsilon).exp(), arb(0)
        for moved in [*range(-shift, 0), *range(1, shift + 1)]:
            outcomes = {*law, *(x + moved for x in law)}
            parts = [law.get(x - moved, arb(0)) - odds * law.get(x, arb(0)) for x in outcomes]
            found = found.max(sum((part for part in parts if part > 0), arb(0)))
        return float(found.mid())


def holds(noise: Skellam | Binomial, shift: int) -> bool:
    for epsilon in EPSILONS:
        found, truth = LogConcave(noise, shift).delta(epsilon), exact_delta(noise, shift, epsilon)
        if not found.lower <= truth * (1 + 1e-14) or not truth * (1 - 1e-14) <= found.upper:
            return False
        if found.upper - found.lower > 1e-9 * truth:
            return False
    return True


@pytest.mark.parametrize(("noise", "shift"), LAWS)
def test_a_shifted_integer_loses_what_its_probabilities_say(noise, shift):
    assert holds(noise, shift)


def one_way(self):
    return (self.noise,)


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "case"),
    [
        (LogConcave, "_directions", one_way, (Binomial(25, "0.8"), 3)),
        (log_concave, "_last_rise", lambda noise, shift, odds: 3, (Skellam(30), 2)),
        (log_concave, "exp_down", lambda epsilon: Fraction(3), (Skellam(4), 3)),
    ],
    ids=["one direction", "another half-line", "another epsilon"],
)
def test_a_wrong_excess_is_caught(owner, name, wrong, case, monkeypatch):
    assert holds(*case)
    monkeypatch.setattr(owner, name, wrong)
    assert not holds(*case)


def test_a_smaller_shift_is_caught():
    assert LogConcave(Skellam(4), 2).delta(1).upper < exact_delta(Skellam(4), 3, "1")


@pytest.mark.parametrize("noise", [Skellam(30), Binomial(200, "0.5")])
def test_an_epsilon_has_its_delta(noise):
    curve, asked = LogConcave(noise, 2), "1e-6"
    found = curve.epsilon(asked)
    assert found.upper - found.lower < 1e-9
    assert curve.delta(found.upper).upper <= 1e-6 < curve.delta(found.lower).lower


def test_noise_of_bounded_support_has_a_delta_of_its_own():
    curve, own = LogConcave(Binomial(20, "0.5"), 1), Fraction(1, 2**20)
    assert Fraction(curve.delta(100).lower) <= own <= Fraction(curve.delta(100).upper)
    with pytest.raises(InvalidNumber, match="No epsilon up to 1000"):
        curve.epsilon(own / 2)
    assert curve.epsilon(2 * own).upper < 100


def test_one_integer_has_a_curve_and_a_vector_under_l1_is_refused():
    event = AdditiveNoise(Skellam(30), Distance(Norm.L1, Fraction(2)), cells=1)
    assert privacy_curve(event).delta(1) == LogConcave(Skellam(30), 2).delta(1)
    refused = AdditiveNoise(Skellam(30), Distance(Norm.L1, Fraction(2)))
    with pytest.raises(InvalidDeclaration, match="no proved rho"):
        privacy_curve(Repeated(refused, 2))
    # asked once, the loss distribution is that curve
    pairs = FixedPlan.of(event)
    assert pairs is not None
    once, exact = curve._Composed(pairs, 1e-4, event).delta(1), LogConcave(Skellam(30), 2).delta(1)
    assert once.lower <= exact.upper and exact.lower <= once.upper

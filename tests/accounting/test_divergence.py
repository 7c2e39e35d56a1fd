# SPDX-License-Identifier: Apache-2.0
"""Renyi divergences in closed form, against sums and integrals in arbitrary precision balls."""

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import divergence
from sfumato.accounting.divergence import (
    laplace_divergence,
    pure_divergence,
    range_divergence,
    response_divergence,
)

LOSSES = st.fractions(min_value=Fraction(1, 10**6), max_value=8)
ORDERS = st.fractions(min_value=Fraction(101, 100), max_value=60)


def number(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def of_masses(one: list[arb], other: list[arb], order: Fraction) -> arb:
    """ln of the sum of p^a q^(1-a), over a - 1."""
    a = number(order)
    return sum((p**a * q ** (1 - a) for p, q in zip(one, other, strict=True)), arb(0)).log() / (
        a - 1
    )


def responses(epsilon: Fraction, categories: int) -> list[arb]:
    total = number(epsilon).exp() + categories - 1
    return [number(epsilon).exp() / total, *[1 / total] * (categories - 1)]


def tight(stated: Fraction, truth: arb) -> bool:
    return bool(truth <= number(stated)) and bool(
        number(stated) <= truth * (1 + arb("1e-15")) + arb("1e-25")
    )


@given(LOSSES, ORDERS)
def test_no_pure_loss_diverges_more(epsilon, order):
    with ctx.workprec(400):
        one = responses(epsilon, 2)
        assert tight(pure_divergence(epsilon, order), of_masses(one, one[::-1], order))


@given(LOSSES, st.integers(2, 50), ORDERS)
def test_randomised_response_diverges_no_more(epsilon, categories, order):
    with ctx.workprec(400):
        one = responses(epsilon, categories)
        other = [one[1], one[0], *one[2:]]
        assert tight(response_divergence(epsilon, categories, order), of_masses(one, other, order))


@given(LOSSES, ORDERS, st.fractions(min_value=0, max_value=1))
def test_no_bounded_range_diverges_more(eta, order, share):
    # losses t and t - eta: the two masses under Q follow
    with ctx.workprec(400):
        t = number(eta * share)
        high, low = t.exp(), (t - number(eta)).exp()
        if not (bool(high > 1) and bool(low < 1)):
            return
        q = (1 - low) / (high - low)
        found = of_masses([q * high, (1 - q) * low], [q, 1 - q], order)
        assert bool(found <= number(range_divergence(eta, order)))


def test_a_range_reaches_its_divergence():
    eta, order = Fraction(1), Fraction(2)
    with ctx.workprec(400):
        best = arb(0)
        for each in range(1, 1000):
            t = number(Fraction(each, 1000))
            high, low = t.exp(), (t - 1).exp()
            q = (1 - low) / (high - low)
            best = max(best, of_masses([q * high, (1 - q) * low], [q, 1 - q], order))
        assert bool(best > number(range_divergence(eta, order)) * (1 - arb("1e-5")))


@given(st.integers(1, 60), st.integers(0, 5), ORDERS)
@settings(deadline=None)
def test_laplace_noise_diverges_no_more(scale, shift, order):
    # sums to 80 scales beyond either centre, in balls; what is left out is below e^-80
    far = 80 * scale
    with ctx.workprec(400):
        masses = {y: (arb(-abs(y)) / scale).exp() for y in range(-far - shift, far + shift + 1)}
        total = sum(masses.values(), arb(0))
        points = range(-far, far + 1)
        one = [masses[y] / total for y in points]
        other = [masses[y - shift] / total for y in points]
        truth = of_masses(one, other, order)
        stated = number(laplace_divergence(Fraction(shift, scale), order, Fraction(scale)))
        assert bool(truth <= stated + arb("1e-20")) and bool(
            stated <= truth * (1 + arb("1e-12")) + arb("1e-12")
        )


def test_continuous_laplace_noise_is_the_limit_of_fine_lattices():
    epsilon, order = Fraction(3, 10), Fraction(9, 2)
    fine = laplace_divergence(epsilon, order, 10**6 / epsilon)
    assert 0 < float(laplace_divergence(epsilon, order) - fine) + 1e-9 < 2e-9


def test_a_logarithm_a_little_too_small_is_noticed(monkeypatch):
    right = divergence.log_above
    monkeypatch.setattr(
        divergence, "log_above", lambda number: right(number) * (1 - Decimal("1e-20"))
    )
    with ctx.workprec(400):
        one = responses(Fraction(1, 3), 2)
        assert not tight(
            pure_divergence(Fraction(1, 3), Fraction(2)), of_masses(one, one[::-1], Fraction(2))
        )


@pytest.mark.parametrize("huge", [Fraction(10**5), Fraction(10**30)])
def test_huge_losses_are_not_exponentiated(huge):
    assert pure_divergence(huge, Fraction(2)) == range_divergence(huge, Fraction(2)) == huge
    assert (
        laplace_divergence(huge, Fraction(2)) == response_divergence(huge, 3, Fraction(2)) == huge
    )

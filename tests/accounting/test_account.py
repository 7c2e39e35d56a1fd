# SPDX-License-Identifier: Apache-2.0
"""Costs are the closed forms, exactly, and bound the losses that are really there."""

from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import Profile, account
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Composed, Distance, Norm
from tests.noise.truth import PRECISION, GaussianTruth, LaplaceTruth, ball

AMOUNTS = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)
LAPLACES = st.builds(lambda s, d: AdditiveNoise(DiscreteLaplace(s), Distance(Norm.L1, d)), AMOUNTS, AMOUNTS)
GAUSSIANS = st.builds(
    lambda s, d: AdditiveNoise(DiscreteGaussian(sigma_squared=s), Distance(Norm.L2, d)), AMOUNTS, AMOUNTS
)


@given(AMOUNTS, AMOUNTS)
@settings(deadline=None)
def test_laplace_costs_its_sensitivity_over_its_scale(scale, sensitivity):
    cost = account(AdditiveNoise(DiscreteLaplace(scale), Distance(Norm.L1, sensitivity)))
    assert cost == Profile(sensitivity / scale, (sensitivity / scale) ** 2 / 2, Fraction(0))


@given(AMOUNTS, AMOUNTS)
@settings(deadline=None)
def test_gaussian_costs_its_squared_sensitivity_over_twice_its_variance(variance, squared):
    cost = account(AdditiveNoise(DiscreteGaussian(sigma_squared=variance), Distance(Norm.L2, squared)))
    assert cost == Profile(None, squared / (2 * variance), Fraction(0))


@pytest.mark.parametrize(("scale", "shift"), [("2", 1), ("5/2", 3), ("1/2", 1)])
def test_the_loss_of_laplace_is_what_it_costs(scale, shift):
    cost = account(AdditiveNoise(DiscreteLaplace(scale), Distance(Norm.L1, Fraction(shift)))).epsilon
    law = LaplaceTruth(Fraction(scale))
    with ctx.workprec(PRECISION):
        worst = max(float((law.pmf(x) / law.pmf(x - shift)).log().mid()) for x in range(-20, 21))
    assert worst == pytest.approx(float(cost), rel=1e-12)


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("variance", "shift"), [("1", 1), ("7/3", 2), ("30", 5)])
def test_the_renyi_divergence_of_gaussian_is_at_most_order_times_its_cost(variance, shift, order):
    cost = account(AdditiveNoise(DiscreteGaussian(sigma_squared=variance), Distance(Norm.L2, Fraction(shift * shift))))
    law = GaussianTruth(Fraction(variance))
    reach = len(law.weights) - order * shift - 1
    with ctx.workprec(PRECISION):
        terms = (law.pmf(x) ** order * law.pmf(x + shift) ** (1 - order) for x in range(-reach, reach))
        divergence = sum(terms, arb(0)).log() / (order - 1)
    # equality at integer shifts (Canonne, Kamath, Steinke, Theorem 4): less would under-charge
    assert float(divergence) == pytest.approx(float(order * cost.rho), rel=1e-9)


@pytest.mark.parametrize("order", [2, 8, 64])
@pytest.mark.parametrize("scale", ["1/2", "2", "10"])
def test_the_renyi_divergence_of_laplace_is_at_most_order_times_its_cost(scale, order):
    cost = account(AdditiveNoise(DiscreteLaplace(scale), Distance(Norm.L1, Fraction(1))))
    law, reach = LaplaceTruth(Fraction(scale)), int(400 * Fraction(scale))
    with ctx.workprec(PRECISION):
        terms = (law.pmf(x) ** order * law.pmf(x + 1) ** (1 - order) for x in range(-reach, reach))
        divergence = sum(terms, arb(0)).log() / (order - 1)
        assert bool(divergence <= ball(order * cost.rho))


@given(st.lists(LAPLACES | GAUSSIANS, max_size=5))
@settings(deadline=None)
def test_composition_adds(events):
    parts = [account(each) for each in events]
    whole = account(Composed(tuple(events)))
    assert whole.rho == sum(part.rho for part in parts)
    if any(part.epsilon is None for part in parts):
        assert whole.epsilon is None
    else:
        assert whole.epsilon == sum(part.epsilon for part in parts)


@given(st.lists(st.lists(LAPLACES | GAUSSIANS, max_size=3), max_size=3))
@settings(deadline=None)
def test_composition_does_not_depend_on_its_nesting(nested):
    inner = Composed(tuple(Composed(tuple(each)) for each in nested))
    flat = Composed(tuple(event for each in nested for event in each))
    assert account(inner) == account(flat)


class Mystery:
    """An event that nobody has a rule for."""


@pytest.mark.parametrize(
    "event",
    [
        Mystery(),
        None,
        AdditiveNoise(DiscreteLaplace(1), Distance(Norm.L2, Fraction(1))),
        AdditiveNoise(DiscreteGaussian(1), Distance(Norm.L1, Fraction(1))),
        AdditiveNoise(Mystery(), Distance(Norm.L1, Fraction(1))),
        Composed((AdditiveNoise(DiscreteLaplace(1), Distance(Norm.L1, Fraction(1))), Mystery())),
    ],
    ids=["class", "none", "laplace-L2", "gaussian-L1", "noise", "composed"],
)
def test_an_event_without_a_rule_raises(event):
    with pytest.raises(InvalidDeclaration, match="no rule"):
        account(event)


def test_a_subclass_of_an_event_has_no_rule_of_its_parent():
    class Weaker(AdditiveNoise):
        pass

    with pytest.raises(InvalidDeclaration):
        account(Weaker(DiscreteLaplace(1), Distance(Norm.L1, Fraction(1))))

# SPDX-License-Identifier: Apache-2.0
"""The price of an event without a zCDP cost, of blocks, and why orders must not be mixed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.accounting import Charge, Gates, account, charge_for
from sfumato.accounting.budget_gates import INCREMENTS, NOTHING
from sfumato.accounting.order_price import certified_epsilon, price
from sfumato.accounting.renyi import epsilon_from_renyi, renyi
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from sfumato.privacy import (
    AdditiveNoise,
    Budget,
    Composed,
    Distance,
    Event,
    Norm,
    PureEvent,
    Relation,
    Repeated,
    Sampled,
    Thresholded,
)
from sfumato.privacy.event import BestOf, Block, Group, Parallel, PoissonSample

ONE = Distance(Norm.L2, Fraction(1))
ORDERS = [Fraction(2), Fraction(8), Fraction(19, 2)]
MICRO = Fraction(1, 10**6)


def step(multiplier: object, rate: object = "0.01", lattice: int = 2**17) -> Event:
    """Rounded Gaussian noise of a multiplier, on a Poisson sample."""
    noise = RoundedGaussian(lattice * Fraction(str(multiplier)))
    additive = AdditiveNoise(noise, Distance(Norm.L2, Fraction(lattice) ** 2))
    return Sampled(PoissonSample(Fraction(str(rate))), additive)


def integral(multiplier: float, rate: float, order: float) -> float:
    """D_a of one sampled Gaussian by integration: the mean of (P/Q)^a, P the mixture."""
    x = np.linspace(-40, 60, 2_000_001)
    likelihood = 1 - rate + rate * np.exp((2 * x - 1) / (2 * multiplier**2))
    values = likelihood**order * norm.pdf(x, scale=multiplier)
    return math.log(float(np.trapezoid(values, x))) / (order - 1)


@pytest.mark.parametrize(("multiplier", "order"), [("1.5", 2), ("2", 8), ("3", 16)])
def test_a_sampled_gaussian_costs_its_divergence_over_the_order(
    multiplier: str, order: int
) -> None:
    # coarse noise, so that integration does not lose small differences
    truth = integral(float(multiplier), 0.1, order) / order
    charge = price(step(multiplier, "0.1"), [Fraction(order)])
    assert charge.epsilon is None and charge.delta == 0
    assert truth <= charge.rho / INCREMENTS <= truth * 1.001
    run = price(Repeated(step(multiplier, "0.1"), 50), [Fraction(order)])
    assert abs(run.rho - 50 * charge.rho) <= 50


@given(st.sampled_from(ORDERS), st.fractions(Fraction(1, 100), 3, max_denominator=100))
@settings(deadline=None)
def test_an_event_with_a_zcdp_cost_is_priced_as_ever(order: Fraction, amount: Fraction) -> None:
    for event in (
        AdditiveNoise(DiscreteGaussian(sigma_squared=amount), ONE),
        PureEvent(amount),
        Sampled(PoissonSample(Fraction(1, 3)), PureEvent(amount)),
    ):
        assert price(event, [order]) == charge_for(account(event))
        assert price(event, [order]).orders is None


def test_a_price_holds_at_the_orders_that_it_names() -> None:
    event = Repeated(step("0.8"), 100)
    both = price(event, ORDERS)
    assert both.orders == frozenset(ORDERS)
    assert both.rho == max(price(event, [order]).rho for order in ORDERS)
    assert [both.at(order) for order in ORDERS] == [both.rho] * 3
    assert both.at(Fraction(3)) is None and both.at(None) is None
    # without an order no gate admits it
    free = price(event, [])
    assert not Gates.of(Budget(10, "1e-6")).admits(free)
    assert not Gates.of(Budget(10)).admits(free)


def test_a_sum_is_a_cost_at_common_orders_only() -> None:
    two, eight, both = (Charge(None, 1, 0, frozenset(orders)) for orders in ({2}, {8}, {2, 8}))
    assert (two + both).orders == {2} and (both + eight).orders == {8}
    assert (two + eight).orders == set() and (NOTHING + two).orders == {2}
    assert (Charge(1, 1, 0) + Charge(2, 1, 0)).orders is None


def test_two_orders_do_not_mix() -> None:
    # what is cheap at order 2 is dear at 32: a gate that ignored orders would admit a hundredfold
    run = Repeated(step("0.55"), 2000)
    low, high = (price(run, [Fraction(order)]).rho for order in (2, 32))
    assert 100 * low < high
    gates = Gates(10**15, high - 1, 0, Fraction(32))
    assert not gates.admits(price(run, [Fraction(32)]))
    assert not gates.admits(price(run, [Fraction(2)]))
    assert Gates(10**15, high - 1, 0, Fraction(2)).admits(price(run, [Fraction(2)]))


def test_the_gate_notices_a_mix_of_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    # the mutant: a charge counts at any order
    monkeypatch.setattr(Charge, "at", lambda charge, _: charge.rho)
    with pytest.raises(AssertionError):
        test_two_orders_do_not_mix()


def test_a_later_limit_converts_at_an_order_of_what_is_spent() -> None:
    best = Gates.of(Budget(3, "1e-6"))
    kept = Gates.of(Budget(3, "1e-6"), [Fraction(7)])
    assert kept.order == 7 and best.order != 7
    assert 0 < kept.rho < best.rho
    assert Gates.of(Budget(3, "1e-6"), [Fraction(7), best.order]) == best
    assert Gates.of(Budget(3), [Fraction(7)]) == Gates.of(Budget(3))


def test_left_and_shares_know_orders() -> None:
    gates = Gates.of(Budget(1, "1e-6"))
    here = Charge(None, 10, 0, frozenset({gates.order}))
    away = Charge(None, 10, 0, frozenset({Fraction(3)}))
    assert gates.left(here).rho * INCREMENTS == gates.rho - 10
    assert gates.left(away).rho == 0 == gates.left(away).epsilon
    assert gates.share(away, NOTHING) is None and gates.share(NOTHING, away) is None
    assert gates.share(here, here) == Fraction(10, gates.rho - 10)
    pure = Charge(INCREMENTS // 2, 10, 0, frozenset({Fraction(3)}))
    # a block of another order passes the pure gate alone
    assert gates.share(pure, NOTHING) == Fraction(1, 2)


def test_a_block_costs_its_certified_curve_at_one_gate_and_its_divergence_at_the_other() -> None:
    # 100 Gaussians of multiplier 10 are one of mu = 1: delta at epsilon 1 is 0.1269 (Phi(-1/2)
    # - e Phi(-3/2)), the formula of Balle and Wang worked out by scipy
    plan = Repeated(AdditiveNoise(RoundedGaussian(10), ONE), 100)
    delta = norm.cdf(-0.5) - math.e * norm.cdf(-1.5)
    block = Block(plan, Fraction(1), Fraction(delta * (1 + 1e-9)))
    charge = price(block, ORDERS)
    assert charge.epsilon == INCREMENTS and charge.orders is None
    assert charge.rho == price(plan, ()).rho == INCREMENTS // 2
    assert charge.delta == math.ceil(Fraction(delta * (1 + 1e-9)) * 10**24)
    with pytest.raises(InvalidDeclaration, match="curve"):
        price(Block(plan, Fraction(1), Fraction(delta * (1 - 1e-6))), ORDERS)


def test_a_block_of_samples_is_priced_at_both_gates() -> None:
    plan = Repeated(step("1.91"), 2000)
    charge = price(Block(plan, Fraction(1), 5 * MICRO), [Fraction(19)])
    assert charge.epsilon == INCREMENTS and charge.orders == {19}
    assert charge.rho == price(plan, [Fraction(19)]).rho
    with pytest.raises(InvalidDeclaration):
        price(Block(Repeated(step("1.80"), 2000), Fraction(1), 5 * MICRO), [Fraction(19)])


def test_a_training_and_gaussian_queries_share_an_account() -> None:
    gates = Gates.of(Budget(1, "1e-5"))
    run = price(Repeated(step("4"), 2000), [gates.order])
    query = charge_for(account(AdditiveNoise(DiscreteGaussian(100), ONE)))
    assert gates.admits(run + query) and (run + query).epsilon is None


@pytest.mark.parametrize("outer", [
    lambda block: Repeated(block, 2),
    lambda block: Composed((block, PureEvent(Fraction(1)))),
    lambda block: Composed((block, step(1))),
    lambda block: Sampled(PoissonSample(Fraction(1, 2)), block),
    lambda block: Group(block, 2),
    lambda block: Parallel((block,)),
])  # fmt: skip
def test_a_block_is_no_part_of_another_event(outer: object) -> None:
    block = Block(PureEvent(Fraction(1)), Fraction(1), MICRO)
    with pytest.raises(InvalidDeclaration):
        price(outer(block), ORDERS)
    with pytest.raises(InvalidDeclaration):
        account(block)
    with pytest.raises(InvalidDeclaration):
        Block(block, Fraction(1), MICRO)


@pytest.mark.parametrize("delta", [0, 1, -1])
def test_a_block_has_a_delta_between_0_and_1(delta: int) -> None:
    with pytest.raises((InvalidDeclaration, InvalidNumber)):
        Block(PureEvent(Fraction(1)), Fraction(1), Fraction(delta))


def test_what_has_no_rule_has_no_price() -> None:
    lone = Distance(Norm.LINF, Fraction(1))
    threshold = Thresholded(AdditiveNoise(DiscreteLaplace(2), lone, cells=1), 40, 1)
    with pytest.raises(InvalidDeclaration):
        price(Composed((threshold, step(1))), ORDERS)
    replaced = AdditiveNoise(
        RoundedGaussian(2), Distance(Norm.L2, Fraction(1), Relation.REPLACE_ONE)
    )
    with pytest.raises(InvalidDeclaration):
        price(Composed((replaced, step(1))), ORDERS)


def test_the_best_of_gaussian_runs_costs_its_divergence_over_the_order() -> None:
    run = AdditiveNoise(DiscreteGaussian(10), ONE)
    best = BestOf((run, PureEvent(Fraction(1, 20))), Fraction(0), Fraction(1, 30))
    charge = price(best, ORDERS)
    assert charge.epsilon is None and charge.orders == frozenset(ORDERS)
    assert charge.rho == max(math.ceil(renyi(best, at) / at * INCREMENTS) for at in ORDERS)
    whole = price(Composed((run, Repeated(best, 3))), ORDERS)
    assert whole.rho >= 3 * charge.rho
    with pytest.raises(InvalidDeclaration):
        account(best)


def test_a_block_of_the_best_of_runs_is_certified_by_its_divergences() -> None:
    best = BestOf((AdditiveNoise(DiscreteGaussian(10), ONE),), Fraction(0), Fraction(1, 30))
    least = epsilon_from_renyi(best, MICRO)
    charge = price(Block(best, least, MICRO), ORDERS)
    assert charge.epsilon == math.ceil(least * INCREMENTS) and charge.rho == price(best, ORDERS).rho
    with pytest.raises(InvalidDeclaration, match="curve"):
        price(Block(best, least * Fraction(99, 100), MICRO), ORDERS)
    pure = BestOf((PureEvent(Fraction(1, 4)),), Fraction(0), Fraction(1, 30))
    assert price(pure, ()) == charge_for(account(pure))
    assert certified_epsilon(pure, MICRO) <= Fraction(1, 2)

# SPDX-License-Identifier: Apache-2.0
"""The noise of a run against closed forms, and what a run may cost."""

import math
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import norm

from sfumato.accounting.budget_gates import INCREMENTS
from sfumato.accounting.order_price import price
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.budget import Budgeted, budgeted
from sfumato.learning.order import Fixed, FullBatch, Poisson, event_of
from sfumato.mechanisms.additive import rounded_gaussian
from sfumato.noise import RoundedGaussian
from sfumato.privacy import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Block, Composed, Repeated
from sfumato.privacy.unit import Relation

ORDERS = [Fraction(12)]
UNIT = Distance(Norm.L2, Fraction(2**20))


def test_a_rho_is_divided_over_the_releases() -> None:
    multiplier = budgeted(rho="0.02").multiplier(FullBatch(), 100, ORDERS)
    assert float(multiplier) == pytest.approx(math.sqrt(100 / 0.04), rel=1e-12)


def test_a_block_has_the_noise_of_its_curve() -> None:
    multiplier = float(budgeted(epsilon=1, delta="1e-5").multiplier(FullBatch(), 100, ORDERS))
    mu = 10 / multiplier
    delta = norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)
    assert 0.98e-5 < delta <= 1e-5


def test_samples_cost_at_most_the_rho_at_the_orders_of_the_account() -> None:
    order, budget = Poisson("0.01"), budgeted(rho="0.01")
    multiplier = budget.multiplier(order, 500, ORDERS)

    def cost(noise: Fraction) -> int:
        step = event_of(order, rounded_gaussian(UNIT, noise).event(UNIT))
        return price(Repeated(step, 500), ORDERS).rho

    assert cost(multiplier) <= INCREMENTS // 100 < cost(multiplier * Fraction(99, 100))


def test_a_block_is_charged_as_a_block() -> None:
    plan: Any = Repeated(rounded_gaussian(UNIT, 3).event(UNIT), 2)
    assert Budgeted(rho=Fraction(1)).whole(plan) is plan
    block = Budgeted(epsilon=Fraction(1), delta=Fraction(1, 100)).whole(plan)
    assert block == Block(plan, Fraction(1), Fraction(1, 100))


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"epsilon": 1}, WrongUse),
        ({}, WrongUse),
        ({"epsilon": 1, "rho": 1}, WrongUse),
        ({"rho": 1, "delta": "1e-6"}, InvalidNumber),
        ({"rho": 0}, InvalidNumber),
        ({"epsilon": 1, "delta": 0}, InvalidNumber),
    ],
)
def test_other_costs_are_refused(asked: dict[str, object], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        budgeted(**asked)


def test_an_epsilon_that_hides_nothing_needs_some_noise() -> None:
    budget = Budgeted(epsilon=Fraction(1000), delta=Fraction(1, 10**6))
    # P(drawn more than 5 times of 10) < 1e-6 / 4, and 5 Gaussians of mu^2 = 331 cost about 1000
    assert 1 / 18.2 > budget.multiplier(Poisson("0.01"), 10, ()) > 1 / 25


@pytest.mark.parametrize("sizes", [(1,), (1, 2)])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-6"), ("1", "1e-4")])
@pytest.mark.parametrize("order", [Fixed(50, 1000), Poisson("0.05")])
def test_what_a_run_charges_is_certified(
    order: Fixed | Poisson, sizes: tuple[int, ...], epsilon: str, delta: str
) -> None:
    budget = budgeted(epsilon=epsilon, delta=delta)
    multiplier = budget.multiplier(order, sum(sizes), ())
    relation = Relation.REPLACE_ONE if isinstance(order, Fixed) else Relation.ADD_REMOVE
    # as a run does: another distance, sigma rounded up to a whole number, a part a checkpoint
    unit = Distance(Norm.L2, Fraction(3 * 2**20 + 7), relation)
    sigma = Fraction(math.ceil(multiplier * sqrt_up(unit.value)))
    step = event_of(order, AdditiveNoise(RoundedGaussian(sigma), unit))
    plan = Composed(tuple(Repeated(step, size) for size in sizes))
    charge = price(budget.whole(plan), ())
    assert charge.epsilon == Fraction(epsilon) * INCREMENTS

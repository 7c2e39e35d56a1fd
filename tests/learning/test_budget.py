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
from sfumato.learning.budget import Budgeted, budgeted
from sfumato.learning.order import FullBatch, Poisson, event_of
from sfumato.mechanisms.additive import rounded_gaussian
from sfumato.privacy import Distance, Norm
from sfumato.privacy.event import Block, Repeated

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


def test_an_epsilon_for_which_samples_have_no_bound_is_refused_in_plain_words() -> None:
    budget = Budgeted(epsilon=Fraction(1000), delta=Fraction(1, 10**6))
    with pytest.raises(InvalidNumber, match="a smaller epsilon"):
        budget.multiplier(Poisson("0.01"), 10, ())

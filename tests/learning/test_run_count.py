# SPDX-License-Identifier: Apache-2.0
"""How often recipes are run, and what one run may cost."""

import math
from fractions import Fraction
from typing import Any

import pytest

from sfumato.accounting.budget_gates import INCREMENTS
from sfumato.accounting.order_price import certified_epsilon, price
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.learning.recipe import Asked
from sfumato.learning.run_count import RunShares, law_of
from sfumato.noise import DiscreteGaussian
from sfumato.privacy import AdditiveNoise, Distance, Event, Norm

ORDERS = (Fraction(19), Fraction(8))


def gaussian(asked: Asked) -> tuple[Event, ...]:
    """A run of this rho: (sensitivity 1) / (2 sigma^2)."""
    assert isinstance(asked.rho, Fraction)
    noise = DiscreteGaussian(sigma_squared=1 / (2 * asked.rho))
    return (AdditiveNoise(noise, Distance(Norm.L2, Fraction(1))),)


@pytest.mark.parametrize("runs", [2, 3, 10, 100, 1000])
def test_a_law_has_the_mean_that_is_asked_for(runs: int) -> None:
    law = law_of(runs)
    mean, stop = float(law.mean.upper), float(law.stop)
    assert 0.97 * runs <= mean <= runs * 1.000001
    assert mean == pytest.approx((1 / stop - 1) / -math.log(stop))


@pytest.mark.parametrize("runs", [1, 0, -3, 1001, 2.0, "10", True, None])
def test_a_number_of_runs_that_is_none_is_refused(runs: Any) -> None:
    with pytest.raises(WrongUse, match="runs="):
        law_of(runs)


def test_a_run_has_half_of_a_pure_epsilon_however_many_there_are() -> None:
    for runs in (2, 1000):
        assert RunShares(Asked(epsilon=3), law_of(runs), ()).one(gaussian).epsilon == Fraction(3, 2)


def test_runs_cost_nearly_all_of_a_rho_and_no_more() -> None:
    shares = RunShares(Asked(rho="0.1"), law_of(10), ORDERS)
    one = shares.one(gaussian)
    spent = price(shares.whole(gaussian(one)), ORDERS).rho
    assert 0.09 * INCREMENTS < spent <= 0.1 * INCREMENTS
    assert shares.block is None


def test_runs_cost_nearly_all_of_a_block_and_no_more() -> None:
    shares = RunShares(Asked(epsilon=1, delta="1e-6"), law_of(10), ORDERS)
    one = shares.one(gaussian)
    epsilon = certified_epsilon(shares.whole(gaussian(one)), Fraction(1, 10**6))
    assert Fraction(95, 100) < epsilon <= 1
    assert shares.block == (1, Fraction(1, 10**6))


def test_a_cost_that_is_too_small_is_refused() -> None:
    with pytest.raises(InvalidNumber, match="too little"):
        RunShares(Asked(rho="0.0001"), law_of(10), [Fraction(2)]).one(gaussian)

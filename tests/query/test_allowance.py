# SPDX-License-Identifier: Apache-2.0
"""What a task may cost: shares that add up, and a rho within an epsilon and a delta."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.account import account
from sfumato.accounting.zcdp import approx_from_zcdp
from sfumato.errors import BudgetExceeded, InvalidNumber, WrongUse
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed
from sfumato.privacy.guarantee import ZeroConcentratedDP
from sfumato.query import allowance as room
from sfumato.query.allowance import Allowance, allowance


@given(st.fractions(Fraction(1, 10**6), 10), st.lists(st.integers(1, 100), min_size=1, max_size=9))
def test_shares_add_up_to_the_whole(amount: Fraction, weights: list[int]) -> None:
    found = Allowance(Norm.L1, amount).shares(*weights)
    assert sum(found) == amount
    if len(weights) > 1:
        assert [share * sum(weights) for share in found] == [amount * weight for weight in weights]
    else:
        assert set(found) == {amount / weights[0]} and len(found) == weights[0]


def test_many_shares_take_a_time_in_proportion_to_their_number() -> None:
    """With a sum for each share, this would take minutes."""
    shares = Allowance(Norm.L1, Fraction(3)).shares(*range(1, 30_001))
    assert shares[-1] == Fraction(3 * 30_000, 30_000 * 30_001 // 2)


@pytest.mark.parametrize(
    ("stated", "norm"), [({"epsilon": "0.3"}, Norm.L1), ({"rho": "0.3"}, Norm.L2)]
)
def test_the_shares_of_a_task_cost_what_was_stated(stated: dict[str, str], norm: Norm) -> None:
    allowed, distance = allowance(**stated), Distance(norm, Fraction(7))
    events = [allowed.noise(distance, share).event(distance) for share in allowed.shares(1, 2, 4)]
    profile = account(Composed(tuple(events)))
    assert (profile.epsilon if norm is Norm.L1 else profile.rho) == Fraction(3, 10)


PAIRS = [("1", "1e-6"), ("0.1", "1e-9"), ("10", "0.001"), ("0.01", "1e-5"), ("100", "1e-12")]


def within(epsilon: str, delta: str) -> bool:
    """Whether the rho that was bought converts into what was stated."""
    rho = allowance(epsilon=epsilon, delta=delta).amount
    return approx_from_zcdp(ZeroConcentratedDP(rho), Fraction(delta)).epsilon <= Fraction(
        epsilon
    ) * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_an_approximate_guarantee_buys_a_rho_that_converts_into_it(
    epsilon: str, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert within(epsilon, delta)
    bought = allowance(epsilon=epsilon, delta=delta)
    assert (bought.norm, bought.delta) == (Norm.L2, Fraction(delta))
    # hardly any more would do
    more = ZeroConcentratedDP(bought.amount * Fraction(1001, 1000))
    assert approx_from_zcdp(more, Fraction(delta)).epsilon > Fraction(epsilon)
    original = room.zcdp_within
    monkeypatch.setattr(room, "zcdp_within", lambda *stated: original(*stated) * Fraction(11, 10))
    assert not within(epsilon, delta)


def test_a_rho_is_whole_units_of_the_ledger() -> None:
    assert (allowance(epsilon=1, delta="1e-6").amount * 10**12).denominator == 1


@pytest.mark.parametrize(
    "stated",
    [{}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": "1e-6"}, {"epsilon": 0}, {"rho": -1}],
)
def test_anything_else_is_refused(stated: dict[str, object]) -> None:
    with pytest.raises(WrongUse):
        allowance(**stated)


def test_what_no_gaussian_noise_lies_within_is_refused() -> None:
    with pytest.raises(InvalidNumber):
        allowance(epsilon="1e-9", delta="1e-20")


@pytest.mark.parametrize("left", ["0.0001", "0.0229", "3"])
def test_a_refusal_names_the_largest_epsilon_that_fits(left: str) -> None:
    bought, refusal = (
        allowance(epsilon=100, delta="1e-6"),
        BudgetExceeded("Too dear.", allowed="at most rho=1"),
    )
    named = bought.refused(refusal, Fraction(left)).allowed
    epsilon = named.rpartition("epsilon=")[2].split(" ")[0]
    assert allowance(epsilon=epsilon, delta="1e-6").amount <= Fraction(left)
    with pytest.raises(AssertionError):  # one per cent more does not fit
        assert allowance(
            epsilon=Fraction(epsilon) * Fraction(102, 100), delta="1e-6"
        ).amount <= Fraction(left)


def test_other_refusals_stay_as_they_are() -> None:
    refusal = BudgetExceeded("Too dear.", allowed="at most rho=1")
    assert allowance(rho=1).refused(refusal, Fraction(1)) is refusal
    assert (
        allowance(epsilon=1, delta="1e-6").refused(refusal, Fraction(0)).allowed == refusal.allowed
    )

# SPDX-License-Identifier: Apache-2.0
"""Which mechanism, and how much of the cost each part gets."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.budget_gates import Charge, Gates
from sfumato.errors import TargetUnreachable
from sfumato.ledger.balance import Balance
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.plan.statistic import Statistic
from sfumato.privacy.budget import Budget
from sfumato.query.choose import Planned, cheapest, plan_for_price, plans_for_target
from sfumato.query.price import price
from sfumato.query.target import Demand, Wanted
from sfumato.sql.lower import understand
from tests.contracts.people import dataset

DATASET = dataset()
COUNT = understand("SELECT COUNT(*) AS n FROM people", DATASET)
TWO = understand("SELECT COUNT(*) AS n, SUM(age) AS s FROM people", DATASET)
GROUPED = understand("SELECT sex, age, COUNT(*) AS n FROM people GROUP BY sex, age", DATASET)


def target(error: object, most: object, *, concentrated: bool = True) -> list[Planned]:
    """The plans that reach an error of a count."""
    asked = price(error=error, max_epsilon=most)
    assert asked.target is not None
    goal = Wanted(((Demand(Statistic.VALUE, asked.target.amount),),), (Fraction(0),), ())
    return plans_for_target(COUNT, DATASET, asked, goal, concentrated=concentrated)


@given(st.fractions(Fraction(1, 1000), 10), st.sampled_from(["epsilon", "rho"]))
def test_the_whole_cost_is_used_and_no_more(total: Fraction, name: str) -> None:
    plan = plan_for_price(TWO, DATASET, price(**{name: total}))
    costs = [Fraction(part.distance.value) for part in plan.bounded.parts]
    spent = [
        value / mechanism.noise.scale
        if isinstance(mechanism.noise, DiscreteLaplace)
        else value / (2 * mechanism.noise.sigma_squared)
        for value, mechanism in zip(costs, plan.mechanisms, strict=True)
    ]
    assert sum(spent) == total


def test_epsilon_buys_laplace_and_rho_buys_gaussian() -> None:
    assert plan_for_price(COUNT, DATASET, price(epsilon="0.1")).mechanisms[
        0
    ].noise == DiscreteLaplace(10)
    assert plan_for_price(COUNT, DATASET, price(rho="0.005")).mechanisms[
        0
    ].noise == DiscreteGaussian(sigma_squared=100)


def test_the_cost_is_split_evenly_where_the_parts_are_alike() -> None:
    # each part's sensitivity over its own natural scale is 1: COUNT 1/1, SUM 99/99
    plan = plan_for_price(TWO, DATASET, price(epsilon=1))
    assert [mechanism.noise for mechanism in plan.mechanisms] == [
        DiscreteLaplace(2),
        DiscreteLaplace(198),
    ]


@pytest.mark.parametrize(("error", "most"), [(10, 1), (100, "0.2"), (1, 5), ("2.5", 3)])
def test_a_target_is_met_with_the_least_cost_on_the_grid(error: object, most: object) -> None:
    reach = int(Fraction(error))
    for plan, grid in zip(
        target(error, most), (Fraction(1, 10**6), Fraction(1, 10**9)), strict=True
    ):
        (noise,) = (mechanism.noise for mechanism in plan.mechanisms)
        assert noise.tail(reach).upper <= Fraction(5, 100)
        cost = (
            1 / noise.scale if isinstance(noise, DiscreteLaplace) else 1 / (2 * noise.sigma_squared)
        )
        assert cost % grid == 0
        less = cost - grid
        weaker = (
            DiscreteLaplace(1 / less)
            if isinstance(noise, DiscreteLaplace)
            else DiscreteGaussian(sigma_squared=1 / (2 * less))
        )
        assert weaker.tail(reach).upper > Fraction(5, 100)


def test_a_target_never_costs_more_than_its_cap() -> None:
    (pure, gaussian) = target(60, "0.2")
    assert pure.charge.epsilon is not None
    assert pure.charge.epsilon <= 2 * 10**11
    assert gaussian.charge.rho <= 2 * 10**10
    with pytest.raises(TargetUnreachable, match=r"max_epsilon = 0\.0001"):
        target(60, "0.0001")


@pytest.mark.parametrize("most", ["1e-12", "1e-7"])
def test_a_cap_below_the_grid_reaches_nothing(most: str) -> None:
    with pytest.raises(TargetUnreachable):
        target(10**9, most, concentrated=False)


def test_a_pure_account_is_offered_laplace_only() -> None:
    (plan,) = target(60, "0.2", concentrated=False)
    assert isinstance(plan.mechanisms[0].noise, DiscreteLaplace)


def shares(plans: list[Planned], balance: Balance) -> list[Fraction]:
    """The part of what is left that each plan takes at its cheaper gate, by hand."""
    found = []
    for plan in plans:
        options = [Fraction(plan.charge.rho, balance.gates.rho - balance.spent.rho)]
        if plan.charge.epsilon is not None and balance.spent.epsilon is not None:
            options.append(
                Fraction(plan.charge.epsilon, balance.gates.epsilon - balance.spent.epsilon)
            )
        found.append(min(options))
    return found


@pytest.mark.parametrize(
    "spent", [Charge(0, 0, 0), Charge(9 * 10**11, 10**9, 0), Charge(None, 10**9, 0)]
)
@pytest.mark.parametrize("error", [60, 500])
def test_the_cheapest_takes_the_smallest_share_of_what_is_left_and_says_so(
    spent: Charge, error: int
) -> None:
    balance = Balance(Gates.of(Budget(1, "1e-6")), spent)
    plans = target(error, "0.2")
    expected = shares(plans, balance)
    chosen = cheapest(plans, [balance])
    place = expected.index(min(expected))
    assert chosen.mechanisms == plans[place].mechanisms
    name = ("Laplace", "Gaussian")[place]
    note = f"{name} noise chosen as the cheaper: of what is left, {name} would take {float(min(expected)):.2%}"
    assert chosen.notes[0].startswith(note)


def test_the_first_gaussian_of_an_account_says_what_it_closes() -> None:
    fresh, plans = Balance(Gates.of(Budget(1, "1e-6"))), target(60, "0.2")
    chosen = cheapest(plans, [fresh])
    left = fresh.gates.left(chosen.charge)
    assert chosen.notes[1].startswith("It closes the pure gate for good")
    assert chosen.notes[1].endswith(f"at most {float(left.epsilon):.4g} instead of 1.")
    already = Balance(fresh.gates, Charge(None, 1, 0))
    assert len(cheapest(plans, [already]).notes) == 1


def test_both_mechanisms_are_chosen_somewhere() -> None:
    fresh = Balance(Gates.of(Budget(1, "1e-6")))
    closed = Balance(Gates.of(Budget(1, "1e-6")), Charge(0, int(fresh.gates.rho or 0), 0))
    plans = target(60, "0.2")
    chosen = {type(cheapest(plans, [balance]).mechanisms[0].noise) for balance in (fresh, closed)}
    assert chosen == {DiscreteLaplace, DiscreteGaussian}


def test_where_no_gate_admits_a_plan_the_ledger_is_left_to_refuse_it() -> None:
    empty = Balance(Gates.of(Budget(1, "1e-6")), Charge(None, 10**18, 0))
    plans = target(60, "0.2")
    assert cheapest(plans, [empty]) == plans[0]


def test_one_event_a_part_composes_to_the_charge() -> None:
    plan = plan_for_price(GROUPED, DATASET, price(epsilon="0.5"))
    assert len(plan.events) == 1
    assert plan.event.events == plan.events
    assert plan.charge.epsilon == 5 * 10**11

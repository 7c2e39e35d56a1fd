# SPDX-License-Identifier: Apache-2.0
"""The two gates: exact sums, exact rests, and no adaptive strategy beyond the stated delta."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import Charge, Gates, Profile, approx_from_zcdp, charge_for
from sfumato.accounting.budget_gates import DELTA_INCREMENTS, INCREMENTS, NOTHING
from sfumato.errors import InvalidNumber
from sfumato.exact.rounding import exp_down, log_up
from sfumato.privacy import Budget, ZeroConcentratedDP

AMOUNTS = st.fractions(min_value=0, max_value=20)
BUDGETS = st.builds(
    Budget,
    st.fractions(min_value=Fraction(1, 10**6), max_value=50),
    st.sampled_from([0, "1e-12", "1e-6", "1e-2"]),
)
PURE = st.builds(
    lambda e: charge_for(Profile(e, e * e / 2)),
    st.fractions(min_value=Fraction(1, 10**9), max_value=3),
)
CONCENTRATED = st.builds(
    lambda r: charge_for(Profile(None, r)), st.fractions(min_value=Fraction(1, 10**9), max_value=2)
)
CHARGES = st.lists(PURE | CONCENTRATED, max_size=12)


def spend(gates: Gates, charges: list[Charge]) -> Charge:
    """What has been spent once each charge was offered in turn."""
    spent = NOTHING
    for charge in charges:
        if gates.admits(spent + charge):
            spent = spent + charge
    return spent


@given(st.none() | AMOUNTS, AMOUNTS, st.fractions(min_value=0, max_value=1))
@settings(deadline=None)
def test_a_charge_is_never_below_the_cost(epsilon, rho, delta):
    charge = charge_for(Profile(epsilon, rho, delta))
    assert 0 <= charge.rho - rho * INCREMENTS < 1
    assert 0 <= charge.delta - delta * DELTA_INCREMENTS < 1
    assert (
        charge.epsilon is None
        if epsilon is None
        else 0 <= charge.epsilon - epsilon * INCREMENTS < 1
    )


def test_a_tenth_ten_times_is_exactly_one():
    gates, tenth = Gates.of(Budget(1)), charge_for(Profile(Fraction("0.1"), Fraction("0.005")))
    spent = spend(gates, [tenth] * 10)
    assert spent.epsilon == gates.epsilon
    assert gates.left(spent).epsilon == 0
    assert not gates.admits(spent + Charge(1, 1, 0))


@given(CHARGES, CHARGES, CONCENTRATED)
@settings(deadline=None)
def test_a_gaussian_closes_the_pure_gate_for_good(before, after, gaussian):
    total = sum([*before, gaussian, *after], NOTHING)
    assert total.epsilon is None
    assert not Gates.of(Budget(10**6)).admits(total)
    assert not Gates.of(Budget(10**6)).admits(NOTHING + gaussian)


@given(BUDGETS)
@settings(deadline=None)
def test_the_rho_cap_converts_to_at_most_epsilon(budget):
    gates = Gates.of(budget)
    if budget.delta == 0:
        assert (gates.rho, gates.order, gates.delta_events) == (None, None, 0)
        return
    assert gates.epsilon == budget.epsilon * INCREMENTS // 1
    assert gates.delta_events == budget.delta / 2 * DELTA_INCREMENTS // 1
    for rho in range(gates.rho, gates.rho + 1 if gates.rho else 0):
        stated = approx_from_zcdp(
            ZeroConcentratedDP(Fraction(rho, INCREMENTS)), budget.delta / 2, gates.order
        )
        assert stated.epsilon <= budget.epsilon
    # one unit more would not fit: the cap is the largest
    more = approx_from_zcdp(
        ZeroConcentratedDP(Fraction(gates.rho + 1, INCREMENTS)), budget.delta / 2, gates.order
    )
    assert more.epsilon > budget.epsilon


def test_the_gates_of_a_usual_budget_are_worth_both():
    gates = Gates.of(Budget(3, "1e-6"))
    assert Fraction(gates.epsilon, INCREMENTS) == 3
    assert Fraction(1, 10) < Fraction(gates.rho, INCREMENTS) < Fraction(1, 5)


@pytest.mark.parametrize("epsilon", ["1e-13", "1e-400"])
def test_a_budget_below_the_unit_is_refused(epsilon):
    with pytest.raises(InvalidNumber):
        Gates.of(Budget(epsilon))


@given(BUDGETS, CHARGES)
@settings(deadline=None)
def test_what_is_left_is_admitted_and_one_unit_more_is_not(budget, charges):
    gates = Gates.of(budget)
    spent = spend(gates, charges)
    left = gates.left(spent)
    pure, rho = left.epsilon * INCREMENTS, left.rho * INCREMENTS
    assert pure.denominator == rho.denominator == 1
    assert pure == 0 or gates.admits(spent + charge_of(pure=int(pure)))
    assert not gates.admits(spent + charge_of(pure=int(pure) + 1))
    assert rho == 0 or gates.admits(spent + Charge(None, int(rho), 0))
    assert not gates.admits(spent + Charge(None, int(rho) + 1, 0))


def charge_of(*, pure: int) -> Charge:
    """The charge of a pure event of this many units of epsilon."""
    epsilon = Fraction(pure, INCREMENTS)
    return charge_for(Profile(epsilon, epsilon * epsilon / 2))


@given(BUDGETS, CHARGES, PURE | CONCENTRATED)
@settings(deadline=None)
def test_a_share_is_of_what_is_left_at_the_cheaper_gate(budget, charges, charge):
    gates = Gates.of(budget)
    spent = spend(gates, charges)
    share = gates.share(charge, spent)
    assert (share is None) == (not gates.admits(spent + charge))
    if share is None:
        return
    possible = []
    if charge.epsilon is not None and spent.epsilon is not None and spent.epsilon < gates.epsilon:
        possible.append(Fraction(charge.epsilon, gates.epsilon - spent.epsilon))
    if gates.rho is not None and spent.rho < gates.rho:
        possible.append(Fraction(charge.rho, gates.rho - spent.rho))
    assert 0 < share <= 1
    assert share == min(possible)


@given(BUDGETS, CHARGES, st.integers(0, 12))
@settings(deadline=None)
def test_a_part_of_what_was_admitted_would_be_admitted(budget, charges, cut):
    gates, spent, admitted = Gates.of(budget), NOTHING, []
    for charge in charges:
        if gates.admits(spent + charge):
            spent, admitted = spent + charge, [*admitted, charge]
    assert gates.admits(sum(admitted[:cut], NOTHING))
    assert gates.admits(sum(admitted[cut:], NOTHING))


@given(st.sampled_from(["1e-12", "1e-6", "1e-2"]), st.integers(0, 10**24))
@settings(deadline=None)
def test_the_deltas_of_events_are_capped_at_half(delta, spent):
    gates = Gates.of(Budget(1, delta))
    cap = int(Fraction(delta) / 2 * DELTA_INCREMENTS)
    assert gates.admits(Charge(1, 1, spent)) == (spent <= cap)
    assert gates.left(Charge(0, 0, min(spent, cap))).delta == cap - min(spent, cap)


def test_a_pure_account_admits_no_delta():
    assert not Gates.of(Budget(1)).admits(Charge(1, 1, 1))
    assert Gates.of(Budget(1)).left(NOTHING).rho == 0


# An adversary, exactly: randomised responses whose likelihood ratio is a power of 11/10, chosen
# one after the other by what came before. "State" is whatever the books remember.
RATIO = Fraction(11, 10)
State: TypeAlias = object
Step: TypeAlias = Callable[[Gates, State, Charge], State | None]
BUDGET = Budget(1, "0.05")


def response(power: int, *, pure: bool) -> Charge:
    """What a response of likelihood ratio (11/10)^power costs.

    Told as zCDP alone unless ``pure``.
    """
    loss = log_up(RATIO**power)
    return charge_for(Profile(loss if pure else None, loss * loss / 2))


MENU = [(power, pure) for power in (2, 5) for pure in (True, False)]


def worst_delta(gates: Gates, step: Step, epsilon: Fraction, rounds: int) -> Fraction:
    """The largest delta at ``epsilon`` that any adaptive choice from the menu reaches, exactly."""
    menu = [(power, response(power, pure=pure)) for power, pure in MENU]
    limit = exp_down(epsilon)

    @cache
    def value(state: State, loss: int, left: int) -> Fraction:
        # the hockey stick of the transcript: E_P[(1 - e^epsilon Q/P)+]
        best = max(1 - limit / RATIO**loss, Fraction(0))
        for power, charge in menu if left else []:
            after = step(gates, state, charge)
            if after is not None:
                likely = RATIO**power / (1 + RATIO**power)
                up, down = (
                    value(after, loss + power, left - 1),
                    value(after, loss - power, left - 1),
                )
                best = max(best, likely * up + (1 - likely) * down)
        return best

    return value(NOTHING, 0, rounds)


def real(gates: Gates, spent: Charge, charge: Charge) -> Charge | None:
    """The books as they are: everything admitted counts in both gates."""
    return spent + charge if gates.admits(spent + charge) else None


def forgetful(gates: Gates, spent: State, charge: Charge) -> State | None:
    """Broken books: each gate remembers only the charges that it admitted itself."""
    pure, concentrated = (spent, spent) if spent == NOTHING else spent
    total = pure + charge
    if total.epsilon is not None and total.epsilon <= gates.epsilon:
        return total, concentrated
    total = concentrated + charge
    return (pure, total) if total.rho <= gates.rho else None


def test_no_adaptive_strategy_exceeds_the_stated_delta():
    reached = worst_delta(Gates.of(BUDGET), real, BUDGET.epsilon, rounds=14)
    assert 0 < reached <= BUDGET.delta / 2
    # and the adversary is one: it gets a fair part of what is allowed
    assert reached > BUDGET.delta / 100


def test_the_adversary_breaks_books_that_forget_the_other_gate():
    assert worst_delta(Gates.of(BUDGET), forgetful, BUDGET.epsilon, rounds=14) > BUDGET.delta


def test_the_adversary_breaks_a_gaussian_that_leaves_the_pure_gate_open(monkeypatch):
    def open_still(one: Charge, other: Charge) -> Charge:
        return Charge(
            (one.epsilon or 0) + (other.epsilon or 0), one.rho + other.rho, one.delta + other.delta
        )

    monkeypatch.setattr(Charge, "__add__", open_still)
    assert worst_delta(Gates.of(BUDGET), real, BUDGET.epsilon, rounds=14) > BUDGET.delta


def test_the_adversary_breaks_a_pure_charge_that_costs_no_rho(monkeypatch):
    def free(gates: Gates, spent: Charge, charge: Charge) -> Charge | None:
        return real(
            gates, spent, Charge(charge.epsilon, charge.rho if charge.epsilon is None else 0, 0)
        )

    assert worst_delta(Gates.of(BUDGET), free, BUDGET.epsilon, rounds=14) > BUDGET.delta


@pytest.mark.parametrize(
    "parts", [(-5, 0, 0), (None, -1, 0), (0, 0, -1), (1.0, 0, 0), (True, 0, 0), (0, Fraction(1), 0)]
)
def test_no_charge_is_below_nothing(parts):
    with pytest.raises(InvalidNumber, match="integers >= 0"):
        Charge(*parts)
    # without that, a charge would give budget back
    assert not Gates.of(Budget(1)).admits(Charge(10**12 + 1, 10**24, 0))

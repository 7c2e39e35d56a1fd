# SPDX-License-Identifier: Apache-2.0
"""Shares add up to the cost, and the event is known before anything is read."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.account import account
from sfumato.errors import WrongUse
from sfumato.query.allowance import allowance
from sfumato.synthetic.schedule import Schedule
from tests.synthetic.tiny import cube

COSTS = st.sampled_from([{"rho": "0.0001"}, {"rho": "0.3"}, {"rho": "1"}, {"epsilon": "2"}])


@given(COSTS, st.integers(1, 80), st.integers(1, 9))
def test_the_event_costs_at_most_what_was_asked(cost, columns, heaviest):
    allowed = allowance(**cost)
    schedule = Schedule.of(columns, allowed)
    assert sum(schedule.shares) == 1
    charged = account(schedule.noises(cube()).event(heaviest))
    spent = charged.rho if "rho" in cost else charged.epsilon
    assert spent <= allowed.amount
    # next to nothing is left over
    assert spent > allowed.amount * Fraction(99, 100)


def test_more_is_measured_with_a_larger_cost_and_a_larger_table():
    rounds = [Schedule.of(15, allowance(rho=rho)).rounds for rho in ("0.0001", "0.015", "1")]
    assert rounds[0] == 14 and rounds == sorted(rounds) and rounds[2] > 45
    small = Schedule.of(15, allowance(rho="0.0001"))
    assert small.is_forest and small.faint == 1
    assert not Schedule.of(15, allowance(rho="0.0001"), size=10**6).is_forest
    assert Schedule.of(200, allowance(rho="1")).is_forest
    assert Schedule.of(1, allowance(rho="1")).rounds == 0


@pytest.mark.parametrize(
    "wrong", [{"rounds": -1}, {"rounds": 10**6}, {"rounds": 2.5}, {"check": "0.9"}]
)
def test_other_rounds_and_shares_are_refused(wrong):
    with pytest.raises(WrongUse):
        Schedule.of(15, allowance(rho="1"), **wrong)


def test_a_fit_without_a_check_and_without_rounds():
    bare = Schedule.of(3, allowance(rho="1"), rounds=0, check=0)
    assert (bare.checks, bare.shares) == (0, (1, 0, 0, 0))
    account(bare.noises(cube()).event(1))

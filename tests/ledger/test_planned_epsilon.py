# SPDX-License-Identifier: Apache-2.0
"""The epsilon at a delta of what has only a rho, against the conversion written out."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.budget_gates import DELTA_INCREMENTS, INCREMENTS, Charge, Gates
from sfumato.ledger.planned_epsilon import planned_epsilon, planned_text
from sfumato.privacy import Budget

DELTA = Fraction(2, 10**6)


def converted(rho: float, delta: float, order: float) -> float:
    """Canonne, Kamath and Steinke (2020), Proposition 12, at one order."""
    cost = (math.log(1 / delta) - math.log(order)) / (order - 1) + math.log(1 - 1 / order)
    return order * rho + cost


@given(st.integers(1, 10**13))
def test_the_epsilon_shown_is_never_below_that_of_the_conversion(rho: int) -> None:
    shown = planned_epsilon(Charge(None, rho, 0), DELTA)
    orders = (1 + 2 ** (step / 8) for step in range(-80, 160))
    best = min(converted(rho / INCREMENTS, 1e-6, order) for order in orders)
    assert shown is not None
    # the grid of the test is coarse: it finds at most a little more than the least
    assert best - 0.01 * best - 1e-9 <= shown <= best + 1e-4 + 1e-9 * best


def test_a_whole_zcdp_gate_is_the_limit_itself() -> None:
    gates = Gates.of(Budget(3, "1e-6"))
    assert gates.rho is not None
    assert planned_epsilon(Charge(None, gates.rho, 0), Fraction("1e-6")) == 3


def test_a_charge_that_holds_at_single_orders_is_converted_at_them() -> None:
    charge = Charge(None, INCREMENTS // 2, 0, frozenset({Fraction(20)}))
    shown = planned_epsilon(charge, DELTA)
    assert shown is not None
    assert 0 <= shown - Fraction(converted(0.5, 1e-6, 20)) <= Fraction(1, 10_000)
    assert planned_epsilon(Charge(None, 1, 0, frozenset()), DELTA) is None


def test_without_a_delta_to_convert_with_there_is_no_epsilon() -> None:
    assert planned_epsilon(Charge(None, 1, 0), Fraction(0)) is None
    assert planned_epsilon(Charge(None, 1, DELTA_INCREMENTS), DELTA) is None
    assert planned_text(Charge(None, 1, 0), Fraction(0)) == ""


def test_a_pure_charge_needs_no_conversion() -> None:
    assert planned_text(Charge(5, 1, 0), DELTA) == ""

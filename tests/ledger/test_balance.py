# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of an account, against plain integers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.filter import NOTHING, Charge, Gates
from sfumato.errors import BudgetExceeded
from sfumato.ledger.balance import (
    Balance,
    charge_from_json,
    charge_to_json,
    gates_from_json,
    gates_to_json,
    units_text,
)
from sfumato.privacy.budget import Budget

ONE = 10**12
charges = st.builds(Charge, st.none() | st.integers(0, 10**30), st.integers(0, 10**30), st.integers(0, 10**40))


def pure(units: int) -> Charge:
    """A pure cost in units of 1e-12, booked as epsilon^2/2 rounded up."""
    return Charge(units, -(-units * units // (2 * ONE)), 0)


def test_a_charge_beyond_the_gates_is_refused_naming_what_is_left() -> None:
    balance = Balance(Gates.of(Budget(1)), spent=pure(ONE * 3 // 4))
    balance.require(pure(ONE // 4))
    with pytest.raises(BudgetExceeded) as refused:
        balance.require(pure(ONE // 4 + 1))
    assert refused.value.problem == "The question costs epsilon 0.250000000001; the account has epsilon=0.25 left."
    assert refused.value.allowed == "at most epsilon=0.25"


def test_a_reserved_charge_counts_as_spent() -> None:
    gates = Gates.of(Budget(1))
    for balance in (Balance(gates, spent=pure(ONE)), Balance(gates, reserved=pure(ONE))):
        assert balance.left.epsilon == 0
        with pytest.raises(BudgetExceeded):
            balance.require(pure(1))


def test_an_empty_account_says_that_nothing_is_left() -> None:
    with pytest.raises(BudgetExceeded, match="has nothing left") as refused:
        Balance(Gates.of(Budget(1)), spent=pure(ONE)).require(pure(1))
    assert refused.value.allowed == ""


def test_the_refusal_names_both_gates_of_a_mixed_account() -> None:
    balance = Balance(Gates.of(Budget(1, "1e-6")))
    with pytest.raises(BudgetExceeded) as refused:
        balance.require(Charge(None, 10**18, 0))
    assert "costs rho 1000000;" in refused.value.problem
    assert "epsilon=1 or rho=0.0" in refused.value.problem


def test_what_is_left_is_exactly_what_is_admitted() -> None:
    balance = Balance(Gates.of(Budget(2, "1e-6")), spent=Charge(None, 123, 0))
    rho = int(balance.left.rho * ONE)
    balance.require(Charge(None, rho, 0))
    with pytest.raises(BudgetExceeded):
        balance.require(Charge(None, rho + 1, 0))
    epsilon = int(balance.left.epsilon * ONE)
    balance.require(pure(epsilon))
    with pytest.raises(BudgetExceeded):
        balance.require(pure(epsilon + 1))


def test_taken_is_spent_and_reserved() -> None:
    balance = Balance(Gates.of(Budget(1)), pure(3), pure(4))
    assert balance.taken.epsilon == 7


@given(charges)
def test_a_charge_survives_its_stored_form(charge: Charge) -> None:
    assert charge_from_json(charge_to_json(charge)) == charge


@given(st.fractions(Fraction(1, 100), 100), st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 100)]))
def test_gates_survive_their_stored_form(epsilon: Fraction, delta: Fraction) -> None:
    gates = Gates.of(Budget(epsilon, delta))
    assert gates_from_json(gates_to_json(gates)) == gates


def test_stored_integers_are_texts_since_they_may_exceed_64_bits() -> None:
    assert charge_to_json(Charge(2**70, 1, 2)) == {"epsilon": str(2**70), "rho": "1", "delta": "2"}
    assert charge_to_json(NOTHING)["epsilon"] == "0"


@pytest.mark.parametrize(("units", "text"), [(1, "0.000000000001"), (ONE, "1"), (0, "0"), (None, "unbounded")])
def test_units_are_shown_exactly(units: int | None, text: str) -> None:
    assert units_text(units) == text

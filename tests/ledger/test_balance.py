# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of an account, against plain integers."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato.ledger.balance as module
from sfumato.accounting.budget_gates import NOTHING, Charge, Gates
from sfumato.errors import BudgetExceeded
from sfumato.ledger.balance import (
    Balance,
    Held,
    balance_admits,
    charge_from_json,
    charge_from_text,
    charge_text,
    charge_to_json,
    gates_from_json,
    gates_from_text,
    gates_to_json,
    held_from_text,
    held_text,
    increments_text,
)
from sfumato.ledger.journal import canonical_json
from sfumato.privacy.budget import Budget

ONE = 10**12
charges = st.builds(
    Charge, st.none() | st.integers(0, 10**30), st.integers(0, 10**30), st.integers(0, 10**40)
)


def pure(units: int) -> Charge:
    """A pure cost in units of 1e-12, booked as epsilon^2/2 rounded up."""
    return Charge(units, -(-units * units // (2 * ONE)), 0)


def test_a_charge_beyond_the_gates_is_refused_naming_what_is_left() -> None:
    balance = Balance(Gates.of(Budget(1)), spent=pure(ONE * 3 // 4))
    balance.require(pure(ONE // 4))
    with pytest.raises(BudgetExceeded) as refused:
        balance.require(pure(ONE // 4 + 1))
    assert (
        refused.value.problem
        == "The question costs epsilon 0.250000000001; the account has epsilon=0.25 left."
    )
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


def test_a_refused_delta_is_named() -> None:
    balance = Balance(Gates.of(Budget(1, "1e-6")), Charge(10**11, 10**9, 2 * 10**17))
    with pytest.raises(BudgetExceeded) as refused:
        balance.require(Charge(10**11, 10**9, 9 * 10**17))
    assert (refused.value.problem, refused.value.allowed) == (
        "The question costs delta 0.0000009; the account has delta=0.0000003 left for questions.",
        "at most delta=0.0000003: half of an account's delta is for questions, half for converting rho",
    )
    with pytest.raises(BudgetExceeded, match="the account is pure: it was opened without delta"):
        Balance(Gates.of(Budget(1))).require(Charge(10**11, 10**9, 1))


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


@given(
    st.fractions(Fraction(1, 100), 100),
    st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 100)]),
)
def test_gates_survive_their_stored_form(epsilon: Fraction, delta: Fraction) -> None:
    gates = Gates.of(Budget(epsilon, delta))
    assert gates_from_json(gates_to_json(gates)) == gates


def test_stored_integers_are_texts_since_they_may_exceed_64_bits() -> None:
    assert charge_to_json(Charge(2**70, 1, 2)) == {"epsilon": str(2**70), "rho": "1", "delta": "2"}
    assert charge_to_json(NOTHING)["epsilon"] == "0"


@pytest.mark.parametrize(
    ("units", "text"), [(1, "0.000000000001"), (ONE, "1"), (0, "0"), (None, "unbounded")]
)
def test_units_are_shown_exactly(units: int | None, text: str) -> None:
    assert increments_text(units) == text


@given(st.lists(charges, min_size=1, max_size=5), st.data())
def test_what_is_taken_out_leaves_the_sum_of_the_others(
    held: list[Charge], data: st.DataObject
) -> None:
    total = Held()
    for charge in held:
        total = total.plus(charge)
    out = data.draw(st.sampled_from(held))
    others = list(held)
    others.remove(out)
    assert total.minus(out).charge == sum(others, NOTHING)


def test_a_sum_that_could_forget_an_unbounded_charge_would_be_noticed() -> None:
    # the sum of charges themselves cannot be taken apart: an unbounded one swallows the others
    swallowed = Charge(None, 1, 0) + Charge(5, 1, 0)
    assert swallowed.epsilon is None
    assert Held().plus(Charge(None, 1, 0)).plus(Charge(5, 1, 0)).minus(
        Charge(None, 1, 0)
    ).charge == Charge(5, 1, 0)


@pytest.mark.parametrize(
    "charge", [Charge(1, 0, 0), Charge(0, 1, 0), Charge(0, 0, 1), Charge(None, 0, 0)]
)
def test_less_than_nothing_cannot_be_held(charge: Charge) -> None:
    with pytest.raises(ValueError, match="less than nothing"):
        Held().minus(charge)


@given(st.lists(charges, max_size=4))
def test_what_is_held_survives_its_stored_form(held: list[Charge]) -> None:
    total = Held()
    for charge in held:
        total = total.plus(charge)
    assert held_from_text(held_text(total)) == total


@pytest.mark.parametrize("text", ["-1", "1.5", "", "x", None, 3, True])
def test_what_no_ledger_wrote_is_not_read_as_a_number(text: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        charge_from_json({"epsilon": "1", "rho": text, "delta": "0"})


def test_stored_gates_say_what_they_admit() -> None:
    gates = canonical_json(gates_to_json(Gates.of(Budget(1))))
    assert gates_from_text(gates) == Gates.of(Budget(1))
    half = Held().plus(pure(ONE // 2))
    assert balance_admits(gates, charge_text(pure(ONE // 2)), held_text(half))
    assert not balance_admits(gates, charge_text(pure(ONE // 2)), held_text(half.plus(pure(1))))


@given(charges, st.lists(charges, max_size=3))
def test_stored_texts_are_canonical(charge: Charge, held: list[Charge]) -> None:
    assert charge_text(charge) == canonical_json(charge_to_json(charge))
    assert charge_from_text(charge_text(charge)) == charge
    total = Held()
    for each in held:
        total = total.plus(each)
    assert held_text(total) == canonical_json(json.loads(held_text(total)))


@given(charges)
def test_what_is_remembered_of_a_text_is_what_it_says(charge: Charge) -> None:
    text, held = charge_text(charge), held_text(Held().plus(charge))
    remembered = charge_from_text(text), held_from_text(held)
    module._CHARGES.clear(), module._HELD.clear()
    assert (
        remembered
        == (charge_from_text(text), held_from_text(held))
        == (charge, Held().plus(charge))
    )


def test_what_reading_refuses_is_not_remembered() -> None:
    for text, read in (
        ('{"delta":"0","epsilon":"-1","rho":"0"}', charge_from_text),
        ('{"delta":"-1","epsilon":null,"rho":"0"}', charge_from_text),
        (held_text(Held(unbounded=-1)), held_from_text),
    ):
        with pytest.raises(ValueError, match="not a stored number"):
            read(text)


def test_few_texts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT", 3)
    for number in range(10):
        assert charge_from_text(charge_text(pure(number))) == pure(number)
        assert len(module._CHARGES) <= 3

# SPDX-License-Identifier: Apache-2.0
"""Charges that are priced at an account's order: stored, verified, and binding for later limits."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.accounting.budget_gates import NOTHING, Charge, Gates
from sfumato.accounting.order_price import price
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Ledger, Request
from sfumato.ledger.balance import (
    charge_from_json,
    charge_from_text,
    charge_text,
    charge_to_json,
)
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.verify import verify
from sfumato.noise import RoundedGaussian
from sfumato.privacy import AdditiveNoise, Budget, Distance, Norm, Repeated, Sampled
from sfumato.privacy.event import Block, Event, PoissonSample
from tests.contracts.charges import concentrated, entries, opened, paid, pure

BUDGET = Budget(1, "1e-5")


def run(multiplier: object = 4, steps: int = 2000) -> Event:
    """Sampled Gaussian steps."""
    noise = RoundedGaussian(100 * Fraction(str(multiplier)))
    step = AdditiveNoise(noise, Distance(Norm.L2, Fraction(10**4)))
    return Repeated(Sampled(PoissonSample(Fraction(1, 100)), step), steps)


def asked(event: Event, question: str = "run", analyst: str = "owner") -> Request:
    """A request for an event."""
    return Request("d", analyst, question, f"statement of {question}", event, shared=question)


@pytest.fixture
def ledger(tmp_path: Path):
    found = opened(tmp_path / "ledger.db", BUDGET.epsilon, BUDGET.delta)
    yield found
    found.close()


def test_a_run_is_charged_at_the_order_of_its_account(ledger: Ledger) -> None:
    gates = Gates.of(BUDGET)
    charge = paid(ledger, asked(run()))
    cost = price(run(), [gates.order])
    assert ledger.balance("d").spent == cost
    (entry,) = [each for each in entries(ledger) if each.kind == "reserve"]
    body = json.loads(entry.body)
    assert body["cost"]["orders"] == [str(gates.order)] and body["charge"] == charge
    assert "shared" not in body or body["shared"] == ""
    # Gaussian queries go on beside it
    paid(ledger, concentrated("0.01"))
    assert ledger.balance("d").spent.rho == cost.rho + 10**10
    assert not verify(ledger).problems


def test_what_exceeds_the_gate_is_refused_free(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.reserve(asked(run("0.7")))
    assert ledger.balance("d").spent == NOTHING


def test_a_pure_account_refuses_a_run(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "pure.db", 1)
    with pytest.raises(BudgetExceeded, match="pure"):
        ledger.reserve(asked(run()))
    block = Block(run("1.9"), Fraction(1), Fraction(1, 10**5))
    with pytest.raises(BudgetExceeded, match="pure"):
        ledger.reserve(asked(block))
    ledger.close()


def test_a_block_fills_the_pure_gate_alone(ledger: Ledger) -> None:
    delta = BUDGET.delta / 2
    paid(ledger, asked(Block(run("1.915"), Fraction(1), delta)))
    spent, gates = ledger.balance("d").spent, Gates.of(BUDGET)
    assert spent.epsilon == gates.epsilon and spent.delta == gates.delta_events
    assert spent.rho > gates.rho
    for more in (pure("0.001", "q1"), concentrated("0.0001", "q2")):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(more)
    assert not verify(ledger).problems


def test_every_order_of_the_path_is_named(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.5", "1e-6"), purpose="unstated", analyst="ann")
    paid(ledger, asked(run(8), analyst="ann"))
    orders = {each.gates.order for each in ledger.balances("d", "unstated", "ann")}
    assert len(orders) == 2 and ledger.balance("d").spent.orders == orders
    assert not verify(ledger).problems


def test_a_later_limit_keeps_the_order(ledger: Ledger) -> None:
    order = Gates.of(BUDGET).order
    paid(ledger, asked(run()))
    ledger.allocate("d", Budget(3, "1e-5"))
    balance = ledger.balance("d")
    assert balance.gates == Gates.of(Budget(3, "1e-5"), [order])
    assert balance.gates != Gates.of(Budget(3, "1e-5"))
    ledger.refresh("d", Budget(2, "1e-5"), reason="a new year")
    balance = ledger.balance("d")
    assert balance.spent == Charge(0, 0, 0, frozenset({order})) and balance.gates.order == order
    paid(ledger, asked(run(), "again"))
    assert not verify(ledger).problems


def test_an_account_without_a_limit_is_bound_too(ledger: Ledger) -> None:
    order = Gates.of(BUDGET).order
    paid(ledger, asked(run(), analyst="ann"))
    ledger.allocate("d", Budget("0.7", "1e-5"), purpose="unstated", analyst="ann")
    (_, below) = ledger.balances("d", "unstated", "ann")
    assert below.gates.order == order
    assert not verify(ledger).problems


def test_a_voided_run_binds_as_well(ledger: Ledger) -> None:
    # held or not, the order was named; forgetting it would be a race
    ledger.void(ledger.reserve(asked(run())))
    balance = ledger.balance("d")
    assert balance.spent == Charge(0, 0, 0, frozenset({balance.gates.order}))
    assert not verify(ledger).problems


def test_a_limit_that_forgot_the_order_admits_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the mutant: a later limit takes its best order, whatever was charged
    monkeypatch.setattr("sfumato.ledger.owner._at_orders", lambda own, limit, gates: gates)
    paid(ledger, asked(run()))
    ledger.allocate("d", Budget(3, "1e-5"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(concentrated("0.0001"))


def test_verify_recomputes_the_price(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    right = price

    def cheap(event: Event, orders: object) -> Charge:
        found = right(event, orders)
        return Charge(found.epsilon, found.rho // 2, found.delta, found.orders)

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.ledger.request.price", cheap)
        paid(ledger, asked(run("3.21")))
    assert any("does not cost" in problem for problem in verify(ledger).problems)


def test_a_charge_without_orders_is_stored_as_ever() -> None:
    plain = Charge(None, 7, 3)
    assert charge_text(plain) == '{"delta":"3","epsilon":null,"rho":"7"}'
    assert charge_to_json(plain) == {"epsilon": None, "rho": "7", "delta": "3"}
    bound = Charge(None, 7, 3, frozenset({Fraction(96, 5), Fraction(3)}))
    assert charge_text(bound) == canonical_json(charge_to_json(bound))
    assert charge_from_text(charge_text(bound)) == charge_from_json(charge_to_json(bound)) == bound
    nowhere = Charge(1, 1, 0, frozenset())
    assert charge_from_text(charge_text(nowhere)) == nowhere


def test_a_verification_goes_on_from_an_earlier_one(tmp_path: Path) -> None:
    from sfumato.ledger.replayed import Book, Sum

    book = Book(taken=Sum(1, 2, 3, 0, frozenset({Fraction(7, 2)})))
    assert Book.from_json(book.to_json()) == book
    assert len(Book().to_json()) == 10 and Book.from_json(Book().to_json()) == Book()

# SPDX-License-Identifier: Apache-2.0
"""The accounts of a path: debited together, or not at all."""

from pathlib import Path

import pytest

from sfumato.accounting.budget_gates import Charge
from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    ContractMismatch,
    LedgerUnavailable,
    NotListed,
)
from sfumato.ledger import Ledger, Request
from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_transaction import LockedAccounts, child
from sfumato.ledger.journal import is_intact, iso_time
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.privacy import Budget
from tests.contracts.charges import entries, opened, pure

TENTH = Charge(10**11, 5 * 10**9, 0)
PATH = ("d", "d/research", "d/research/ann")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A dataset of 1, a purpose of 0.5, an analyst of 0.2."""
    ledger = opened(tmp_path / "l.db")
    ledger.allocate("d", Budget("0.5"), purpose="research")
    ledger.allocate("d", Budget("0.2"), purpose="research", analyst="ann")
    return ledger


ANN = Scope("d", "research", "ann")


def act(ledger: Ledger, what: str, cost: Charge, scope: Scope = ANN) -> None:
    """One movement on a path."""

    def transaction(rows: Rows) -> None:
        locked = LockedAccounts(rows, scope.id)
        getattr(locked, what)(*((cost, scope.lineage) if what in ("spend", "require") else (cost,)))
        locked.record("test", {})
        locked.save()

    ledger.store.write(transaction)


def epsilons(ledger: Ledger, scope: Scope = ANN) -> list[tuple[int | None, int | None]]:
    """Spent and held, from the dataset down, in tenths."""
    found = [ledger.standing(*Scope.of(each).parts) for each in scope.lineage]
    return [(each.spent.epsilon // 10**11, each.reserved.epsilon // 10**11) for each in found]


def test_a_charge_debits_every_account_of_its_path(ledger: Ledger) -> None:
    act(ledger, "hold", TENTH)
    assert epsilons(ledger) == [(0, 1)] * 3
    act(ledger, "settle", TENTH)
    assert epsilons(ledger) == [(1, 0)] * 3
    act(ledger, "hold", TENTH)
    act(ledger, "release", TENTH)
    assert epsilons(ledger) == [(1, 0)] * 3
    act(ledger, "spend", TENTH, Scope("d", "research", "bob"))
    assert epsilons(ledger) == [(2, 0), (2, 0), (1, 0)]


def test_the_accounts_move_by_exactly_the_cost(ledger: Ledger) -> None:
    act(ledger, "hold", Charge(1, 2, 3))
    for each in PATH:
        held = ledger.standing(*Scope.of(each).parts).reserved
        assert (held.epsilon, held.rho, held.delta) == (1, 2, 3)


@pytest.mark.parametrize(
    ("purpose", "analyst", "limit"),
    [("research", "ann", "0.2"), ("research", "bob", "0.5"), ("ads", "ann", "1")],
)
def test_a_charge_that_one_account_of_its_path_does_not_admit_is_refused(
    ledger: Ledger, purpose: str, analyst: str, limit: str
) -> None:
    scope = Scope("d", purpose, analyst)
    edge = int(float(limit) * 10**12)
    act(ledger, "require", Charge(edge, 0, 0), scope)
    with pytest.raises(BudgetExceeded, match=f"the account has epsilon={limit} left") as refused:
        act(ledger, "require", Charge(edge + 1, 0, 0), scope)
    below = {"0.2": "d/research/ann", "0.5": "d/research"}.get(limit)
    assert refused.value.problem.endswith(f"(account {below!r})" if below else "left.")


def test_a_check_of_the_dataset_alone_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    require = LockedAccounts.require
    monkeypatch.setattr(
        LockedAccounts, "require", lambda self, cost, payers: require(self, cost, payers[:1])
    )
    with pytest.raises(pytest.fail.Exception):
        test_a_charge_that_one_account_of_its_path_does_not_admit_is_refused(
            ledger, "research", "ann", "0.2"
        )


def test_what_was_not_held_cannot_be_released(ledger: Ledger) -> None:
    act(ledger, "hold", TENTH)
    with pytest.raises(ValueError, match="less than nothing"):
        act(ledger, "release", Charge(10**11, 6 * 10**9, 0))
    assert epsilons(ledger) == [(0, 1)] * 3


def test_an_account_below_a_frozen_one_is_frozen(ledger: Ledger) -> None:
    ledger.freeze("d", purpose="research", reason="an audit")
    with pytest.raises(AccountFrozen, match="'d/research' is frozen: an audit"):
        ledger.store.read(lambda rows: LockedAccounts(rows, "d/research/ann").require_open())
    ledger.store.read(lambda rows: LockedAccounts(rows, "d/ads/ann").require_open())


def test_what_was_proved_for_other_neighbours_is_not_charged(ledger: Ledger) -> None:
    def check(rows: Rows) -> None:
        locked = LockedAccounts(rows, "d")
        locked.require_relation(["add-remove"])
        locked.require_relation([])
        locked.require_relation(["add-remove", "replace-one"])

    with pytest.raises(
        ContractMismatch, match="A cost for replace-one neighbours cannot be charged to 'd'"
    ):
        ledger.store.read(check)


def test_a_note_goes_to_the_end_of_the_chain(ledger: Ledger) -> None:
    before = len(entries(ledger))

    def transaction(rows: Rows) -> tuple[int, int]:
        locked = LockedAccounts(rows, "d/research")
        numbers = locked.record("thaw", {"account": "d"}), locked.record("thaw", {"account": "d"})
        locked.save()
        return numbers

    assert ledger.store.write(transaction) == (before + 1, before + 2)
    found = entries(ledger)
    assert all(is_intact(entry, last) for last, entry in zip([None, *found], found, strict=False))
    root = ledger.store.peek("d")
    assert (root.seq, root.head) == (before + 2, found[-1].hash)


def test_a_dataset_that_nobody_opened_has_no_books(ledger: Ledger) -> None:
    with pytest.raises(LedgerUnavailable, match="no account of dataset 'e'"):
        ledger.store.read(lambda rows: LockedAccounts(rows, "e/p"))


def test_an_account_that_nobody_has_used_is_empty_and_unlimited() -> None:
    fresh = child("d/p/a")
    assert isinstance(fresh, AccountRow)
    assert (fresh.parent, fresh.gates, fresh.contract, fresh.seq) == ("d/p", "", "", 0)


def test_a_moment_is_told_in_utc() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000+00:00"
    assert iso_time(1_700_000_000_123) == "2023-11-14T22:13:20.123+00:00"


def test_a_refused_charge_leaves_the_books_as_they_were(ledger: Ledger) -> None:
    asked = pure("0.3")
    before = entries(ledger)
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.2 left\. \(account 'd/research/ann'\)"):
        ledger.reserve(Request("d", "ann", "q", "s", asked.event, purpose="research"))
    assert (epsilons(ledger), entries(ledger)) == ([(0, 0)] * 3, before)


def test_a_name_that_is_not_listed_opens_no_account_of_a_closed_dataset(ledger: Ledger) -> None:
    def listed(account_id: str) -> bool:
        try:
            ledger.store.read(lambda rows: LockedAccounts(rows, account_id).require_listed())
        except NotListed:
            return False
        return True

    names = ("d/research/ann", "d/research/eve", "d/other", "d")
    assert [listed(each) for each in names] == [True, False, False, True]
    ledger.restrict("d", closed=False)
    assert [listed(each) for each in names] == [True] * 4

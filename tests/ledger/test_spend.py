# SPDX-License-Identifier: Apache-2.0
"""The life of a charge: every legal step, every illegal one, exact edges, races."""

import json
import threading
import time
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    ContractMismatch,
    InProgress,
    LeaseExpired,
    LedgerCorrupt,
    LedgerUnavailable,
)
from sfumato.ledger import Ledger, Request
from sfumato.ledger.request import Ready
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.ledger.store.sqlite_rows import SQLiteRows
from sfumato.ledger.verify import verify
from sfumato.noise import DiscreteLaplace
from sfumato.noise.entropy import token
from sfumato.privacy import AdditiveNoise, Distance, Norm, ReplaceOne
from sfumato.privacy.budget import Budget
from tests.contracts.charges import (
    BODY,
    charges,
    concentrated,
    contract,
    entries,
    head,
    in_state,
    opened,
    paid,
    pure,
    state_of,
)
from tests.contracts.images import crash_image

STATES = (RESERVED, EXECUTING, COMMITTED, FORFEITED, VOIDED)
STEPS = {
    "execute": (RESERVED, EXECUTING),
    "void": (RESERVED, VOIDED),
    "commit": (EXECUTING, COMMITTED),
    "forfeit": (EXECUTING, FORFEITED),
}


def step(ledger: Ledger, name: str, charge: str) -> None:
    """One step by its name."""
    rest = {"commit": (BODY,), "forfeit": ("engine",)}.get(name, ())
    getattr(ledger, name)(charge, *rest)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return opened(tmp_path / "ledger.db")


@pytest.mark.parametrize(("state", "name"), list(product(STATES, STEPS)))
def test_only_the_declared_steps_exist(ledger: Ledger, state: str, name: str) -> None:
    charge = in_state(ledger, state)
    before, after = STEPS[name]
    if state == before:
        step(ledger, name, charge)
        assert state_of(ledger, charge) == after
        return
    seen = head(ledger)
    with pytest.raises(LedgerUnavailable, match=f"is {state}, not {before}"):
        step(ledger, name, charge)
    assert (state_of(ledger, charge), head(ledger)) == (state, seen)


@pytest.mark.parametrize("name", STEPS)
def test_an_unknown_charge_has_no_step(ledger: Ledger, name: str) -> None:
    with pytest.raises(LedgerUnavailable, match="is unknown"):
        step(ledger, name, "nobody")


@pytest.mark.parametrize(
    ("state", "spent", "reserved"),
    [(RESERVED, 0, 1), (EXECUTING, 0, 1), (COMMITTED, 1, 0), (FORFEITED, 1, 0), (VOIDED, 0, 0)],
)
def test_each_state_costs_what_it_says(
    ledger: Ledger, state: str, spent: int, reserved: int
) -> None:
    in_state(ledger, state)
    balance = ledger.balance("d")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (spent * 10**11, reserved * 10**11)


def test_a_tenth_ten_times_is_exactly_one(ledger: Ledger) -> None:
    for index in range(10):
        paid(ledger, pure("0.1", f"q{index}"))
    assert ledger.balance("d").spent.epsilon == 10**12
    assert ledger.balance("d").left.epsilon == 0
    with pytest.raises(BudgetExceeded, match="nothing left"):
        ledger.reserve(pure("1e-12", "more"))


def test_the_edge_of_the_budget_is_exact(ledger: Ledger) -> None:
    paid(ledger, pure("0.7"))
    with pytest.raises(
        BudgetExceeded, match=r"costs epsilon 0\.300000000001; the account has epsilon=0\.3 left"
    ):
        ledger.reserve(pure("0.300000000001", "beyond"))
    paid(ledger, pure("0.3", "exactly"))
    assert ledger.balance("d").left.epsilon == 0


def test_an_open_reservation_counts_as_spent(ledger: Ledger) -> None:
    held = ledger.reserve(pure("0.6"))
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.4"):
        ledger.reserve(pure("0.5", "r"))
    ledger.void(held)
    ledger.reserve(pure("0.5", "r"))


def test_a_gaussian_closes_the_pure_gate_and_is_booked_as_rho(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db", 1, "1e-6")
    paid(ledger, concentrated("0.001"))
    spent = ledger.balance("d").spent
    assert (spent.epsilon, spent.rho) == (None, 10**9)
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 0\.9"):
        ledger.reserve(pure("0.9", "r"))


def test_a_refused_reservation_writes_nothing(ledger: Ledger) -> None:
    before = head(ledger)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(pure(2))
    assert head(ledger) == before
    assert charges(ledger) == []


def test_a_charge_is_on_disk_before_it_can_execute(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    charge = ledger.reserve(pure("0.1"))
    copied = crash_image(tmp_path / "l.db", tmp_path / "copy.db")
    # what a power cut would leave at this moment: the charge is there, and was voided when found
    assert state_of(Ledger.open(copied), charge) == VOIDED
    ledger.execute(charge)


def test_an_answer_is_stored_with_its_charge(ledger: Ledger) -> None:
    charge = ledger.reserve(pure("0.1"))
    ledger.execute(charge)
    assert ledger.answer("q") is None
    ledger.commit(charge, BODY)
    assert ledger.answer("q") == BODY
    assert state_of(ledger, charge) == COMMITTED
    assert ledger.balance("d").spent.epsilon == 10**11


def test_an_answer_that_cannot_be_stored_leaves_its_charge_unspent_and_unreleased(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = in_state(ledger, EXECUTING)

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(SQLiteRows, "put_answer", full)
    with pytest.raises(OSError, match="disk full"):
        ledger.commit(charge, BODY)
    assert (state_of(ledger, charge), ledger.answer("q")) == (EXECUTING, None)
    assert ledger.balance("d").taken.epsilon == 10**11


def test_the_same_question_has_one_answer(ledger: Ledger) -> None:
    paid(ledger, pure("0.1"), b"first")
    before = head(ledger)
    with pytest.raises(InProgress, match="or has just been"):
        ledger.reserve(pure("0.1"))
    assert (ledger.answer("q"), head(ledger)) == (b"first", before)


@pytest.mark.parametrize("state", [RESERVED, EXECUTING])
def test_a_question_under_way_is_not_paid_for_twice(ledger: Ledger, state: str) -> None:
    in_state(ledger, state)
    before = head(ledger)
    with pytest.raises(InProgress, match="Ask again in a moment"):
        ledger.reserve(pure("0.1"))
    assert head(ledger) == before


@pytest.mark.parametrize("state", [FORFEITED, VOIDED])
def test_a_question_that_ended_without_an_answer_may_be_asked_again(
    ledger: Ledger, state: str
) -> None:
    in_state(ledger, state)
    paid(ledger, pure("0.1"), b"second try")
    assert ledger.answer("q") == b"second try"


def test_the_first_answer_to_a_statement_is_kept_apart_from_later_ones(ledger: Ledger) -> None:
    request = pure("0.1", "one")
    paid(ledger, request, b"first")
    later = pure("0.2", "two")
    paid(
        ledger,
        type(later)(later.dataset, later.analyst, "two", request.statement, later.event),
        b"second",
    )
    assert ledger.first_answer([request.statement], request.scope.id) == b"first"
    assert ledger.first_answer(["never asked"], request.scope.id) is None


def test_an_executing_charge_is_never_refunded(ledger: Ledger) -> None:
    charge = in_state(ledger, EXECUTING)
    with pytest.raises(LedgerUnavailable):
        ledger.void(charge)
    ledger.forfeit(charge, "engine")
    assert ledger.balance("d").spent.epsilon == 10**11


def test_three_failures_freeze_the_account(ledger: Ledger) -> None:
    for index in range(3):
        in_state(ledger, FORFEITED, f"q{index}")
    before = head(ledger)
    with pytest.raises(AccountFrozen, match="after 3 failures"):
        ledger.reserve(pure("0.1"))
    assert head(ledger) == before
    paid(ledger, pure("0.1", "another analyst", analyst="someone else"))


def test_two_failures_do_not_freeze(ledger: Ledger) -> None:
    for index in range(2):
        in_state(ledger, FORFEITED, f"q{index}")
    paid(ledger, pure("0.1"))


def test_an_interruption_is_no_failure(ledger: Ledger) -> None:
    for index in range(4):
        ledger.forfeit(in_state(ledger, EXECUTING, f"q{index}"), "interrupted")
    paid(ledger, pure("0.1"))


def test_a_frozen_account_names_both_ways_to_thaw_it(ledger: Ledger) -> None:
    ledger.freeze("d", purpose="unstated", analyst="owner", reason="an audit")
    with pytest.raises(AccountFrozen) as refusal:
        ledger.reserve(pure("0.1"))
    shell = "sfumato ledger thaw --purpose 'unstated' --analyst 'owner'"
    python = "Ledger.open(path).thaw('d', purpose='unstated', analyst='owner')"
    assert refusal.value.remedy == f"Only the owner can thaw it: {shell}, or {python}"


def test_thaw_unfreezes_and_refunds_nothing(ledger: Ledger) -> None:
    for index in range(3):
        in_state(ledger, FORFEITED, f"q{index}")
    assert ledger.thaw("d") == 3
    assert ledger.thaw("d") == 0
    paid(ledger, pure("0.1"))
    assert ledger.balance("d").spent.epsilon == 4 * 10**11
    assert verify(ledger).problems == ()


def test_a_dataset_without_an_account_is_named(ledger: Ledger) -> None:
    for ask in (
        ledger.balance,
        ledger.thaw,
        lambda name: ledger.reserve(pure("0.1", dataset=name)),
    ):
        with pytest.raises(LedgerUnavailable, match="no account of dataset 'elsewhere'"):
            ask("elsewhere")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"relation": "replace-one"}, "relation: now replace-one, in the ledger add-remove"),
        ({"unit": "person"}, "units"),
        ({"budget": Budget(2)}, "epsilon: now 2, in the ledger 1"),
        ({"budget": Budget(1, "1e-9")}, "delta: now 1/1000000000, in the ledger 0"),
    ],
)
def test_another_contract_is_refused_and_changes_nothing(
    ledger: Ledger, change: dict[str, object], named: str
) -> None:
    budget = change.pop("budget", Budget(1))
    before = head(ledger)
    with pytest.raises(ContractMismatch, match=named):
        ledger.adopt(contract(budget, **change), budget)
    assert head(ledger) == before


def test_reopening_keeps_what_was_spent(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = opened(path)
    paid(ledger, pure("0.25"))
    ledger.close()
    again = opened(path)
    assert again.balance("d").left.epsilon == Fraction(3, 4)
    assert again.answer("q") == BODY
    assert again.budget_of("d") == Budget(1)
    assert again.budget_of("other") is None


def test_two_datasets_of_one_ledger_pay_apart(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.adopt(contract(Budget(2), "e"), Budget(2))
    paid(ledger, pure(1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(pure("0.1", "r"))
    paid(ledger, pure(2, "e's", dataset="e"))
    assert ledger.balance("d").spent.epsilon == 10**12


def test_of_32_threads_exactly_as_many_succeed_as_the_budget_pays(tmp_path: Path) -> None:
    affordable, outcomes = 7, []
    ledger = opened(tmp_path / "l.db", "0.7")
    start = threading.Barrier(32)

    def race(index: int) -> None:
        start.wait()
        try:
            paid(ledger, pure("0.1", f"q{index}"))
            outcomes.append("paid")
        except BudgetExceeded:
            outcomes.append("refused")

    threads = [threading.Thread(target=race, args=(index,)) for index in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["paid"] * affordable + ["refused"] * (32 - affordable)
    assert ledger.balance("d").left.epsilon == 0
    assert verify(ledger).problems == ()


def test_a_row_that_is_no_longer_json_is_a_corrupt_ledger(ledger: Ledger) -> None:
    row = ledger.store.peek("d")
    ledger.store.write(lambda rows: rows.put_account(row._replace(spent="not json")))
    with pytest.raises(LedgerCorrupt, match="cannot be read"):
        ledger.reserve(pure("0.1"))


def test_the_journal_tells_the_whole_life_of_a_charge(ledger: Ledger) -> None:
    charge = paid(ledger, pure("0.1"))
    told = [(entry.kind, json.loads(entry.body).get("charge")) for entry in entries(ledger)]
    assert told == [("account", None), ("reserve", charge), ("execute", charge), ("commit", charge)]


def hurried(tmp_path: Path) -> Ledger:
    """A ledger whose leases end at once, but for the moment that ``outlasted`` waits."""
    ledger = Ledger.open(tmp_path / "hurried.db", lease=timedelta(milliseconds=1))
    ledger.adopt(contract(Budget(1)), Budget(1))
    return ledger


def outlasted(ledger: Ledger, charge: str) -> str:
    """A charge of a ``hurried`` ledger, once its lease has ended by the store's clock."""
    while not ledger.store.read(
        lambda rows: any(row.id == charge for row in rows.overdue(rows.now(), 99))
    ):
        time.sleep(0.001)
    return charge


@pytest.mark.parametrize(
    ("state", "ends", "spent"), [(RESERVED, VOIDED, 0), (EXECUTING, FORFEITED, 1)]
)
def test_an_ended_lease_never_gives_back_what_was_read(
    tmp_path: Path, state: str, ends: str, spent: int
) -> None:
    ledger = hurried(tmp_path)
    charge = outlasted(ledger, in_state(ledger, state))
    assert ledger.sweep() == 1
    assert ledger.sweep() == 0
    assert state_of(ledger, charge) == ends
    assert (ledger.balance("d").spent.epsilon, ledger.balance("d").reserved.epsilon) == (
        spent * 10**11,
        0,
    )
    assert verify(ledger).problems == ()


def test_a_worker_that_comes_back_after_its_lease_releases_nothing(tmp_path: Path) -> None:
    ledger = hurried(tmp_path)
    charge = outlasted(ledger, in_state(ledger, EXECUTING))
    ledger.sweep()
    before = head(ledger)
    for late in (lambda: ledger.commit(charge, BODY), lambda: ledger.forfeit(charge, "engine")):
        with pytest.raises(LeaseExpired, match="its lease had ended"):
            late()
    assert (head(ledger), ledger.answer("q")) == (before, None)


def test_a_worker_whose_reservation_ended_reads_nothing(tmp_path: Path) -> None:
    ledger = hurried(tmp_path)
    charge = outlasted(ledger, ledger.reserve(pure("0.1")))
    ledger.sweep()
    for late in (ledger.execute, ledger.void):
        with pytest.raises(LeaseExpired, match="is voided, not reserved"):
            late(charge)


def test_a_worker_that_is_late_but_was_not_missed_completes(tmp_path: Path) -> None:
    ledger = hurried(tmp_path)
    charge = outlasted(ledger, ledger.reserve(pure("0.1")))
    ledger.execute(charge)
    ledger.commit(outlasted(ledger, charge), BODY)
    assert ledger.answer("q") == BODY


def test_the_next_question_sweeps_what_is_overdue(tmp_path: Path) -> None:
    ledger = hurried(tmp_path)
    held = outlasted(ledger, ledger.reserve(pure("0.9")))
    paid(ledger, pure("0.5", "r"))
    assert state_of(ledger, held) == VOIDED
    assert verify(ledger).problems == ()


def test_a_lease_that_has_not_ended_is_left_alone(ledger: Ledger) -> None:
    in_state(ledger, RESERVED)
    in_state(ledger, EXECUTING, "r")
    assert ledger.sweep() == 0


def test_expired_executions_freeze_the_account_too(tmp_path: Path) -> None:
    ledger = hurried(tmp_path)
    for index in range(3):
        outlasted(ledger, in_state(ledger, EXECUTING, f"q{index}"))
        ledger.sweep()
    with pytest.raises(AccountFrozen):
        ledger.reserve(pure("0.1"))


def test_many_ended_leases_are_swept_in_many_units(tmp_path: Path) -> None:
    # a transaction closes 64: these are under way until their leases end, all at once
    ledger = opened(tmp_path / "l.db")
    ledger.adopt(contract(Budget(1), "e"), Budget(1))
    for index in range(70):
        ledger.reserve(pure("0.001", f"q{index}", dataset="de"[index % 2]))
    ledger.store.write(
        lambda rows: [
            rows.put_charge(row._replace(lease_until=0)) for row in rows.overdue(None, 99)
        ]
    )
    assert ledger.sweep() == 70
    assert ledger.balance("d").taken.epsilon == ledger.balance("e").taken.epsilon == 0


def test_a_recovery_that_only_sweeps_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path / "l.db")
    charge = in_state(ledger, EXECUTING)
    ledger.close()
    monkeypatch.setattr(Ledger, "_recover", Ledger.sweep)
    assert state_of(Ledger.open(tmp_path / "l.db"), charge) == EXECUTING
    monkeypatch.undo()


def test_what_a_closed_ledger_left_open_is_closed_by_the_next(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    executing, reserved = in_state(ledger, EXECUTING), in_state(ledger, RESERVED, "r")
    ledger.close()
    again = Ledger.open(tmp_path / "l.db")
    assert (state_of(again, executing), state_of(again, reserved)) == (FORFEITED, VOIDED)


def test_an_event_of_another_relation_is_not_charged(ledger: Ledger) -> None:
    event = AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, Fraction(1), ReplaceOne))
    before = head(ledger)
    with pytest.raises(ContractMismatch, match="replace-one neighbours cannot be charged"):
        ledger.reserve(replace(pure("0.1"), event=event))
    assert head(ledger) == before


# --- several charges -----------------------------------------------------------------------------


def test_several_charges_are_taken_together_or_not_at_all(ledger: Ledger) -> None:
    before = head(ledger)
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 1\.1; the account has epsilon=1 left"):
        ledger.reserve_all([pure("0.6", "a"), pure("0.5", "b")])
    assert (head(ledger), charges(ledger)) == (before, [])
    taken = ledger.reserve_all([pure("0.6", "a"), pure("0.4", "b")])
    assert [state_of(ledger, each) for each in taken] == [RESERVED, RESERVED]
    assert ledger.balance("d").left.epsilon == 0


def test_charges_taken_one_after_the_other_are_caught(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_by_one(self: Ledger, requests: list[Request]) -> list[str]:
        return [
            self._write(partial(self._reserve, ready=Ready.of(each), charge_id=token()))
            for each in requests
        ]

    monkeypatch.setattr(Ledger, "reserve_all", one_by_one)
    with pytest.raises(BudgetExceeded):
        ledger.reserve_all([pure("0.6", "a"), pure("0.5", "b")])
    assert charges(ledger) != []


def test_a_question_that_stands_twice_among_several_is_refused_for_nothing(ledger: Ledger) -> None:
    with pytest.raises(InProgress):
        ledger.reserve_all([pure("0.1"), pure("0.1")])
    assert charges(ledger) == []


def test_a_charge_is_exchanged_for_a_dearer_one_only_if_that_is_admitted(ledger: Ledger) -> None:
    held = ledger.reserve(pure("0.5", "hold"))
    other = ledger.reserve(pure("0.4", "other"))
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.6 left"):
        ledger.exchange(held, pure("0.7", "real"))
    assert state_of(ledger, held) == RESERVED
    real = ledger.exchange(held, pure("0.5", "real"))
    assert [state_of(ledger, each) for each in (held, real, other)] == [
        "voided",
        RESERVED,
        RESERVED,
    ]
    assert ledger.balance("d").reserved.epsilon == 9 * 10**11
    ledger.execute(real)
    ledger.commit(real, BODY)
    assert verify(ledger).problems == ()


def test_only_a_reserved_charge_is_exchanged(ledger: Ledger) -> None:
    for state in (EXECUTING, COMMITTED, FORFEITED, VOIDED):
        charge, seen = in_state(ledger, state, state), head(ledger)
        with pytest.raises(LedgerUnavailable, match=f"is {state}, not reserved"):
            ledger.exchange(charge, pure("0.1", f"for {state}"))
        assert head(ledger) == seen


def test_a_lease_that_has_ended_is_not_exchanged(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    charge = ledger.reserve(pure("0.1"))
    ledger.store.write(lambda rows: rows.put_charge(rows.charge(charge)._replace(lease_until=0)))
    ledger.sweep()
    with pytest.raises(LeaseExpired):
        ledger.exchange(charge, pure("0.1", "r"))

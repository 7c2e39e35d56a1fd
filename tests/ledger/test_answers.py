# SPDX-License-Identifier: Apache-2.0
"""Stored answers given again, and what the journal says of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    KeyUsed,
    LedgerUnavailable,
    NotListed,
    WrongUse,
)
from sfumato.ledger import Ledger, answers, verify
from sfumato.ledger.tally import Tally
from sfumato.privacy import Budget
from tests.contracts.charges import BODY, entries, head, paid, pure


def tallies(ledger: Ledger) -> list[dict[str, object]]:
    """What the journal has counted."""
    return [json.loads(each.body)["accounts"] for each in entries(ledger) if each.kind == "tally"]


def test_a_frozen_account_is_given_no_stored_answer(ledger: Ledger) -> None:
    charge = paid(ledger, pure("0.1"))
    ledger.freeze("d", purpose="unstated", reason="stop")
    for read in (
        lambda: ledger.recall(pure("0.1")),
        lambda: ledger.answer_of(charge, pure("0.1").scope),
        lambda: ledger.reread(pure("0.1", "parts"), [charge]),
    ):
        with pytest.raises(AccountFrozen):
            read()


def test_parts_given_to_a_frozen_account_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "require_open", lambda path: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_frozen_account_is_given_no_stored_answer(ledger)


def test_the_key_of_a_request_of_stored_parts_is_bound_to_it(ledger: Ledger) -> None:
    charge = paid(ledger, pure("0.1"))
    for _ in range(2):
        ledger.reread(replace(pure("0.1", "parts"), key="k"), [charge])
    for use in (ledger.recall, ledger.reserve):
        with pytest.raises(KeyUsed, match="another request"):
            use(replace(pure("0.1", "other"), key="k"))
    assert verify(ledger).problems == ()


def test_a_key_of_stored_parts_that_is_not_bound_is_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "bind_stored", lambda *_: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_the_key_of_a_request_of_stored_parts_is_bound_to_it(ledger)


def test_what_is_read_again_and_what_is_refused_is_in_the_journal(
    ledger: Ledger, tmp_path: Path
) -> None:
    charge = paid(ledger, pure("0.1"))
    before = head(ledger)
    for _ in range(3):
        assert ledger.recall(pure("0.1")) == BODY
    ledger.reread(pure("0.1", "parts"), [charge])
    with pytest.raises(BudgetExceeded):
        ledger.reserve(pure(9, "dear"))
    with pytest.raises(WrongUse):
        ledger.reserve(pure("0.1", "other", analyst="\u0430nn"))
    assert head(ledger) == before, "no flush for a read"
    owner = {"reads": {charge: 4}, "refusals": {"BudgetExceeded": 1}}
    expected = {"d/unstated/owner": owner, "d": {"refusals": {"WrongUse": 1}}}
    paid(ledger, pure("0.1", "next"))
    assert tallies(ledger) == [expected]
    assert verify(ledger).problems == ()
    # and with the end of the ledger
    ledger.restrict("d", closed=True)
    with pytest.raises(NotListed):
        ledger.reserve(pure("0.1", "other", analyst="eve"))
    ledger.close()
    ledger = Ledger.open(tmp_path / "l.db")
    assert tallies(ledger) == [expected, {"d": {"refusals": {"NotListed": 1}}}]
    assert verify(ledger).problems == ()


def test_a_ledger_that_counts_nothing_would_be_noticed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tally, "read", lambda *_: None)
    with pytest.raises(AssertionError):
        test_what_is_read_again_and_what_is_refused_is_in_the_journal(ledger, tmp_path)


def test_what_a_refused_charge_could_not_write_down_is_kept(ledger: Ledger) -> None:
    charge = paid(ledger, pure("0.1"))
    ledger.recall(pure("0.1"))
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(pure(9, "dear"))
    paid(ledger, pure("0.1", "next"))
    assert tallies(ledger) == [
        {"d/unstated/owner": {"reads": {charge: 1}, "refusals": {"BudgetExceeded": 2}}}
    ]


def test_many_reads_are_written_down_without_a_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = paid(ledger, pure("0.1"))
    monkeypatch.setattr("sfumato.ledger.tally._ENOUGH", 5)
    for _ in range(7):
        ledger.recall(pure("0.1"))
    assert tallies(ledger) == [], "not yet long enough"
    monkeypatch.setattr("sfumato.ledger.tally._SECONDS", 0.0)
    ledger.recall(pure("0.1"))
    assert tallies(ledger) == [{"d/unstated/owner": {"reads": {charge: 8}}}]
    for _ in range(4):
        ledger.recall(pure("0.1"))
    assert len(tallies(ledger)) == 1


def test_a_count_that_cannot_be_written_keeps_no_answer_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid(ledger, pure("0.1"))
    monkeypatch.setattr("sfumato.ledger.tally._ENOUGH", 1)
    monkeypatch.setattr("sfumato.ledger.tally._SECONDS", 0.0)

    def fails(transaction: object) -> None:
        raise LedgerUnavailable("full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_write", fails)
        assert ledger.recall(pure("0.1")) == BODY
    assert ledger.recall(pure("0.1")) == BODY
    assert (
        sum(sum(each["reads"].values()) for tally in tallies(ledger) for each in tally.values())
        == 2
    )


def test_an_answer_is_held_by_the_account_that_paid(ledger: Ledger) -> None:
    paid(ledger, pure("0.1"), released=("p",))
    ledger.allocate("d", Budget("0.5"), purpose="unstated")
    assert ledger.holds(pure("0.1"))
    assert not ledger.holds(pure("0.1", "another"))
    account = "d/unstated/owner"
    assert ledger.first_answer(["never", "statement of q"], account) == BODY
    assert ledger.first_answer(["statement of q"], "d/other/owner") is None
    assert ledger.released(["p", "r"], account) == {"p": [BODY], "r": []}
    assert ledger.released(["p"], "d/other/owner") == {"p": []}
    assert not ledger.holds(replace(pure("0.1", "x"), earlier=()))


def test_an_answer_is_found_by_the_charge_that_paid_for_it(ledger: Ledger) -> None:
    charge, scope = paid(ledger, pure("0.1")), pure("0.1").scope
    assert ledger.answer_of(charge, scope) == BODY
    assert ledger.answer_of("no charge", scope) is None
    assert ledger.answer_of(ledger.reserve(pure("0.1", "open")), scope) is None
    # not by an account that did not pay
    assert ledger.answer_of(charge, replace(scope, analyst="somebody")) is None

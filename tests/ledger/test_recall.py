# SPDX-License-Identifier: Apache-2.0
"""Stored answers given again: idempotency keys, and sharing between analysts."""

from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import AccountFrozen, BudgetExceeded, InProgress, KeyUsed, WrongUse
from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger.recall import sharers
from sfumato.ledger.store.base import EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.privacy import Budget
from tests.contracts.charges import BODY, charges, head, opened, paid, pure

STEPS = {RESERVED: (), EXECUTING: ("execute",), FORFEITED: ("execute", "forfeit"), VOIDED: ("void",)}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return opened(tmp_path / "l.db")


def keyed(key: str = "k", epsilon: object = "0.1", question: str = "q", **more: object) -> Request:
    """A request under an idempotency key."""
    return replace(pure(epsilon, question), key=key, **more)


def asked(analyst: str, purpose: str = "research") -> Request:
    """One question that two analysts may share."""
    return replace(pure("0.1", f"q of {analyst}", analyst=analyst), statement="s", purpose=purpose, shared="any")


def spent(ledger: Ledger, *account: str) -> int:
    """Tenths of epsilon."""
    return ledger.standing(*account).spent.epsilon // 10**11


def test_the_same_request_under_one_key_has_one_answer(ledger: Ledger) -> None:
    assert ledger.recall(keyed()) is None
    paid(ledger, keyed())
    before = head(ledger)
    assert ledger.recall(keyed()) == BODY
    assert head(ledger) == before
    assert spent(ledger, "d") == 1


@pytest.mark.parametrize("more", [{"question": "other"}, {"purpose": "ads"}, {"statement": "s"}])
def test_a_key_reused_with_another_body_is_refused(ledger: Ledger, more: dict[str, object]) -> None:
    paid(ledger, keyed())
    before = head(ledger)
    other = keyed(**more)
    if "purpose" in more:
        # another account: the key is another one
        assert ledger.recall(other) == BODY
        return
    for call in (ledger.recall, ledger.reserve):
        with pytest.raises(KeyUsed, match="belongs to another request"):
            call(other)
    assert head(ledger) == before


@pytest.mark.parametrize("state", [RESERVED, EXECUTING])
def test_a_key_under_way_is_not_answered_twice(ledger: Ledger, state: str) -> None:
    charge = ledger.reserve(keyed())
    for step in STEPS[state]:
        getattr(ledger, step)(charge)
    assert ledger.recall(keyed()) is None
    with pytest.raises(InProgress):
        ledger.reserve(keyed())
    with pytest.raises(KeyUsed):
        ledger.reserve(keyed(question="other"))


@pytest.mark.parametrize(("state", "says"), [(FORFEITED, "its cost stays spent"), (VOIDED, "nothing was charged")])
def test_a_key_that_ended_without_an_answer_says_so_for_ever(ledger: Ledger, state: str, says: str) -> None:
    charge = ledger.reserve(keyed())
    for step in STEPS[state]:
        getattr(ledger, step)(charge, *(("engine",) if step == "forfeit" else ()))
    for call in (ledger.recall, ledger.reserve):
        with pytest.raises(KeyUsed, match=f"ended without an answer; {says}"):
            call(keyed())
    paid(ledger, keyed("another"))
    assert verify(ledger).problems == ()


def test_a_key_bound_by_a_stored_answer_is_bound_too(ledger: Ledger) -> None:
    paid(ledger, pure("0.1"))
    assert ledger.recall(keyed()) == BODY
    with pytest.raises(KeyUsed):
        ledger.recall(keyed(question="other"))
    assert ledger.recall(keyed()) == BODY
    assert spent(ledger, "d") == 1
    assert verify(ledger).problems == ()


def test_keys_of_two_analysts_are_two_keys(ledger: Ledger) -> None:
    paid(ledger, keyed())
    assert ledger.recall(keyed(question="other", analyst="bob")) is None
    paid(ledger, keyed(question="other", analyst="bob"), b"bob's")
    assert ledger.recall(keyed()) == BODY


def test_answers_are_not_shared_unless_the_owner_says_so(ledger: Ledger) -> None:
    paid(ledger, asked("ann"))
    assert ledger.recall(asked("bob")) is None
    ledger.share_answers("d", allowed=True)
    ledger.share_answers("d", allowed=False)
    assert ledger.recall(asked("bob")) is None


def test_a_shared_answer_is_paid_by_everybody_but_those_who_paid_it(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, asked("ann"))
    assert ledger.recall(asked("bob")) == BODY
    assert [spent(ledger, "d"), spent(ledger, "d", "research")] == [1, 1]
    assert [spent(ledger, "d", "research", name) for name in ("ann", "bob")] == [1, 1]
    assert ledger.recall(asked("bob")) == BODY
    assert spent(ledger, "d", "research", "bob") == 1
    assert ledger.recall(asked("cid", "ads")) == BODY
    assert [spent(ledger, "d"), spent(ledger, "d", "ads"), spent(ledger, "d", "ads", "cid")] == [1, 1, 1]
    assert [row.source for row in charges(ledger)] == ["", charges(ledger)[0].id, charges(ledger)[0].id]
    assert verify(ledger).problems == ()


def test_a_shared_answer_that_cost_nobody_would_be_noticed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.ledger.recall.sharers", lambda account, source: ())
    with pytest.raises(AssertionError):
        test_a_shared_answer_is_paid_by_everybody_but_those_who_paid_it(ledger)


def test_who_has_paid_does_not_pay_again() -> None:
    assert sharers("d/p/a", "d/p/a") == ()
    assert sharers("d/p/b", "d/p/a") == ("d/p/b",)
    assert sharers("d/q/a", "d/p/a") == ("d/q", "d/q/a")


def test_a_shared_answer_beyond_an_analysts_limit_is_refused_and_writes_nothing(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    ledger.allocate("d", Budget("0.05"), purpose="research", analyst="bob")
    paid(ledger, asked("ann"))
    before = head(ledger)
    with pytest.raises(BudgetExceeded, match="account 'd/research/bob'"):
        ledger.recall(asked("bob"))
    assert head(ledger) == before


def test_a_shared_answer_is_free_for_a_dataset_that_has_nothing_left(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure(1, "a", analyst="ann"), shared="all"))
    assert ledger.balance("d").left.epsilon == 0
    assert ledger.recall(replace(pure(1, "b", analyst="bob"), shared="all")) == BODY


def test_a_frozen_analyst_gets_no_shared_answer_but_keeps_those_there_were(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, asked("ann"))
    ledger.freeze("d", reason="stop")
    with pytest.raises(AccountFrozen):
        ledger.recall(asked("bob"))
    assert ledger.recall(asked("ann")) == BODY


def test_one_shared_question_has_one_price(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, asked("ann"))
    with pytest.raises(WrongUse, match="One shared question with two costs"):
        ledger.recall(replace(pure("0.2", "other", analyst="bob"), shared="any"))


def test_a_shared_answer_can_be_asked_for_under_a_key(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, asked("ann"))
    request = replace(asked("bob"), key="k")
    assert ledger.recall(request) == ledger.recall(request) == BODY
    with pytest.raises(KeyUsed):
        ledger.recall(replace(request, question="other"))
    assert verify(ledger).problems == ()

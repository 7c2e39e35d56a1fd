# SPDX-License-Identifier: Apache-2.0
"""Stored answers given again: idempotency keys, and sharing between analysts."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.errors import AccountFrozen, BudgetExceeded, InProgress, KeyUsed, WrongUse
from sfumato.ledger import Ledger, Request, stored_answers, verify
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.request import Keys
from sfumato.ledger.store.base import EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.ledger.stored_answers import sharers
from sfumato.privacy import Budget
from tests.contracts.charges import BODY, charges, head, paid, pure

STEPS = {
    RESERVED: (),
    EXECUTING: ("execute",),
    FORFEITED: ("execute", "forfeit"),
    VOIDED: ("void",),
}


def keyed(key: str = "k", epsilon: object = "0.1", question: str = "q", **more: object) -> Request:
    """A request under an idempotency key."""
    return replace(pure(epsilon, question), key=key, **more)


def asked(analyst: str, purpose: str = "research") -> Request:
    """One question that two analysts may share."""
    return replace(
        pure("0.1", f"q of {analyst}", analyst=analyst),
        statement="s",
        purpose=purpose,
        shared="any",
    )


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
        # another account: the key is another one, but the answer's names this one
        with pytest.raises(WrongUse, match="One key of an answer for two accounts"):
            ledger.recall(other)
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


@pytest.mark.parametrize(
    ("state", "says"), [(FORFEITED, "its cost stays spent"), (VOIDED, "nothing was charged")]
)
def test_a_key_that_ended_without_an_answer_says_so_for_ever(
    ledger: Ledger, state: str, says: str
) -> None:
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
    assert [spent(ledger, "d"), spent(ledger, "d", "ads"), spent(ledger, "d", "ads", "cid")] == [
        1,
        1,
        1,
    ]
    assert [row.source for row in charges(ledger)] == [
        "",
        charges(ledger)[0].id,
        charges(ledger)[0].id,
    ]
    assert verify(ledger).problems == ()


def test_a_shared_answer_that_cost_nobody_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.ledger.stored_answers.sharers", lambda account, source: ())
    with pytest.raises(AssertionError):
        test_a_shared_answer_is_paid_by_everybody_but_those_who_paid_it(ledger)


def test_who_has_paid_does_not_pay_again() -> None:
    assert sharers("d/p/a", "d/p/a") == ()
    assert sharers("d/p/b", "d/p/a") == ("d/p/b",)
    assert sharers("d/q/a", "d/p/a") == ("d/q", "d/q/a")


def test_a_shared_answer_beyond_an_analysts_limit_is_refused_and_writes_nothing(
    ledger: Ledger,
) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, asked("ann"))
    ledger.allocate("d", Budget("0.05"), purpose="research", analyst="bob")
    before = head(ledger)
    with pytest.raises(BudgetExceeded, match="account 'd/research/bob'"):
        ledger.recall(asked("bob"))
    assert head(ledger) == before


def test_a_shared_answer_is_free_for_a_dataset_that_has_nothing_left(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure(1, "a", analyst="ann"), shared="all"))
    assert ledger.balance("d").left.epsilon == 0
    assert ledger.recall(replace(pure(1, "b", analyst="bob"), shared="all")) == BODY


@pytest.mark.parametrize("account", [(), ("research",), ("research", "ann")])
def test_a_frozen_account_is_given_no_stored_answer(
    ledger: Ledger, account: tuple[str, ...]
) -> None:
    paid(ledger, asked("ann"))
    assert ledger.recall(asked("ann")) == BODY
    ledger.freeze("d", reason="stop", **dict(zip(("purpose", "analyst"), account, strict=False)))
    for request in (asked("ann"), replace(asked("ann"), key="k")):
        with pytest.raises(AccountFrozen, match="stop"):
            ledger.recall(request)
    ledger.thaw("d", **dict(zip(("purpose", "analyst"), account, strict=False)))
    assert ledger.recall(asked("ann")) == BODY


def test_an_answer_given_to_a_frozen_account_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.ledger.answers.require_open", lambda path: None)
    monkeypatch.setattr(LockedAccounts, "require_open", lambda locked: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_frozen_account_is_given_no_stored_answer(ledger, ("research",))


def of(purpose: str) -> Request:
    """One question of one analyst for one of several purposes."""
    return replace(asked("ann", purpose), question=f"q for {purpose}")


def test_another_purpose_of_the_same_analyst_pays_in_full_and_the_dataset_nothing(
    ledger: Ledger,
) -> None:
    paid(ledger, of("research"))
    assert ledger.recall(of("ads")) == BODY
    assert [spent(ledger, "d"), spent(ledger, "d", "research"), spent(ledger, "d", "ads")] == [
        1,
        1,
        1,
    ]
    assert spent(ledger, "d", "ads", "ann") == 1
    assert ledger.recall(of("ads")) == BODY
    assert spent(ledger, "d", "ads") == 1
    assert verify(ledger).problems == ()


def failed_thrice(ledger: Ledger) -> None:
    """Three questions of the analyst fail after the read."""
    for number in range(3):
        charge = ledger.reserve(pure("0.1", f"failing {number}", analyst="ann"))
        ledger.execute(charge)
        ledger.forfeit(charge, "engine")


def test_a_shared_answer_is_not_given_to_an_analyst_after_three_failures(ledger: Ledger) -> None:
    paid(ledger, asked("ann"))
    failed_thrice(ledger)
    before = spent(ledger, "d")
    with pytest.raises(AccountFrozen, match="after 3 failures"):
        ledger.recall(replace(asked("ann", "other"), question="q for another purpose"))
    assert spent(ledger, "d") == before and spent(ledger, "d", "other") == 0


def test_a_shared_answer_after_three_failures_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid(ledger, asked("ann"))
    failed_thrice(ledger)
    monkeypatch.setattr(stored_answers, "require_few_failures", lambda *_: None)
    assert ledger.recall(replace(asked("ann", "other"), question="q for another purpose")) == BODY


def test_a_purpose_that_cannot_pay_reads_no_answer_of_another(ledger: Ledger) -> None:
    paid(ledger, of("research"))
    ledger.allocate("d", Budget("1e-6"), purpose="ads", analyst="ann")
    before = head(ledger)
    with pytest.raises(BudgetExceeded, match="account 'd/ads/ann'"):
        ledger.recall(of("ads"))
    ledger.freeze("d", purpose="ads", reason="stop")
    with pytest.raises(AccountFrozen):
        ledger.recall(of("ads"))
    assert [entry for entry in head(ledger) if entry not in before] == head(ledger)[len(before) :]
    assert spent(ledger, "d", "ads") == 0


def earlier(request: Request, *past: Keys) -> Request:
    """A request whose answer may be stored under keys of an earlier format."""
    return replace(
        request,
        question=f"{request.question}, named anew",
        statement="new",
        shared="",
        earlier=past,
    )


def test_an_answer_under_a_key_of_an_earlier_format_is_the_same_answer(ledger: Ledger) -> None:
    old = keyed()
    paid(ledger, old)
    new = earlier(old, Keys("never asked", "x"), Keys(old.question, old.statement))
    assert ledger.holds(new)
    for key in ("k", "another", ""):
        assert ledger.recall(replace(new, key=key)) == BODY
        with pytest.raises(InProgress):
            ledger.reserve(replace(new, key=key))
    assert spent(ledger, "d") == 1
    assert not ledger.holds(replace(new, earlier=()))
    with pytest.raises(KeyUsed):
        ledger.recall(replace(new, key="k", earlier=()))
    assert verify(ledger).problems == ()


def test_an_answer_of_another_purpose_under_an_earlier_key_is_none_of_this_one(
    ledger: Ledger,
) -> None:
    paid(ledger, pure("0.1"))
    new = replace(earlier(pure("0.1"), Keys("q", "statement of q")), purpose="ads")
    assert not ledger.holds(new)
    assert ledger.recall(new) is None


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


# --- at the same instant --------------------------------------------------------------------------


def spent_by_two_purposes(ledger: Ledger) -> Fraction:
    """What the dataset has spent once two purposes of one analyst have asked the same at the same
    instant.
    """
    one, two = (replace(asked("ann"), purpose=purpose) for purpose in ("one", "two"))
    two = replace(two, question="two's own key")
    assert ledger.recall(one) is ledger.recall(two) is None
    charge = ledger.reserve(one)
    with suppress(InProgress):
        finish(ledger, ledger.reserve(two))
    finish(ledger, charge)
    if ledger.recall(two) is None:
        finish(ledger, ledger.reserve(two))
    return Fraction(ledger.balance("d").spent.epsilon, 10**12)


def finish(ledger: Ledger, charge: str) -> None:
    ledger.execute(charge)
    ledger.commit(charge, BODY)


def test_two_purposes_that_ask_at_the_same_instant_pay_the_dataset_once(ledger: Ledger) -> None:
    assert spent_by_two_purposes(ledger) == Fraction(1, 10)


def test_a_purpose_that_does_not_wait_pays_the_dataset_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_answers, "_is_shared_soon", lambda rows, ready: False)
    assert spent_by_two_purposes(ledger) == Fraction(1, 5)


def test_what_was_stored_since_it_was_looked_for_is_shared_not_reserved(ledger: Ledger) -> None:
    one, two = asked("ann"), replace(asked("ann"), purpose="two", question="two's own key")
    finish(ledger, ledger.reserve(one))
    with pytest.raises(InProgress):
        ledger.reserve(two)
    assert ledger.reserve_all([two]) == []
    assert ledger.own_answer(two) == BODY
    assert ledger.balance("d").spent.epsilon == 10**11


def test_a_key_is_bound_to_a_question_of_stored_parts_alone(ledger: Ledger) -> None:
    part = ledger.reserve(pure("0.1", "part"))
    finish(ledger, part)
    whole = replace(pure("0.1", "whole"), key="k")
    for _ in range(2):
        assert ledger.recall(whole) is None
        ledger.reread(whole, {part})
    for other in ("part", "another"):
        with pytest.raises(KeyUsed):
            ledger.recall(replace(pure("0.1", other), key="k"))
    assert verify(ledger).problems == ()

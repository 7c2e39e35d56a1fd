# SPDX-License-Identifier: Apache-2.0
"""The owner's acts: each is explicit, in the journal, and gives nothing back."""

import json
import os
import pwd
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    ContractMismatch,
    LedgerUnavailable,
    NotListed,
    WrongUse,
)
from sfumato.ledger import Ledger, Scope, verify
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.privacy import Budget
from tests.contracts.charges import (
    BODY,
    contract,
    entries,
    head,
    in_state,
    opened,
    paid,
    pure,
    state_of,
)


def told(ledger: Ledger) -> dict[str, object]:
    """The last act of the journal."""
    last = entries(ledger)[-1]
    return {"kind": last.kind, **json.loads(last.body)}


def research(epsilon: object, question: str = "q", analyst: str = "ann"):
    """A request for a purpose."""
    return replace(pure(epsilon, question, analyst=analyst), purpose="research")


def test_a_limit_below_the_dataset_binds_only_below(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.3"), purpose="research")
    assert told(ledger)["kind"] == "allocate"
    ledger.restrict("d", closed=False)
    paid(ledger, research("0.3"))
    with pytest.raises(BudgetExceeded, match="account 'd/research'"):
        ledger.reserve(research("0.1", "r", "bob"))
    paid(ledger, pure("0.7", "rest"))
    assert ledger.balance("d").left.epsilon == 0
    assert verify(ledger).problems == ()


def test_limits_below_may_promise_more_than_there_is_and_the_dataset_still_holds(
    ledger: Ledger,
) -> None:
    for purpose in ("research", "unstated"):
        ledger.allocate("d", Budget("0.8"), purpose=purpose)
    paid(ledger, research("0.8"))
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.2 left"):
        ledger.reserve(pure("0.5", "r"))
    assert ledger.standing("d", "unstated").left.epsilon == Fraction(1, 5)


def test_a_limit_below_can_be_taken_away(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.1"), purpose="research")
    ledger.allocate("d", None, purpose="research")
    assert ledger.standing("d", "research").limit is None
    paid(ledger, research("1"))
    assert verify(ledger).problems == ()


def test_many_accounts_get_their_limits_as_one_by_one(place: str, tmp_path: Path) -> None:
    limits = {Scope("d", "research"): Budget("0.5")}
    limits |= {Scope("d", "research", f"analyst {number}"): Budget("0.1") for number in range(300)}
    limits |= {Scope("d", "other", "ann"): None}
    many = Ledger.open(place)
    many.adopt(contract(Budget(1)), Budget(1))
    assert many.allocate_all(limits, reason="a new year") == 302
    one_by_one = opened(tmp_path / "one.db")
    for scope, budget in limits.items():
        one_by_one.allocate("d", budget, purpose=scope.purpose, analyst=scope.analyst)
    assert many.accounts() == one_by_one.accounts()
    assert told(many)["reason"] == "a new year"
    assert verify(many).problems == ()
    # again it changes what is different only
    count = len(entries(many))
    assert many.allocate_all({**limits, Scope("d", "research"): Budget("0.6")}) == 1
    assert len(entries(many)) == count + 1
    assert many.standing("d", "research").limit == Budget("0.6")
    many.close()


def test_what_cannot_be_allocated_is_refused_among_many(ledger: Ledger) -> None:
    count = len(entries(ledger))
    with pytest.raises(WrongUse, match="several datasets"):
        ledger.allocate_all({Scope("d", "p"): Budget(1), Scope("e", "p"): Budget(1)})
    with pytest.raises(WrongUse, match="without a limit"):
        ledger.allocate_all({Scope("d", "p"): Budget(1), Scope("d"): None})
    with pytest.raises(WrongUse):
        ledger.allocate_all({Scope("d", "p"): Budget(1), Scope("d", "P"): Budget(1)})
    assert (ledger.allocate_all({}), len(entries(ledger))) == (0, count)


def test_a_dataset_always_has_a_limit(ledger: Ledger) -> None:
    with pytest.raises(WrongUse, match="A dataset without a limit"):
        ledger.allocate("d", None)


def test_a_cap_lowered_under_what_is_spent_admits_nothing_and_gives_nothing_back(
    ledger: Ledger,
) -> None:
    paid(ledger, pure("0.6"))
    ledger.allocate("d", Budget("0.5"))
    standing = ledger.standing("d")
    assert (standing.left.epsilon, standing.spent.epsilon) == (0, 6 * 10**11)
    with pytest.raises(BudgetExceeded, match="has nothing left"):
        ledger.reserve(pure("1e-12", "r"))
    assert ledger.answer("q") == BODY
    ledger.allocate("d", Budget("0.7"))
    paid(ledger, pure("0.1", "s"))
    assert ledger.balance("d").left.epsilon == 0
    assert verify(ledger).problems == ()


def test_a_cap_lowered_under_what_executes_loses_neither_answer_nor_charge(ledger: Ledger) -> None:
    charge = in_state(ledger, EXECUTING)
    ledger.allocate("d", Budget("0.01"))
    ledger.commit(charge, BODY)
    assert ledger.answer("q") == BODY
    assert ledger.balance("d").spent.epsilon == 10**11
    assert verify(ledger).problems == ()


def test_another_limit_of_the_dataset_is_another_contract(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.allocate("d", Budget(2, "1e-6"))
    assert ledger.budget_of("d") == Budget(2, "1e-6")
    with pytest.raises(ContractMismatch, match="epsilon: now 1, in the ledger 2"):
        ledger.adopt(contract(Budget(1)), Budget(1))
    ledger.adopt(contract(Budget(2, "1e-6")), Budget(2, "1e-6"))
    assert verify(ledger).problems == ()


def test_a_new_period_begins_at_nothing_and_the_lifetime_remembers(ledger: Ledger) -> None:
    paid(ledger, pure(1))
    ledger.refresh("d", Budget("0.5", "1e-6"), reason="a new year")
    standing = ledger.standing("d")
    assert (standing.spent.epsilon, standing.left.epsilon) == (0, Fraction(1, 2))
    assert standing.lifetime == (Fraction(3, 2), Fraction(1, 10**6))
    assert standing.earlier[0].limit == Budget(1)
    assert standing.earlier[0].spent.epsilon == 10**12
    assert told(ledger)["reason"] == "a new year"
    paid(ledger, pure("0.5", "r"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(pure("0.5", "s"))
    assert verify(ledger).problems == ()


def test_a_new_period_of_an_analyst_is_still_bounded_by_the_dataset(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.6"), purpose="research", analyst="ann")
    paid(ledger, research("0.6"))
    ledger.refresh("d", Budget("0.6"), purpose="research", analyst="ann", reason="a new month")
    assert ledger.standing("d", "research", "ann").left.epsilon == Fraction(2, 5)
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.4 left"):
        ledger.reserve(research("0.5", "r"))


def test_what_is_under_way_at_a_refresh_is_paid_in_the_new_period(ledger: Ledger) -> None:
    charge = in_state(ledger, EXECUTING)
    ledger.refresh("d", Budget(1), reason="a new year")
    ledger.commit(charge, BODY)
    assert ledger.standing("d").spent.epsilon == 10**11
    assert verify(ledger).problems == ()


def test_a_period_that_broke_its_limit_is_not_closed(ledger: Ledger) -> None:
    paid(ledger, pure("0.6"))
    ledger.allocate("d", Budget("0.5"))
    before = head(ledger)
    with pytest.raises(WrongUse, match="has spent more than its limit"):
        ledger.refresh("d", Budget(1), reason="to forget it")
    assert head(ledger) == before
    ledger.allocate("d", Budget("0.6"))
    ledger.refresh("d", Budget(1), reason="a new year")
    assert ledger.standing("d").lifetime == (Fraction(8, 5), 0)


def test_a_frozen_account_takes_no_charge_until_it_is_thawed(ledger: Ledger) -> None:
    ledger.freeze("d", purpose="research", analyst="ann", reason="left the project")
    before = head(ledger)
    with pytest.raises(AccountFrozen, match="'d/research/ann' is frozen: left the project"):
        ledger.reserve(research("0.1"))
    assert head(ledger) == before
    assert ledger.standing("d", "research", "ann").frozen == "d/research/ann: left the project"
    paid(ledger, research("0.1", "r", "bob"))
    assert ledger.thaw("d", purpose="research", analyst="ann") == 0
    paid(ledger, research("0.1"))
    assert verify(ledger).problems == ()


def test_a_charge_that_is_frozen_before_it_reads_is_voided(ledger: Ledger) -> None:
    charge = in_state(ledger, RESERVED)
    ledger.freeze("d", reason="stop")
    with pytest.raises(AccountFrozen, match="stop"):
        ledger.execute(charge)
    assert state_of(ledger, charge) == VOIDED
    assert ledger.balance("d").taken.epsilon == 0
    assert verify(ledger).problems == ()


def test_a_charge_that_is_frozen_while_it_reads_is_completed(ledger: Ledger) -> None:
    charge = in_state(ledger, EXECUTING)
    ledger.freeze("d", reason="stop")
    ledger.commit(charge, BODY)
    assert (state_of(ledger, charge), ledger.answer("q")) == (COMMITTED, BODY)
    assert verify(ledger).problems == ()


@pytest.mark.parametrize("reason", ["", "a\nb", "a\0", "\ud800", None])
def test_an_act_says_why(ledger: Ledger, reason: object) -> None:
    before = head(ledger)
    for act in (ledger.freeze, lambda name, reason: ledger.refresh(name, Budget(1), reason=reason)):
        with pytest.raises(WrongUse, match="reason="):
            act("d", reason=reason)
    assert head(ledger) == before


def test_a_thaw_below_looks_at_the_failures_below_alone(ledger: Ledger) -> None:
    for number, purpose in enumerate(("research", "research", "unstated")):
        charge = ledger.reserve(replace(pure("0.1", f"q{number}", analyst="ann"), purpose=purpose))
        ledger.execute(charge)
        ledger.forfeit(charge, "engine")
    with pytest.raises(AccountFrozen, match="after 3 failures"):
        ledger.reserve(research("0.1", "r"))
    assert ledger.thaw("d", purpose="unstated") == 1
    paid(ledger, research("0.1", "r"))
    assert ledger.thaw("d") == 2
    assert verify(ledger).problems == ()


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger: ledger.allocate("e", Budget(1)),
        lambda ledger: ledger.refresh("e", Budget(1), reason="r"),
        lambda ledger: ledger.freeze("e"),
        lambda ledger: ledger.thaw("e"),
        lambda ledger: ledger.share_answers("e", allowed=True),
    ],
)
def test_no_act_makes_an_account_of_a_dataset(ledger: Ledger, act) -> None:
    with pytest.raises(LedgerUnavailable, match="no account of dataset 'e'"):
        act(ledger)


def test_every_act_is_in_the_journal(ledger: Ledger) -> None:
    ledger.allocate("d", Budget(2))
    ledger.freeze("d")
    ledger.thaw("d")
    ledger.share_answers("d", allowed=True)
    in_state(ledger, FORFEITED)
    ledger.refresh("d", Budget(1), reason="r")
    kinds = [entry.kind for entry in entries(ledger)]
    assert kinds[:5] == ["account", "allocate", "freeze", "thaw", "policy"]
    assert kinds[-1] == "refresh"
    assert verify(ledger).problems == ()


def test_every_act_of_the_owner_names_its_actor(ledger: Ledger) -> None:
    dora = ledger.acting_as("Dora")
    for act in (
        lambda: dora.allocate("d", Budget("0.5"), purpose="research", reason="why"),
        lambda: dora.restrict("d", closed=False, reason="why"),
        lambda: dora.refresh("d", Budget(1), reason="why"),
        lambda: dora.freeze("d", reason="why"),
        lambda: dora.thaw("d", reason="why"),
        lambda: dora.share_answers("d", allowed=True, reason="why"),
        lambda: dora.adopt(contract(Budget(1)), Budget(1), sources=["file /x"]),
    ):
        act()
        assert told(ledger)["actor"] == "Dora"
        assert told(ledger).get("reason", "why") == "why"
    ledger.thaw("d")
    assert told(ledger)["actor"] == pwd.getpwuid(os.getuid()).pw_name
    opening = json.loads(entries(ledger)[0].body)
    assert opening["actor"] == ledger.actor
    assert verify(ledger).problems == ()


def test_an_actor_has_a_name(ledger: Ledger) -> None:
    for name in ("", "a\nb", "x" * 201, None):
        with pytest.raises(WrongUse):
            ledger.acting_as(name)


@pytest.mark.parametrize("reason", ["x" * 1001, "é" * 501, "a\nb", 3])
def test_a_reason_that_cannot_be_kept_is_refused_and_writes_nothing(
    ledger: Ledger, reason: object
) -> None:
    before = head(ledger)
    for act in (
        lambda: ledger.freeze("d", reason=reason),
        lambda: ledger.thaw("d", reason=reason),
        lambda: ledger.refresh("d", Budget(1), reason=reason),
        lambda: ledger.allocate("d", Budget(1), reason=reason),
        lambda: ledger.restrict("d", closed=True, reason=reason),
        lambda: ledger.share_answers("d", allowed=True, reason=reason),
    ):
        with pytest.raises(WrongUse):
            act()
    assert head(ledger) == before
    ledger.freeze("d", reason="x" * 1000)


def test_a_list_of_names_closes_a_dataset(ledger: Ledger) -> None:
    paid(ledger, research("0.1"))
    ledger.allocate("d", Budget("0.5"), purpose="research", analyst="bob")
    assert told(ledger)["lists"] == ["d", "d/research"]
    with pytest.raises(NotListed, match="'d/research/eve' is not on the owner's list"):
        ledger.reserve(research("0.1", "r", "eve"))
    ledger.allocate("d", Budget("0.5"), purpose="research", analyst="eve")
    assert "lists" not in told(ledger)
    paid(ledger, research("0.1", "r", "eve"))

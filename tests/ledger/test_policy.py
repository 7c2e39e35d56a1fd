# SPDX-License-Identifier: Apache-2.0
"""Who is listed, what limits there were, where the data lies."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, ContractMismatch, NotListed
from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger import account_transaction as books_module
from sfumato.ledger import owner as owner_module
from sfumato.ledger.journal import chained, genesis
from sfumato.ledger.policy import decided, limited_accounts, merged, past_limits, to_list
from sfumato.privacy import Budget
from tests.contracts.charges import BODY, contract, entries, head, paid, pure

DATA = Path(__file__).parent / "data"


def of(purpose: str, analyst: str, question: str = "", epsilon: object = "0.1") -> Request:
    """A request on an account."""
    asked = pure(epsilon, question or f"{purpose} {analyst}", analyst=analyst)
    return replace(asked, purpose=purpose, shared="any")


def refused(ledger: Ledger, *account: str) -> bool:
    """Whether an account may not be charged; nothing is left of the attempt."""
    before = head(ledger)
    try:
        ledger.void(ledger.reserve(replace(of(*account, question="tried"), shared="")))
    except NotListed:
        assert head(ledger) == before
        return True
    return False


def test_anybody_may_ask_where_nobody_is_listed(ledger: Ledger) -> None:
    assert not refused(ledger, "research", "ann")


def test_a_limit_below_the_dataset_closes_it_for_names_that_nobody_opened(ledger: Ledger) -> None:
    paid(ledger, replace(of("ads", "eve"), shared=""))
    ledger.allocate("d", Budget("0.5"), purpose="research")
    assert refused(ledger, "other", "ann")
    assert not refused(ledger, "ads", "eve"), "who was there stays"
    # within a limited purpose, nobody's limit can be escaped until somebody has one
    assert not refused(ledger, "research", "ann")
    ledger.allocate("d", Budget("0.1"), purpose="research", analyst="bob")
    assert (refused(ledger, "research", "cid"), refused(ledger, "research", "ann")) == (True, False)
    ledger.allocate("d", None, purpose="research", analyst="cid")
    assert not refused(ledger, "research", "cid")
    assert verify(ledger).problems == ()


def test_a_limit_of_an_analyst_closes_the_purpose_too(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.1"), purpose="research", analyst="bob")
    assert (refused(ledger, "research", "eve"), refused(ledger, "bob", "bob")) == (True, True)
    assert not refused(ledger, "research", "bob")
    assert verify(ledger).problems == ()


def test_the_owner_opens_and_closes_the_list(ledger: Ledger) -> None:
    ledger.restrict("d", closed=True, reason="only whom we know")
    assert refused(ledger, "research", "ann")
    ledger.restrict("d", closed=False)
    assert not refused(ledger, "research", "ann")
    assert not refused(ledger, "open", "ann")
    ledger.allocate("d", Budget("0.1"), purpose="research", analyst="bob")
    assert not refused(ledger, "research", "eve"), "what the owner said stands"
    ledger.restrict("d", closed=True)
    assert (refused(ledger, "research", "ann"), refused(ledger, "research", "bob")) == (
        False,
        False,
    )
    assert refused(ledger, "research", "dan")
    ledger.allocate("d", None, purpose="open")
    assert refused(ledger, "open", "dan"), "a list is of all names"
    assert verify(ledger).problems == ()


def test_a_list_that_nobody_looks_at_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books_module, "require_listed", lambda lineage, stored: None)
    for check in (
        test_a_limit_below_the_dataset_closes_it_for_names_that_nobody_opened,
        test_a_shared_answer_opens_no_account_either,
    ):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            check(ledger)


def test_a_shared_answer_opens_no_account_either(ledger: Ledger) -> None:
    ledger.share_answers("d", allowed=True)
    paid(ledger, of("research", "ann"))
    ledger.allocate("d", Budget("0.3"), purpose="research", analyst="bob")
    with pytest.raises(NotListed):
        ledger.recall(of("research", "eve"))
    assert ledger.recall(of("research", "bob")) == BODY
    with pytest.raises(BudgetExceeded):
        ledger.reserve(replace(of("research", "bob", "dear", "0.3"), shared=""))


def test_a_forged_list_is_found(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.5"), purpose="research")

    def forge(rows: object) -> None:
        row = rows.account("d")
        rows.put_account(row._replace(policy=merged(row.policy, {"listed": False})))

    ledger.store.write(forge)
    assert verify(ledger).problems == (
        "account 'd' does not have the state that the owner gave it",
    )


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_dataset_of_an_earlier_format_is_brought_forward_once(
    tmp_path: Path, number: int
) -> None:
    path = Path(shutil.copy(DATA / f"format-{number}.sqlite", tmp_path / "l.db"))
    ledger = Ledger.open(path)
    row = ledger.store.peek("d")
    kept = json.loads(row.contract)
    adopted = replace(contract(Budget(1)), **kept)
    budget = Budget(kept["epsilon"], kept["delta"])
    said = []
    for _ in range(2):
        ledger.adopt(adopted, budget)
        said.append(head(ledger))
    assert said[0] == said[1]
    assert (kept["epsilon"], kept["delta"]) in ledger.past_limits("d")
    assert verify(ledger).problems == ()
    acts = [
        json.loads(each.body)
        for each in entries(ledger)
        if each.kind == "policy" and each.chain == "d"
    ]
    assert [act["past_limits"] for act in acts if "past_limits" in act] == [
        list(map(list, ledger.past_limits("d")))
    ]
    # accounts that were there are known, others only where nobody had a limit
    limited = any(
        each.limit and each.scope.parent for each in ledger.accounts() if each.scope.root == "d"
    )
    assert bool(decided(ledger.store.peek("d")).get("listed")) == limited
    ledger.close()


def test_a_new_dataset_has_no_past(ledger: Ledger) -> None:
    before = head(ledger)
    ledger.adopt(contract(Budget(1)), Budget(1))
    assert (ledger.past_limits("d"), head(ledger)) == ((), before)


def act(kind: str, **body: object) -> object:
    """An entry."""
    return chained("d", 1, "now", kind, body, genesis("d"))


def test_past_limits_are_those_of_the_dataset_each_once() -> None:
    def limit(epsilon: str) -> dict[str, str]:
        return {"epsilon": epsilon, "delta": "0"}

    acts = [
        act("account", contract={"dataset": "d", **limit("1")}),
        act("allocate", account="d", limit=limit("2"), gates={}),
        act("allocate", account="d/p", limit=limit("7"), gates={}),
        act("refresh", account="d", limit=limit("1"), gates={}),
        act("thaw", account="d"),
        act("refresh", account="d/p/a", limit=limit("8"), gates={}),
    ]
    assert past_limits(acts) == [["1", "0"], ["2", "0"]]
    assert limited_accounts(acts) == ["d/p", "d/p/a"]


def test_only_what_nothing_was_decided_about_is_closed(ledger: Ledger) -> None:
    ledger.allocate("d", Budget("0.5"), purpose="research")
    rows = ledger.store.read(lambda rows: list(rows.accounts()))
    assert to_list(rows) == ["d/research"]


def test_the_same_source_under_another_name_is_refused_unless_these_are_other_people(
    ledger: Ledger,
) -> None:
    ledger.adopt(contract(Budget(1)), Budget(1), sources=["file /data/people.csv"])
    before = head(ledger)
    other = contract(Budget(1), "fresh")
    with pytest.raises(ContractMismatch, match="data of 'd' too"):
        ledger.adopt(other, Budget(1), sources=["file /data/more.csv", "file /data/people.csv"])
    assert (head(ledger), ledger.budget_of("fresh")) == (before, None)
    ledger.adopt(
        other, Budget(1), sources=["file /data/people.csv"], other_people="the other year's people"
    )
    told = json.loads(entries(ledger)[-1].body)
    assert (told["other_people"], told["reason"]) == (["d"], "the other year's people")
    # once said, it stands; another one has to say it again
    ledger.adopt(other, Budget(1), sources=["file /data/people.csv"])
    with pytest.raises(ContractMismatch, match="data of 'd', 'fresh' too"):
        ledger.adopt(contract(Budget(1), "third"), Budget(1), sources=["file /data/people.csv"])
    assert verify(ledger).problems == ()


def test_a_source_that_moved_is_the_same_dataset_and_keeps_its_old_place(ledger: Ledger) -> None:
    for place in ("file /a.csv", "file /b.csv", "file /a.csv"):
        ledger.adopt(contract(Budget(1)), Budget(1), sources=[place])
    with pytest.raises(ContractMismatch):
        ledger.adopt(contract(Budget(1), "e"), Budget(1), sources=["file /a.csv"])
    ledger.adopt(contract(Budget(1), "e"), Budget(1), sources=["file /c.csv"])
    assert verify(ledger).problems == ()


def test_a_ledger_that_does_not_compare_sources_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_module, "shared_sources", lambda rows, dataset, sources: [])
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_the_same_source_under_another_name_is_refused_unless_these_are_other_people(ledger)

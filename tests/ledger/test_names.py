# SPDX-License-Identifier: Apache-2.0
"""Names that may open an account: one spelling, one script, one account."""

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, WrongUse
from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger import account_transaction as books_module
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.names import folded, is_highly_restrictive, require_well_formed
from sfumato.privacy import Budget
from tests.contracts.charges import contract, head, opened, paid, pure
from tests.contracts.effort import examples

TWINS = {
    "a space at the end": "ann ",
    "a space before": " ann",
    "another case": "Ann",
    "Cyrillic": "\u0430nn",
    "full width": "\uff41nn",
    "a filler": "ann\u3164",
    "a Greek letter": "an\u03bd",
    "a mark that is not composed": "anne\u0301",
    "two spaces": "ann  b",
}
GOOD = [
    "ann",
    "Ann O'Neil",
    "a.b+c@d.example",
    "Jos\u00e9",
    "Wei\u00df",
    "\u738b\u5c0f\u660e",
    "\u738b ann",
    "\u30d2\u3089\u6f22 x",
    "\ud55c\uad6d lab",
]
GOOD += [
    "\u0410\u043d\u043d\u0430",
    "\u05d0\u05d1",
    "\u0645\u062d\u0645\u062f",
    "\u0391\u03bd\u03bd\u03b1 2",
    "ACS-2019",
    "100%/2",
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger that lets anybody ask, with a limit for ann."""
    ledger = opened(tmp_path / "l.db")
    ledger.restrict("d", closed=False)
    ledger.allocate("d", Budget("0.2"), purpose="research", analyst="ann")
    return ledger


def of(
    analyst: str, epsilon: object = "0.1", question: str = "q", purpose: str = "research"
) -> Request:
    """A request of an analyst."""
    return replace(pure(epsilon, question, analyst=analyst), purpose=purpose)


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_no_spelling_of_a_name_escapes_its_limit(ledger: Ledger, twin: str) -> None:
    paid(ledger, of("ann", "0.2"))
    before = head(ledger)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(of("ann", question="r"))
    with pytest.raises(WrongUse):
        ledger.reserve(of(TWINS[twin], question="r"))
    assert head(ledger) == before


def test_a_ledger_that_took_any_name_would_be_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books_module, "require_new", lambda rows, account_id: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_no_spelling_of_a_name_escapes_its_limit(ledger, "Cyrillic")


def test_a_name_of_mixed_scripts_opens_no_account(ledger: Ledger) -> None:
    for name in (TWINS["Cyrillic"], TWINS["a Greek letter"]):
        for act in (
            lambda name=name: ledger.reserve(of(name)),
            lambda name=name: ledger.allocate("d", Budget(1), purpose=name),
            lambda name=name: ledger.freeze("d", purpose="research", analyst=name),
            lambda name=name: ledger.adopt(contract(Budget(1), name), Budget(1)),
        ):
            with pytest.raises(WrongUse, match="mixes scripts"):
                act()


def test_a_name_that_differs_in_case_only_opens_no_account(ledger: Ledger) -> None:
    paid(ledger, of("Wei\u00df", purpose="Study"))
    for analyst, purpose in (("WEISS", "Study"), ("Wei\u00df", "study")):
        with pytest.raises(WrongUse, match="in its spelling only"):
            ledger.reserve(of(analyst, question="r", purpose=purpose))
    with pytest.raises(WrongUse, match="'D' differs from 'd'"):
        ledger.adopt(contract(Budget(1), "D"), Budget(1))
    # the same name below another purpose is another account
    paid(ledger, of("WEISS", question="r", purpose="other"))
    assert verify(ledger).problems == ()


def test_a_stored_name_is_spent_from_under_its_own_spelling_alone(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ("ann ", "ANN", TWINS["Cyrillic"])
    with monkeypatch.context() as patch:
        # as an earlier version did
        patch.setattr(books_module, "require_new", lambda rows, account_id: None)
        for number, name in enumerate(old):
            paid(ledger, of(name, question=f"old {number}"))
    for number, name in enumerate(old):
        paid(ledger, of(name, question=f"new {number}"))
        assert ledger.standing("d", "research", name).spent.epsilon == 2 * 10**11
    for name in (" ann", "Ann", "an\u0430"):
        with pytest.raises(WrongUse):
            ledger.reserve(of(name, question="r"))
    assert verify(ledger).problems == ()


@pytest.mark.parametrize("name", GOOD, ids=ascii)
def test_names_of_all_writing_systems_are_well_formed(name: str) -> None:
    require_well_formed(name)
    assert is_highly_restrictive(name)


@pytest.mark.parametrize(
    "name", [each for kind, each in TWINS.items() if kind != "another case"], ids=ascii
)
def test_a_name_that_looks_like_another_is_refused_and_told_how_to_write_it(name: str) -> None:
    with pytest.raises(WrongUse) as caught:
        require_well_formed(name)
    assert caught.value.allowed


@settings(deadline=None, max_examples=examples(4))
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))
def test_spellings_of_one_name_fold_to_one_text(name: str) -> None:
    spellings = [
        name.strip(),
        f" {name}",
        unicodedata.normalize("NFD", name),
        unicodedata.normalize("NFKC", name),
    ]
    assert {folded(each) for each in spellings} == {folded(name)}
    assert folded(folded(name)) == folded(name)


@settings(deadline=None, max_examples=examples(4))
@given(
    st.text(
        "abzAZ .-_@059\u0430\u03b1\u738b\u3072\u30ab\ud55c\u3105\u0301\u05d0",
        min_size=1,
        max_size=6,
    )
)
def test_the_level_is_that_of_the_definition(name: str) -> None:
    """Against the words of UTS 39, 5.2, over characters of one script each."""
    scripts = {
        **dict.fromkeys("abzAZ", "Latn"),
        "\u0430": "Cyrl",
        "\u03b1": "Grek",
        "\u738b": "Hani",
        "\u3072": "Hira",
        "\u30ab": "Kana",
        "\ud55c": "Hang",
        "\u3105": "Bopo",
        "\u05d0": "Hebr",
    }
    found = {scripts[each] for each in name if each in scripts}
    covers = [{"Latn", "Hani", "Hira", "Kana"}, {"Latn", "Hani", "Bopo"}, {"Latn", "Hani", "Hang"}]
    assert is_highly_restrictive(name) == (len(found) <= 1 or any(found <= each for each in covers))


def test_two_unseen_names_are_two_accounts(ledger: Ledger) -> None:
    paid(ledger, of("bob"))
    paid(ledger, of("bop", question="r"))
    assert {each.scope.analyst for each in ledger.accounts()} == {"", "ann", "bob", "bop"}


def test_a_batch_in_memory_has_its_twins(ledger: Ledger) -> None:
    def transaction(rows: object) -> list[str]:
        LockedAccounts(rows, "d/new").put(LockedAccounts(rows, "d/new").own)
        return rows.twins("d/new")  # not saved: nobody has it

    assert ledger.store.write(transaction) == []
    paid(ledger, of("New", purpose="new"))
    assert ledger.store.read(lambda rows: rows.twins("d/new/new")) == ["d/new/New"]

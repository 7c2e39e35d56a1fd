# SPDX-License-Identifier: Apache-2.0
"""The page for whoever answers for the data."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sfumato.errors import WrongUse
from sfumato.ledger import Ledger
from sfumato.ledger.report import page
from sfumato.ledger.summary import summary
from sfumato.ledger.words import LANGUAGES
from sfumato.privacy import Budget
from tests.contracts.charges import concentrated, in_state, opened, paid, pure

EVIL = "<script>alert('x')</script> & \"quoted\""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = opened(tmp_path / "l.db", 3, "1e-6")
    paid(ledger, replace(pure("0.1", "one", analyst="ann"), purpose="research"), b'{"statement":"SELECT COUNT(*)"}')
    in_state(ledger, "forfeited", "two")
    ledger.allocate("d", Budget("0.5"), purpose="research")
    return ledger


class Page(HTMLParser):
    """The text of a page and its tags; an unclosed or a crossing one is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []
        self.attributes: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def text(html: str) -> str:
    """What a reader sees."""
    return " ".join(" ".join(Page(html).words).split())


def test_the_page_answers_who_what_why_at_what_cost_and_what_is_left(ledger: Ledger) -> None:
    said = text(page(summary(ledger, "d")))
    for part in ("ann", "research", "SELECT COUNT(*)", "ε 0.1, ρ 0.005", "ε 2.8", "not stated", "paid, and nothing"):
        assert part in said, part
    assert "The latest 2 of 2 questions" in said
    assert "the chain is whole" in said


def test_the_factor_of_the_promise_is_rounded_up(ledger: Ledger) -> None:
    # e^3 = 20.0855
    assert "at most 20.09" in text(page(summary(ledger, "d")))


@pytest.mark.parametrize(
    ("epsilon", "says"), [("1", "by a factor of at most 2.72"), ("100", "by a factor of at most e^100")]
)
def test_a_pure_limit_promises_without_an_exception(tmp_path: Path, epsilon: str, says: str) -> None:
    said = text(page(summary(opened(tmp_path / "p.db", epsilon), "d")))
    assert says in said
    assert "probability" not in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(ledger: Ledger, language: str) -> None:
    html = page(summary(ledger, "d"), language)
    assert f'<html lang="{language}">' in html
    seen = Page(html)
    assert not {"script", "link", "img", "iframe"} & set(seen.seen)
    assert not [each for each in seen.attributes if each.startswith(("src=", "href=", "on"))]
    assert not re.search(r"https?://|url\(|@import", html)


def test_the_chinese_page_is_in_chinese(ledger: Ledger) -> None:
    said = text(page(summary(ledger, "d"), "zh"))
    for part in ("关于“d”发布了什么", "一行", "即使没有它", "20.09 倍", "已付费", "账本的全部", "未说明"):
        assert part in said, part
    assert "question" not in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_that_are_markup_stay_text(tmp_path: Path, language: str) -> None:
    ledger = opened(tmp_path / "l.db", dataset=EVIL)
    request = replace(pure("0.1", dataset=EVIL, analyst=EVIL), purpose=EVIL)
    paid(ledger, request, b'{"statement":"SELECT \\"<b>\\" </td>"}')
    ledger.freeze(EVIL, reason=EVIL)
    html = page(summary(ledger, EVIL), language)
    assert "<script" not in html
    assert "<b>" not in html
    assert EVIL in text(html)


def test_what_the_owner_did_is_told_in_words(ledger: Ledger) -> None:
    ledger.allocate("d", None, purpose="research")
    ledger.thaw("d")
    ledger.share_answers("d", allowed=True)
    ledger.share_answers("d", allowed=False)
    ledger.refresh("d", Budget(1), reason="a new year")
    said = text(page(summary(ledger, "d")))
    for part in (
        "opened the account with ε 3, δ 0.000001",
        "set the limit to ε 0.5",
        "set the limit to no limit of its own",
        "looked at 1 failures",
        "let answers be shared",
        "stopped sharing",
        "began a new period with ε 1: a new year",
        "the sum of all limits counts: ε = 4, δ = 0.000001",
    ):
        assert part in said, part


def test_a_frozen_dataset_and_sharing_stand_at_the_top(ledger: Ledger) -> None:
    ledger.freeze("d", reason="an audit")
    ledger.share_answers("d", allowed=True)
    said = text(page(summary(ledger, "d")))
    assert "The account is frozen (d: an audit)" in said
    assert "Answers are shared between analysts" in said


def test_a_ledger_that_lies_is_told_in_capitals(ledger: Ledger) -> None:
    row = ledger.store.peek("d")
    ledger.store.write(lambda rows: rows.put_account(row._replace(spent=row.held)))
    html = page(summary(ledger, "d"))
    assert "THE LEDGER DOES NOT SAY WHAT HAPPENED" in text(html)
    assert '<p class="bad">' in html


def test_gaussian_noise_is_told_as_unbounded(ledger: Ledger) -> None:
    paid(ledger, concentrated("0.001", "g"))
    assert "no bound in ε, ρ 0.001" in text(page(summary(ledger, "d")))


def test_another_language_is_refused(ledger: Ledger) -> None:
    with pytest.raises(WrongUse, match="language='fr'"):
        page(summary(ledger, "d"), "fr")

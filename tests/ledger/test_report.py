# SPDX-License-Identifier: Apache-2.0
"""The page for whoever answers for the data."""

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import AccountFrozen, BudgetExceeded, WrongUse
from sfumato.ledger import Ledger
from sfumato.ledger.report import page
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.summary import summary
from sfumato.privacy import Budget
from tests.contracts.charges import (
    concentrated,
    entries,
    in_pieces,
    in_state,
    opened,
    paid,
    pure,
)

EVIL = "<script>alert('x')</script> & \"quoted\""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = opened(tmp_path / "l.db", 3, "1e-6")
    paid(
        ledger,
        replace(pure("0.1", "one", analyst="ann"), purpose="research"),
        b'{"statement":"SELECT COUNT(*)"}',
    )
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
    for part in (
        "ann",
        "research",
        "SELECT COUNT(*)",
        "ε 0.1, ρ 0.005",
        "ε 2.8",
        "not stated",
        "paid, and nothing",
    ):
        assert part in said, part
    assert "The latest 2 of 2 questions" in said
    assert "the chain is whole" in said


def test_the_factor_of_the_promise_is_rounded_up(ledger: Ledger) -> None:
    # e^3 = 20.0855
    assert "at most 20.09" in text(page(summary(ledger, "d")))


@pytest.mark.parametrize(
    ("epsilon", "says"),
    [("1", "by a factor of at most 2.72"), ("100", "by a factor of at most e^100")],
)
def test_a_pure_limit_promises_without_an_exception(
    tmp_path: Path, epsilon: str, says: str
) -> None:
    said = text(page(summary(opened(tmp_path / "p.db", epsilon), "d")))
    assert says in said
    assert "probability" not in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(
    ledger: Ledger, language: str
) -> None:
    html = page(summary(ledger, "d"), language)
    assert f'<html lang="{language}">' in html
    seen = Page(html)
    assert not {"script", "link", "img", "iframe"} & set(seen.seen)
    assert not [each for each in seen.attributes if each.startswith(("src=", "href=", "on"))]
    assert not re.search(r"https?://|url\(|@import", html)


def test_the_chinese_page_is_in_chinese(ledger: Ledger) -> None:
    said = text(page(summary(ledger, "d"), "zh"))
    for part in (
        "关于“d”发布了什么",
        "一行",
        "即使没有它",
        "20.09 倍",
        "已付费",
        "账本的全部",
        "未说明",
    ):
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
        "began a new period with ε 1",
        "a new year",
        "The limit is ε = 4, δ = 0.000001",
        "over which the limits of all 2 periods add up. The limit of the present period is ε 1.",
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


def test_gaussian_noise_is_told_with_its_epsilon_at_the_delta_of_the_limit(
    tmp_path: Path,
) -> None:
    # at rho 0.5 and half of delta 2e-6, the conversion is known: 5.2215 (accounting.md)
    ledger = opened(tmp_path / "g.db", 10, "2e-6")
    paid(ledger, concentrated("0.5", "g"))
    said = text(page(summary(ledger, "d")))
    assert said.count("ρ 0.5 (ε 5.2216 at δ 0.000002)") == 8
    assert "were fixed in advance; whatever was asked, the limit holds" in said
    assert "no bound" not in said


def test_the_deltas_of_all_periods_belong_to_what_was_spent_in_all(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "g.db", 10, "1e-6")
    paid(ledger, concentrated("0.25", "g"))
    ledger.refresh("d", Budget(10, "1e-6"), reason="a new year")
    paid(ledger, concentrated("0.25", "h"))
    said = text(page(summary(ledger, "d")))
    assert "Spent in all periods: ρ 0.5 (ε 5.2216 at δ 0.000002)." in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_reserved_is_on_the_page(tmp_path: Path, language: str) -> None:
    ledger = opened(tmp_path / "l.db", 1, "1e-6")
    words = LANGUAGES[language]
    before = page(summary(ledger, "d"), language)
    assert words["reserved"].split("{")[0] not in text(before)
    in_state(ledger, "reserved", "one")
    charge, fence = in_pieces(ledger, 3, "two")
    ledger.suspend(charge, fence=fence)
    after = page(summary(ledger, "d"), language)
    # two charges of 0.1, whose rho is half of its square
    assert words["reserved"].format(reserved="ε 0.2, ρ 0.01") in text(after)
    assert {row[3] for row in cells(after).values()} == {"ε 0.2, ρ 0.01"}


# What each language says around the values.
SENTENCES = {
    "en": {
        "odds": "The limit is ε = {}. Whoever has seen all answers, and knows everything else, can raise or lower the odds "
        "of any guess about one of them by a factor of at most {}.",
        "spent": "Spent in the present period: {}.",
        "before": "Spent in all periods: {}.",
        "left": "Left for one more question: {}.",
        "shown": "The latest {} of {} questions that were paid for.",
        "again": "{} answers were given again",
    },
    "zh": {
        "odds": "上限为 ε = {}。即使看到全部答案并知道其他一切，对其中任何一个的任何猜测，其胜算之比的变化至多为 {} 倍。",
        "spent": "本期间已用：{}。",
        "before": "全部期间已用：{}。",
        "left": "还可再问一个问题的额度：{}。",
        "shown": "共 {1} 个已付费的问题，以下是最近 {0} 个。",
        "again": "有 {} 个答案再次提供",
    },
}


def cells(html: str) -> dict[str, list[str]]:
    """The rows of the table of accounts, by the name of the account."""
    table = html.split('<table class="log">')[1].split("</table>")[0]
    rows = [re.findall("<td>(.*?)</td>", row) for row in table.split("<tr>")]
    return {row[0].strip("\u2003"): row[1:] for row in rows if row}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_is_the_one_of_the_rows(tmp_path: Path, language: str) -> None:
    ledger = opened(tmp_path / "l.db", "2")
    ledger.restrict("d", closed=False)
    ledger.share_answers("d", allowed=True)
    for name in ("one", "two", "three"):
        paid(
            ledger,
            replace(pure("0.1", name, analyst="ann"), purpose="research", shared=f"shared {name}"),
        )
    ledger.refresh("d", Budget(2), reason="a new year")
    paid(
        ledger,
        replace(pure("0.1", "four", analyst="ann"), purpose="research", shared="shared four"),
    )
    for name in ("one", "two", "four"):  # the dataset pays nothing for what was released
        assert ledger.recall(
            replace(
                pure("0.1", f"bob's {name}", analyst="bob"), purpose="ads", shared=f"shared {name}"
            )
        )
    html = page(summary(ledger, "d"), language)
    said, sentences = text(html), SENTENCES[language]
    # worked out by hand: e^4 = 54.598..; 4 and 3 charges of 0.1, of which rho is 0.005 each; 2 -
    # 0.1 are left
    expected = {
        "odds": ("4", "54.6"),
        "spent": ("ε 0.1, ρ 0.005",),
        "before": ("ε 0.4, ρ 0.02",),
        "left": ("ε 1.9",),
        "shown": (7, 7),
        "again": (3,),
    }
    for name, values in expected.items():
        assert sentences[name].format(*values) in said, name
    table = cells(html)
    spent = {name: [*row[1:3], row[4]] for name, row in table.items()}
    assert spent == {
        LANGUAGES[language]["whole"]: ["ε 0.1, ρ 0.005", "ε 0.4, ρ 0.02", "4"],
        "research": ["ε 0.4, ρ 0.02", "ε 0.4, ρ 0.02", "4"],
        "ann": ["ε 0.4, ρ 0.02", "ε 0.4, ρ 0.02", "4"],
        "ads": ["ε 0.3, ρ 0.015", "ε 0.3, ρ 0.015", "3"],
        "bob": ["ε 0.3, ρ 0.015", "ε 0.3, ρ 0.015", "3"],
    }


def tables(html: str) -> list[list[list[str]]]:
    """Every table of a page, row by row, as text."""
    found = [
        re.findall("<tr>(.*?)</tr>", table)
        for table in re.findall('<table class="log">(.*?)</table>', html)
    ]
    return [
        [[unescape(cell) for cell in re.findall("<t[dh]>(.*?)</t[dh]>", row)] for row in table]
        for table in found
    ]


def journal(ledger: Ledger, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """The bodies of the entries of some kinds, as they are stored."""
    return [(each.kind, json.loads(each.body)) for each in entries(ledger) if each.kind in kinds]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_act_of_the_owner_stands_with_who_did_it_and_why(
    tmp_path: Path, language: str
) -> None:
    ledger = opened(tmp_path / "l.db", "2")
    eve = ledger.acting_as(EVIL)
    eve.allocate("d", Budget(1), reason="less is enough")
    eve.freeze("d", reason=f"an audit {EVIL}")
    eve.thaw("d", reason="the audit is over")
    eve.refresh("d", Budget(2), reason="a new year")
    eve.share_answers("d", allowed=True, reason="they work together")
    eve.restrict("d", closed=True, reason="by contract")
    eve.go_without_heads(
        "d", silence="file:///mnt/x: its folder is not there", reason="the mount is late"
    )
    header, *rows = tables(page(summary(ledger, "d"), language))[-1]
    words = LANGUAGES[language]
    assert header == [words[name] for name in ("when", "account", "by", "acts", "reason")]
    kinds = ("account", "allocate", "freeze", "thaw", "refresh", "policy")
    told = [
        (body["actor"], body.get("reason", "")) for _, body in reversed(journal(ledger, *kinds))
    ]
    assert [(row[2], row[4]) for row in rows] == told
    assert told[0] == (EVIL, "the mount is late") and len(told) == 8
    assert "file:///mnt/x: its folder is not there" in rows[0][3]
    assert words["act-policy"] not in [row[3] for row in rows]
    assert len({row[3] for row in rows}) == 8


def test_an_act_of_an_old_format_has_nobody(tmp_path: Path) -> None:
    found = summary(opened(tmp_path / "l.db"), "d")
    acts = [
        replace(each, body={name: value for name, value in each.body.items() if name != "actor"})
        for each in found.acts
    ]
    assert tables(page(replace(found, acts=tuple(acts))))[-1][1][2] == "not recorded"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_read_again_and_refused_is_the_sum_of_the_journal(
    tmp_path: Path, language: str
) -> None:
    ledger = opened(tmp_path / "l.db", "1")
    asked = [
        replace(pure("0.4", name, analyst=name), purpose="research") for name in ("ann", "bob")
    ]
    for request in asked:
        paid(ledger, request)
    for times, request in zip((3, 1), asked, strict=True):
        for _ in range(times):
            assert ledger.recall(request)
        ledger.write_down()
        for number in range(2):
            with pytest.raises(BudgetExceeded):
                ledger.reserve(
                    replace(
                        pure("0.9", f"dear {number}", analyst=request.analyst), purpose="research"
                    )
                )
    ledger.freeze("d", reason="an audit")
    with pytest.raises(AccountFrozen):
        ledger.recall(asked[0])
    ledger.write_down()
    words, html = LANGUAGES[language], page(summary(ledger, "d"), language)
    reads, refusals = Counter[str](), Counter[tuple[str, str]]()
    for _, body in journal(ledger, "tally"):
        for account, found in body["accounts"].items():
            reads[account] += sum(found.get("reads", {}).values())
            refusals.update(
                {(account, kind): many for kind, many in found.get("refusals", {}).items()}
            )
    assert (reads.total(), refusals.total()) == (4, 5)  # as they were asked above
    header, *rows = tables(html)[2]
    assert header == [words[name] for name in ("account", "rereads", "refusals")]
    exceeded, frozen = words["refused-BudgetExceeded"], words["refused-AccountFrozen"]
    assert rows == [
        ["d/research/ann", "3", f"{exceeded}: 2 / {frozen}: 1"],
        ["d/research/bob", "1", f"{exceeded}: 2"],
    ]
    assert {row[0]: int(row[1]) for row in rows} == reads
    assert refusals["d/research/ann", "BudgetExceeded"] == 2
    assert words["asked-again-note"].format(reads=4, refusals=5) in text(html)


def test_a_page_that_forgets_the_first_entries_of_what_was_counted_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_the_last(latest: Any, body: dict[str, Any]) -> None:
        latest.rereads.clear()
        latest.refusals.clear()
        count(latest, body)

    gathering = sys.modules["sfumato.ledger.summary"]._Latest
    count = gathering.count
    monkeypatch.setattr(gathering, "count", only_the_last)
    with pytest.raises(AssertionError):
        test_what_was_read_again_and_refused_is_the_sum_of_the_journal(tmp_path, "en")


def test_only_as_many_who_read_again_are_named_as_a_page_holds(tmp_path: Path) -> None:
    many = {f"d/p/a{number:03}": number for number in range(100)}
    html = page(replace(summary(opened(tmp_path / "l.db"), "d"), rereads=many))
    assert [row[:2] for row in tables(html)[2][1:]] == [
        [f"d/p/a{n:03}", str(n)] for n in range(99, 59, -1)
    ]
    assert "The 40 accounts of 100 with the most are shown." in text(html)
    assert f"given again {sum(many.values())} times" in text(html)


def test_odds_of_one_period_alone_would_be_noticed(tmp_path: Path) -> None:
    # e^2 = 7.389..: as it was told after a refresh
    ledger = opened(tmp_path / "l.db", "2")
    assert "at most 7.39" in text(page(summary(ledger, "d")))
    ledger.refresh("d", Budget(2), reason="a new year")
    assert "at most 54.6." in text(page(summary(ledger, "d")))


def test_a_limit_that_was_lowered_below_what_is_spent_promises_no_more_than_the_larger_one(
    tmp_path: Path,
) -> None:
    ledger = opened(tmp_path / "l.db", "3")
    paid(ledger, pure("2", "one"))
    ledger.allocate("d", Budget("2.5"))
    assert "The limit is ε = 2.5." in text(page(summary(ledger, "d")))
    ledger.allocate("d", Budget("1"))
    said = text(page(summary(ledger, "d")))
    assert "The limit is ε = 3." in said
    assert "The limit was lowered to ε 1 after more had been spent" in said


def test_units_are_told_by_their_columns(tmp_path: Path) -> None:
    found = summary(opened(tmp_path / "l.db"), "d")
    for unit, told in (
        ("('house', 'person')", "unit of “house, person”"),
        ("house", "unit of “house”"),
        ("(x", "“(x”"),
    ):
        contract = {**found.contract, "units": {"t": unit, "public": "(public)"}}
        said = text(page(replace(found, contract=contract)))
        assert told in said
        assert "public" not in said


def test_a_purpose_that_nobody_used_has_a_row(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.allocate("d", Budget("0.5"), purpose="unused")
    ledger.allocate("d", Budget("0.5"), purpose="between", analyst="ann")
    assert list(cells(page(summary(ledger, "d"))))[1:] == ["between", "ann", "unused"]


def test_every_decision_of_the_owner_is_told(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    ledger.restrict("d", closed=True)
    ledger.restrict("d", closed=False)
    said = text(page(summary(ledger, "d")))
    assert "let only accounts spend that the owner has opened" in said
    assert "let any name below the account spend" in said


def test_only_as_many_accounts_are_shown_as_a_page_holds(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["sfumato.ledger.summary"], "_ACCOUNTS_SHOWN", 4)
    html = page(summary(ledger, "d"))
    assert "4 of 5 accounts are shown" in text(html)
    assert list(cells(html))[1:] == ["research", "ann", "not stated"]


def test_another_language_is_refused(ledger: Ledger) -> None:
    with pytest.raises(WrongUse, match="language='fr'"):
        page(summary(ledger, "d"), "fr")

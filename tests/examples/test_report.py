# SPDX-License-Identifier: Apache-2.0
"""The page: well-formed, self-contained, everything escaped."""

import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sfumato.examples.differencing import Attack
from sfumato.examples.report import Story, Told, page
from sfumato.ledger.verify import Report
from sfumato.privacy.budget import Budget
from tests.contracts.people import session

EVIL = "<script>alert('1')</script>"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Fails on a tag that does not close what was opened; keeps tags and references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(text: str) -> Reader:
    """A page, parsed to its end."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def require_self_contained(text: str) -> None:
    """Nothing is fetched and nothing runs."""
    reader = read(text)
    assert set(re.findall(r"https?://[^\s\"'<>]*", text)) <= {"http://www.w3.org/2000/svg"}
    assert reader.references == []
    assert not {"script", "iframe", "object", "embed", "link", "img"} & set(reader.tags)
    assert "@import" not in text
    assert "url(" not in text
    assert "javascript:" not in text


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A small story told about the small world."""
    with session(tmp_path, budget=(3, "1e-6")) as opened:
        answers = [
            opened.query("SELECT COUNT(*) AS n FROM people", epsilon="0.2"),
            opened.query(
                "SELECT sex, smoker, AVG(age) AS m FROM people GROUP BY sex, smoker", rho="0.01"
            ),
            opened.query(
                "SELECT born, COUNT(*) AS n FROM people GROUP BY born LIMIT 9", epsilon="0.1"
            ),
        ]
        told = tuple(Told(f"{EVIL} & co", "epsilon=1", answer, "left: 1 & 2") for answer in answers)
        account, report = repr(opened.budget), opened.verify()
    attack = Attack((3, 2), (5, -1), 660, 1000, Fraction(1))
    return Story(Budget(3, "1e-6"), told, True, f"refused: {EVIL}", attack, account, report)


def test_the_page_is_well_formed_and_self_contained(story: Story) -> None:
    require_self_contained(page(story))


def test_a_page_that_fetches_or_runs_something_would_be_noticed(story: Story) -> None:
    for more in (
        '<a href="x">y</a>',
        "<script></script>",
        "<p>http://elsewhere.example/</p>",
        "<b>",
        '<img src="data:,">',
    ):
        with pytest.raises((AssertionError, IndexError)):
            require_self_contained(page(story).replace("</main>", f"{more}</main>"))


def test_the_page_tells_every_answer_with_its_cost_and_charge(story: Story) -> None:
    text = page(story)
    for told in story.told:
        assert told.answer.charge_id[:12] in text
        assert f"cost {told.answer.cost}" in text
    assert text.count("<section>") == len(story.told) + 3
    # a chart for each answer of several rows, and one for the attack
    assert text.count("<svg") == 3
    assert "the same bytes, at no cost" in text
    assert "66.0% of the time" in text
    assert "73.1%" in text


def test_texts_are_escaped(story: Story) -> None:
    text = page(story)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt; &amp; co") >= 3


def test_a_repetition_that_differs_is_not_hidden(story: Story) -> None:
    changed = Story(
        *(False if name == "repeated" else getattr(story, name) for name in Story.__slots__)
    )
    assert "NOT the same" in page(changed)


def test_the_gauge_is_the_share_of_rho_that_is_spent(story: Story) -> None:
    spent = sum(Fraction(told.answer.cost.rho) for told in story.told)
    cap = Fraction(re.findall(r"rho [\d.]+ of ([\d.]+) \(zCDP", story.account)[0])
    assert f"width:{float(spent / cap):.1%}" in page(story)
    assert isinstance(story.verified, Report)

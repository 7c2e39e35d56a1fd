# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo census``: both geographies, a page, and errors below those of single questions."""

from rich.console import Console

from sfumato.examples import demo_census
from sfumato.examples.census import PUBLISHED_SIZE
from sfumato.examples.made_up_census import made_up
from tests.contracts.shell import Shell


def test_it_shows_plan_account_sums_and_a_refusal(shell: Shell, monkeypatch):
    monkeypatch.setattr(demo_census, "made_up", lambda: made_up(persons=20_000))
    ran = shell.run("demo", "census", "--page", "page.html")
    assert (ran.code, ran.err) == (0, "")
    for words in ("least error", "The budget account", "outside differential privacy", "alone"):
        assert words in ran.out
    assert ran.out.count(f"{PUBLISHED_SIZE:,} persons in all") == 3
    page = (shell.folder / "page.html").read_text()
    assert "age_group x SEX x status" in page


def test_nobody_under_15_is_married(tmp_path):
    page = demo_census._extract(Console(quiet=True), tmp_path)
    assert "<td>0-14</td><td>male</td><td>married</td><td>0</td>" in page


def test_the_page_is_in_the_language_of_the_shell(shell: Shell, monkeypatch):
    monkeypatch.setattr(demo_census, "_extract", lambda *_: "<h2>The budget account</h2>")
    monkeypatch.setattr(demo_census, "_made_up", lambda *_: None)
    assert shell.run("--language", "zh", "demo", "census", "--page", "page.html").code == 0
    assert (shell.folder / "page.html").read_text("utf-8") == "<h2>预算账户</h2>"

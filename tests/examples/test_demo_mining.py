# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo mining``, whole, once, with fewer people."""

import contextlib
import io

import pytest

from sfumato.cli.main import run
from sfumato.examples import demo_mining


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the demo printed, and its page; it leaves nothing else."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.setattr(demo_mining, "PEOPLE", 4000)
        assert run(["demo", "mining"]) == 0
    assert [path.name for path in folder.iterdir()] == ["demo-mining.html"]
    return out.getvalue(), (folder / "demo-mining.html").read_text(encoding="utf-8")


def test_words_of_both_languages_and_their_wards_are_shown(shown: tuple[str, str]) -> None:
    printed, page = shown
    for word in ("眼睛", "eye"):
        assert word in printed and word in page
    # the noise decides which of these three, as frequent as the others, is among the first rows
    assert any(pair in printed for pair in ("blurred sight", "dry eye", "red eye"))
    assert "differs" in printed and "<svg" in page


def test_a_page_says_what_it_cost_and_wide_parts_scroll(shown: tuple[str, str]) -> None:
    _, page = shown
    assert page.count("<section>") == page.count("<h2>") == 9
    assert "What all of it cost" in page and "left" in page.split("What all of it cost")[1]
    assert "4,000 people" in page and "more often positive" in page


def test_what_goes_together_is_found(shown: tuple[str, str]) -> None:
    printed, _ = shown
    assert "bread, butter" in printed and "lift_low" in printed and "next" in printed


def test_scans_are_averaged_by_word_and_notes_are_sorted(shown: tuple[str, str]) -> None:
    printed, page = shown
    assert "The mean scan of the notes that say a word" in printed and "左耳" in page
    for said in ("blurred sight since monday: False", "itchy rash, no allergy: True"):
        assert said in printed and said in page
    assert "左耳痛 低烧: False" in printed and "皮肤干: True" in printed


def test_the_secret_is_nowhere(shown: tuple[str, str]) -> None:
    printed, page = shown
    assert demo_mining.NUMBER not in printed + page
    assert "It is in 0 of 6 results" in printed

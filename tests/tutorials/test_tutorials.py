# SPDX-License-Identifier: Apache-2.0
"""Every tutorial and how-to does what it says, in both languages."""

import re
from pathlib import Path

import pytest

from tests.tutorials.page import Command, File, follow, steps

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS))
    for folder in ("tutorials", "how-to", "zh")
    for page in (DOCS / folder).glob("**/*.md")
    if "```console" in page.read_text("utf-8")
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_says(
    name: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a reader's home, where the ledger is remembered
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    different = follow((DOCS / name).read_text("utf-8"), tmp_path, ROOT)
    assert not different, "\n\n".join(different)


def test_a_page_is_read_as_files_and_commands() -> None:
    page = '```toml title="a.toml"\nx = 1\n```\n\n```console\n$ sfumato \\\n  --version\nsfumato\n```\n'
    assert list(steps(page)) == [
        File("a.toml", "x = 1\n"),
        Command("sfumato   --version", "sfumato\n"),
    ]


def test_a_page_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```console\n$ sfumato --version\nanother version\n```\n"
    [difference] = follow(page, tmp_path, ROOT)
    assert "another version" in difference


def test_every_page_has_a_place_on_the_site() -> None:
    _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")
    named = re.findall(r"[\w/-]+\.md", nav)
    pages = [str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md")]
    assert sorted(named) == sorted(pages)

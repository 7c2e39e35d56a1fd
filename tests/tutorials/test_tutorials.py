# SPDX-License-Identifier: Apache-2.0
"""Every tutorial and how-to does what it says, in both languages."""

import re
from pathlib import Path

import pytest

from sfumato.cli.main import run
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


SCREENS = ("README.md", "README.zh-CN.md", "docs/index.md")


def first_screen(name: str) -> str:
    """What a page says before its second heading."""
    return (ROOT / name).read_text("utf-8").partition("\n## ")[0]


@pytest.mark.parametrize("name", SCREENS)
def test_a_first_screen_begins_with_one_question_and_a_picture(name: str) -> None:
    screen = first_screen(name)
    # the line itself is run as a doctest, by `make installed` with what `make demo` installs
    [block] = re.findall(r"```pycon\n(.*?)```", screen, re.DOTALL)
    set_up, act = re.findall(r"^>>> (.*)", block, re.MULTILINE)
    assert set_up == "import sfumato as sf" and act.startswith("sf.examples.people().query(")
    assert screen.count("![") == 1
    uses = screen.index("](")
    assert uses < screen.index("```pycon") < screen.index("![")


def test_the_first_screens_offer_the_same_uses_and_each_has_a_command() -> None:
    pages = [(ROOT / name).read_text("utf-8") for name in SCREENS]
    uses = [re.findall(r"\]\((?:docs/)?([a-z/-]+\.md)\)", first_screen(name)) for name in SCREENS]
    english, *others = (
        re.findall(r"^\|[^|]+\| `([^`]+)` \|", page, re.MULTILINE) for page in pages
    )
    assert len(uses[0]) == 11 and uses[1] == uses[2] == uses[0]
    assert len(english) == 11 and all(other == english for other in others)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for command in english:
        program, *words = command.split()
        if program == "make":
            assert words[0] in targets
        else:
            assert run([*words, "--help"]) == 0


def test_links_are_titles_and_not_names_of_files() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *ROOT.glob("clients/*/*.md")]
    named = {
        f"{page.name}: {link}"
        for page in pages
        for link in re.findall(r"\[`?[\w/.-]+\.md`?\]\([^)]*\)", page.read_text("utf-8"))
    }
    assert named == set()


def test_a_page_begins_with_the_act_and_its_set_up_stands_apart() -> None:
    for page in DOCS.glob("*.md"):
        open_text = re.sub(r"<details.*?</details>", "", page.read_text("utf-8"), flags=re.DOTALL)
        block = re.search(r"```pycon\n(.*?)\n```", open_text, re.DOTALL)
        if block is not None and page.name != "ledger.md":  # opening a ledger is its act
            assert "sf.connect(" not in block[1], page.name


def test_the_pictures_of_the_pages_have_text_of_twelve_pixels() -> None:
    for picture in (DOCS / "figures").glob("*.svg"):
        drawn = picture.read_text("utf-8")
        width, height = re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn)[0]
        assert f'width="{width}" height="{height}"' in drawn, picture.name
        sizes = re.findall(r'font-size[:=]"?([\d.]+)', drawn)
        assert sizes and min(map(float, sizes)) >= 12, picture.name

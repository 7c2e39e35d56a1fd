# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``, whole: in an empty folder, once."""

from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.examples import demo
from sfumato.examples.census import QUESTIONS
from tests.examples.test_report import require_self_contained


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demo printed, and the folder in which it ran."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.setattr(demo, "attack", lambda where: _attack(where))
        with _captured() as printed:
            assert run(["demo", "--report", "page.html"]) == 0
    return printed.getvalue(), folder


def _attack(where: Path) -> object:
    from sfumato.examples.differencing import attack

    return attack(where, trials=100)


def _captured() -> object:
    import contextlib
    import io

    class Both(io.StringIO):
        def __enter__(self) -> "Both":
            self._out = contextlib.redirect_stdout(self)
            self._out.__enter__()
            return self

        def __exit__(self, *error: object) -> None:
            self._out.__exit__(*error)

    return Both()


def test_it_writes_one_page_and_nothing_else(told: tuple[str, Path]) -> None:
    _, folder = told
    assert [each.name for each in folder.iterdir()] == ["page.html"]


def test_the_page_is_self_contained_and_holds_every_question(told: tuple[str, Path]) -> None:
    text = (told[1] / "page.html").read_text(encoding="utf-8")
    require_self_contained(text)
    for asked in QUESTIONS:
        assert asked.title in text


def test_it_prints_each_answer_the_refusal_the_attack_and_the_ledger(
    told: tuple[str, Path],
) -> None:
    printed, _ = told
    for number, asked in enumerate(QUESTIONS, start=1):
        assert f"{number}. {asked.title}" in printed
    for piece in (
        "95% interval",
        "the same bytes, at no cost: yes",
        "A SELECT without an aggregate would show rows or values of single persons",
        "Chandler has diabetes, for certain",
        "no attacker can be right more often than",
        "The ledger, opened again",
        "the chain is whole",
        "Written: page.html",
    ):
        assert piece in printed
    assert printed.count("left: one question of epsilon up to") == len(QUESTIONS)

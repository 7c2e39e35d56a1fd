# SPDX-License-Identifier: Apache-2.0
"""Groups whose commands are imported when they are called, and are listed by what users do."""

import gc
import sys

import click
import pytest
from click.testing import CliRunner

from sfumato.cli.lazy_group import LazyGroup
from sfumato.cli.main import sfumato

HERE = "tests.cli.lazy_command"


@pytest.fixture
def group() -> LazyGroup:
    sections = {"Look": {"spell": (HERE, "Says a word.")}, "Break": {"absent": ("no.such", "No.")}}
    return LazyGroup("words", sections=sections)


def test_help_lists_sections_and_imports_nothing(group: LazyGroup) -> None:
    sys.modules.pop(HERE, None)
    shown = CliRunner().invoke(group, ["--help"]).output
    assert shown.index("Look:") < shown.index("spell") < shown.index("Break:")
    assert "Says a word." in shown and HERE not in sys.modules


def test_a_command_is_imported_and_run(group: LazyGroup) -> None:
    ran = CliRunner().invoke(group, ["spell", "mist"])
    assert (ran.exit_code, ran.output) == (0, "m i s t\n")


def test_the_help_of_a_group_below_another_names_both_in_every_language() -> None:
    for language in ("en", "zh"):
        shown = CliRunner().invoke(sfumato, ["--language", language, "demo", "--help"]).output
        assert "sfumato demo" in shown.splitlines()[0]


def test_a_wrong_name_is_answered_with_the_near_one(group: LazyGroup) -> None:
    ran = CliRunner().invoke(group, ["spel"])
    assert ran.exit_code == 2 and "Did you mean spell?" in ran.output


def test_a_module_without_a_command_is_an_error_of_ours(group: LazyGroup) -> None:
    group.modules["spell"] = "json"
    with pytest.raises(KeyError):
        group.get_command(click.Context(group), "spell")


def test_the_collector_rests_while_a_command_is_imported(
    group: LazyGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def imported(_: str) -> object:
        seen.append(gc.isenabled())
        raise ImportError

    monkeypatch.setattr("sfumato.cli.lazy_group.import_module", imported)
    for collects in (True, False):
        if not collects:
            gc.disable()
        try:
            with pytest.raises(ImportError):
                group.get_command(click.Context(group), "spell")
            assert gc.isenabled() is collects
        finally:
            gc.enable()
    assert seen == [False, False]

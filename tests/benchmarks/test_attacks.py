# SPDX-License-Identifier: Apache-2.0
"""The table of attacks: nothing of others is called broken without a source; ours keeps its word."""

import subprocess
from importlib import import_module

import pytest

attacks = import_module("benchmarks.attacks.__main__")
CASES = {name: import_module(f"benchmarks.attacks.{name}").CASE for name in attacks.CASES}


@pytest.mark.parametrize("name", ["averaging", "nan", "oracle", "seeds", "budget", "reports"])
def test_sfumato_is_right_or_refuses(name, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    outcome, seen = CASES[name].systems["sfumato"]()
    assert outcome in ("right", "refused") and seen


def test_sources_are_public_addresses_of_systems_that_are_tried():
    for case in CASES.values():
        assert set(case.systems) | set(case.not_expressed) <= set(attacks.PACKAGES)
        assert not set(case.systems) & set(case.not_expressed)
        assert set(case.sources) <= set(case.systems)
        assert all(source.startswith("https://") for source in case.sources.values())


class Done:
    """What a process printed."""

    stdout = '{"outcome": "broken", "seen": "nan", "version": "1"}'


def test_what_nobody_has_published_is_not_written(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *given, **named: Done())
    nan = CASES["nan"]
    assert attacks.outcome_of("nan", "diffprivlib", nan)["outcome"] == "broken"
    assert attacks.outcome_of("nan", "opendp", nan) == {
        "outcome": "not run",
        "seen": "",
        "version": "1",
    }
    # sfumato is never spared
    assert attacks.outcome_of("nan", "sfumato", nan)["outcome"] == "broken"
    assert attacks.outcome_of("nan", "pipelinedp", nan)["outcome"] == "not run"


def test_what_trains_alone_is_asked_nothing_else():
    expressed = {name for name, case in CASES.items() if "opacus" in case.systems}
    assert expressed == {"clipping", "seeds"}
    assert attacks.outcome_of("nan", "opacus", CASES["nan"])["outcome"] == "cannot be expressed"


def test_the_text_of_a_case_says_what_is_broken_and_what_is_right():
    for case in CASES.values():
        keys = [case.facts.index(f"{key}: ") for key in ("Given", "Broken", "Right", "Source")]
        assert case.title and keys[0] == 0 and keys == sorted(keys)


def test_a_system_that_hangs_or_is_absent_is_not_run(monkeypatch):
    for failure in (subprocess.TimeoutExpired("ask", 1), FileNotFoundError()):

        def run(*given, failure=failure, **named):
            raise failure

        monkeypatch.setattr(subprocess, "run", run)
        assert attacks.outcome_of("nan", "opendp", CASES["nan"])["outcome"] == "not run"


def test_the_page_links_what_is_broken_and_says_how_to_reproduce_it():
    seen = {
        system: {"outcome": "right", "seen": "1", "version": "2"} for system in attacks.PACKAGES
    }
    seen["diffprivlib"] = {"outcome": "broken", "seen": "nan", "version": "0.6"}
    page = attacks.page({"nan": seen})
    source = CASES["nan"].sources["diffprivlib"]
    assert f"| NaN | right | right | [broken]({source}) |" in page
    assert "diffprivlib 0.6" in page and "* diffprivlib: broken; nan" in page
    assert "benchmarks.attacks.ask nan SYSTEM" in page

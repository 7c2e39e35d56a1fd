# SPDX-License-Identifier: Apache-2.0
"""The bar is shown to who waits at a terminal, and to nobody else."""

import io

import pytest
from rich.console import Console

from sfumato.cli import waiting as room
from sfumato.cli.waiting import counting, waiting, watching


def shown(*, terminal):
    """What is written while a question takes three steps."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    with waiting(console) as limits:
        if limits.progress is not None:
            for share in (0.0, 0.3, 0.7):
                limits.progress(share)
    return console.file.getvalue()


def test_who_waits_long_sees_how_far_it_is(monkeypatch):
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    assert "asking the data" in shown(terminal=True)
    assert "70%" in shown(terminal=True)


@pytest.mark.parametrize(("terminal", "patience"), [(True, 1e9), (False, 0.0)])
def test_who_waits_little_or_is_no_terminal_sees_nothing(monkeypatch, terminal, patience):
    monkeypatch.setattr(room, "PATIENCE", patience)
    text = shown(terminal=terminal)
    assert "asking" not in text
    assert "%" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_done_is_named_beside_the_bar(monkeypatch, terminal):
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with watching("checking the data", console) as (limits, tell):
        tell("people.[red]age (1 of 2)")
        if limits.progress is not None:
            limits.progress(0.5)
    written = console.file.getvalue()
    # a name is no markup
    assert ("checking the data: people.[red]age (1 of 2)" in written) == terminal
    assert ("50%" in written) == terminal


def test_a_share_that_is_told_moves_the_bar(monkeypatch):
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with watching("fitting income", console) as (_, tell):
        tell("checkpoint 1 of 4", 1 / 4)
    assert "25%" in console.file.getvalue()


@pytest.mark.parametrize(
    ("terminal", "patience", "words"),
    [(True, 0.0, "fits: 3 of 4"), (True, 1e9, ""), (False, 0.0, "")],
)
def test_steps_are_counted(monkeypatch, terminal, patience, words):
    monkeypatch.setattr(room, "PATIENCE", patience)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with counting("fits", console) as count:
        count(3, 4)
    text = console.file.getvalue()
    assert words in text and (words != "" or "fits" not in text)

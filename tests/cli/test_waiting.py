# SPDX-License-Identifier: Apache-2.0
"""The bar is shown to who waits at a terminal, and to nobody else."""

import io

import pytest
from rich.console import Console

from sfumato.cli import waiting as room
from sfumato.cli.waiting import waiting


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

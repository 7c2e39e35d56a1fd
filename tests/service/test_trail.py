# SPDX-License-Identifier: Apache-2.0
"""The trail: a chain that shows what was changed in it."""

import logging
from pathlib import Path

import pytest

from sfumato.service.state import State
from sfumato.service.trail import Trail


def test_entries_follow_each_other_and_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = State(tmp_path / "service.db")
    trail = Trail(state, lambda: 86_400.0)
    with caplog.at_level(logging.INFO, "sfumato.service"):
        trail.record("sign_in", "ann")
        trail.record("token_made", "olga", "1a of ann")
    entries = trail.entries()
    assert [(e["seq"], e["kind"], e["who"], e["about"]) for e in entries] == [
        (1, "sign_in", "ann", ""),
        (2, "token_made", "olga", "1a of ann"),
    ]
    assert entries[0]["at"] == "1970-01-02T00:00:00Z"
    assert trail.entries(after=1) == entries[1:] and trail.entries(limit=1) == entries[:1]
    assert [record.getMessage() for record in caplog.records] == [
        "sign_in ann ",
        "token_made olga 1a of ann",
    ]
    state.close()


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ("UPDATE trail SET who = 'bob' WHERE seq = 2", 2),
        ("DELETE FROM trail WHERE seq = 2", 3),
        ("UPDATE trail SET at = 5 WHERE seq = 1", 1),
        ("SELECT 1", None),
    ],
)
def test_a_change_of_an_entry_is_found(tmp_path: Path, change: str, broken: int | None) -> None:
    state = State(tmp_path / "service.db")
    trail = Trail(state)
    for who in ("ann", "cara", "dan"):
        trail.record("sign_in", who)
    state.rows(change)
    assert trail.first_broken() == broken
    state.close()

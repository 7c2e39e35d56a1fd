# SPDX-License-Identifier: Apache-2.0
"""The open mark: every state that a crash leaves is accepted, every one that forgets is refused."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from sfumato.ledger.store import open_mark
from sfumato.ledger.store.open_mark import (
    BACKUP,
    Found,
    MarkFile,
    OpenMark,
    forgotten,
    mark_path,
    read_mark,
    shortfall,
    shortfall_in,
)

FOUND = Found("i", "open now", inode=7, entries=10, log=True)
MARK = OpenMark("i", "now", inode=7, entries=10)


def test_a_mark_survives_its_bytes() -> None:
    for mark in (MARK, replace(MARK, after=""), replace(MARK, after="closed before")):
        assert OpenMark.from_bytes(mark.to_bytes()) == mark


@pytest.mark.parametrize("after", [None, "closed before"])
def test_the_number_of_entries_is_written_in_place(tmp_path: Path, after: str | None) -> None:
    file, ledger = MarkFile(str(tmp_path / "l")), str(tmp_path / "l")
    file.write(replace(MARK, after=after))
    inode = mark_path(ledger).stat().st_ino
    for entries in (11, 12, 10**9):
        file.acknowledge(entries)
        assert read_mark(ledger) == replace(MARK, after=after, entries=entries)
    assert mark_path(ledger).stat().st_ino == inode
    assert mark_path(ledger).stat().st_mode & 0o777 == 0o600
    file.remove()
    assert read_mark(ledger) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"x", MARK.to_bytes()[:-3], MARK.to_bytes().replace(b"1\n", b"2\n", 1), b"\xff"],
)
def test_a_mark_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    mark_path(str(tmp_path / "l")).write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        read_mark(str(tmp_path / "l"))


def test_a_crash_at_any_step_of_opening_and_closing_is_accepted() -> None:
    for state, log in (
        ("", False),
        ("open before", True),
        ("closed before", False),
        ("closed before", True),
    ):
        before = replace(FOUND, state=state, log=log)
        steps = [
            (before, replace(MARK, after=state)),
            (FOUND, replace(MARK, after=state)),
            (FOUND, MARK),
            (replace(FOUND, state="closed now"), MARK),
            (replace(FOUND, state="closed now", log=False), MARK),
            (replace(FOUND, state="closed now", log=False), None),
        ]
        assert [shortfall(found, mark) for found, mark in steps] == [""] * len(steps)


REFUSED = {
    "the file alone": (replace(FOUND, log=False), None),
    "the file and its log": (FOUND, None),
    "the file and its mark": (replace(FOUND, log=False), MARK),
    "a copy of all three": (replace(FOUND, inode=8), MARK),
    "an older log": (replace(FOUND, entries=9), MARK),
    "a file from before the opening": (replace(FOUND, state="closed before"), MARK),
    "an open file from before the opening": (replace(FOUND, state="open before"), MARK),
    "a file of an older format": (replace(FOUND, state=""), MARK),
    "an older closed file": (replace(FOUND, state="closed now", entries=9), MARK),
    "another ledger": (replace(FOUND, identity="j"), MARK),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_older_file_or_log_than_the_mark_knows_of_is_refused(case: str) -> None:
    assert shortfall(*REFUSED[case]) != ""


def test_a_file_that_was_open_needs_its_log_and_its_mark() -> None:
    assert "mark (.open) is missing" in shortfall(FOUND, None)
    assert "write-ahead log (-wal) is missing" in shortfall(replace(FOUND, log=False), MARK)


def test_every_condition_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutants: each condition taken away lets one of the cases through that are refused
    above.
    """
    blind = {
        "log": lambda found, mark: (replace(found, log=True), mark),
        "mark": lambda found, mark: (found, mark or MARK),
        "inode": lambda found, mark: (replace(found, inode=7), mark),
        "entries": lambda found, mark: (replace(found, entries=10), mark),
        "identity": lambda found, mark: (replace(found, identity="i"), mark),
        "state": lambda found, mark: (replace(found, state="open now"), mark),
    }
    for forget in blind.values():
        assert any(shortfall(*forget(*case)) == "" for case in REFUSED.values())


def test_only_these_states_are_accepted() -> None:
    """Each combination of state, log and mark, against the list written out."""
    states, marks = ("", "open before", "open now", "closed before", "closed now"), (None, MARK)
    accepted = {
        (state, log, mark is not None)
        for state, log, mark in product(states, (False, True), marks)
        if not shortfall(replace(FOUND, state=state, log=log), mark)
    }
    closed = {
        (state, log, False)
        for state in ("", "closed before", "closed now")
        for log in (False, True)
    }
    assert accepted == closed | {
        ("closed now", False, True),
        ("closed now", True, True),
        ("open now", True, True),
    }


def test_a_mark_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(open_mark.os, "fsync", lambda _: done.append("sync"))
    monkeypatch.setattr(open_mark.Path, "replace", lambda *_: done.append("name"))
    MarkFile(str(tmp_path / "l")).write(MARK)
    assert done == ["sync", "name", "sync"]


@pytest.mark.parametrize("mark", [None, MARK, replace(MARK, after=BACKUP)])
def test_a_backup_is_refused_whatever_lies_beside_it(mark: OpenMark | None) -> None:
    assert "it is a backup" in shortfall(replace(FOUND, state=BACKUP), mark)


def test_a_shortfall_is_told_from_other_damage() -> None:
    (problem,) = forgotten("its log is missing")
    assert shortfall_in(f"the store is damaged: {problem}") == "its log is missing"
    assert [
        shortfall_in(each) for each in ("the store is damaged: row 3 missing from index", "")
    ] == ["", ""]

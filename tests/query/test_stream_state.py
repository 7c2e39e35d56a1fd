# SPDX-License-Identifier: Apache-2.0
"""The secret state of a stream: closed to others, moved durably, and refused if it is not the one."""

import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import WrongUse
from sfumato.query import stream_state as module
from sfumato.query.stream_state import Past, State

FRESH = State.fresh("a form", np.zeros((2, 3), np.int64))


def state(place: int, form: str = "a form") -> State:
    """A state after a place."""
    return replace(
        FRESH,
        form=form,
        place=place,
        tick=place,
        until=20_000,
        shown={place: (20_000, (2**70, -5))},
        names=np.array([b"0" * 32, b"f" * 32], "S32"),
        uses=np.array([1, 2]),
        last=np.array([3, 4]),
    )


def past(folder: Path, stored: int = 0, place: int = 1) -> Past:
    return Past(folder / "states", "charge", stored, place)


def found(past: Past) -> State:
    with past.moving(FRESH) as current:
        return current


def same(one: State, other: State) -> bool:
    return one.to_bytes() == other.to_bytes()


def test_a_state_is_read_as_it_was_written():
    again = State.from_bytes(state(7).to_bytes())
    assert same(again, state(7)) and again.shown == {7: (20_000, (2**70, -5))}
    assert again.memory.dtype == np.int64 and again.names.dtype == np.dtype("S32")
    assert repr(again) == "State()"


def test_files_are_closed_to_others(tmp_path):
    before = os.umask(0)
    try:
        here = past(tmp_path)
        here.create()
        with here.moving(FRESH):
            here.save(state(1))
    finally:
        os.umask(before)
    assert stat.S_IMODE(here.folder.stat().st_mode) == 0o700
    files = sorted(here.folder.iterdir())
    assert [each.name for each in files] == ["charge.lock", "charge.state"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_before_the_first_tick_there_is_a_fresh_state(tmp_path):
    past(tmp_path).create()
    assert found(past(tmp_path)) is FRESH
    # places that were begun and failed before anything was drawn
    assert found(past(tmp_path, place=3)) is FRESH


def test_a_state_that_is_missing_or_older_than_the_ledger_draws_nothing(tmp_path):
    with pytest.raises(WrongUse, match="lost"):
        past(tmp_path).require()
    here = past(tmp_path)
    here.create()
    with pytest.raises(WrongUse, match="last tick"):
        past(tmp_path, stored=1, place=2).require()
    here.save(state(4))
    past(tmp_path, stored=4, place=5).require()
    # a row that was drawn and not stored, and places that failed
    past(tmp_path, stored=3, place=9).require()
    for stored, place in ((5, 6), (3, 4), (0, 2)):
        with pytest.raises(WrongUse, match="last tick"):
            past(tmp_path, stored=stored, place=place).require()
    here.path.write_bytes(here.path.read_bytes()[:-3])
    with pytest.raises(WrongUse, match="lost"):
        past(tmp_path, stored=4, place=5).require()
    here.path.unlink()
    with pytest.raises(WrongUse, match="lost"):
        past(tmp_path, stored=4, place=5).require()


def test_a_state_that_was_made_is_not_made_anew(tmp_path):
    here = past(tmp_path)
    here.create()
    here.save(state(1))
    here.create()
    assert same(found(past(tmp_path, place=2)), state(1))


def test_the_state_of_another_stream_is_refused(tmp_path):
    here = past(tmp_path)
    here.create()
    here.save(state(1, "another form"))
    with pytest.raises(WrongUse, match="another stream"):
        found(past(tmp_path, place=2))


def test_a_state_moves_on_disk_before_its_row_is_handed_out(tmp_path, monkeypatch):
    """The new file and the folder are flushed, and the rename lies between."""
    here = past(tmp_path)
    here.create()
    seen: list[str] = []
    flush, move = os.fsync, Path.replace

    def flushed(descriptor):
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        seen.append(kind)
        flush(descriptor)

    def moved(draft, target):
        seen.append("rename")
        return move(draft, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", moved)
    here.save(state(1))
    assert seen == ["file", "rename", "folder"]


def test_a_crash_leaves_the_old_state_or_the_new_one(tmp_path, monkeypatch):
    """Stopped at each step of a save, as by a kill."""
    here = past(tmp_path)
    here.create()
    here.save(state(1))

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    for owner, name in ((os, "open"), (os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, killed)
            with pytest.raises(Killed):
                here.save(state(2))
        assert same(found(past(tmp_path, place=9)), state(1))
    here.save(state(2))
    assert same(found(past(tmp_path, place=9)), state(2))


def test_one_worker_at_a_time_moves_a_state(tmp_path):
    """The second sees what the first has written, and is refused its place."""
    here = past(tmp_path)
    here.create()
    inside, order = threading.Event(), []

    def second():
        inside.wait()
        try:
            with past(tmp_path, place=2).moving(FRESH) as current:
                order.append(current.place)
        except WrongUse:
            order.append("refused")

    other = threading.Thread(target=second)
    other.start()
    with past(tmp_path, place=3).moving(FRESH):
        inside.set()
        other.join(0.2)
        assert other.is_alive() and not order
        here.save(state(3))
    other.join()
    assert order == ["refused"]


def test_a_mutant_that_does_not_look_at_the_place_is_caught(tmp_path, monkeypatch):
    """It would draw a row anew that the ledger has stored."""
    here = past(tmp_path)
    here.create()
    here.save(state(1))
    restored = here.path.read_bytes()
    here.save(state(2))
    here.path.write_bytes(restored)
    with pytest.raises(WrongUse):
        found(past(tmp_path, stored=2, place=3))
    blind = replace(past(tmp_path, stored=2, place=3), stored=0)
    assert found(blind).tick == 1


def test_a_complete_stream_leaves_nothing(tmp_path):
    here = past(tmp_path)
    here.create()
    with here.moving(FRESH):
        here.save(state(1))
    here.remove()
    here.remove()
    assert not [*here.folder.iterdir()]


def test_errors_are_typed_and_constant():
    error = module._closed("The secret state of the stream is lost.")
    assert isinstance(error, WrongUse) and "stored ticks" in str(error)

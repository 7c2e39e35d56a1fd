# SPDX-License-Identifier: Apache-2.0
"""A store keeps what was saved last, for one client at a time."""

import os

import pytest

from sfumato.errors import WrongUse
from sfumato.telemetry import FileStore, MemoryStore


def test_what_was_saved_last_is_kept(tmp_path):
    store = FileStore(tmp_path / "s")
    assert store.load() is None
    for state in (b"one", b"", b"three" * 1000):
        store.save(state)
        assert store.load() == state
    store.close()
    store.close()
    assert FileStore(tmp_path / "s").load() == b"three" * 1000
    assert MemoryStore().load() is None


def test_only_its_user_can_read_it(tmp_path):
    FileStore(tmp_path / "s").save(b"state")
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0


def test_a_second_client_is_refused(tmp_path):
    store = FileStore(tmp_path / "s")
    with pytest.raises(WrongUse, match="Another client"):
        FileStore(tmp_path / "s")
    store.close()
    FileStore(tmp_path / "s").close()


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(WrongUse, match="written"):
        FileStore(tmp_path / "no" / "s")


def test_a_crash_leaves_the_old_state_or_the_new_one(tmp_path, monkeypatch):
    store = FileStore(tmp_path / "s")
    store.save(b"old")

    def crash(*_):
        raise KeyboardInterrupt

    for step in ("write", "fsync"):
        monkeypatch.setattr(os, step, crash)
        with pytest.raises(KeyboardInterrupt):
            store.save(b"new")
        monkeypatch.undo()
        assert store.load() == b"old"

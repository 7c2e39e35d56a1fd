# SPDX-License-Identifier: Apache-2.0
"""The SQLite file: its mode, its transactions, and what another process sees."""

import stat
from pathlib import Path

import apsw
import pytest

from sfumato.service.refusals import StateFailed
from sfumato.service.state import State

ADDED = "INSERT INTO people (name, folded, role, since) VALUES (?, ?, 'analyst', 0)"


def test_nobody_else_reads_the_file_or_its_log(tmp_path: Path) -> None:
    state = State(tmp_path / "service.db")
    state.rows(ADDED, ("ann", "ann"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}
    state.close()


def test_a_transaction_is_undone_as_a_whole(tmp_path: Path) -> None:
    state = State(tmp_path / "service.db")
    with pytest.raises(KeyError), state.changing():
        state.rows(ADDED, ("ann", "ann"))
        with state.changing():
            state.rows(ADDED, ("bob", "bob"))
        raise KeyError
    assert state.rows("SELECT name FROM people") == []
    with state.changing():
        state.rows(ADDED, ("cara", "cara"))
    assert state.rows("SELECT name FROM people") == [("cara",)]
    state.close()


def test_another_process_sees_what_was_written(tmp_path: Path) -> None:
    one, other = State(tmp_path / "service.db"), State(tmp_path / "service.db")
    one.rows(ADDED, ("ann", "ann"))
    assert other.rows("SELECT name FROM people") == [("ann",)]
    other.rows(ADDED, ("bob", "bob"))
    assert len(one.rows("SELECT name FROM people")) == 2
    one.close()
    other.close()


def test_a_failure_of_the_disk_is_a_typed_error_without_a_path(tmp_path: Path) -> None:
    with pytest.raises(StateFailed) as failure:
        State(tmp_path / "no folder" / "service.db")
    assert str(tmp_path) not in str(failure.value)
    (tmp_path / "other.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StateFailed):
        State(tmp_path / "other.db")


def test_a_full_disk_undoes_the_transaction(tmp_path: Path) -> None:
    state = State(tmp_path / "service.db")
    state.rows("PRAGMA max_page_count=20")
    with pytest.raises(StateFailed), state.changing():
        for number in range(1000):
            state.rows(ADDED, (f"{number}" * 100, f"{number}" * 100))
    assert state.rows("SELECT COUNT(*) FROM people") == [(0,)]
    state.close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    State(tmp_path / "service.db").close()
    connection = apsw.Connection(str(tmp_path / "service.db"))
    connection.execute("PRAGMA user_version=9")
    connection.close()
    with pytest.raises(StateFailed, match="newer"):
        State(tmp_path / "service.db")

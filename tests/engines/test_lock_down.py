# SPDX-License-Identifier: Apache-2.0
"""A connection that is locked down reads its own files and nothing else."""

import duckdb
import pytest

from sfumato.engines.local import Local
from sfumato.engines.lock_down import lock_down, set_limits


def test_only_the_named_files_can_be_read_and_no_setting_changed(tmp_path):
    own, other = tmp_path / "own.csv", tmp_path / "other.csv"
    for path in (own, other):
        path.write_text("a\n1\n")
    spill = tmp_path / "spill"
    spill.mkdir()
    connection = duckdb.connect(":memory:")
    lock_down(connection, str(spill), [own])
    assert connection.execute(f"SELECT a FROM read_csv('{own}')").fetchall() == [(1,)]
    for refused in (
        f"SELECT a FROM read_csv('{other}')",
        "SET enable_external_access = true",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(refused)
    connection.close()


def test_memory_and_threads_are_as_stated():
    connection = duckdb.connect(":memory:")
    set_limits(connection, Local(memory_limit="200MB", threads=1))
    shown = connection.execute(
        "SELECT current_setting('threads'), current_setting('memory_limit')"
    ).fetchone()
    assert shown[0] == 1 and shown[1].startswith("190")
    connection.close()

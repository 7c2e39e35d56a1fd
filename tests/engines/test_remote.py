# SPDX-License-Identifier: Apache-2.0
"""Copies of tables of several databases: one snapshot each, every type, and an end when asked."""

import datetime
import sqlite3
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import remote as room
from sfumato.engines.remote import fill, is_remote, served
from sfumato.engines.served import Served, ServerFailed

URL = "postgresql://ada:secret@127.0.0.1:1/clinic"
# of each type: a value as a reader gives it, and as DuckDB has it
CELLS = {
    "BIGINT": -(2**63),
    "DOUBLE": float("-inf"),
    "VARCHAR": "a\x00空",
    "BOOLEAN": True,
    "DATE": datetime.date(1, 1, 1),
    "TIMESTAMP": datetime.datetime.fromisoformat("9999-12-31T23:59:59.999999"),
}
TYPES = Served("t", sf.Table(URL, table="t"), "t", {kind: ("", kind) for kind in CELLS})


class Database:
    """A reader that gives one batch twice, and counts its snapshots."""

    def __init__(self):
        self.snapshots = []

    @contextmanager
    def snapshot(self, tables):
        self.snapshots.append([table.name for table in tables])
        yield self.fetch

    def fetch(self, table, columns):
        for _ in range(2):
            yield [[CELLS[column], None] for column in columns] + [[1, 1]]


@pytest.fixture
def database(monkeypatch):
    made = Database()
    monkeypatch.setattr(room, "_reader", lambda origin: made)
    return made


@pytest.mark.parametrize("columns", [list(CELLS), ["DATE", "BIGINT"], []])
def test_every_wanted_column_is_copied_and_every_row_counts(database, columns):
    with closing(duckdb.connect()) as connection:
        fill(connection, [(TYPES, columns)])
        rows = [row[:-1] for row in connection.execute(f"SELECT * FROM {TYPES.sql}").fetchall()]
    wanted = tuple(CELLS[kind] if kind in columns else None for kind in CELLS)
    assert rows == [wanted, (None,) * len(CELLS)] * 2


def test_the_tables_of_one_origin_are_read_in_one_snapshot(database):
    other = sf.Table("postgresql://127.0.0.1:2/clinic", table="t")
    tables = [
        Served("one", TYPES.table, "t", TYPES.columns),
        Served("two", other, "t", TYPES.columns),
        Served("three", TYPES.table, "u", TYPES.columns),
    ]
    with closing(duckdb.connect()) as connection:
        fill(connection, [(table, []) for table in tables])
    assert database.snapshots == [["one", "three"], ["two"]]


def test_a_copy_ends_between_two_batches(database):
    going = iter([True, False])
    with closing(duckdb.connect()) as connection:
        with pytest.raises(ServerFailed):
            fill(connection, [(TYPES, ["DATE"])], lambda: next(going))
        assert connection.execute(f"SELECT count(*) FROM {TYPES.sql}").fetchone() == (2,)


def test_a_table_of_a_server_or_of_an_sqlite_file_is_copied(tmp_path):
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (v)")
    other = tmp_path / "people.duckdb"
    duckdb.connect(other).close()
    assert is_remote(TYPES.table)
    assert is_remote(sf.Table(path, table="t"))
    assert served("t", sf.Table(path, table="t")).columns.keys() == {"v"}
    near = (sf.Table(path), sf.Table(other, table="t"), sf.Table(tmp_path / "none.db", table="t"))
    assert not any(map(is_remote, (*near, sf.Table(pa.table({"v": [1]})))))

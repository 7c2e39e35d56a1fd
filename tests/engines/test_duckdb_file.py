# SPDX-License-Identifier: Apache-2.0
"""Tables of a DuckDB file: plain tables only, and nothing is written."""

from contextlib import closing

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import duckdb_file
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidDeclaration, InvalidSource

COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Text()}
CANARY = "canary-4711"


def test_a_table_of_a_database_is_read(shop):
    tables = {
        "events": sf.Table(shop, table="my events", columns=COLUMNS),
        "users": sf.Table(str(shop), table="users", columns={"id": sf.Integer(0, 9)}),
    }
    with closing(DuckDB(tables)) as engine:
        assert [
            engine._connection.execute(f"SELECT count(*) FROM {each.sql}").fetchone()
            for each in engine._sources.values()
        ] == [
            (3,),
            (1,),
        ]
        with pytest.raises(duckdb.Error, match="read-only"):
            engine._connection.execute(f"DELETE FROM {engine._sources['users'].sql}")
        with pytest.raises(duckdb.PermissionException):
            engine._connection.execute(f"ATTACH '{shop.parent}/other.duckdb'")


@pytest.mark.parametrize(
    "name",
    ["nothing", "seen", "computed", "main.users", "users; DROP TABLE users", "duckdb_settings"],
)
def test_what_is_no_plain_table_of_it_is_refused(shop, name, caplog):
    with pytest.raises(InvalidSource, match="has no table") as refusal:
        DuckDB({"t": sf.Table(shop, table=name)})
    assert "users" not in str(refusal.value).replace(repr(name), "")
    assert "has the tables 'my events', 'users'" in caplog.text


def test_a_view_that_is_read_can_fail_on_a_row(shop, monkeypatch):
    with duckdb.connect(str(shop)) as connection:
        connection.execute(
            'CREATE VIEW numbers AS SELECT CAST(b AS INTEGER) AS a, b FROM "my events"'
        )
    monkeypatch.setattr(duckdb_file, "_plain_tables", lambda *_: ["numbers"])
    engine = DuckDB({"t": sf.Table(shop, table="numbers", columns=COLUMNS)})
    with closing(engine), pytest.raises(duckdb.ConversionException):
        engine._connection.execute(f"SELECT sum(a) FROM {engine._sources['t'].sql}")


def test_a_database_needs_the_name_of_a_table(shop):
    with pytest.raises(InvalidSource, match="is a database"):
        DuckDB({"t": sf.Table(shop)})


def test_what_is_no_database_is_refused(tmp_path):
    (tmp_path / "x.duckdb").write_bytes(CANARY.encode() * 1000)
    with pytest.raises(InvalidSource, match=r"cannot be read") as refusal:
        DuckDB({"t": sf.Table(tmp_path / "x.duckdb", table="t")})
    assert CANARY not in str(refusal.value)
    with pytest.raises(InvalidSource, match="no file"):
        DuckDB({"t": sf.Table(tmp_path / "y.duckdb", table="t")})


def test_a_database_that_is_being_written_is_refused(shop):
    with duckdb.connect(str(shop)) as connection:
        connection.execute("INSERT INTO users VALUES (2)")
        assert shop.with_name(f"{shop.name}.wal").exists()
        with pytest.raises(InvalidSource, match="changes that are not in it yet"):
            DuckDB({"t": sf.Table(shop, table="users")})


@pytest.mark.parametrize("name", ["", 5, b"users"])
def test_the_name_of_a_table_is_a_text(name):
    with pytest.raises(InvalidDeclaration, match="table="):
        sf.Table("x.duckdb", table=name)


def test_only_a_path_has_tables():
    with pytest.raises(InvalidDeclaration, match="no path"):
        sf.Table(pa.table({"a": [1]}), table="users")

# SPDX-License-Identifier: Apache-2.0
"""Rows in files and databases: the same rows, their types, and what each table says of itself."""

import datetime
import json
from decimal import Decimal

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from sfumato.errors import Failed, WrongUse
from sfumato.synthetic.export import copy_postgres, write_duckdb, write_files
from tests.synthetic.towns import emptied

FACTS = {"synthetic": "true", "charge_id": "c0ffee", "guarantee": "rho = 1, it's all"}
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
FIRST = pa.table(
    {
        'a "name"': pa.array([1, None], pa.int64()),
        "word": pa.array(["", None]),
        "yes": [True, None],
        "day": [DAY, None],
        "noon": pa.array([NOON, None], pa.timestamp("us", "UTC")),
        "money": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "real": [0.1, None],
    }
)
OTHER = pa.table({"n": [1, 2, 3]})
ROWS = [tuple(row) for row in zip(*(column.to_pylist() for column in FIRST.columns), strict=True)]


@pytest.fixture
def server(database):
    """The address of an empty database."""
    return emptied(database)


def parts():
    """Two tables in three parts, the last of them without rows."""
    yield {"people": FIRST.slice(0, 1), "other's": OTHER}
    yield {"people": FIRST.slice(1, 1), "other's": OTHER}
    yield {"people": FIRST.slice(2, 0), "other's": OTHER.slice(3, 0)}


def test_csv_for_excel_has_one_mark_and_all_rows(tmp_path):
    write_files(parts(), tmp_path / "out", FACTS, excel=True)
    text = (tmp_path / "out" / "people.csv").read_bytes()
    assert text.startswith(
        b'\xef\xbb\xbf"a ""name""",word,yes,day,noon,money,real\r\n1,,True,2024-'
    )
    assert text.count(b"\xef\xbb\xbf") == 1 and text.count(b"\r\n") == 3
    assert (tmp_path / "out" / "other's.csv").read_bytes() == (
        b"\xef\xbb\xbfn\r\n" + b"1\r\n2\r\n3\r\n" * 2
    )


def test_files_have_all_rows_and_say_what_they_are(tmp_path):
    written = write_files(parts(), tmp_path / "out", FACTS)
    assert sorted(path.name for path in written) == sorted(
        f"{name}{end}"
        for name in ("people", "other's")
        for end in (".parquet", ".csv", ".csv.json")
    )
    rows = parquet.read_table(tmp_path / "out" / "people.parquet")
    assert rows.equals(FIRST)
    assert rows.schema.metadata == {
        key.encode(): word.encode() for key, word in {**FACTS, "table": "people"}.items()
    }
    assert len(csv.read_csv(tmp_path / "out" / "people.csv")) == 2
    assert csv.read_csv(tmp_path / "out" / "other's.csv")["n"].to_pylist() == [1, 2, 3] * 2
    told = json.loads((tmp_path / "out" / "people.csv.json").read_text())
    assert told == {**FACTS, "table": "people"}


def test_rows_that_are_not_marked_as_synthetic_are_kept(tmp_path):
    for ending in (".csv", ".parquet"):
        private = tmp_path / ending / f"other's{ending}"
        private.parent.mkdir()
        private.write_bytes(b"pid,sex\n1,F\n")
        with pytest.raises(WrongUse, match="not marked as synthetic"):
            write_files(parts(), private.parent, FACTS)
        assert private.read_bytes() == b"pid,sex\n1,F\n"
        # nothing of the first table either
        assert list(private.parent.iterdir()) == [private]
    parquet.write_table(OTHER, tmp_path / "people.parquet")
    with pytest.raises(WrongUse, match="people\\.parquet"):
        write_files(parts(), tmp_path, FACTS, csv=False)
    # its own files are replaced
    first, again = (write_files(parts(), tmp_path / "out", FACTS) for _ in range(2))
    assert first == again


def test_parquet_alone(tmp_path):
    written = write_files(parts(), tmp_path, FACTS, csv=False)
    assert [path.suffix for path in written] == [".parquet", ".parquet"]


def test_a_duckdb_file_has_the_tables_with_comments(tmp_path):
    write_duckdb(parts(), tmp_path / "rows.duckdb", FACTS)
    with duckdb.connect(tmp_path / "rows.duckdb", read_only=True) as database:
        assert database.table("people").to_arrow_table().to_pylist() == FIRST.to_pylist()
        assert database.execute('SELECT SUM(n) FROM "other\'s"').fetchone() == (12,)
        found = database.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall()
    for name, comment in found:
        assert json.loads(comment) == {**FACTS, "table": name}
    assert len(found) == 2


def test_a_table_of_the_same_name_is_kept(tmp_path):
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(path) as database:
        database.execute('CREATE TABLE "other\'s" AS SELECT 7 AS n')
    with pytest.raises(WrongUse):
        write_duckdb(parts(), path, FACTS)
    with duckdb.connect(path) as database:
        assert database.execute('FROM "other\'s"').fetchall() == [(7,)]
        assert database.execute("SELECT COUNT(*) FROM duckdb_tables()").fetchone() == (1,)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "rows.duckdb").write_text("nothing of the kind" * 1000)
    with pytest.raises(WrongUse, match="DuckDB file"):
        write_duckdb(parts(), tmp_path / "rows.duckdb", FACTS)


def test_a_server_has_the_tables_with_comments(server):
    copy_postgres(parts(), server, FACTS)
    with psycopg.connect(server) as found:
        assert found.execute('SELECT * FROM people ORDER BY "real"').fetchall() == ROWS
        assert found.execute('SELECT SUM(n) FROM "other\'s"').fetchone() == (12,)
        told = found.execute("SELECT obj_description('people'::regclass)").fetchone()
    assert told is not None and json.loads(told[0]) == {**FACTS, "table": "people"}
    # all or nothing: the first table is new, the second is there
    both = [{"fresh": OTHER, "people": FIRST}]
    with pytest.raises(WrongUse, match="table of this name"):
        copy_postgres(iter(both), server, FACTS)
    with psycopg.connect(server) as found:
        assert found.execute("SELECT to_regclass('fresh')").fetchone() == (None,)


@pytest.mark.parametrize("address", ["mysql://a@b/c", "people.csv", "host=x password=y"])
def test_only_addresses_of_postgresql(address):
    with pytest.raises(WrongUse):
        copy_postgres(parts(), address, FACTS)


def test_a_password_is_in_no_message():
    with pytest.raises(Failed) as failed:
        copy_postgres(parts(), "postgresql://ada:hunter2@127.0.0.1:1/none", FACTS)
    assert "hunter2" not in str(failed.value) and failed.value.__context__ is None

# SPDX-License-Identifier: Apache-2.0
"""Tables of an SQLite file: the integers of the reference, one snapshot, any value in any column."""

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import remote
from sfumato.engines import sqlite as room
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import quote
from sfumato.engines.remote import served
from sfumato.engines.served import ServerFailed
from sfumato.engines.sqlite import snapshot
from sfumato.engines.value_codes import code_of
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan, Union
from sfumato.plan.scalar import Field
from sfumato.plan.value import GroupKey, Value
from tests.contracts import world
from tests.contracts.conformance import EngineContract
from tests.contracts.effort import examples
from tests.contracts.world import plan

FEW = settings(max_examples=examples(0.08), suppress_health_check=list(HealthCheck))


def execute(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in statements:
            connection.execute(each)


def stored(path, name, cells):
    """An Arrow table, in the file; SQLite stores no NaN."""
    columns = ", ".join(map(quote, cells.schema.names))
    places = ", ".join("?" for _ in cells.schema.names)
    rows = [list(row.values()) for row in cells.to_pylist()]
    rows = [["nan" if value != value else value for value in row] for row in rows]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {quote(name)} ({columns})")
        connection.executemany(f"INSERT INTO {quote(name)} VALUES ({places})", rows)


class InSqlite(EngineContract):
    """The suite of every engine, its tables in a file, in columns without a type."""

    def __init__(self, folder):
        self.folder = folder

    def open_engine(self, tables):
        path = self.folder / f"{len(list(self.folder.iterdir()))}.db"
        for name, table in tables.items():
            stored(path, name, table.source)
        return DuckDB(
            {name: replace(table, source=path, table=name) for name, table in tables.items()}
        )


@pytest.mark.parametrize(
    "name",
    [
        "test_the_values_at_the_edges_mean_what_they_mean_to_the_reference",
        "test_the_engine_gives_the_marginals_of_the_reference_at_the_edges",
        "test_the_engine_gives_the_rows_of_the_reference_at_the_edges",
    ],
)
def test_the_engine_gives_the_integers_of_the_reference_at_the_edges(tmp_path, name):
    getattr(InSqlite(tmp_path), name)()


@FEW
@given(st.data(), world.data(), st.text(max_size=3))
def test_the_engine_gives_the_integers_of_the_reference(tmp_path_factory, data, rows, key):
    asked = EngineContract.test_the_engine_gives_the_integers_of_the_reference
    asked.hypothesis.inner_test(InSqlite(tmp_path_factory.mktemp("world")), data, rows, key)


# --- what a value means ----------------------------------------------------------------------

HALVES, DAYS = sf.Real(0, 8, step="0.5"), sf.Date("1970-01-01", "1970-01-31")
WHOLE = sf.Integer(0, 9)
LETTERS = sf.Category("7", "2.5", "1e+300", "空", missing="")
BEYOND = "CAST(x'ff37' AS TEXT)"
# of each declaration: values of any type in one column, with the codes that they have
VALUES = {
    WHOLE: {
        "-5": 0,
        "7": 7,
        "9223372036854775807": 9,
        "2.5": 2,
        "8.0": 8,
        "1e308": 9,
        "9e999": 9,
        "-9e999": 0,
        "'7'": 7,
        "' 8 '": 8,
        "'1e400'": 9,
        "'inf'": None,
        "''": None,
        "'x'": None,
        "x'37'": None,
        BEYOND: None,
        "NULL": None,
    },
    HALVES: {"0.5": 1, "'0.5'": 1, "4e-320": 0, "'4e-320'": 0, "3": 6, "'٣'": None},
    LETTERS: {
        "7": 0,
        "7.0": 0,
        "'7'": 0,
        "2.5": 1,
        "'2.50'": None,
        "1e300": 2,
        "'空'": 3,
        "x'37'": None,
        BEYOND: None,
        "''": None,
    },
    sf.Boolean(): {"1": 1, "0": 0, "1.0": 1, "'true'": 1, "2": None, "x'31'": None},
    DAYS: {
        "'1970-01-03'": 2,
        "'9999-12-31'": 30,
        "'0000-00-00'": None,
        "'1970-02-30'": None,
        "'1970-01-03 10:00:00'": None,
        "2440589.5": None,
        "86400": None,
    },
    sf.Timestamp("2024-07-01 12:00:00", "2024-07-01 12:00:09", zone="Europe/London"): {
        "'2024-07-01 12:00:03'": 1719831603,
        "'2024-07-01T11:00:03.9Z'": 1719831603,
        # a date alone is its midnight, here before the lower bound
        "'2024-07-01'": 1719831600,
        "1719831603": None,
        "x'37'": None,
    },
}


def codes(path, kind):
    """How many values of the column v of the table t have each code."""
    column = Column("v", kind)
    bounded = plan(
        Scan("t", "", (column,)),
        CountRows(),
        keys=(GroupKey(Value.of(column), None, missing=True),),
    )
    with closing(DuckDB({"t": sf.Table(path, columns={"v": kind}, table="t")})) as engine:
        (counts,) = engine.run(bounded, "key")
        # and nothing of it stays
        assert engine._connection.execute('SELECT count(*) FROM "server t"').fetchone() == (0,)
    return {group[0]: count for group, (count,) in counts.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a b?#%.db"


def made(path, values):
    execute(path, "CREATE TABLE t (v)", *(f"INSERT INTO t VALUES ({each})" for each in values))


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: type(kind).__name__)
def test_every_value_has_a_declared_meaning(path, kind):
    made(path, VALUES[kind])
    assert codes(path, kind) == Counter(VALUES[kind].values())


@pytest.mark.parametrize(("collation", "equal"), [("BINARY", 0), ("NOCASE", 2), ("RTRIM", 1)])
def test_a_collation_of_the_file_joins_no_spellings(path, collation, equal):
    words = ["ab", "AB", "aB", "ab ", "1"]
    listed = ", ".join(f"({word!r})" for word in words)
    execute(path, f"CREATE TABLE t (v TEXT COLLATE {collation})", f"INSERT INTO t VALUES {listed}")
    assert codes(path, sf.Text()) == Counter(words)
    table = sf.Table(path, unit=sf.Unit("v"), columns={}, table="t")
    assert room.count_respellings(served("t", table), "v") == equal


@pytest.mark.parametrize("kind", [WHOLE, HALVES, LETTERS], ids=lambda kind: type(kind).__name__)
def test_a_value_that_is_not_read_totally_is_noticed(path, kind, monkeypatch):
    monkeypatch.setattr(room, "_VALUE", "CAST({0} AS TEXT)")
    monkeypatch.setattr(room, "_NUMBER", "CAST({0} AS TEXT)")
    made(path, [*VALUES[kind], "x'37'"])
    assert codes(path, kind) != Counter([*VALUES[kind].values(), None])


ANY = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.sampled_from(["1e999", " 3 ", "1970-01-05", "7", 7.0, 2.5, 1e300, "true", 1, 0.0, -0.0]),
)


@settings(max_examples=examples(1), suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(ANY, min_size=1, max_size=30),
    st.sampled_from([WHOLE, HALVES, LETTERS, sf.Boolean(), DAYS]),
)
def test_any_value_has_the_code_of_the_reference(tmp_path_factory, values, kind):
    path = tmp_path_factory.mktemp("any") / "any.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (v)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    column = Column("v", kind)
    # no number is a day
    unread = (bytes, int, float) if kind is DAYS else bytes
    known = [None if isinstance(value, unread) else value for value in values]
    assert codes(path, kind) == Counter(code_of(column, value) for value in known)


def test_many_rows_come_in_batches(path, monkeypatch):
    monkeypatch.setattr(room, "BATCH", 3)
    made(path, range(1, 11))
    assert codes(path, sf.Integer(1, 9)) == Counter([*range(1, 10), 9])


def test_no_row_without_a_column_is_forgotten(path):
    made(path, range(10))
    with closing(DuckDB({"t": sf.Table(path, table="t")})) as engine:
        assert engine.run(plan(Scan("t"), CountRows()), "key") == ({(): (10,)},)


def test_an_index_that_lacks_rows_hides_none(path):
    # a scan of the index is shorter than one of the table
    execute(
        path,
        "CREATE TABLE t (v, w, x, y, z)",
        "INSERT INTO t (v) VALUES (1), (2)",
        "CREATE INDEX i ON t (v)",
        "PRAGMA writable_schema = ON",
        # the index of an empty table in place of that of t
        "CREATE TABLE u (v)",
        "CREATE INDEX j ON u (v)",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'j')"
        " WHERE name = 'i'",
    )
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT v FROM t").fetchall() == []
    assert codes(path, WHOLE) == {1: 1, 2: 1}


def test_strings_of_a_file_in_utf_16_are_read(path):
    execute(path, "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE t (v)")
    execute(path, "INSERT INTO t VALUES ('空'), ('7')")
    assert codes(path, LETTERS) == {0: 1, 3: 1}


def test_an_address_is_the_path_of_the_file(path, monkeypatch):
    path = path.with_name("people.db")
    made(path, [7])
    monkeypatch.chdir(path.parent)
    for address in (f"sqlite:///{path}", "sqlite:///people.db"):
        assert codes(address, WHOLE) == {7: 1}


def test_a_relative_path_stays_the_file_that_was_opened(path, monkeypatch, tmp_path_factory):
    path = path.with_name("people.db")
    made(path, [7])
    column = Column("v", WHOLE)
    bounded = plan(Scan("t", "", (column,)), CountRows(), keys=(GroupKey(Value.of(column), None),))
    monkeypatch.chdir(path.parent)
    with closing(DuckDB({"t": sf.Table("people.db", columns={"v": WHOLE}, table="t")})) as engine:
        other = tmp_path_factory.mktemp("other")
        made(other / "people.db", [8])
        monkeypatch.chdir(other)
        assert engine.run(bounded, "key") == ({(7,): (1,)},)


# --- one moment ------------------------------------------------------------------------------


def both(path):
    """The rows of two tables, in one question."""
    column = Column("v", sf.Integer(0, 9))
    tables = {
        name: sf.Table(path, unit=sf.Unit("v"), columns={"v": column.type}, table=name)
        for name in ("t", "u")
    }
    owner = owner_of(Dataset("d", tables), "t")
    one, other = (
        Scan(name, f"{name}.", (Column(f"{name}.v", column.type),), owner) for name in ("t", "u")
    )
    read = tuple((Field(each.columns[0]),) for each in (one, other))
    with closing(DuckDB(tables)) as engine:
        ((_, (count,)),) = engine.run(
            plan(Union((one, other), read, (column,)), CountRows()), "key"
        )[0].items()
    return count


def test_all_tables_of_a_question_are_of_one_moment(path, monkeypatch):
    # with a write-ahead log a writer does not wait for readers
    execute(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (v)", "CREATE TABLE u (v)")
    execute(path, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)")
    honest = remote._copy

    def slow(*arguments):
        # somebody writes before the first table is read, and before the second
        execute(path, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)")
        honest(*arguments)

    monkeypatch.setattr(remote, "_copy", slow)
    assert both(path) == 2
    # three rows of each by now; without a snapshot the second table has two rows more, the first
    # one
    monkeypatch.setattr(room, "_SNAPSHOT", "SELECT 1")
    assert both(path) == (3 + 1) + (3 + 2)


def test_a_file_without_a_log_is_not_written_while_it_is_read(path):
    made(path, [1])
    remote_table = served("t", sf.Table(path, table="t"))
    with (
        snapshot([remote_table]),
        closing(sqlite3.connect(path, timeout=0)) as writer,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
    assert codes(path, WHOLE) == {1: 1}


# --- what is refused, and what fails ---------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW t AS SELECT abs(-9223372036854775808) AS v",
        "CREATE VIRTUAL TABLE t USING fts5(v)",
        "CREATE TABLE T (v)",
        "CREATE TABLE other (v)",
    ],
)
def test_what_stores_no_rows_is_refused(path, statement):
    execute(path, statement)
    with pytest.raises(InvalidSource, match="has no table"):
        DuckDB({"t": sf.Table(path, table="t")})


def test_a_computed_column_is_read_where_it_is_stored(path):
    execute(
        path,
        "CREATE TABLE t (v, w AS (abs(v)), x AS (v + 1) STORED)",
        "INSERT INTO t (v) VALUES (1)",
    )
    known = {"v": WHOLE, "x": WHOLE}
    DuckDB({"t": sf.Table(path, columns=known, table="t")}).close()
    # on another version of SQLite a function may fail, or be another one
    with pytest.raises(InvalidDeclaration, match="the data holds SQLite's computed column"):
        DuckDB({"t": sf.Table(path, columns={"w": WHOLE}, table="t")})


def test_a_column_that_is_not_there_is_no_string(path):
    made(path, [1])
    with pytest.raises(InvalidDeclaration, match="has no column 'w'"):
        DuckDB({"t": sf.Table(path, columns={"w": WHOLE}, table="t")})


def test_a_database_needs_the_name_of_a_table(path):
    made(path, [1])
    with pytest.raises(InvalidSource, match="is a database"):
        DuckDB({"t": sf.Table(path)})
    with pytest.raises(InvalidDeclaration, match="without the name"):
        sf.Table("sqlite:///people.db")


def test_a_table_of_sqlite_has_no_prepared_layout(path, tmp_path):
    execute(path, "CREATE TABLE t (who, v)")
    table = sf.Table(path, unit=sf.Unit("who", max_rows=1), columns={"v": WHOLE}, table="t")
    with pytest.raises(sf.errors.WrongUse, match="No table to prepare"):
        sf.prepare({"t": table}, dataset="d", folder=tmp_path / "layout")


def damage(path):
    """Overwrites the pages of the rows, and leaves the schema."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


def locked(path):
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    return writer


@pytest.mark.parametrize("trouble", [cut, locked])
def test_a_file_that_cannot_be_read_is_refused_when_it_is_opened(
    path, trouble, monkeypatch, caplog
):
    monkeypatch.setattr(room, "WAIT", 0.0)
    made(path, [1])
    held = trouble(path)
    with pytest.raises(InvalidSource, match="cannot be read") as refusal:
        DuckDB({"t": sf.Table(path, table="t")})
    assert refusal.value.__context__ is None
    assert "SQLITE_" in caplog.text
    if held:
        held.close()


TROUBLE = {
    "gone": lambda path: path.unlink(),
    "locked": locked,
    "another database": lambda path: path.write_bytes(b"x" * 9000),
    "another shape": lambda path: execute(path, "ALTER TABLE t RENAME v TO w"),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_before_the_charge_costs_nothing(path, tmp_path, monkeypatch, trouble):
    monkeypatch.setattr(room, "WAIT", 0.0)
    made(path, [1])
    table = sf.Table(path, columns={"v": WHOLE}, table="t")
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        held = TROUBLE[trouble](path)
        with pytest.raises((InvalidSource, InvalidDeclaration), match="has changed since"):
            session.query("SELECT SUM(v) AS s FROM t", epsilon=1)
        assert session.budget.left == 1
        if trouble == "locked":
            held.close()
            session.query("SELECT SUM(v) AS s FROM t", epsilon=1)


@pytest.mark.parametrize("trouble", [damage, locked, TROUBLE["another shape"]])
def test_trouble_in_the_middle_is_one_message_and_the_cost_stays_spent(
    path, tmp_path, monkeypatch, caplog, trouble
):
    monkeypatch.setattr(room, "WAIT", 0.0)
    made(path, [1])
    table = sf.Table(path, columns={"v": WHOLE}, table="t")
    held = []
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        honest = room.snapshot

        def late(tables):
            held.append(trouble(path))
            return honest(tables)

        monkeypatch.setattr(room, "snapshot", late)
        with pytest.raises(EngineFailed) as failure:
            session.query("SELECT SUM(v) AS s FROM t", epsilon=1)
        assert session.budget.left == 0
    assert str(failure.value) == str(EngineFailed())
    assert failure.value.__context__ is None
    assert "ServerFailed" in caplog.text
    for each in filter(None, held):
        each.close()


def test_a_file_is_never_created_or_written(path):
    with pytest.raises(ServerFailed), room._connected(path):
        pass
    assert not path.exists()
    made(path, [1])
    before = path.read_bytes()
    with pytest.raises(ServerFailed), room._connected(path) as connection:
        connection.execute("DELETE FROM t")
    assert path.read_bytes() == before

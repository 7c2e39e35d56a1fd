# SPDX-License-Identifier: Apache-2.0
"""Tables of a real PostgreSQL: the integers of the reference, one snapshot, and not a word of what
the server says.
"""

import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import duckdb as duckdb_room
from sfumato.engines import postgres as room
from sfumato.engines import remote
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import quote
from sfumato.engines.postgres import served
from sfumato.engines.remote import fill
from sfumato.engines.served import ServerFailed
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

TYPES = {
    pa.string(): "text",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
}


@pytest.fixture
def url(database):
    """The address of a database with an empty schema."""
    execute(database, "DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public")
    return database


def execute(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for each in statements:
            connection.execute(each)


def stored(url, name, cells):
    """An Arrow table, in the database."""
    columns = [f"{quote(each.name)} {TYPES.get(each.type, 'text')}" for each in cells.schema]
    execute(
        url,
        f"DROP TABLE IF EXISTS {quote(name)}",
        f"CREATE TABLE {quote(name)} ({', '.join(columns)})",
    )
    with (
        psycopg.connect(url, autocommit=True) as connection,
        connection.cursor().copy(f"COPY {quote(name)} FROM STDIN") as copy,
    ):
        for row in cells.to_pylist():
            copy.write_row(list(row.values()))


FEW = settings(max_examples=examples(0.08), suppress_health_check=list(HealthCheck))


class TestConformance(EngineContract):
    """The suite of every engine, its tables in the server.

    Texts without the byte that PostgreSQL has not.
    """

    @pytest.fixture(autouse=True)
    def _place(self, url):
        self.url = url

    def open_engine(self, tables):
        for name, table in tables.items():
            stored(self.url, name, table.source)
        return DuckDB(
            {name: replace(table, source=self.url, table=name) for name, table in tables.items()}
        )

    # an example writes every table to the server first
    @FEW
    @given(st.data(), world.data(), st.text(max_size=3))
    def test_the_engine_gives_the_integers_of_the_reference(self, data, rows, key):
        EngineContract.test_the_engine_gives_the_integers_of_the_reference.hypothesis.inner_test(
            self, data, rows, key
        )

    @FEW
    @given(st.data(), world.data())
    def test_the_engine_gives_the_marginals_of_the_reference(self, data, rows):
        EngineContract.test_the_engine_gives_the_marginals_of_the_reference.hypothesis.inner_test(
            self, data, rows
        )

    @settings(FEW, max_examples=examples(0.04))
    @given(st.data(), world.data(), st.text(max_size=3))
    def test_the_engine_gives_the_rows_of_the_reference(self, data, content, key):
        EngineContract.test_the_engine_gives_the_rows_of_the_reference.hypothesis.inner_test(
            self, data, content, key
        )

    def agree(self, expressions, columns, rows):
        super().agree(expressions, columns, [row for row in rows if "\x00" not in str(row[0])])


# --- what a value means ----------------------------------------------------------------------

HALVES, DAYS = sf.Real(0, 8, step="0.5"), sf.Date("1970-01-01", "1970-01-31")
HOURS = sf.Timestamp("1970-01-01", "1970-01-31", step=3600)
NIL = "00000000-0000-0000-0000-000000000001"
# of each type: a declaration, and values with the codes that they have; None is missing
VALUES = {
    "smallint": (sf.Integer(0, 9), {"'-5'": 0, "'32767'": 9, "NULL": None}),
    "bigint": (
        sf.Integer(0, 9),
        {"'-9223372036854775808'": 0, "'9223372036854775807'": 9, "'3'": 3},
    ),
    "real": (HALVES, {"'NaN'": None, "'Infinity'": 16, "'-Infinity'": 0, "'0.5'": 1, "'3e38'": 16}),
    "double precision": (
        HALVES,
        {"'NaN'": None, "'Infinity'": 16, "'-Infinity'": 0, "'1e308'": 16, "'4e-320'": 0},
    ),
    "numeric": (
        HALVES,
        {
            "'NaN'": None,
            "'Infinity'": None,
            "'1e400'": 16,
            "'-1e400'": 0,
            "'2.50'": 5,
            "'1e-400'": 0,
        },
    ),
    "numeric(9,2)": (sf.Category("2", "3.50"), {"2.00": 0, "3.50": 1, "3.5": 1, "2.01": None}),
    "boolean": (sf.Boolean(), {"true": 1, "false": 0, "NULL": None}),
    "text": (sf.Integer(0, 9), {"'7'": 7, "' 8 '": 8, "'x'": None, "''": None, "'空'": None}),
    "char(4)": (sf.Category("7", "8"), {"'8'": 1, "'9'": None}),
    "date": (
        DAYS,
        {
            "'infinity'": 30,
            "'-infinity'": 0,
            "'0044-03-15 BC'": 0,
            "'20000-01-01'": 30,
            "'1970-01-03'": 2,
            "NULL": None,
        },
    ),
    "timestamp": (
        DAYS,
        {"'infinity'": 30, "'-infinity'": 0, "'1970-01-03 23:59:59.999999'": 2, "NULL": None},
    ),
    "timestamp(0)": (
        sf.Timestamp("1970-01-01", "1970-01-31", zone="Asia/Tokyo", step=3600),
        {
            "'infinity'": 734,
            "'-infinity'": -9,
            "'1970-01-03 01:30'": 40,
            "'0044-03-15 BC'": -9,
            "NULL": None,
        },
    ),
    "timestamptz": (
        HOURS,
        {
            "'infinity'": 743,
            "'-infinity'": 0,
            "'1970-01-03 00:59:59.999999+01:00'": 47,
            "'1970-01-03 00:00:00+00:00'": 48,
            "'294276-12-31 23:59:59+00'": 743,
            "'4713-01-01 BC'": 0,
            "NULL": None,
        },
    ),
    "mood": (sf.Category("sad", "happy"), {"'happy'": 1, "'sad'": 0, "NULL": None}),
    "uuid": (sf.Category(NIL), {f"'{NIL}'": 0, "NULL": None}),
}


def codes(url, kind):
    """How many values of the column v of the table t have each code."""
    column = Column("v", kind)
    source = Scan("t", "", (column,))
    bounded = plan(source, CountRows(), keys=(GroupKey(Value.of(column), None, missing=True),))
    with closing(DuckDB({"t": sf.Table(url, columns={"v": kind}, table="t")})) as engine:
        (counts,) = engine.run(bounded, "key")
        # and nothing of it stays
        assert engine._connection.execute('SELECT count(*) FROM "server t"').fetchone() == (0,)
    return {group[0]: count for group, (count,) in counts.items()}


def made(url, kind, values):
    listed = ", ".join(f"({each})" for each in values)
    execute(
        url,
        "DROP TYPE IF EXISTS mood CASCADE",
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "DROP TABLE IF EXISTS t",
        f"CREATE TABLE t (v {kind})",
        f"INSERT INTO t VALUES {listed}",
    )


@pytest.mark.parametrize("stored_type", VALUES)
def test_every_value_has_a_declared_meaning(url, stored_type):
    kind, values = VALUES[stored_type]
    made(url, stored_type, values)
    assert codes(url, kind) == Counter(values.values())


# a column, and how many of the spellings its comparison calls equal to another one
EQUAL = {
    "text": 0,
    'text COLLATE "und-x-icu"': 0,
    "text COLLATE without_case": 2,
    "varchar(9) COLLATE without_case": 2,
}


@pytest.mark.parametrize("stored_type", EQUAL)
def test_a_collation_of_the_server_joins_no_spellings(url, stored_type):
    words = ["ab", "AB", "aB", "é", "e"]
    execute(
        url,
        "CREATE COLLATION without_case (provider = icu, locale = 'und-u-ks-level2', "
        "deterministic = false)",
        f"CREATE TABLE t (v {stored_type})",
        f"INSERT INTO t VALUES {', '.join(f'({word!r})' for word in words)}, (NULL)",
    )
    assert codes(url, sf.Text()) == Counter([*words, None])
    table = served("t", sf.Table(url, unit=sf.Unit("v"), table="t"))
    assert room.count_respellings(table, "v") == EQUAL[stored_type]


def test_a_number_that_is_written_in_two_ways_is_two_spellings(url):
    execute(url, "CREATE TABLE t (v numeric)", "INSERT INTO t VALUES (1.5), (1.50), (2), (2.0)")
    table = served("t", sf.Table(url, unit=sf.Unit("v"), table="t"))
    assert room.count_respellings(table, "v") == 1


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_a_day_that_is_not_cut_is_noticed(url, monkeypatch, kind):
    monkeypatch.setitem(room._READ, kind, ("{0}", room._READ[kind][1]))
    made(url, kind, VALUES[kind][1])
    with pytest.raises(EngineFailed):
        codes(url, DAYS)


def test_many_rows_come_in_batches(url, monkeypatch):
    monkeypatch.setattr(room, "BATCH", 3)
    execute(url, "CREATE TABLE t AS SELECT i AS v FROM generate_series(1, 10) AS i")
    assert codes(url, sf.Integer(1, 9)) == Counter([*range(1, 10), 9])


def test_no_row_without_a_column_is_forgotten(url):
    execute(url, "CREATE TABLE t AS SELECT i AS v FROM generate_series(1, 10) AS i")
    with closing(DuckDB({"t": sf.Table(url, table="t")})) as engine:
        assert engine.run(plan(Scan("t"), CountRows()), "key") == ({(): (10,)},)


# --- one moment ------------------------------------------------------------------------------


def both(url):
    """The rows of two tables, in one question."""
    column = Column("v", sf.Integer(0, 9))
    tables = {
        name: sf.Table(url, unit=sf.Unit("v"), columns={"v": column.type}, table=name)
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


def test_all_tables_of_a_question_are_of_one_moment(url, monkeypatch):
    execute(url, "CREATE TABLE t AS SELECT 1 AS v", "CREATE TABLE u AS SELECT 2 AS v")
    honest = remote._copy

    def slow(*arguments):
        # somebody writes before the first table is read, and before the second
        execute(url, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)")
        honest(*arguments)

    monkeypatch.setattr(remote, "_copy", slow)
    # the snapshot is of before the first table is read; neither table has a row more
    assert both(url) == 2
    # three rows of each by now; without a snapshot the second table has two rows more, the first
    # one
    monkeypatch.setattr(room, "_SNAPSHOT", "BEGIN")
    assert both(url) == (3 + 1) + (3 + 2)


# --- what is refused, and what fails ---------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CREATE VIEW t AS SELECT 1 / 0 AS v", "t"),
        ("CREATE TABLE other (v int)", "t"),
        ('CREATE TABLE "T" (v int)', "t"),
        ("CREATE SEQUENCE t", "t"),
    ],
)
def test_what_stores_no_rows_is_refused(url, statement, name):
    execute(url, statement)
    with pytest.raises(InvalidSource, match="has no table"):
        DuckDB({"t": sf.Table(url, table=name)})


@pytest.mark.parametrize("name", ["t", "public.t"])
def test_a_table_is_found_by_its_name_or_with_its_schema(url, name):
    execute(url, "CREATE MATERIALIZED VIEW t AS SELECT 1 AS v")
    DuckDB({"t": sf.Table(url, table=name)}).close()


@pytest.mark.parametrize(
    ("kind", "called"),
    [
        ("interval", "interval"),
        ("int[]", r"integer\[\]"),
        ("json", "json"),
        ("timetz(3)", "time with time zone"),
        ("bytea", "bytea"),
    ],
)
def test_a_type_that_no_declaration_fits_is_refused_where_it_is_declared(url, kind, called):
    execute(url, f"CREATE TABLE t (v {kind}, w int)")
    DuckDB({"t": sf.Table(url, columns={"w": sf.Integer(0, 9)}, table="t")}).close()
    with pytest.raises(
        InvalidDeclaration,
        match=f"is declared as Text.., and the data holds PostgreSQL's {called}\\.",
    ):
        DuckDB({"t": sf.Table(url, columns={"v": sf.Text()}, table="t")})
    with pytest.raises(InvalidDeclaration, match="has no column 'x'") as refusal:
        DuckDB({"t": sf.Table(url, columns={"x": sf.Text()}, table="t")})
    assert "'w'" not in str(refusal.value)


def test_a_type_is_known_by_more_than_its_name(url):
    # a type of somebody's own that is called int4: what writes it as a text is theirs too
    turned = "LANGUAGE internal IMMUTABLE STRICT"
    execute(
        url,
        "DROP SCHEMA IF EXISTS theirs CASCADE",
        "CREATE SCHEMA theirs",
        "CREATE TYPE theirs.int4",
        f"CREATE FUNCTION theirs.read(cstring) RETURNS theirs.int4 {turned} AS 'int4in'",
        f"CREATE FUNCTION theirs.write(theirs.int4) RETURNS cstring {turned} AS 'int4out'",
        "CREATE TYPE theirs.int4 (INPUT = theirs.read, OUTPUT = theirs.write, LIKE = pg_catalog.int4)",
        "CREATE TABLE t (v theirs.int4, w int4, x int GENERATED ALWAYS AS (7) STORED)",
    )
    try:
        known = {each: sf.Integer(0, 9) for each in "wx"}
        DuckDB({"t": sf.Table(url, columns=known, table="t")}).close()
        with pytest.raises(InvalidDeclaration, match="is declared as"):
            DuckDB({"t": sf.Table(url, columns={"v": sf.Integer(0, 9)}, table="t")})
    finally:
        execute(url, "DROP SCHEMA theirs CASCADE")


def test_rows_that_a_policy_hides_are_refused_not_left_out(url):
    execute(
        url,
        "CREATE TABLE t (v int)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA public TO reader",
        "GRANT SELECT ON t TO reader",
    )
    try:
        with pytest.raises(InvalidSource, match="cannot be read"):
            DuckDB({"t": sf.Table(url.replace("sfumato@", "reader@"), table="t")})
    finally:
        execute(url, "DROP OWNED BY reader", "DROP ROLE reader")


def test_a_password_is_never_shown(caplog):
    address = "postgresql://ada:secret@127.0.0.1:1/clinic?password=secret"
    table = sf.Table(address, table="t", columns={"v": sf.Integer(0, 9)})
    with pytest.raises(InvalidSource) as refusal:
        DuckDB({"t": table})
    for shown in (
        repr(table),
        str(table.source),
        str(refusal.value),
        repr(refusal.value.__context__),
        caplog.text,
    ):
        assert "secret" not in shown
    assert "postgresql://127.0.0.1/clinic" in str(refusal.value)


def test_a_server_needs_the_name_of_a_table():
    with pytest.raises(InvalidDeclaration, match="without the name"):
        sf.Table("postgres://localhost/clinic")


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidSource, match=r"sfumato\[postgres\]"):
        served("t", sf.Table("postgresql:///clinic", table="t"))


CANARY = "canary-4711"


@pytest.mark.parametrize(
    "trouble",
    [
        "DROP TABLE t",
        "ALTER TABLE t ALTER v TYPE text",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    ],
)
def test_trouble_with_the_server_is_one_message_and_the_cost_stays_spent(
    url, tmp_path, monkeypatch, caplog, trouble
):
    execute(url, "CREATE TABLE t (v int)", "INSERT INTO t VALUES (1)")
    table = sf.Table(url, columns={"v": sf.Integer(0, 9)}, table="t")
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        place = (duckdb_room, "fill") if "TABLE" in trouble else (remote, "_copy")
        honest = getattr(*place)

        def late(*arguments):
            execute(url, trouble)
            # what cannot be read as a number names what it is
            execute(url, *([f"INSERT INTO t VALUES ('{CANARY}')"] if "ALTER" in trouble else []))
            honest(*arguments)

        monkeypatch.setattr(*place, late)
        with pytest.raises(EngineFailed) as failure:
            session.query("SELECT SUM(v) AS s FROM t", epsilon=1)
        assert session.budget.left == 0
    assert str(failure.value) == str(EngineFailed())
    assert failure.value.__context__ is None
    assert CANARY not in caplog.text
    assert "ServerFailed" in caplog.text


def test_a_copy_ends_when_the_time_is_over(url):
    execute(url, "CREATE TABLE t AS SELECT 1 AS v")
    table = served("t", sf.Table(url, table="t"))
    with closing(duckdb.connect()) as connection:
        connection.execute(table.empty)
        with pytest.raises(ServerFailed):
            fill(connection, [(table, ["v"])], lambda: False)


# --- what it is when it is asked -----------------------------------------------------------------

SUM = "SELECT SUM(v) AS s FROM t"


def session(url, folder):
    """A session over the table t."""
    table = sf.Table(url, columns={"v": sf.Integer(0, 9)}, table="t")
    return sf.connect({"t": table}, dataset="d", budget=sf.Budget(10**6), ledger=folder / "l.db")


FOREIGN = ("CREATE FOREIGN DATA WRAPPER w", "CREATE SERVER s FOREIGN DATA WRAPPER w")
CHANGES = {
    "gone": (["DROP TABLE t"], InvalidSource),
    "a view": (
        ["DROP TABLE t", "CREATE VIEW t AS SELECT 1 / (v - 1) AS v FROM (VALUES (1)) AS u(v)"],
        InvalidSource,
    ),
    "another type": (["ALTER TABLE t ALTER v TYPE interval USING NULL"], InvalidDeclaration),
    "a column less": (["ALTER TABLE t DROP v"], InvalidDeclaration),
    "a foreign child": (
        [*FOREIGN, "CREATE FOREIGN TABLE p () INHERITS (t) SERVER s"],
        InvalidSource,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_is_looked_at_again_before_the_charge(url, tmp_path, change):
    execute(url, "CREATE TABLE t (v int)", "INSERT INTO t VALUES (1), (2)")
    statements, kind = CHANGES[change]
    try:
        with session(url, tmp_path) as asked:
            execute(url, *statements)
            with pytest.raises(kind, match="has changed since the session was opened") as refused:
                asked.query(SUM, epsilon=1)
            assert asked.budget.left == 10**6 and asked.budget.reserved == "0"
            assert refused.value.remedy
    finally:
        execute(url, "DROP FOREIGN DATA WRAPPER IF EXISTS w CASCADE")


def test_a_table_of_another_type_that_fits_is_read_as_it_is(url, tmp_path):
    execute(url, "CREATE TABLE t (v int)", "INSERT INTO t VALUES (1), (2)")
    with session(url, tmp_path) as asked:
        execute(url, "ALTER TABLE t ALTER v TYPE text", "INSERT INTO t VALUES ('x'), ('4')")
        assert asked.query(SUM, epsilon=10_000).rows == [[7]]


def test_a_shape_that_is_not_looked_at_in_the_snapshot_is_noticed(url, tmp_path, monkeypatch):
    def answer(folder):
        folder.mkdir()
        execute(url, "DROP TABLE IF EXISTS t", "CREATE TABLE t (v int)", "INSERT INTO t VALUES (1)")
        with session(url, folder) as asked:
            honest = duckdb_room.fill

            def late(*arguments):
                execute(url, "ALTER TABLE t ALTER v TYPE text", "INSERT INTO t VALUES ('2')")
                honest(*arguments)

            monkeypatch.setattr(duckdb_room, "fill", late)
            try:
                return asked.query(SUM, epsilon=10_000).rows
            except EngineFailed:
                return None
            finally:
                monkeypatch.setattr(duckdb_room, "fill", honest)

    # one row among texts that is no number would decide; so what is another type is not read at all
    assert answer(tmp_path / "one") is None
    monkeypatch.setattr(room, "_require_same", lambda source, tables: None)
    assert answer(tmp_path / "other") == [[3]]


def test_nothing_changes_the_shape_of_a_table_while_it_is_read(url, tmp_path, monkeypatch):
    execute(url, "CREATE TABLE t (v int)", "INSERT INTO t VALUES (1)")
    refused = []
    honest = remote._copy

    def slow(*arguments):
        for change in ("DROP TABLE t", "ALTER TABLE t ALTER v TYPE text"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                execute(url, "SET lock_timeout = '50ms'", change)
            refused.append(change)
        honest(*arguments)

    monkeypatch.setattr(remote, "_copy", slow)
    with session(url, tmp_path) as asked:
        assert asked.query(SUM, epsilon=10_000).rows == [[1]]
    assert len(refused) == 2


def test_a_cast_that_somebody_has_defined_is_not_called(url):
    failing = "CREATE FUNCTION told(mood) RETURNS text LANGUAGE sql AS $$ SELECT (1 / 0)::text $$"
    execute(
        url,
        "DROP TYPE IF EXISTS mood CASCADE",
        "CREATE TYPE mood AS ENUM ('sad')",
        "CREATE TABLE t (v mood)",
    )
    table = sf.Table(url, columns={"v": sf.Category("sad")}, table="t")
    DuckDB({"t": table}).close()
    execute(url, failing, "CREATE CAST (mood AS text) WITH FUNCTION told(mood)")
    try:
        with pytest.raises(InvalidDeclaration, match="a type of its own"):
            DuckDB({"t": table})
    finally:
        execute(url, "DROP TYPE mood CASCADE")


def test_a_name_means_the_same_table_whatever_comes_before_it(url, tmp_path):
    execute(
        url,
        "CREATE TABLE t (v int)",
        "INSERT INTO t VALUES (1)",
        "DROP SCHEMA IF EXISTS sfumato CASCADE",
    )
    try:
        with session(url, tmp_path) as asked:
            # "$user" comes before public in the search path of everybody
            execute(url, "CREATE SCHEMA sfumato", "CREATE TABLE sfumato.t AS SELECT 9 AS v")
            assert asked.query(SUM, epsilon=10_000).rows == [[1]]
        with session(url, tmp_path) as asked:
            assert asked.query("SELECT SUM(v) + 0 AS s FROM t", epsilon=20_000).rows == [[9]]
    finally:
        execute(url, "DROP SCHEMA sfumato CASCADE")

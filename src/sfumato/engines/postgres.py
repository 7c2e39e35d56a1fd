# SPDX-License-Identifier: Apache-2.0
"""Tables of a PostgreSQL server: for one question copied into DuckDB, batch by batch, as they are at one moment.

All tables of one server are read in one transaction, REPEATABLE READ and READ ONLY: one snapshot.
Each column is read by an expression that no row can make fail: bounds of the calendar are cut, numbers
without bounds are their text. Whatever the server says when it fails stays with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.engines.value_sql import quote
from sfumato.errors import InvalidSource
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    import psycopg

BATCH = 50_000
_DAYS = "least(greatest({0}, DATE '0001-01-01'), DATE '9999-12-31')"
_MOMENTS = "least(greatest({0}, TIMESTAMP '0001-01-01'), TIMESTAMP '9999-12-31 23:59:59.999999')"
_TEXT = "{0}::text"
# how a type is read, and what DuckDB holds then; least and greatest skip NULL, so they are asked of values only
_READ = {
    **dict.fromkeys(("int2", "int4", "int8"), ("{0}::bigint", "BIGINT")),
    **dict.fromkeys(("float4", "float8"), ("{0}::double precision", "DOUBLE")),
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid"), (_TEXT, "VARCHAR")),
    "numeric": ("pg_catalog.regexp_replace({0}::text, '\\.0+$', '')", "VARCHAR"),
    "bool": ("{0}", "BOOLEAN"),
    "date": (f"CASE WHEN {{0}} IS NOT NULL THEN {_DAYS} END", "DATE"),
    "timestamp": (f"CASE WHEN {{0}} IS NOT NULL THEN {_MOMENTS} END", "TIMESTAMP"),
}
# types of PostgreSQL itself, and enumerations, unless somebody has defined a cast of them; what is computed
# while it is read could fail on a row
_COLUMNS = """
    SELECT attname, CASE
        WHEN attgenerated NOT IN ('', 's') THEN NULL
        WHEN EXISTS (SELECT FROM pg_catalog.pg_cast WHERE castsource = atttypid AND pg_cast.oid >= 16384) THEN NULL
        WHEN typtype = 'e' THEN 'text'
        WHEN typtype = 'b' AND typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN typname
    END, CASE WHEN typnamespace = 'pg_catalog'::pg_catalog.regnamespace
        THEN pg_catalog.format_type(atttypid, NULL) ELSE 'a type of its own' END
    FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type ON pg_type.oid = atttypid
    WHERE attrelid = pg_catalog.to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
# a table and all that inherits from it, down to its last partition
_KINDS = """
    WITH RECURSIVE held(id) AS (
        SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid
        UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN held ON inhparent = id
    )
    SELECT relkind::text FROM held JOIN pg_catalog.pg_class ON oid = id ORDER BY oid <> pg_catalog.to_regclass(%s)
"""
_NAME = """
    SELECT nspname, relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_class.oid = pg_catalog.to_regclass(%s)
"""
# ordinary, partitioned, a materialized view: what stores its rows
_STORED = ("r", "p", "m")
_MATERIALIZED = "m"
# no name means something that somebody has put before PostgreSQL's own
_PINNED = b"SET search_path = pg_catalog, pg_temp"
_SETTINGS = (
    b"SET client_encoding = 'UTF8'",
    b"SET row_security = off",
    b"SET default_transaction_read_only = on",
)
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class ServerFailed(OSError):
    """The server is gone, or refuses; why is in no message."""


@dataclass(frozen=True, slots=True)
class Served:
    """A table of a server: where it is, and its columns, by what expression and as what type they are read.

    ``unread``: what the server calls the type of a column that cannot be; no declaration fits it.
    ``kinds``: what it is, and what the tables that inherit from it are.
    """

    name: str
    server: Server
    relation: str
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    kinds: str = ""

    @property
    def sql(self) -> str:
        """The table that holds its rows while a question is asked."""
        return quote(f"server {self.name}")

    @property
    def types(self) -> dict[str, str]:
        """What each column holds."""
        unread = {column: f"PostgreSQL's {kind}" for column, kind in self.unread.items()}
        return {column: unread.get(column, held) for column, (_, held) in self.columns.items()}

    @property
    def empty(self) -> str:
        """The statement that makes this table, without rows. Of a question without columns only their number counts."""
        listed = [f"{quote(column)} {held}" for column, (_, held) in self.columns.items()]
        return f"CREATE OR REPLACE TEMP TABLE {self.sql} ({', '.join([*listed, f'{quote(_ROW)} BOOLEAN'])})"


_ROW = "a row of the server"


def served(name: str, table: Table, relation: str = "") -> Served:
    """A declared table of a server, as its catalogue describes it; ``relation``: which one it was found to be before.

    Raises:
        InvalidSource: psycopg is missing, the server is not reached, or has no such table.
    """
    server = table.source
    assert isinstance(server, Server), "asked of tables of servers only"
    found, failed = None, False
    try:
        with _connected(server) as connection:
            relation = relation or _relation(connection, str(table.table))
            found = _described(connection, Served(name, server, relation)) if relation else None
            if found is not None and _is_stored(found.kinds):
                connection.execute(f"SELECT * FROM {relation} LIMIT 0".encode())
    except ServerFailed:
        failed = True
    if failed:
        raise InvalidSource(
            f"Table {name!r}: {server!r} cannot be read.",
            allowed="a PostgreSQL database in UTF-8 that lets this user read the table, without row-level security",
            remedy="Check address, user and rights; PGPASSWORD or a .pgpass file can hold the password.",
        )
    if found is None or not _is_stored(found.kinds):
        raise InvalidSource(
            f"Table {name!r}: {server!r} has no table {table.table!r}.",
            allowed='a table, or a materialized view: "patients", or "clinic.patients" with its schema',
            remedy="Other views, and tables with foreign partitions, are not read: what is computed while it is read "
            "could fail on a row.",
        )
    return found


def _is_stored(kinds: str) -> bool:
    """Whether a table, and all that inherits from it, stores its rows in the server."""
    return bool(kinds) and set(kinds) <= set(_STORED)


def _relation(connection: "psycopg.Connection[Any]", table: str) -> str:
    """The name of a table with its schema, as the user finds it; empty if there is none."""
    named = ".".join(quote(part) for part in table.split(".", 1))
    connection.execute(b"RESET search_path")
    found = connection.execute(_NAME, (named,)).fetchall()
    connection.execute(_PINNED)
    return ".".join(quote(part) for part in found[0]) if found else ""


def _described(connection: "psycopg.Connection[Any]", table: Served) -> Served:
    """A table as the catalogue of its server describes it now."""
    kinds = "".join(row[0] for row in connection.execute(_KINDS, (table.relation,) * 2).fetchall())
    found = connection.execute(_COLUMNS, (table.relation,)).fetchall()
    reads = {column: _READ.get(stored, ("NULL", "INTERVAL")) for column, stored, _ in found}
    columns = {
        column: (expression.format(quote(column)), held)
        for column, (expression, held) in reads.items()
    }
    unread = {column: kind for column, stored, kind in found if stored not in _READ}
    return replace(table, columns=columns, unread=unread, kinds=kinds)


def fill(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[tuple[Served, Iterable[str]]],
    going: Callable[[], bool] = lambda: True,
) -> None:
    """Copies the wanted columns of tables, all of one server from one snapshot, as long as ``going`` says so.

    Raises:
        ServerFailed: the server is gone, or a table is no longer what it was.
    """
    for server in dict.fromkeys(table.server for table, _ in tables):
        with _connected(server) as source:
            source.execute(_SNAPSHOT)
            wanted = [(table, columns) for table, columns in tables if table.server == server]
            _require_same(source, [table for table, _ in wanted])
            for table, columns in wanted:
                # in the shape that it has now: a lane of before may know another one
                connection.execute(table.empty)
                _copy(source, connection, table, list(columns), going)


def _require_same(source: "psycopg.Connection[Any]", tables: Sequence[Served]) -> None:
    """Locks tables against changes of their shape until they are read, and looks whether they are what they were.

    Raises:
        ServerFailed: one is another now; no row has been looked at.
    """
    for table in tables:
        if not table.kinds.startswith(_MATERIALIZED):
            source.execute(f"LOCK TABLE {table.relation} IN ACCESS SHARE MODE".encode())
    if any(_described(source, table) != table for table in tables):
        raise ServerFailed


def _copy(
    source: "psycopg.Connection[Any]",
    connection: duckdb.DuckDBPyConnection,
    table: Served,
    columns: list[str],
    going: Callable[[], bool],
) -> None:
    import pyarrow  # frames need it, files do not

    held = {"BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "VARCHAR": pyarrow.string()}
    held |= {
        "BOOLEAN": pyarrow.bool_(),
        "DATE": pyarrow.date32(),
        "TIMESTAMP": pyarrow.timestamp("us"),
    }
    kinds = [*(held[table.columns[column][1]] for column in columns), pyarrow.bool_()]
    read = ", ".join([*(table.columns[column][0] for column in columns), "TRUE"])
    names = ", ".join(map(quote, [*columns, _ROW]))
    with source.cursor(name="rows", binary=True) as cursor:
        cursor.execute(f"SELECT {read} FROM {table.relation}".encode())
        while rows := cursor.fetchmany(BATCH):
            if not going():
                raise ServerFailed
            arrays = [
                pyarrow.array(cells, kind)
                for cells, kind in zip(zip(*rows, strict=True), kinds, strict=True)
            ]
            batch = pyarrow.table(arrays, [str(place) for place in range(len(kinds))])
            connection.register("batch", batch)
            try:
                connection.execute(f"INSERT INTO {table.sql} ({names}) SELECT * FROM batch")
            finally:
                connection.unregister("batch")


@contextmanager
def _connected(server: Server) -> Iterator["psycopg.Connection[Any]"]:
    """A connection that changes nothing, and sees every row of a table or fails."""
    try:
        import psycopg  # an extra
    except ImportError:
        raise InvalidSource(
            "A table of a PostgreSQL server needs the package psycopg.",
            remedy="pip install 'sfumato[postgres]'",
        ) from None
    failed = False
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            # elsewhere a text could hold what cannot be decoded
            if connection.info.parameter_status("server_encoding") != "UTF8":
                raise ServerFailed
            for setting in (_PINNED, *_SETTINGS):
                connection.execute(setting)
            yield connection
    except (psycopg.Error, UnicodeError):
        failed = True
    if failed:
        # outside the handler: what the server says may quote a value
        raise ServerFailed

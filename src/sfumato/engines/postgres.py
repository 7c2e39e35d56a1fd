# SPDX-License-Identifier: Apache-2.0
"""Remote tables of a PostgreSQL server, copied into DuckDB for one question, batch by batch.

All tables of one server are read in one transaction, REPEATABLE READ and READ ONLY: one snapshot.
Each column is read by an expression that cannot fail on a row: dates are clipped to the calendar's
range, and numbers without bounds are read as strings. Error messages of the server are dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.engines.duckdb_printer import quote
from sfumato.errors import InvalidSource
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    import psycopg

BATCH = 50_000
_DAYS = "least(greatest({0}, DATE '0001-01-01'), DATE '9999-12-31')"
_MOMENTS = "least(greatest({0}, TIMESTAMP '0001-01-01'), TIMESTAMP '9999-12-31 23:59:59.999999')"
# the moments of a column with time zones, whatever zone the server is set to
_IN_UTC = "({0} AT TIME ZONE 'UTC')"
_TEXT = "{0}::text"
# how a type is read, and its type in DuckDB; least and greatest skip NULL, so NULL is left out
_READ = {
    **dict.fromkeys(("int2", "int4", "int8"), ("{0}::bigint", "BIGINT")),
    **dict.fromkeys(("float4", "float8"), ("{0}::double precision", "DOUBLE")),
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid"), (_TEXT, "VARCHAR")),
    "numeric": ("pg_catalog.regexp_replace({0}::text, '\\.0+$', '')", "VARCHAR"),
    "bool": ("{0}", "BOOLEAN"),
    "date": (f"CASE WHEN {{0}} IS NOT NULL THEN {_DAYS} END", "DATE"),
    "timestamp": (f"CASE WHEN {{0}} IS NOT NULL THEN {_MOMENTS} END", "TIMESTAMP"),
    "timestamptz": (
        f"CASE WHEN {{0}} IS NOT NULL THEN {_MOMENTS.format(_IN_UTC)} END",
        "TIMESTAMP WITH TIME ZONE",
    ),
}
# PostgreSQL's own types, and enumerations, unless a user has defined a cast of them; a computed
# column could fail on a row
_COLUMNS = """
    SELECT attname, CASE
        WHEN attgenerated NOT IN ('', 's') THEN NULL
        WHEN EXISTS (SELECT FROM pg_catalog.pg_cast
            WHERE castsource = atttypid AND pg_cast.oid >= 16384) THEN NULL
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
    SELECT relkind::text FROM held JOIN pg_catalog.pg_class ON oid = id
    ORDER BY oid <> pg_catalog.to_regclass(%s)
"""
_NAME = """
    SELECT nspname, relname FROM pg_catalog.pg_class
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_class.oid = pg_catalog.to_regclass(%s)
"""
# relations that store their rows: ordinary tables, partitioned tables, materialized views
_STORED = ("r", "p", "m")
_MATERIALIZED = "m"
# names resolve to PostgreSQL's own objects, whatever a user has defined
_PINNED = b"SET search_path = pg_catalog, pg_temp"
_SETTINGS = (
    b"SET client_encoding = 'UTF8'",
    b"SET row_security = off",
    b"SET default_transaction_read_only = on",
)
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class ServerFailed(OSError):
    """The server is gone, or refuses; the message does not say why."""


@dataclass(frozen=True, slots=True)
class Served:
    """A remote table: its server and name, and for each column how it is read and its type in
    DuckDB.

    ``unread``: the server's type of each column that cannot be read; no declaration fits it.
    ``kinds``: the kinds of the relation and of all that inherit from it, as in pg_class.relkind.
    """

    name: str
    server: Server
    relation: str
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    kinds: str = ""

    @property
    def sql(self) -> str:
        """The local table that stores its rows while a question runs."""
        return quote(f"server {self.name}")

    @property
    def types(self) -> dict[str, str]:
        """The type of each column in DuckDB."""
        unread = {column: f"PostgreSQL's {kind}" for column, kind in self.unread.items()}
        return {column: unread.get(column, held) for column, (_, held) in self.columns.items()}

    @property
    def empty(self) -> str:
        """The statement that creates the local table without rows.

        It has an extra column, so that a question that reads no column still sees the number of
        rows.
        """
        columns = [f"{quote(column)} {stored}" for column, (_, stored) in self.columns.items()]
        columns.append(f"{quote(_ROW)} BOOLEAN")
        return f"CREATE OR REPLACE TEMP TABLE {self.sql} ({', '.join(columns)})"


_ROW = "a row of the server"


def served(
    name: str,
    table: Table,
    relation: str = "",
) -> Served:
    """Looks a declared table up in the catalogue of its server.

    ``relation`` is its qualified name, if an earlier look-up found it.

    Raises:
        InvalidSource: psycopg is missing, the server is not reached, or has no such table.
    """
    server = table.source
    assert isinstance(server, Server), "asked of tables of servers only"
    remote = None
    failed = False
    try:
        with _connected(server) as connection:
            relation = relation or _relation(connection, str(table.table))
            remote = _described(connection, Served(name, server, relation)) if relation else None
            if remote is not None and _is_stored(remote.kinds):
                connection.execute(f"SELECT * FROM {relation} LIMIT 0".encode())
    except ServerFailed:
        failed = True
    if failed:
        raise InvalidSource(
            f"Table {name!r}: {server!r} cannot be read.",
            allowed="a PostgreSQL database in UTF-8 that lets this user read the table, "
            "without row-level security",
            remedy="Check address, user and rights; "
            "PGPASSWORD or a .pgpass file can hold the password.",
        )
    if remote is None or not _is_stored(remote.kinds):
        raise InvalidSource(
            f"Table {name!r}: {server!r} has no table {table.table!r}.",
            allowed='a table, or a materialized view: "patients", '
            'or "clinic.patients" with its schema',
            remedy="Other views, and tables with foreign partitions, are not read: "
            "what is computed while it is read could fail on a row.",
        )
    return remote


def _is_stored(kinds: str) -> bool:
    """Whether a table, and all that inherit from it, store their rows in the server."""
    return bool(kinds) and set(kinds) <= set(_STORED)


def _relation(connection: "psycopg.Connection[Any]", table: str) -> str:
    """Returns the qualified name of a table as the user's search path finds it; empty if absent."""
    named = ".".join(quote(part) for part in table.split(".", 1))
    connection.execute(b"RESET search_path")
    rows = connection.execute(_NAME, (named,)).fetchall()
    connection.execute(_PINNED)
    if not rows:
        return ""
    return ".".join(quote(part) for part in rows[0])


def _described(connection: "psycopg.Connection[Any]", table: Served) -> Served:
    """Returns a table as the catalogue of its server describes it now."""
    kinds = "".join(row[0] for row in connection.execute(_KINDS, (table.relation,) * 2).fetchall())
    columns = {}
    unread = {}
    for column, stored, kind in connection.execute(_COLUMNS, (table.relation,)).fetchall():
        expression, local = _READ.get(stored, ("NULL", "INTERVAL"))
        columns[column] = expression.format(quote(column)), local
        if stored not in _READ:
            unread[column] = kind
    return replace(table, columns=columns, unread=unread, kinds=kinds)


def fill(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[tuple[Served, Iterable[str]]],
    going: Callable[[], bool] = lambda: True,
) -> None:
    """Copies the wanted columns of remote tables; all tables of one server are read in one
    snapshot.

    Stops as soon as ``going`` returns False.

    Raises:
        ServerFailed: the server is gone, a table has changed, or ``going`` returned False.
    """
    for server in dict.fromkeys(table.server for table, _ in tables):
        with _connected(server) as source:
            source.execute(_SNAPSHOT)
            wanted = [(table, columns) for table, columns in tables if table.server == server]
            _require_same(source, [table for table, _ in wanted])
            for table, columns in wanted:
                # with its present columns: this lane may have created it with others
                connection.execute(table.empty)
                _copy(source, connection, table, list(columns), going)


def _require_same(source: "psycopg.Connection[Any]", tables: Sequence[Served]) -> None:
    """Locks tables against schema changes until they are read, and compares them with what they
    were.

    Raises:
        ServerFailed: a table has changed; no row has been read.
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
    import pyarrow  # remote tables and frames need it, files do not

    held = {"BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "VARCHAR": pyarrow.string()}
    held |= {
        "BOOLEAN": pyarrow.bool_(),
        "DATE": pyarrow.date32(),
        "TIMESTAMP": pyarrow.timestamp("us"),
        "TIMESTAMP WITH TIME ZONE": pyarrow.timestamp("us", "UTC"),
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
    """Opens a read-only connection that sees every row of a table or fails."""
    try:
        import psycopg  # optional: the extra sfumato[postgres]
    except ImportError:
        raise InvalidSource(
            "A table of a PostgreSQL server needs the package psycopg.",
            remedy="pip install 'sfumato[postgres]'",
        ) from None
    failed = False
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            # with another encoding a string might not be decodable
            if connection.info.parameter_status("server_encoding") != "UTF8":
                raise ServerFailed
            for setting in (_PINNED, *_SETTINGS):
                connection.execute(setting)
            yield connection
    except (psycopg.Error, UnicodeError):
        failed = True
    if failed:
        # outside the handler: a message of the server may quote a value
        raise ServerFailed

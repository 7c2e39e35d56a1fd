# SPDX-License-Identifier: Apache-2.0
"""Reads tables of a PostgreSQL server, batch by batch; a ``served.Reader``.

All tables of one server are read in one transaction, REPEATABLE READ and READ ONLY: one snapshot.
Each column is read by an expression that cannot fail on a row: dates are clipped to the calendar's
range, and numbers without bounds are read as strings. Error messages of the server are not passed
on.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sfumato.engines.duckdb_printer import quote
from sfumato.engines.served import BATCH, Cells, Fetch, Served, ServerFailed
from sfumato.errors import InvalidSource
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    import psycopg

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
    remote = None
    failed = False
    try:
        with _connected(server) as connection:
            relation = relation or _relation(connection, str(table.table))
            remote = _described(connection, Served(name, table, relation)) if relation else None
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
            unread[column] = f"PostgreSQL's {kind}"
    return replace(table, columns=columns, unread=unread, kinds=kinds)


@contextmanager
def snapshot(tables: Sequence[Served]) -> Iterator[Fetch]:
    """Opens one consistent snapshot of tables of a server; yields a function that fetches rows.

    Raises:
        ServerFailed: the server is gone, or a table has changed.
    """
    with _connected(tables[0].origin) as connection:
        connection.execute(_SNAPSHOT)
        _require_same(connection, tables)
        yield partial(_fetch, connection)


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


def _fetch(
    connection: "psycopg.Connection[Any]", table: Served, columns: Sequence[str]
) -> Generator[Cells]:
    read = ", ".join([*(table.columns[column][0] for column in columns), "TRUE"])
    with connection.cursor(name="rows", binary=True) as cursor:
        cursor.execute(f"SELECT {read} FROM {table.relation}".encode())
        while rows := cursor.fetchmany(BATCH):
            yield list(zip(*rows, strict=True))


def count_respellings(table: Served, column: str) -> int:
    """Counts the values that the column's collation treats as equal to another, and we do not."""
    read, _ = table.columns[column]
    counts = f'count(DISTINCT ({read})::text COLLATE "C") - count(DISTINCT {quote(column)})'
    with _connected(table.origin) as connection:
        rows = connection.execute(f"SELECT {counts} FROM {table.relation}".encode()).fetchall()
    return int(rows[0][0])


@contextmanager
def _connected(server: object) -> Iterator["psycopg.Connection[Any]"]:
    """Opens a read-only connection that sees every row of a table or fails."""
    assert isinstance(server, Server), "asked of tables of servers only"
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

# SPDX-License-Identifier: Apache-2.0
"""Reads tables of an SQLite file, batch by batch; a ``served.Reader``.

All tables of one file are read in one read transaction. A column of SQLite may hold integers,
reals, strings and blobs, row by row, whatever its declared type is: each value is read as the
string by which values are compared (``text_of``), and a blob or an invalid string is missing.

Python's own driver is used. apsw would be a second copy of SQLite in this process: if one copy
closes a file, the file locks of the other copy are lost.
"""

import logging
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from sfumato.engines.duckdb_printer import quote
from sfumato.engines.served import BATCH, Cells, Fetch, Served, ServerFailed
from sfumato.engines.value_codes import text_of
from sfumato.errors import InvalidSource
from sfumato.metadata.column import ColumnType, Integer, Real
from sfumato.metadata.table import Table

_OWNER = logging.getLogger("sfumato.owner")
# How long a reader waits for a writer that has locked the file, in seconds.
WAIT = 5.0
_SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA query_only = ON",
    "PRAGMA cell_size_check = ON",
)
_SNAPSHOT = "BEGIN"
# views and virtual tables have no root page
_TABLE = "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?"
_COLUMNS = "SELECT name, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid"
# ``hidden`` of an ordinary column, and of a computed one whose values are stored
_STORED = (0, 3)
_VALUE = "CASE WHEN typeof({0}) = 'blob' THEN NULL ELSE {0} END"
# infinities move to the bounds of a number, as a number that overflows does
_NUMBER = """CASE typeof({0}) WHEN 'blob' THEN NULL WHEN 'real' THEN
    CASE {0} WHEN 9e999 THEN '1e999' WHEN -9e999 THEN '-1e999' ELSE {0} END ELSE {0} END"""


def served(
    name: str,
    table: Table,
    relation: str = "",
) -> Served:
    """Looks a declared table up in the schema of its file; ``relation`` is ignored.

    Raises:
        InvalidSource: the file cannot be read, or has no such table.
    """
    remote = Served(name, table, relation or f"main.{quote(str(table.table))}")
    path = remote.origin
    failed = False
    try:
        with _connected(path) as connection:
            remote = _described(connection, remote)
    except ServerFailed:
        failed = True
    if failed:
        raise InvalidSource(
            f"Table {name!r}: {Path(str(path)).name!r} cannot be read.",
            allowed="an intact SQLite file that this user may read and that no writer keeps locked",
            remedy="The log 'sfumato.owner' has the error code of SQLite.",
        )
    if not remote.kinds:
        raise InvalidSource(
            f"Table {name!r}: {Path(str(path)).name!r} has no table {table.table!r}.",
            allowed="an ordinary table of the file; the case of its letters counts",
            remedy="Views and virtual tables are not read: store what they hold.",
        )
    return remote


@contextmanager
def snapshot(tables: Sequence[Served]) -> Iterator[Fetch]:
    """Opens one snapshot of several tables of a file; yields a function that fetches rows.

    Raises:
        ServerFailed: the file cannot be read, or a table has changed.
    """
    with _connected(tables[0].origin) as connection:
        connection.execute(_SNAPSHOT)
        # the first statement takes the snapshot
        if any(_described(connection, table) != table for table in tables):
            raise ServerFailed
        yield partial(_fetch, connection)


def _described(connection: sqlite3.Connection, table: Served) -> Served:
    """Returns a table as the schema of its file describes it now."""
    name = table.table.table
    kinds = "table" if connection.execute(_TABLE, (name,)).fetchall() else ""
    columns = {}
    unread = {}
    for column, hidden in connection.execute(_COLUMNS, (name,)).fetchall():
        if column is None:
            continue
        columns[column] = _expression(column, table.table.columns.get(column)), "VARCHAR"
        if hidden not in _STORED:
            unread[column] = "SQLite's computed column"
    return replace(table, columns=columns, unread=unread, kinds=kinds)


def _expression(column: str, kind: ColumnType | None) -> str:
    """Returns the expression that reads a column; no value can make it fail."""
    form = _NUMBER if isinstance(kind, Integer | Real) else _VALUE
    # with its table: a quoted name alone would be a string if there were no such column
    return form.format(f"t.{quote(column)}")


def _fetch(
    connection: sqlite3.Connection, table: Served, columns: Sequence[str]
) -> Generator[Cells]:
    read = ", ".join([*(table.columns[column][0] for column in columns), "1"])
    # the rows of the table itself: an index may be damaged, and lack some
    statement = f"SELECT {read} FROM {table.relation} AS t NOT INDEXED"
    with closing(connection.execute(statement)) as cursor:
        while rows := cursor.fetchmany(BATCH):
            *wanted, one = zip(*rows, strict=True)
            yield [*map(_texts, wanted), one]


def count_respellings(table: Served, column: str) -> int:
    """Counts the values that the column's collation treats as equal to another, and we do not."""
    stored = f"t.{quote(column)}"
    counts = f"COUNT(DISTINCT {stored} COLLATE BINARY) - COUNT(DISTINCT {stored})"
    with _connected(table.origin) as connection:
        statement = f"SELECT {counts} FROM {table.relation} AS t NOT INDEXED"
        rows = connection.execute(statement).fetchall()
    return int(rows[0][0])


def _texts(cells: Sequence[object]) -> list[str | None]:
    texts: list[str | None] = []
    for value in cells:
        if value is None or isinstance(value, str):
            texts.append(value)
        else:
            texts.append(text_of(value))
    return texts


def _decoded(value: bytes) -> str | None:
    """Returns a string of SQLite, which may be any bytes; None if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


@contextmanager
def _connected(path: object) -> Iterator[sqlite3.Connection]:
    """Opens a file for reading only; it is never created, changed or recovered."""
    assert isinstance(path, Path), "asked of files only"
    failed = ""
    try:
        with closing(_opened(path)) as connection:
            yield connection
    except sqlite3.Error as failure:
        failed = getattr(failure, "sqlite_errorname", type(failure).__name__)
    if failed:
        # outside the handler: a message may quote a name or a value
        _OWNER.error("SQLite failed: %s", failed)
        raise ServerFailed


def _opened(path: Path) -> sqlite3.Connection:
    address = f"{path.as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=WAIT, isolation_level=None)
    try:
        connection.text_factory = _decoded
        for setting in _SETTINGS:
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection

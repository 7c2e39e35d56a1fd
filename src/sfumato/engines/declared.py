# SPDX-License-Identifier: Apache-2.0
"""Compares the physical columns of a source with the declaration of its table.

Engines call it when they open a source, and again when a file has changed. The result is a
``Source``, which the emitters use to read values.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from sfumato.engines import sql_tree as sql
from sfumato.engines.duckdb_printer import printed, quote, text
from sfumato.engines.files import no_column, unreadable
from sfumato.engines.sources import Opened, opened, opened_again
from sfumato.engines.value_sql import Source, stored
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import (
    Array,
    Boolean,
    Category,
    ColumnType,
    Date,
    Integer,
    Real,
    Text,
)
from sfumato.metadata.physical_words import can_hold
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.unit import Node, Unit

_MILLISECONDS = "TIMESTAMP of milliseconds"
# Arrow's names of the types that DuckDB converts to microseconds.
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})
_COARSE = ("timestamp[s, tz=", "timestamp[ms, tz=")
_REMEDIES = {
    _MILLISECONDS: "Write it as dates, or in microseconds (pyarrow: coerce_timestamps='us', "
    "pandas: .dt.as_unit('us')): "
    "one value beyond the range of these would make every question about the column fail."
}
# A type that has no more than its width as a parameter: DECIMAL(9,2), VARCHAR[].
_PLAIN = re.compile(r"[A-Z_0-9' ]+(\(\d+(,\d+)?\))?(\[\d*\])*", re.IGNORECASE)


def held(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], name: str, item: Opened
) -> Source:
    """Returns the ``Source`` of an opened table (its FROM item and physical column types), after
    checking these types against the declaration.

    Every column that is declared, or needed to look up units, is checked.

    Raises:
        InvalidSource: the source cannot be read.
        InvalidDeclaration: a column is missing, or its type does not fit the declaration.
    """
    described = []
    failed = ""
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {item.sql}").fetchall()
    except (duckdb.Error, RuntimeError) as failure:
        failed = type(failure).__name__
    if failed:
        raise unreadable(name, tables[name].source, failed)
    types = {row[0]: row[1] for row in described} if item.served is None else item.served.types
    # most tables have none: then no footer is read for them
    if not _TIMES.isdisjoint(types.values()):
        for column in _of_milliseconds(connection, item):
            if types.get(column) in _TIMES:
                types[column] = _MILLISECONDS
    source = Source(item.sql, types, numerals=tables[name].numerals)
    for column, kind in tables[name].columns.items():
        _require_readable(
            name,
            source,
            column,
            kind,
            f"is declared as {kind!r}",
        )
    # columns that name units, and keys by which units are looked up, are read as strings
    for unit, column in named_owners(tables, name):
        _require_readable(name, source, column, Text(), "names units")
        if not unit.spellings_apart and source.family(column) == "text":
            _require_code_points(connection, source, name, column)
    return source


def held_again(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], name: str, item: Opened
) -> tuple[Opened, Source]:
    """Reopens the source of table ``name``, checks that it still fits its declaration, and returns
    both the opened table and its ``Source``.

    Needed before a read if the source is remote or its files have changed.

    Raises:
        InvalidSource, InvalidDeclaration: it no longer fits its declaration; this is decided by
            schemas, never by a row.
    """
    try:
        if item.served is None:
            source = opened_again(connection, name, item)
        else:
            source = opened(
                connection,
                name,
                item.served.table,
                item.served.relation,
            )
        return source, held(connection, tables, name, source)
    except (InvalidSource, InvalidDeclaration) as refused:
        raise type(refused)(
            f"{refused.problem} The data has changed since the session was opened.",
            allowed=refused.allowed,
            remedy="Open the session again, with the data as it is declared.",
        ) from None


def owner_columns(tables: Mapping[str, Table], name: str) -> list[str]:
    """Returns the names of a table's columns that identify privacy units: its own unit columns, and
    the columns that other tables refer to.
    """
    return [column for _, column in named_owners(tables, name)]


def named_owners(tables: Mapping[str, Table], name: str) -> Iterator[tuple[Unit, str]]:
    """Yields a pair for each column in ``owner_columns``: the privacy unit that it identifies, and
    its name.
    """
    unit = tables[name].unit
    if isinstance(unit, Unit):
        for column in unit.columns:
            yield unit, column
    if isinstance(unit, Node):
        # both ends are compared with the ids of the table of nodes
        above = tables[unit.of].unit
        assert isinstance(above, Unit), "checked when the dataset was made"
        for column in unit.ends:
            yield above, column
    for other in tables.values():
        link = other.unit
        if not isinstance(link, Unit) or link.target is None or not link.key:
            continue
        if link.target[0] == name:
            yield link, link.key


def _require_code_points(
    connection: duckdb.DuckDBPyConnection, source: Source, name: str, column: str
) -> None:
    """Refuses an id whose column has a collation, by which DuckDB may call several texts equal.

    DuckDB does not compare texts of two collations: it says so when a statement is bound, before
    it reads a row. No catalogue and no DESCRIBE has the collation of a column.
    """
    raw = stored(column)
    compared = printed(sql.CodePoints(raw).equals(raw))
    try:
        connection.execute(f"DESCRIBE SELECT {compared} FROM {source.sql}").fetchall()
        return
    except duckdb.BinderException:
        pass
    raise InvalidDeclaration(
        f"Column {column!r} of table {name!r} names units, and the data gives it a collation "
        "(COLLATE), by which several spellings may be one id.",
        allowed="ids that are equal only if they are spelled the same",
        remedy="Store one spelling of each id, in a column without COLLATE; or, if each spelling "
        "is a unit of its own, declare sf.Unit(..., spellings_apart=True).",
    )


def plain_type(physical: str) -> str:
    """Returns the name of a physical type without its parameters, which may contain data (values of
    an enumeration, names of fields).

    >>> plain_type("DECIMAL(9,2)[]"), plain_type("ENUM('Ann')[]"), plain_type("struct<Ann:int>")
    ('DECIMAL(9,2)[]', 'ENUM', 'struct')
    """
    if _PLAIN.fullmatch(physical):
        return physical
    return re.split(r"[(<]", physical)[0]


def _of_milliseconds(connection: duckdb.DuckDBPyConnection, item: Opened) -> list[str]:
    """Returns the columns of Parquet files that are timestamps in milliseconds, and of frames those
    in seconds or milliseconds with a time zone.

    DuckDB converts them to microseconds while it decodes a page, and fails on one beyond 2^63
    microseconds. No expression is evaluated before that, so no question may read such a column
    (RULES 24).
    """
    if item.frame is not None:
        frame: Any = item.frame
        return [field.name for field in frame.schema if str(field.type).startswith(_COARSE)]
    files = [path for path in item.paths if path.suffix.lower() == ".parquet"]
    if not files:
        return []
    listed = ", ".join(text(str(path)) for path in files)
    rows = connection.execute(
        f"SELECT DISTINCT name FROM parquet_schema([{listed}]) "
        "WHERE converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=Milli%'"
    ).fetchall()
    return [row[0] for row in rows]


def _require_readable(
    table: str,
    source: Source,
    column: str,
    kind: ColumnType,
    said: str,
) -> None:
    if column not in source.types:
        raise no_column(table, column, list(source.types))
    family = source.family(column)
    fits: tuple[str, ...]
    if isinstance(kind, Array):
        fits = ("whole", "float", "decimal", "null")
        family = Source("", {column: source.element(column) or "other"}).family(column)
    elif isinstance(kind, Timestamp):
        fits = ("date", "instant", "text", "null")
    elif isinstance(kind, Date):
        fits = ("date", "text", "null")
    elif isinstance(kind, Category | Boolean | Text):
        fits = ("text", "whole", "float", "decimal", "date", "boolean", "uuid", "null")
    else:
        fits = ("text", "whole", "float", "decimal", "boolean", "null")
    require_word(table, column, kind, source.types[column], family)
    if family not in fits:
        stored = source.types[column]
        remedy = "Declare what it holds, or convert the column in the data."
        if isinstance(kind, Array):
            remedy = "Lists are read from Parquet, Arrow and DuckDB; a CSV holds texts alone."
        raise InvalidDeclaration(
            f"Column {column!r} of table {table!r} {said}, "
            f"and the data holds {plain_type(stored)}.",
            remedy=_REMEDIES.get(stored, remedy),
        )


def require_word(
    table: str,
    column: str,
    kind: ColumnType,
    physical: str,
    family: str,
) -> None:
    """Refuses a column whose physical type cannot hold any value of the declared type.

    Raises:
        InvalidDeclaration: decided by types alone, never by a row.
    """
    if not can_hold(kind, family):
        raise InvalidDeclaration(
            f"Column {column!r} of table {table!r} is declared as {kind!r}, and the data holds "
            f"{plain_type(physical)}: no such value is written as one of these words.",
            remedy="Declare sf.Boolean() for truth values; for numbers the numbers themselves, "
            "which may have labels.",
        )


def fitting_sources(tables: Mapping[str, Table]) -> dict[str, Source]:
    """Returns a ``Source`` for each table as if its columns were stored in exactly the declared
    types.

    The SQL that analysts see is made from these, so that it does not depend on the data.
    """
    sources = {}
    for name, table in tables.items():
        types = dict.fromkeys(owner_columns(tables, name), "VARCHAR")
        for column, kind in table.columns.items():
            types[column] = _fitting_type(kind)
        sources[name] = Source(quote(name), types)
    return sources


def _fitting_type(kind: ColumnType) -> str:
    if isinstance(kind, Array):
        return "DOUBLE[]"
    if isinstance(kind, Integer | Real):
        return "DOUBLE"
    if isinstance(kind, Date):
        return "DATE"
    if isinstance(kind, Timestamp):
        return "TIMESTAMP"
    return "VARCHAR"

# SPDX-License-Identifier: Apache-2.0
"""What a source holds, against what is declared of its table."""

import re
from collections.abc import Mapping

import duckdb

from sfumato.engines.files import no_column, unreadable
from sfumato.engines.sources import Opened, opened, opened_again
from sfumato.engines.value_sql import Source, quote, text
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.table import Table

_MILLISECONDS = "TIMESTAMP of milliseconds"
_REMEDIES = {
    _MILLISECONDS: "Write it as dates, or in microseconds (pyarrow: coerce_timestamps='us'): one value beyond "
    "the range of these would make every question about the column fail."
}
# A type that says no more than how wide it is: DECIMAL(9,2), VARCHAR[].
_PLAIN = re.compile(r"[A-Z_0-9' ]+(\(\d+(,\d+)?\))?(\[\d*\])*", re.IGNORECASE)


def held(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], name: str, item: Opened
) -> Source:
    """The source of a table, with the types that it holds: every column that is declared, or leads to units.

    Raises:
        InvalidSource: it cannot be read.
        InvalidDeclaration: it does not have such a column, or holds what cannot be read so.
    """
    described, failed = [], ""
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {item.sql}").fetchall()
    except (duckdb.Error, RuntimeError) as failure:
        failed = type(failure).__name__
    if failed:
        raise unreadable(name, tables[name].source, failed)
    types = {row[0]: row[1] for row in described} if item.served is None else item.served.types
    for column in _of_milliseconds(connection, item):
        if types.get(column) == "TIMESTAMP":
            types[column] = _MILLISECONDS
    source = Source(item.sql, types)
    for column, kind in tables[name].columns.items():
        _require_readable(name, source, column, kind, f"is declared as {kind!r}")
    # what names units, and the keys on the way to them, is read as text
    for column in owner_columns(tables, name):
        _require_readable(name, source, column, Text(), "names units")
    return source


def held_again(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], name: str, item: Opened
) -> tuple[Opened, Source]:
    """A source whose files have changed since they were opened, or that is on a server, as it is now.

    Raises:
        InvalidSource, InvalidDeclaration: they are not what is declared any more; decided by
            their schemas, never by a row.
    """
    try:
        if item.served is None:
            found = opened_again(connection, name, item)
        else:
            found = opened(connection, name, tables[name], item.served.relation)
        return found, held(connection, tables, name, found)
    except (InvalidSource, InvalidDeclaration) as refused:
        raise type(refused)(
            f"{refused.problem} The data has changed since the session was opened.",
            allowed=refused.allowed,
            remedy="Open the session again, with the data as it is declared.",
        ) from None


def owner_columns(tables: Mapping[str, Table], name: str) -> list[str]:
    """The columns of a table that name its units, or by which units of other tables are looked up."""
    unit = tables[name].unit
    columns = [] if unit is None else list(unit.columns)
    for other in tables.values():
        if (
            other.unit is not None
            and other.unit.target is not None
            and other.unit.target[0] == name
            and other.unit.key
        ):
            columns.append(other.unit.key)
    return columns


def plain_type(physical: str) -> str:
    """A type without what is inside: the values of an enumeration and the fields of a structure are the data's.

    >>> plain_type("DECIMAL(9,2)[]"), plain_type("ENUM('Ann', 'Bob')[]"), plain_type("struct<Ann:int>")
    ('DECIMAL(9,2)[]', 'ENUM', 'struct')
    """
    return physical if _PLAIN.fullmatch(physical) else re.split(r"[(<]", physical)[0]


def _of_milliseconds(connection: duckdb.DuckDBPyConnection, item: Opened) -> list[str]:
    """The columns of Parquet that hold moments in milliseconds.

    DuckDB makes microseconds of them while it decodes a page, and fails on one beyond 2^63 of these:
    no expression comes before that, so no question may read such a column (RULES 24).
    """
    files = [path for path in item.paths if path.suffix.lower() == ".parquet"]
    if not files:
        return []
    listed = ", ".join(text(str(path)) for path in files)
    found = connection.execute(
        f"SELECT DISTINCT name FROM parquet_schema([{listed}]) "
        "WHERE converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=Milli%'"
    ).fetchall()
    return [row[0] for row in found]


def _require_readable(table: str, source: Source, column: str, kind: ColumnType, said: str) -> None:
    if column not in source.types:
        raise no_column(table, column, list(source.types))
    family = source.family(column)
    fits: tuple[str, ...]
    if isinstance(kind, Date):
        fits = ("date", "text", "null")
    elif isinstance(kind, Category | Boolean | Text):
        fits = ("text", "whole", "float", "decimal", "date", "boolean", "uuid", "null")
    else:
        fits = ("text", "whole", "float", "decimal", "boolean", "null")
    if family not in fits:
        raise InvalidDeclaration(
            f"Column {column!r} of table {table!r} {said}, and the data holds {plain_type(source.types[column])}.",
            remedy=_REMEDIES.get(
                source.types[column], "Declare what it holds, or convert the column in the data."
            ),
        )


def fitting_sources(tables: Mapping[str, Table]) -> dict[str, Source]:
    """The physical types that fit the declarations best."""
    sources = {}
    for name, table in tables.items():
        types = dict.fromkeys(owner_columns(tables, name), "VARCHAR")
        for column, kind in table.columns.items():
            number = isinstance(kind, Integer | Real)
            types[column] = "DOUBLE" if number else "DATE" if isinstance(kind, Date) else "VARCHAR"
        sources[name] = Source(quote(name), types)
    return sources

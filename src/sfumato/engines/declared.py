# SPDX-License-Identifier: Apache-2.0
"""What a source holds, against what is declared of its table."""

import re
from collections.abc import Mapping

import duckdb

from sfumato.engines.files import unreadable, with_commas
from sfumato.engines.reading import Source
from sfumato.engines.sources import Opened, opened_again
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Text
from sfumato.metadata.table import Table

_ENUMERATION = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")


def held(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], name: str, item: Opened) -> Source:
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
    """A source whose files have changed since they were opened, as they are now.

    Raises:
        InvalidSource, InvalidDeclaration: they are not what is declared any more; decided by
            their schemas, never by a row.
    """
    try:
        found = opened_again(connection, name, item)
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
        if other.unit is not None and other.unit.target is not None and other.unit.target[0] == name and other.unit.key:
            columns.append(other.unit.key)
    return columns


def _require_readable(table: str, source: Source, column: str, kind: ColumnType, said: str) -> None:
    if column not in source.types:
        raise InvalidDeclaration(
            f"Table {table!r} has no column {column!r}.",
            allowed=", ".join(each if each == each.strip() else repr(each) for each in source.types),
            remedy=with_commas(list(source.types)) or "Names are case-sensitive here.",
        )
    family = source.family(column)
    fits: tuple[str, ...]
    if isinstance(kind, Date):
        fits = ("date", "text", "null")
    elif isinstance(kind, Category | Boolean | Text):
        fits = ("text", "whole", "float", "decimal", "date", "boolean", "uuid", "null")
    else:
        fits = ("text", "whole", "float", "decimal", "boolean", "null")
    if family not in fits:
        # the values of an enumeration are the data's
        physical = _ENUMERATION.sub("ENUM", source.types[column])
        raise InvalidDeclaration(
            f"Column {column!r} of table {table!r} {said}, and the data holds {physical}.",
            remedy="Declare what it holds, or convert the column in the data.",
        )

# SPDX-License-Identifier: Apache-2.0
"""A Spark DataFrame as the emitter reads it: every column in a type whose text agrees with ``codes.text_of``.

Proof: spark_source.proof.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engines.declared import owner_columns, plain_type
from sfumato.engines.files import no_column
from sfumato.engines.spark_kind import Kind, identifier, literal
from sfumato.engines.spark_statement import Rows
from sfumato.engines.value_codes import text_of
from sfumato.engines.value_sql import Source, quote
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.table import Table

# Types of Spark by their simple names, as the emitter calls them.
_TYPES = {
    "string": "VARCHAR",
    "tinyint": "BIGINT",
    "smallint": "BIGINT",
    "int": "BIGINT",
    "bigint": "BIGINT",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "decimal": "DECIMAL",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "void": "NULL",
}
_KINDS = {
    "VARCHAR": Kind.VARCHAR,
    "BIGINT": Kind.BIGINT,
    "DOUBLE": Kind.DOUBLE,
    "DECIMAL": Kind.DECIMAL,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIMESTAMP,
    "NULL": Kind.NULL,
}
_NUMBERS = ("VARCHAR", "BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN", "NULL")
_DAYS = ("VARCHAR", "DATE", "TIMESTAMP", "NULL")
_TEXTS = ("VARCHAR", "BIGINT", "DECIMAL", "BOOLEAN", "DATE", "TIMESTAMP", "NULL")


@dataclass(frozen=True, slots=True)
class Read:
    """A table: what the emitter is told of it, and what stands for it on Spark."""

    source: Source
    rows: Rows


def read(tables: Mapping[str, Table], name: str, view: str, schema: Iterable[Any]) -> Read:
    """A table over a view of it: the declared columns and those that lead to its units.

    Raises:
        InvalidDeclaration: a column that the data does not have, or holds as what it cannot be.
    """
    fields = list(schema)
    physical = {field.name: field.dataType.simpleString() for field in fields}
    if len(physical) != len(fields):
        raise InvalidSource(f"Table {name!r}: two columns of one name.", remedy="Rename one.")
    owners = owner_columns(tables, name)
    types, items = {}, []
    for column in dict.fromkeys([*tables[name].columns, *owners]):
        if column not in physical:
            raise no_column(name, column, list(physical))
        kind = tables[name].columns.get(column, Text())
        types[column], item = _readable(
            name, column, physical[column], [kind, *[Text()] * (column in owners)]
        )
        items.append(f"{item} AS {identifier(column)}")
    sql = f"(SELECT {', '.join(items) or '1'} FROM {view})"
    return Read(
        Source(quote(name), types),
        Rows(sql, {column: _KINDS[each] for column, each in types.items()}),
    )


def declared(tables: Mapping[str, Table], name: str) -> Read:
    """A table as its declaration alone says, in the types that fit it best."""
    owners = owner_columns(tables, name)
    types = {}
    for column in dict.fromkeys([*tables[name].columns, *owners]):
        kind = tables[name].columns.get(column, Text())
        number = isinstance(kind, Integer | Real) and not kind.missing and column not in owners
        types[column] = "DOUBLE" if number else "DATE" if isinstance(kind, Date) else "VARCHAR"
    return Read(
        Source(quote(name), types),
        Rows(identifier(name), {each: _KINDS[types[each]] for each in types}),
    )


def _readable(table: str, column: str, physical: str, kinds: list[ColumnType]) -> tuple[str, str]:
    """How a column is read under its declarations: the emitter's name of its type, and Spark SQL."""
    family = physical.partition("(")[0].partition(" collate ")[0]
    found, raw = _TYPES.get(family, ""), identifier(column)
    for kind in kinds:
        if isinstance(kind, Integer | Real):
            fits: tuple[str, ...] = _NUMBERS
        elif isinstance(kind, Date):
            fits = _DAYS
        else:
            fits = _TEXTS if isinstance(kind, Text) else (*_TEXTS, "DOUBLE")
        if found not in fits:
            raise _unheld(table, column, physical, kind)
    if found == "VARCHAR":
        # bytes that are no text are missing: they have no code points to be compared by
        return (
            found,
            f"try_validate_utf8({f'CAST({raw} AS STRING)' if family != physical else raw})",
        )
    if found == "DOUBLE":
        return _double(_opaque(f"CAST({raw} AS DOUBLE)"), kinds[0])
    return found, f"CAST({raw} AS BIGINT)" if found == "BIGINT" else raw


def _opaque(raw: str) -> str:
    """A double as it is, so that nothing is asked of the file that it lies in.

    A file states the least and the greatest number of a column without regard to NaN. Where Spark
    hands it a comparison, rows are left out by that, and one row decides what another one is.
    """
    return f"nanvl({raw}, CAST('NaN' AS DOUBLE))"


def _unheld(table: str, column: str, physical: str, kind: ColumnType) -> InvalidDeclaration:
    remedy = "Declare what it holds, or convert the column in the data."
    if physical == "timestamp":
        remedy = "A moment has a date only in a time zone: cast it to timestamp_ntz, or to date, in the one you mean."
    elif physical in ("float", "double"):
        remedy = "The text of a fraction differs between engines: cast the column to long, decimal or string."
    return InvalidDeclaration(
        f"Column {column!r} of table {table!r} is declared as {kind!r}, or names units, and the data holds "
        f"{plain_type(physical)}.",
        remedy=remedy,
    )


def _double(raw: str, kind: ColumnType) -> tuple[str, str]:
    """A double as it is; where its text matters, as a text.

    Java writes other texts than Python, so those that are declared are found by value. A
    number that is not among them is written as Java does, to be read back: behind more
    spaces than any declared text begins with, so that it is none of them.
    """
    missing = list(kind.missing or ())
    if isinstance(kind, Integer | Real) and not missing:
        return "DOUBLE", raw
    texts = [text for text, _ in kind.texts()] if isinstance(kind, Category | Boolean) else []
    found = [
        (number, text) for text in dict.fromkeys([*texts, *missing]) for number in _number(text)
    ]
    branches = "".join(
        f" WHEN {raw} = CAST('{number!r}' AS DOUBLE) THEN {literal(text)}" for number, text in found
    )
    rest = "CAST(NULL AS STRING)"
    if isinstance(kind, Integer | Real):
        spaces = " " * (1 + max(len(text) - len(text.lstrip(" ")) for text in missing))
        branches += "".join(
            f" WHEN {raw} = CAST('{sign}inf' AS DOUBLE) THEN '{spaces}{sign}1e999'"
            for sign in ("", "-")
        )
        rest = f"'{spaces}' || CAST({raw} AS STRING)"
    return "VARCHAR", f"CASE{branches or ' WHEN FALSE THEN NULL'} ELSE {rest} END"


def _number(text: str) -> list[float]:
    """The double whose text it is, if there is one."""
    try:
        number = float(text)
    except ValueError:
        return []
    return [number] if text_of(number) == text else []

# SPDX-License-Identifier: Apache-2.0
"""Makes a ``Source`` of a Spark DataFrame: columns whose strings agree with ``text_of``.

``spark`` gives it to ``emit``. Proof: spark_source.proof.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engines.declared import owner_columns, plain_type, require_word
from sfumato.engines.duckdb_printer import quote
from sfumato.engines.files import no_column
from sfumato.engines.spark_kind import Kind, identifier, literal
from sfumato.engines.spark_printer import Rows
from sfumato.engines.value_codes import text_of
from sfumato.engines.value_sql import Source
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp

# The emitter's name of each Spark type, by the simple name of that type.
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
    "timestamp": "TIMESTAMP WITH TIME ZONE",
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
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
    "NULL": Kind.NULL,
}
_NUMBERS = ("VARCHAR", "BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN", "NULL")
_DAYS = ("VARCHAR", "DATE", "TIMESTAMP", "NULL")
_MOMENTS = ("VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "NULL")
_TEXTS = ("VARCHAR", "BIGINT", "DECIMAL", "BOOLEAN", "DATE", "TIMESTAMP", "NULL")


@dataclass(frozen=True, slots=True)
class Read:
    """A table on Spark: its ``Source``, from which SQL is built, and the FROM item that reads
    it.
    """

    source: Source
    rows: Rows


def read(
    tables: Mapping[str, Table],
    name: str,
    view: str,
    schema: Iterable[Any],
) -> Read:
    """Returns how Spark SQL reads a table through a view, after checking the stored types of its
    declared columns and of those that identify units.

    Raises:
        InvalidDeclaration: a column is missing from the data, or its type does not fit.
    """
    fields = list(schema)
    physical = {field.name: field.dataType.simpleString() for field in fields}
    if len(physical) != len(fields):
        raise InvalidSource(f"Table {name!r}: two columns of one name.", remedy="Rename one.")
    owners = owner_columns(tables, name)
    types = {}
    items = []
    for column in dict.fromkeys([*_asked(tables[name]), *owners]):
        if column not in physical:
            raise no_column(name, column, list(physical))
        kind = tables[name].columns.get(column, Text())
        readings = [kind, Text()] if column in owners else [kind]
        types[column], item = _readable(
            name,
            column,
            physical[column],
            readings,
        )
        items.append(f"{item} AS {identifier(column)}")
    sql = f"(SELECT {', '.join(items) or '1'} FROM {view})"
    return Read(Source(quote(name), types), Rows(sql, _kinds(types)))


def _asked(table: Table) -> list[str]:
    """The columns that questions can read: all but arrays."""
    return [name for name, kind in table.columns.items() if not isinstance(kind, Array)]


def _kinds(types: Mapping[str, str]) -> dict[str, Kind]:
    return {column: _KINDS[name] for column, name in types.items()}


def declared(tables: Mapping[str, Table], name: str) -> Read:
    """Returns how Spark SQL would read a table if its columns were stored in the best fitting
    types; derived from the declaration alone.
    """
    owners = owner_columns(tables, name)
    types = {}
    for column in dict.fromkeys([*_asked(tables[name]), *owners]):
        kind = tables[name].columns.get(column, Text())
        if isinstance(kind, Date):
            types[column] = "DATE"
        elif isinstance(kind, Timestamp):
            types[column] = "TIMESTAMP"
        elif isinstance(kind, Integer | Real) and not kind.missing and column not in owners:
            types[column] = "DOUBLE"
        else:
            types[column] = "VARCHAR"
    return Read(Source(quote(name), types), Rows(identifier(name), _kinds(types)))


def _readable(
    table: str,
    column: str,
    physical: str,
    kinds: list[ColumnType],
) -> tuple[str, str]:
    """Returns how a column is read under its declarations: the emitter's type and Spark SQL."""
    family = physical.partition("(")[0].partition(" collate ")[0]
    stored = _TYPES.get(family, "")
    raw = identifier(column)
    for kind in kinds:
        if isinstance(kind, Integer | Real):
            fits: tuple[str, ...] = _NUMBERS
        elif isinstance(kind, Date):
            fits = _DAYS
        elif isinstance(kind, Timestamp):
            fits = _MOMENTS
        else:
            fits = _TEXTS if isinstance(kind, Text) else (*_TEXTS, "DOUBLE")
        if stored not in fits:
            raise _unheld(table, column, physical, kind)
        require_word(table, column, kind, physical, Source("", {column: stored}).family(column))
    if stored == "VARCHAR":
        # bytes that are not UTF-8 are missing: they have no code points to compare
        text = raw if family == physical else f"CAST({raw} AS STRING)"
        return stored, f"try_validate_utf8({text})"
    if stored == "DOUBLE":
        return _double(_opaque(f"CAST({raw} AS DOUBLE)"), kinds[0])
    if stored == "BIGINT":
        return stored, f"CAST({raw} AS BIGINT)"
    return stored, raw


def _opaque(raw: str) -> str:
    """Wraps a double so that Spark ignores the min/max statistics of its file.

    These statistics leave NaN out. With them Spark would skip rows by a pushed-down comparison, and
    one row would change what another one means.
    """
    return f"nanvl({raw}, CAST('NaN' AS DOUBLE))"


def _unheld(
    table: str,
    column: str,
    physical: str,
    kind: ColumnType,
) -> InvalidDeclaration:
    remedy = "Declare what it holds, or convert the column in the data."
    if physical == "timestamp":
        remedy = (
            "A moment has a date only in a time zone: "
            "cast it to timestamp_ntz, or to date, in the one you mean, or declare sf.Timestamp."
        )
    elif physical in ("float", "double"):
        remedy = (
            "The text of a fraction differs between engines: "
            "cast the column to long, decimal or string."
        )
    return InvalidDeclaration(
        f"Column {column!r} of table {table!r} is declared as {kind!r}, or names units, "
        f"and the data holds {plain_type(physical)}.",
        remedy=remedy,
    )


def _double(raw: str, kind: ColumnType) -> tuple[str, str]:
    """Returns how a double is read: as it is, or as a string where strings are compared.

    Java and Python print doubles differently, so declared strings are found by value. For a
    number with declared missing values, any other double is Java's string, to be parsed again,
    after more spaces than any of them begins with, so that it equals none.
    """
    missing = list(kind.missing or ())
    is_number = isinstance(kind, Integer | Real)
    if is_number and not missing:
        return "DOUBLE", raw
    words = [word for word, _ in kind.texts()] if isinstance(kind, Category | Boolean) else []
    branches = ""
    for word in dict.fromkeys([*words, *missing]):
        for number in _number(word):
            branches += f" WHEN {raw} = CAST('{number!r}' AS DOUBLE) THEN {literal(word)}"
    rest = "CAST(NULL AS STRING)"
    if is_number:
        spaces = " " * (1 + max(len(word) - len(word.lstrip(" ")) for word in missing))
        for sign in ("", "-"):
            branches += f" WHEN {raw} = CAST('{sign}inf' AS DOUBLE) THEN '{spaces}{sign}1e999'"
        rest = f"'{spaces}' || CAST({raw} AS STRING)"
    return "VARCHAR", f"CASE{branches or ' WHEN FALSE THEN NULL'} ELSE {rest} END"


def _number(text: str) -> list[float]:
    """Returns the double that a string is printed for, if there is one."""
    try:
        number = float(text)
    except ValueError:
        return []
    if text_of(number) == text:
        return [number]
    return []

# SPDX-License-Identifier: Apache-2.0
"""A value of the data as DuckDB reads it: its text, and its code under a declaration.

Total: no value can make a reading fail. Casts are TRY_CAST, rounding is written out, text
is a number or a date only where it has the form of one. Proof: value_sql.proof.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.engines.value_codes import DATE_PATTERN, NUMBER_PATTERN
from sfumato.errors import unknown
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, Text

_SHORT = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT")
_FAMILIES = {
    "text": ("VARCHAR", "ENUM"),
    "whole": (*_SHORT, "HUGEINT", "UBIGINT", "UHUGEINT"),
    "float": ("DOUBLE", "FLOAT"),
    "date": ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "decimal": ("DECIMAL",),
    "uuid": ("UUID",),
    "boolean": ("BOOLEAN",),
    "null": ("NULL",),
}
_WIDTHS = (("TINYINT", 7), ("SMALLINT", 15), ("INTEGER", 31))
# 1.5 * 2^52: what is below 2^51 in size stays between 2^52 and 2^53 when it is added
_ROUNDER = "6755399441055744.0::DOUBLE"


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: a FROM item of ours, and the physical type of each column.

    ``coded``: a prepared layout, whose columns are codes already, with ``unit`` and ``place``.
    """

    sql: str
    types: Mapping[str, str]
    coded: bool = False

    def is_short(self, column: str) -> bool:
        """Whether it holds whole numbers of at most 64 bits."""
        return self.types[column].upper() in _SHORT

    def family(self, column: str) -> str:
        """What kind of value it physically holds; 'null' for nothing at all, 'other' cannot be read: a list, too."""
        name = self.types[column].upper()
        if name.endswith("]"):
            return "other"
        name = name.partition("(")[0].strip('"')
        return next((family for family, names in _FAMILIES.items() if name in names), "other")


def quote(name: str) -> str:
    """An identifier.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text literal.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def named(columns: Sequence[str], source: Source) -> str:
    """The text of one column, or of several: each with its length before it; NULL where one is NULL."""
    texts = [column_text(column, source) for column in columns]
    if len(texts) == 1:
        return texts[0]
    return " || ".join(f"CAST(length({each}) AS VARCHAR) || ':' || {each}" for each in texts)


def column_text(column: str, source: Source) -> str:
    """The text of a column, by which units are named and categories are compared; NULL for missing."""
    family = source.family(column)
    return text_reading(_raw(column, family), family)


def reading(column: str, kind: ColumnType, source: Source) -> str:
    """A value as it is compared: a number of steps, a day or a text; NULL for missing, but a NaN is left.

    Guarantees:
        no value can make a reading fail
    """
    family = source.family(column)
    raw = _raw(column, family)
    match kind:
        case Integer() if source.is_short(column):
            found = raw
        case Integer() | Real():
            found = _steps(raw, family, kind)
        case Date():
            found = _guarded(f"TRY_CAST({raw} AS DATE)", raw, family, DATE_PATTERN)
        case Category() | Boolean() | Text():
            found = text_reading(raw, family)
        case _:
            raise unknown(kind)
    if not kind.missing:
        return found
    listed = ", ".join(text(marker) for marker in kind.missing)
    chosen = f"CASE WHEN {text_reading(raw, family)} NOT IN ({listed}) THEN {found} END"
    return unforeseen(chosen) if isinstance(kind, Category | Boolean | Text) else chosen


def unforeseen(chosen: str) -> str:
    """A choice of which nothing is known before it is made.

    DuckDB takes a test of it that holds of all the values there are, `LIKE 'a%'` or IN, for a test of whether the
    column is NULL, which the choice need not be where the column is. TRY is the identity on what cannot fail.
    """
    return f"TRY({chosen})"


def code(kind: ColumnType, value: str, *, short: bool) -> str:
    """The code of a reading (of an ``Integer`` a whole number as it is, if ``short``); NULL for what is missing, NaN, or not declared.

    A category's reading is its code already: see ``listed``.

    Guarantees:
        the engine gives the codes of the reference
    """
    match kind:
        case Integer() | Real():
            whole = short and isinstance(kind, Integer)
            inside = f"TRY_CAST({value} AS BIGINT)" if whole else _half_even(value, kind)
            present = f"{value} IS NOT NULL" if whole else no_nan(value)
            return _clipped(
                value, (str(kind.lower_code), str(kind.upper_code)), kind, inside, present
            )
        case Date():
            ends = (
                f"DATE '{kind.decode(kind.lower_code)}'",
                f"DATE '{kind.decode(kind.upper_code)}'",
            )
            return _clipped(
                value,
                ends,
                kind,
                f"date_diff('day', DATE '1970-01-01', {value})",
                f"{value} IS NOT NULL",
            )
        case Category() | Boolean() | Text():
            return value
        case _:
            raise unknown(kind)


def listed(kind: Category | Boolean) -> str:
    """The declared texts with their codes, each text once, as a FROM item.

    Two lists are read and bound several times as fast as as many rows.
    """
    texts = ", ".join(text(each) for each, _ in kind.texts())
    codes = ", ".join(str(number) for _, number in kind.texts())
    return f"(SELECT unnest([{texts}]) AS text, unnest([{codes}]::BIGINT[]) AS code)"


def narrowest(kind: ColumnType) -> str:
    """The narrowest type that holds every code of a column; of a text the text."""
    if isinstance(kind, Text):
        return "VARCHAR"
    for name, bits in _WIDTHS:
        if -(2**bits) <= kind.lower_code and kind.upper_code < 2**bits:
            return name
    return "BIGINT"


def _raw(column: str, family: str) -> str:
    """A column, so that what its file says of it is not believed.

    A Parquet file states the least and the greatest number of a column without regard to NaN. From
    that DuckDB takes a test for NaN to be false, and one row decides what another one is. TRY is
    the identity on what cannot fail, and nothing is known of its result.
    """
    return f"TRY({quote(column)})" if family == "float" else quote(column)


def text_reading(raw: str, family: str) -> str:
    """The text by which a value is compared: whole floats without a fraction."""
    if family == "text":
        return f"CAST({raw} AS VARCHAR)"
    if family == "float":
        wide, whole = f"TRY_CAST({raw} AS DOUBLE)", f"TRY_CAST({raw} AS BIGINT)"
        return f"CASE WHEN {whole} = {raw} THEN CAST({whole} AS VARCHAR) ELSE TRY_CAST({wide} AS VARCHAR) END"
    if family == "decimal":
        # never through a cast back to the type, which a rounded value may not fit
        return f"regexp_replace(TRY_CAST({raw} AS VARCHAR), '\\.0+$', '')"
    if family == "date":
        # DuckDB cannot print every timestamp that it can hold, and prints a whole dictionary of them
        # before it looks at a CASE: so the cast is given nothing but what it can print
        sane = f"TRY_CAST({raw} AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return f"TRY_CAST({unforeseen(f'CASE WHEN {sane} THEN {raw} END')} AS VARCHAR)"
    return f"TRY_CAST({raw} AS VARCHAR)"


def _steps(raw: str, family: str, kind: Integer | Real) -> str:
    """value / step, correctly rounded and so monotone: of a step that is a power of two, times its inverse."""
    number = _guarded(f"TRY_CAST({raw} AS DOUBLE)", raw, family, NUMBER_PATTERN)
    step = float(kind.step)
    is_power = math.frexp(step)[0] == 0.5
    return f"{number} * {1 / step!r}::DOUBLE" if is_power else f"{number} / {step!r}::DOUBLE"


def no_nan(value: str) -> str:
    """Whether a float is a number, an infinite one too: NaN is beyond them all."""
    return f"{value} <= 'inf'::DOUBLE"


def _guarded(cast: str, raw: str, family: str, pattern: str) -> str:
    """A cast of text only where the text has the stated form."""
    return (
        f"CASE WHEN regexp_full_match({raw}, {text(pattern)}) THEN {cast} END"
        if family == "text"
        else cast
    )


def _clipped(
    value: str, ends: tuple[str, str], kind: Integer | Real | Date, inside: str, present: str
) -> str:
    """What most values are is asked first."""
    return (
        f"CASE WHEN {value} BETWEEN {ends[0]} AND {ends[1]} THEN {inside} WHEN {value} < {ends[0]} "
        f"THEN {kind.lower_code} WHEN {present} THEN {kind.upper_code} END"
    )


def _half_even(y: str, kind: Integer | Real) -> str:
    """Rounds half to even: a double of a size from 2^52 to 2^53 has no fraction, so an addition that ends there rounds.

    Beyond 2^51 the rounding is written out. TRY_CAST although the value is in range: an
    optimiser may lift it out of its CASE.
    """
    if max(abs(kind.lower_code), abs(kind.upper_code)) < 2**51:
        return f"TRY_CAST(({y} + {_ROUNDER}) - {_ROUNDER} AS BIGINT)"
    floor, rest = f"TRY_CAST(floor({y}) AS BIGINT)", f"({y} - floor({y}))"
    return (
        f"{floor} + CASE WHEN {rest} > 0.5 OR ({rest} = 0.5 AND {floor} % 2 <> 0) THEN 1 ELSE 0 END"
    )

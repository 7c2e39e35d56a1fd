# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL that reads a stored value: its string, and its code under a declaration.

No value can make it fail: casts are TRY_CAST, rounding is spelled out, and a string is a number or
a date only if it has the form of one. Proof: value_sql.proof.md.
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
# 1.5 * 2^52: added to a number of magnitude below 2^51, it gives one between 2^52 and 2^53
_ROUNDER = "6755399441055744.0::DOUBLE"


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows are read: a FROM item that we wrote, and the physical type of each column.

    ``coded``: a prepared layout, whose columns are codes already, with ``unit`` and ``place``.
    """

    sql: str
    types: Mapping[str, str]
    coded: bool = False

    def is_short(self, column: str) -> bool:
        """Whether a column stores integers of at most 64 bits."""
        return self.types[column].upper() in _SHORT

    def family(self, column: str) -> str:
        """Returns the family of a column's physical type.

        It is a key of ``_FAMILIES``; "null" for a column without a value, "other" for a type that
        cannot be read, such as a list.
        """
        name = self.types[column].upper()
        if name.endswith("]"):
            return "other"
        name = name.partition("(")[0].strip('"')
        for family, names in _FAMILIES.items():
            if name in names:
                return family
        return "other"


def quote(name: str) -> str:
    """Returns a quoted identifier.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Returns a string literal.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def named(columns: Sequence[str], source: Source) -> str:
    """Returns the name that columns spell; NULL if one of them is NULL.

    It is the string of a single column; of several, each string follows its length.
    """
    texts = [column_text(column, source) for column in columns]
    if len(texts) == 1:
        return texts[0]
    return " || ".join(f"CAST(length({name}) AS VARCHAR) || ':' || {name}" for name in texts)


def column_text(column: str, source: Source) -> str:
    """Returns a column as a string, NULL for a missing value.

    Units are named, and categories compared, by these strings.
    """
    family = source.family(column)
    return text_reading(_raw(column, family), family)


def reading(
    column: str,
    kind: ColumnType,
    source: Source,
) -> str:
    """Reads a value in the form in which it is compared: a number of steps, a day or a string.

    A missing value is NULL; NaN stays NaN.

    Guarantees:
        no value can make a reading fail
    """
    family = source.family(column)
    raw = _raw(column, family)
    match kind:
        case Integer() if source.is_short(column):
            read = raw
        case Integer() | Real():
            read = _steps(raw, family, kind)
        case Date():
            read = _guarded(
                f"TRY_CAST({raw} AS DATE)",
                raw,
                family,
                DATE_PATTERN,
            )
        case Category() | Boolean() | Text():
            read = text_reading(raw, family)
        case _:
            raise unknown(kind)
    if not kind.missing:
        return read
    listed = ", ".join(text(marker) for marker in kind.missing)
    chosen = f"CASE WHEN {text_reading(raw, family)} NOT IN ({listed}) THEN {read} END"
    if isinstance(kind, Category | Boolean | Text):
        return unforeseen(chosen)
    return chosen


def unforeseen(chosen: str) -> str:
    """Wraps CASE or COALESCE in TRY, so that the optimizer cannot use column statistics.

    If a test such as ``LIKE 'a%'`` or IN holds for every value in a column's statistics, DuckDB
    replaces it by IS NOT NULL of the column, which is wrong where the CASE maps a value to NULL.
    TRY is the identity on an expression that cannot fail.
    """
    return f"TRY({chosen})"


def code(kind: ColumnType, value: str, *, short: bool) -> str:
    """Returns the code of a ``reading``; NULL for a missing, undeclared or NaN value.

    ``short``: the reading of an ``Integer`` is a stored integer. The reading of a category is
    joined to its code: see ``listed``.

    Guarantees:
        the engine gives the codes of the reference
    """
    match kind:
        case Integer() | Real():
            ends = str(kind.lower_code), str(kind.upper_code)
            if short and isinstance(kind, Integer):
                inside = f"TRY_CAST({value} AS BIGINT)"
                present = f"{value} IS NOT NULL"
            else:
                inside = _half_even(value, kind)
                present = no_nan(value)
            return _clipped(value, ends, kind, inside, present)
        case Date():
            low = kind.decode(kind.lower_code)
            high = kind.decode(kind.upper_code)
            inside = f"date_diff('day', DATE '1970-01-01', {value})"
            ends = f"DATE '{low}'", f"DATE '{high}'"
            return _clipped(value, ends, kind, inside, f"{value} IS NOT NULL")
        case Category() | Boolean() | Text():
            return value
        case _:
            raise unknown(kind)


def listed(kind: Category | Boolean) -> str:
    """Returns a FROM item with the declared strings and their codes; each string is in it once.

    DuckDB parses and binds two lists several times as fast as the same number of rows.
    """
    texts = ", ".join(text(word) for word, _ in kind.texts())
    codes = ", ".join(str(number) for _, number in kind.texts())
    return f"(SELECT unnest([{texts}]) AS text, unnest([{codes}]::BIGINT[]) AS code)"


def narrowest(kind: ColumnType) -> str:
    """Returns the narrowest type that fits every code of a column; VARCHAR for a string."""
    if isinstance(kind, Text):
        return "VARCHAR"
    for name, bits in _WIDTHS:
        if -(2**bits) <= kind.lower_code and kind.upper_code < 2**bits:
            return name
    return "BIGINT"


def _raw(column: str, family: str) -> str:
    """Returns a column so that DuckDB ignores the min/max statistics of its Parquet file.

    These statistics leave NaN out. With them DuckDB would decide that a test for NaN is false, and
    one row would change what another one means. TRY is the identity on an expression that cannot
    fail, and the optimizer has no statistics of its result.
    """
    if family == "float":
        return f"TRY({quote(column)})"
    return quote(column)


def text_reading(raw: str, family: str) -> str:
    """Returns the string by which a value is compared; an integral float has no fraction."""
    if family == "text":
        return f"CAST({raw} AS VARCHAR)"
    if family == "float":
        wide = f"TRY_CAST({raw} AS DOUBLE)"
        whole = f"TRY_CAST({raw} AS BIGINT)"
        otherwise = f"TRY_CAST({wide} AS VARCHAR)"
        return f"CASE WHEN {whole} = {raw} THEN CAST({whole} AS VARCHAR) ELSE {otherwise} END"
    if family == "decimal":
        # not by a cast back to the type, which a rounded value may not fit
        return f"regexp_replace(TRY_CAST({raw} AS VARCHAR), '\\.0+$', '')"
    if family == "date":
        # DuckDB cannot print every timestamp that it can store, and casts a whole dictionary of
        # them before it evaluates a CASE: the input of the cast is restricted to what it can print
        sane = f"TRY_CAST({raw} AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return f"TRY_CAST({unforeseen(f'CASE WHEN {sane} THEN {raw} END')} AS VARCHAR)"
    return f"TRY_CAST({raw} AS VARCHAR)"


def _steps(raw: str, family: str, kind: Integer | Real) -> str:
    """Returns value / step, correctly rounded and therefore monotone.

    If the step is a power of two, it is the product with the inverse, which is exact too.
    """
    number = _guarded(
        f"TRY_CAST({raw} AS DOUBLE)",
        raw,
        family,
        NUMBER_PATTERN,
    )
    step = float(kind.step)
    mantissa, _ = math.frexp(step)
    if mantissa == 0.5:
        return f"{number} * {1 / step!r}::DOUBLE"
    return f"{number} / {step!r}::DOUBLE"


def no_nan(value: str) -> str:
    """Tests whether a float is not NaN, which DuckDB orders above infinity."""
    return f"{value} <= 'inf'::DOUBLE"


def _guarded(
    cast: str,
    raw: str,
    family: str,
    pattern: str,
) -> str:
    """Restricts a cast of a string to those that match the pattern."""
    if family != "text":
        return cast
    return f"CASE WHEN regexp_full_match({raw}, {text(pattern)}) THEN {cast} END"


def _clipped(
    value: str, ends: tuple[str, str], kind: Integer | Real | Date, inside: str, present: str
) -> str:
    """Clips a reading to the range of its type; the most frequent case is tested first."""
    return (
        f"CASE WHEN {value} BETWEEN {ends[0]} AND {ends[1]} THEN {inside} WHEN {value} < {ends[0]} "
        f"THEN {kind.lower_code} WHEN {present} THEN {kind.upper_code} END"
    )


def _half_even(y: str, kind: Integer | Real) -> str:
    """Rounds a double half to even.

    A double between 2^52 and 2^53 has no fraction, so an addition whose result is there rounds.
    For codes of magnitude 2^51 and more the rounding is spelled out. It is TRY_CAST although the
    value is in range, because an optimizer may evaluate it outside of its CASE.
    """
    if max(abs(kind.lower_code), abs(kind.upper_code)) < 2**51:
        return f"TRY_CAST(({y} + {_ROUNDER}) - {_ROUNDER} AS BIGINT)"
    floor = f"TRY_CAST(floor({y}) AS BIGINT)"
    rest = f"({y} - floor({y}))"
    up = f"{rest} > 0.5 OR ({rest} = 0.5 AND {floor} % 2 <> 0)"
    return f"{floor} + CASE WHEN {up} THEN 1 ELSE 0 END"

# SPDX-License-Identifier: Apache-2.0
"""SQL trees that read a stored value: its string, and its code under a declaration.

``relation`` reads every column with it. No value can make a statement fail: casts are TRY_CAST,
rounding is spelled out, and a string is a number or a date only if it has the form of one. Proof:
value_sql.proof.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.engines import sql_tree as sql
from sfumato.engines.moment_sql import moment_code, moment_reading
from sfumato.engines.value_codes import DATE_PATTERN, number_pattern, thousands_pattern
from sfumato.errors import unknown
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
from sfumato.metadata.date_format import date_pattern, iso_order
from sfumato.metadata.file_text import PLAIN, Numerals
from sfumato.metadata.timestamp import Timestamp

_SHORT = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT")
_FAMILIES = {
    "text": ("VARCHAR", "ENUM"),
    "whole": (*_SHORT, "HUGEINT", "UBIGINT", "UHUGEINT"),
    "float": ("DOUBLE", "FLOAT"),
    "date": ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "instant": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"),
    "decimal": ("DECIMAL",),
    "uuid": ("UUID",),
    "boolean": ("BOOLEAN",),
    "null": ("NULL",),
}
_WIDTHS = ((sql.SqlType.TINYINT, 7), (sql.SqlType.SMALLINT, 15), (sql.SqlType.INTEGER, 31))
_ZERO_DAY = sql.Day("1970-01-01")


@dataclass(frozen=True, slots=True)
class Source:
    """What SQL needs to read a table: its FROM item, and the physical type of each column.

    ``coded``: it is a prepared layout, whose columns already contain codes, with the columns
    ``unit`` and ``place``. ``numerals``: the separators of numbers that are stored as strings.
    """

    sql: str
    types: Mapping[str, str]
    coded: bool = False
    numerals: Numerals = PLAIN

    def is_short(self, column: str) -> bool:
        """Whether a column stores integers of at most 64 bits."""
        return self.types[column].upper() in _SHORT

    def family(self, column: str) -> str:
        """Returns the family of a column's physical type: a key of ``_FAMILIES``.

        It is "null" for a column without any value, and "other" for a type that cannot be read,
        such as a list.
        """
        return _family(self.types[column])

    def element(self, column: str) -> str:
        """Returns the physical type of the numbers in a column of flat lists; "" for any other
        column.

        >>> Source("t", {"a": "UTINYINT[784]", "b": "DOUBLE[][]"}).element("a")
        'UTINYINT'
        """
        physical = self.types[column].upper()
        element = physical.rpartition("[")[0]
        if physical.endswith("]") and not element.endswith("]"):
            return element
        return ""


def _family(physical: str) -> str:
    """Returns the family of a physical type."""
    if physical.endswith("]"):
        return "other"
    name = physical.upper().partition("(")[0].strip('"')
    for family, names in _FAMILIES.items():
        if name in names:
            return family
    return "other"


def named(
    columns: Sequence[str],
    source: Source,
    *,
    unordered: bool = False,
) -> sql.Expression:
    """Returns the SQL of the string that identifies a privacy unit, made of one or several columns;
    NULL if one of them is NULL.

    The name is the string of a single column; several strings are joined, each after its length.
    With ``unordered``, the lesser of two strings comes first.
    """
    texts = [column_text(column, source) for column in columns]
    if unordered:
        first, second = texts
        is_sorted = sql.Paren(first) <= sql.Paren(second)
        return sql.Case(((is_sorted, _spelled([first, second])),), _spelled([second, first]))
    return _spelled(texts)


def _spelled(texts: Sequence[sql.Expression]) -> sql.Expression:
    """Returns one string, or several in one, each after its length."""
    if len(texts) == 1:
        return texts[0]
    pieces: list[sql.Expression] = []
    for name in texts:
        length = sql.Cast(sql.call("length", name), sql.SqlType.VARCHAR)
        pieces += [length, sql.Constant(":"), name]
    return sql.Concat(tuple(pieces))


def column_text(column: str, source: Source) -> sql.Expression:
    """Returns the SQL of a stored column as a string; NULL for a missing value.

    Units are identified, and categories compared, by these strings.
    """
    family = source.family(column)
    return text_reading(_raw_value(column, family), family)


def reading(
    column: str,
    kind: ColumnType,
    source: Source,
) -> sql.Expression:
    """Returns the SQL that converts a stored value to the form that ``code`` takes: a number in
    steps of the column, a date, or a string.

    A missing value is NULL; NaN stays NaN. A list of numbers is read as the list of its codes, NULL
    for a number that has no code.

    Guarantees:
        no value can make a reading fail
    """
    family = source.family(column)
    raw = _raw_value(column, family)
    match kind:
        case Integer() if source.is_short(column):
            read = raw
        case Integer() | Real():
            read = _read_steps(raw, family, kind, source.numerals)
        case Date():
            read = _read_day(raw, family, kind)
        case Timestamp():
            read = moment_reading(raw, family, physical=source.types[column], form=kind.format)
        case Category() | Boolean() | Text():
            read = text_reading(raw, family)
        case Array():
            read = _list_codes(raw, source.element(column), kind)
        case _:
            raise unknown(kind)
    # a moment with a time zone has no string
    if not kind.missing or family == "instant":
        return read
    return _null_if_marker(read, text_reading(raw, family), kind)


def _null_if_marker(
    read: sql.Expression,
    string: sql.Expression,
    kind: ColumnType,
) -> sql.Expression:
    """Returns a reading, NULL where the string of the value is declared as missing."""
    markers = tuple(sql.Constant(marker) for marker in kind.missing or ())
    is_present: sql.Expression = sql.In(string, markers, negated=True)
    if isinstance(kind, Date | Timestamp):
        # a day or a moment that cannot be printed is no marker
        is_present = sql.call("coalesce", is_present, sql.TRUE)
    chosen = sql.Case(((is_present, read),))
    if isinstance(kind, Category | Boolean | Text):
        return sql.Opaque(chosen)
    return chosen


def code(
    kind: ColumnType,
    value: sql.Expression,
    *,
    short: bool,
) -> sql.Expression:
    """Returns the SQL of a value's code, from its ``reading``; NULL for a missing, undeclared or
    NaN value.

    ``short``: the reading of an ``Integer`` is a stored integer. The reading of a category is
    joined to its code: see ``listed``.

    Guarantees:
        the engine gives the codes of the reference
    """
    match kind:
        case Integer() | Real():
            if short and isinstance(kind, Integer):
                inside: sql.Expression = sql.TryCast(value, sql.SqlType.BIGINT)
                present: sql.Expression = value.is_present
            else:
                inside = _half_even(value, kind)
                present = no_nan(value)
            return _clip_reading(value, ends(kind), kind, inside, present)
        case Date():
            inside = sql.call("date_diff", sql.Constant("day"), _ZERO_DAY, value)
            return _clip_reading(value, ends(kind), kind, inside, value.is_present)
        case Timestamp():
            return moment_code(kind, value)
        case Category() | Boolean() | Text():
            return value
        case Array():
            numbers = sql.call("list_aggregate", value, sql.Constant("count"))
            is_whole = (call.equals(kind.length) for call in (sql.call("len", value), numbers))
            return sql.Case(((sql.Logic("AND", tuple(is_whole)), value),))
        case _:
            raise unknown(kind)


def ends(kind: Integer | Real | Date | Timestamp) -> tuple[sql.Expression, sql.Expression]:
    """Returns the least and the greatest ``reading`` of a column within its declared bounds, as SQL
    constants; for timestamps in seconds.
    """
    if isinstance(kind, Timestamp):
        step = int(kind.step)
        last = kind.upper_code * step + step - 1
        return sql.Constant(kind.lower_code * step), sql.Constant(last)
    if isinstance(kind, Date):
        low, high = kind.decode(kind.lower_code), kind.decode(kind.upper_code)
        return sql.Day(str(low)), sql.Day(str(high))
    return sql.Constant(kind.lower_code), sql.Constant(kind.upper_code)


def listed(kind: Category | Boolean) -> sql.Lists:
    """Returns a constant SQL table of a category's declared strings and their codes."""
    texts = tuple(sql.Constant(word) for word, _ in kind.texts())
    codes = tuple(sql.Constant(number) for _, number in kind.texts())
    return sql.Lists((("text", sql.ListOf(texts)), ("code", sql.ListOf(codes, sql.SqlType.BIGINT))))


def narrowest(kind: ColumnType) -> sql.SqlType:
    """Returns the narrowest SQL integer type that fits every code of a column; VARCHAR for a text
    column.
    """
    if isinstance(kind, Text):
        return sql.SqlType.VARCHAR
    for narrow, bits in _WIDTHS:
        if -(2**bits) <= kind.lower_code and kind.upper_code < 2**bits:
            return narrow
    return sql.SqlType.BIGINT


def stored(column: str) -> sql.Column:
    """Returns the SQL reference to a stored column."""
    return sql.Column(column, quoted=True)


def _raw_value(column: str, family: str) -> sql.Expression:
    """Returns a stored value as every reading takes it; a text is compared by its code points.

    DuckDB ignores the min/max statistics that a Parquet file has of a float. These leave NaN out.
    With them DuckDB would decide that a test for NaN is false, and one row would change what
    another one means.

    Guarantees:
        texts are equal only if their code points are
    """
    if family == "text":
        return sql.CodePoints(stored(column))
    if family == "float":
        return sql.Opaque(stored(column))
    return stored(column)


def text_reading(raw: sql.Expression, family: str) -> sql.Expression:
    """Returns the string by which a stored value is compared, given its SQL and type family.

    An integral float has no fraction.
    """
    match family:
        case "text":
            return raw
        case "float":
            return _float_text(raw)
        case "decimal":
            # not by a cast back to the type, which a rounded value may not fit
            printed = sql.TryCast(raw, sql.SqlType.VARCHAR)
            return sql.call("regexp_replace", printed, sql.Constant(r"\.0+$"), sql.Constant(""))
        case "date" | "instant":
            return _moment_text(raw)
        case _:
            return sql.TryCast(raw, sql.SqlType.VARCHAR)


def _float_text(raw: sql.Expression) -> sql.Expression:
    whole = sql.TryCast(raw, sql.SqlType.BIGINT)
    wide = sql.TryCast(raw, sql.SqlType.DOUBLE)
    is_whole = whole.equals(raw)
    return sql.Case(
        ((is_whole, sql.Cast(whole, sql.SqlType.VARCHAR)),), sql.TryCast(wide, sql.SqlType.VARCHAR)
    )


def _moment_text(raw: sql.Expression) -> sql.Expression:
    """DuckDB cannot print every timestamp that it can store.

    It casts a whole dictionary of them before it evaluates a CASE, so the input of the cast is
    restricted to what it can print.
    """
    day = sql.TryCast(raw, sql.SqlType.DATE)
    is_printable = sql.Between(day, sql.Day("0001-01-01"), sql.Day("9999-12-31"))
    printable = sql.Opaque(sql.Case(((is_printable, raw),)))
    return sql.TryCast(printable, sql.SqlType.VARCHAR)


def _read_day(raw: sql.Expression, family: str, kind: Date) -> sql.Expression:
    """Returns a day; of a declared format the parts of a string are put in the order of ISO."""
    if family != "text" or kind.format is None:
        return _guard_cast(sql.TryCast(raw, sql.SqlType.DATE), raw, family, DATE_PATTERN)
    pattern = date_pattern(kind.format)
    order = sql.Constant(iso_order(kind.format))
    iso = sql.call("regexp_replace", raw, sql.Constant(pattern), order)
    return _guard_cast(sql.TryCast(iso, sql.SqlType.DATE), raw, family, pattern)


def _list_codes(
    raw: sql.Expression,
    physical: str,
    kind: Array,
) -> sql.Expression:
    """Returns the codes of the numbers of a list, whose elements have a physical type."""
    element: sql.Expression = sql.Column("element")
    if _family(physical) == "float":
        element = sql.Opaque(element)
    short = physical in _SHORT and isinstance(kind.element, Integer)
    read = element if short else _read_steps(element, _family(physical), kind.element)
    number = sql.TryCast(code(kind.element, read, short=short), narrowest(kind.element))
    return sql.Each(raw, "element", number)


def _read_steps(
    raw: sql.Expression,
    family: str,
    kind: Integer | Real,
    numerals: Numerals = PLAIN,
) -> sql.Expression:
    """Returns value / step, correctly rounded and therefore monotone.

    If the step is a power of two, it is the product with the inverse, which is exact too.
    """
    written = raw if family != "text" else _plain_number(raw, numerals)
    double = sql.TryCast(written, sql.SqlType.DOUBLE)
    read = _guard_cast(double, raw, family, number_pattern(numerals))
    step = float(kind.step)
    mantissa, _ = math.frexp(step)
    if mantissa == 0.5:
        return read * real(1 / step)
    return read / real(step)


def _plain_number(raw: sql.Expression, numerals: Numerals) -> sql.Expression:
    """Returns a number, which has the form of one, with a point and nothing between thousands."""
    if numerals.thousands:
        raw = _replace_all(raw, thousands_pattern(numerals), "")
    if numerals.decimal != ".":
        raw = _replace_all(raw, f"[{numerals.decimal}]", ".")
    return raw


def _replace_all(
    raw: sql.Expression,
    pattern: str,
    by: str,
) -> sql.Expression:
    words = sql.Constant(pattern), sql.Constant(by), sql.Constant("g")
    return sql.call("regexp_replace", raw, *words)


def real(value: float) -> sql.Typed:
    """Returns a constant of type DOUBLE."""
    return sql.Typed(sql.Constant(value), sql.SqlType.DOUBLE)


def no_nan(value: sql.Expression) -> sql.Expression:
    """Tests whether a float is not NaN, which DuckDB orders above infinity."""
    return value <= sql.Typed(sql.Constant("inf"), sql.SqlType.DOUBLE)


def _guard_cast(
    cast: sql.Expression,
    raw: sql.Expression,
    family: str,
    pattern: str,
) -> sql.Expression:
    """Restricts a cast of a string to those that match the pattern."""
    if family != "text":
        return cast
    is_match = sql.call("regexp_full_match", raw, sql.Constant(pattern))
    return sql.Case(((is_match, cast),))


def _clip_reading(
    value: sql.Expression,
    ends: tuple[sql.Expression, sql.Expression],
    kind: Integer | Real | Date,
    inside: sql.Expression,
    present: sql.Expression,
) -> sql.Expression:
    """Clips a reading to the range of its type; the most frequent case is tested first."""
    low, high = ends
    branches = (
        (sql.Between(value, low, high), inside),
        (value < low, sql.Constant(kind.lower_code)),
        (present, sql.Constant(kind.upper_code)),
    )
    return sql.Case(branches)


def _half_even(y: sql.Expression, kind: Integer | Real) -> sql.Expression:
    """Rounds a double half to even.

    For codes of magnitude 2^51 and more the rounding is spelled out. It is TRY_CAST although the
    value is in range, because an optimizer may evaluate it outside of its CASE.
    """
    if max(abs(kind.lower_code), abs(kind.upper_code)) < 2**51:
        return sql.RoundHalfEven(y)
    below = sql.call("floor", y)
    floor = sql.TryCast(below, sql.SqlType.BIGINT)
    rest = sql.Paren(y - below)
    half = sql.Constant(0.5)
    is_odd = sql.Binary("<>", floor % 2, sql.Constant(0))
    is_tie = sql.Paren(sql.Logic("AND", (rest.equals(half), is_odd)))
    up = sql.Logic("OR", (rest > half, is_tie))
    return floor + sql.Case(((up, sql.Constant(1)),), sql.Constant(0))

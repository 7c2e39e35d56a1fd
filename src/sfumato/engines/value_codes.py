# SPDX-License-Identifier: Apache-2.0
"""The meaning of a stored value in plain Python: its string, and its code under a declaration.

The reference engine uses these functions, and the SQL of every engine is tested against them. The
patterns of numbers and dates are shared by all engines.
"""

import datetime
import math
import re
from decimal import Decimal

from sfumato.errors import unknown
from sfumato.metadata.column import (
    Array,
    Boolean,
    Category,
    Column,
    Date,
    Integer,
    Real,
    Text,
    date_code,
)
from sfumato.metadata.date_format import date_pattern, places
from sfumato.metadata.file_text import PLAIN, Numerals
from sfumato.metadata.timestamp import Timestamp, local_time
from sfumato.metadata.zones import DAY

_BLANKS = r"[ \t\n\f\r]*"
NUMBER_PATTERN = rf"{_BLANKS}[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?{_BLANKS}"
# an integer as it is printed, of up to 19 digits
WHOLE_PATTERN = r"0|-?[1-9][0-9]{0,18}"
DATE_PATTERN = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
# what is read as the declared sign: the no-break spaces, and the typographic apostrophe
_LIKE = {" ": "[ \u00a0\u202f]", "'": "['\u2019]"}


def number_pattern(numerals: Numerals) -> str:
    """Returns the regular expression of a number in the declared format, for a full match.

    The thousands separator is between all groups of three digits, or nowhere.

    >>> bool(re.fullmatch(number_pattern(Numerals(",", ".")), "1.234,5"))
    True
    """
    if numerals.is_plain:
        return NUMBER_PATTERN
    point = f"[{numerals.decimal}]"
    whole = "[0-9]+"
    if numerals.thousands:
        groups = f"({thousands_pattern(numerals)}[0-9]{{3}})+"
        whole = f"([0-9]+|[1-9][0-9]{{0,2}}{groups})"
    number = rf"({whole}({point}[0-9]*)?|{point}[0-9]+)"
    return rf"{_BLANKS}[+-]?{number}([eE][+-]?[0-9]+)?{_BLANKS}"


def thousands_pattern(numerals: Numerals) -> str:
    """Returns the regular expression of the thousands separator.

    A declared blank also matches no-break spaces, and a declared apostrophe the typographic one.

    >>> thousands_pattern(Numerals(",", "."))
    '[.]'
    """
    return _LIKE.get(numerals.thousands, f"[{numerals.thousands}]")


def plain_number(number: str, numerals: Numerals) -> str:
    """Returns a number in the declared format as Python writes it.

    >>> plain_number("1.234,5", Numerals(",", "."))
    '1234.5'
    """
    if numerals.thousands:
        number = re.sub(thousands_pattern(numerals), "", number)
    return number.replace(numerals.decimal, ".")


def code_of(
    column: Column,
    value: object,
    numerals: Numerals = PLAIN,
) -> int | str | None:
    """Returns the code of a stored value of a declared column; None for a missing or undeclared
    value.

    The codes of a list of numbers are a string, as DuckDB prints them: ``"[1, 2]"``.

    ``numerals`` are the decimal and thousands separators of numbers that are stored as strings.

    >>> code_of(Column("age", Integer(0, 120)), "130")
    120
    """
    if value is None:
        return None
    kind = column.type
    if kind.missing and not _has_offset(value) and text_of(value) in kind.missing:
        return None
    match kind:
        case Integer() | Real():
            return _number_code(kind, value, numerals)
        case Date():
            return _day_code(kind, value)
        case Timestamp():
            return _moment_code(kind, value)
        case Category() | Boolean():
            return dict(kind.texts()).get(text_of(value))
        case Text():
            return text_of(value)
        case Array():
            return _array_codes(kind, value)
        case _:
            raise unknown(kind)


def text_of(value: object) -> str:
    """Returns the string by which a stored value is compared with declared strings; an integral
    float has no fraction.

    >>> text_of(1.0), text_of(Decimal("2.50")), text_of(True)
    ('1', '2.50', 'true')
    """
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, float) and -(2**63) <= value < 2**63 and value == math.floor(value):
        return str(int(value))
    if isinstance(value, Decimal):
        return re.sub(r"\.0+$", "", format(value, "f"))
    if isinstance(value, datetime.datetime) and value.microsecond:
        return str(value).rstrip("0")
    return str(value)


def _number_code(
    kind: Integer | Real,
    value: object,
    numerals: Numerals,
) -> int | None:
    if isinstance(value, str):
        if not re.fullmatch(number_pattern(numerals), value, re.ASCII):
            return None
        value = plain_number(value, numerals)
    if not isinstance(value, str | int | float | Decimal):
        return None
    number = float(value) / float(kind.step)
    if math.isnan(number):
        return None
    if number <= kind.lower_code:
        return kind.lower_code
    if number >= kind.upper_code:
        return kind.upper_code
    return round(number)


def _array_codes(kind: Array, value: object) -> str | None:
    if not isinstance(value, list | tuple) or len(value) != kind.length:
        return None
    codes = []
    for number in value:
        code = None if isinstance(number, str) else _number_code(kind.element, number, PLAIN)
        if code is None:
            return None
        codes.append(code)
    return str(codes)


def _day_code(kind: Date, value: object) -> int | None:
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, str):
        value = _iso(value, kind.format)
    day = date_code(value)
    if day is None:
        return None
    return min(max(day, kind.lower_code), kind.upper_code)


def _moment_code(kind: Timestamp, value: object) -> int | None:
    if isinstance(value, str):
        return kind.code_of_text(value)
    if isinstance(value, datetime.datetime):
        return kind.code_of_local(*local_time(value))
    day = date_code(value)
    return None if day is None else kind.code_of_local(day * DAY, None)


def _has_offset(value: object) -> bool:
    """Whether a value is a moment with a time zone, which has no string."""
    return isinstance(value, datetime.datetime) and value.tzinfo is not None


def _iso(written: str, form: str | None) -> str | None:
    """Returns a date of the declared format as YYYY-MM-DD; None if it is written otherwise."""
    pattern = DATE_PATTERN if form is None else date_pattern(form)
    match = re.fullmatch(pattern, written, re.ASCII)
    if match is None or form is None:
        return match and written
    year, month, day = (match[place].zfill(2) for place in places(form))
    return f"{year}-{month}-{day}"

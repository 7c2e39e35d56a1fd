# SPDX-License-Identifier: Apache-2.0
"""What a stored value means: its string, and its code under a declaration.

The patterns of numbers and dates are shared by every engine. The functions are the plain Python
that the SQL of every engine is tested against.
"""

import datetime
import math
import re
from decimal import Decimal

from sfumato.errors import unknown
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text, date_code
from sfumato.metadata.timestamp import Timestamp, local_time

NUMBER_PATTERN = r"[ \t\n\f\r]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\f\r]*"
# an integer as it is printed, of up to 19 digits
WHOLE_PATTERN = r"0|-?[1-9][0-9]{0,18}"
DATE_PATTERN = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"


def code_of(column: Column, value: object) -> int | str | None:
    """Returns the code of a value; None for a missing or undeclared value.

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
            return _number_code(kind, value)
        case Date():
            return _day_code(kind, value)
        case Timestamp():
            return _moment_code(kind, value)
        case Category() | Boolean():
            return dict(kind.texts()).get(text_of(value))
        case Text():
            return text_of(value)
        case _:
            raise unknown(kind)


def text_of(value: object) -> str:
    """Returns the string by which a value is compared; an integral float has no fraction.

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


def _number_code(kind: Integer | Real, value: object) -> int | None:
    if isinstance(value, str) and not re.fullmatch(NUMBER_PATTERN, value, re.ASCII):
        return None
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


def _day_code(kind: Date, value: object) -> int | None:
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, str) and not re.fullmatch(DATE_PATTERN, value, re.ASCII):
        return None
    day = date_code(value)
    if day is None:
        return None
    return min(max(day, kind.lower_code), kind.upper_code)


def _moment_code(kind: Timestamp, value: object) -> int | None:
    if isinstance(value, str):
        return kind.code_of_text(value)
    if isinstance(value, datetime.datetime):
        return kind.code_of_local(*local_time(value))
    return None


def _has_offset(value: object) -> bool:
    """Whether a value is a moment with a time zone, which has no string."""
    return isinstance(value, datetime.datetime) and value.tzinfo is not None

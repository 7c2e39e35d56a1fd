# SPDX-License-Identifier: Apache-2.0
"""The declared formats of dates with times in strings: a date format, a blank or T, and a time.

The time is %H:%M or %H:%M:%S. Hours, minutes and seconds have two digits. There is no offset from
UTC: such a time is local. A string may be a date alone, and so may the format.
"""

import datetime
import re

from sfumato.errors import InvalidDeclaration, shown
from sfumato.metadata.date_format import FORMATS as DATE_FORMATS
from sfumato.metadata.date_format import date_pattern, in_format, iso_order, places

_CLOCKS = {
    "%H:%M": "([01][0-9]|2[0-3]):[0-5][0-9]",
    "%H:%M:%S": "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]",
}


def require_moment_format(declared: object) -> None:
    """Refuses a format of dates with times that is not supported.

    Raises:
        InvalidDeclaration: the format is not one of the supported ones.
    """
    if declared not in FORMATS:
        raise InvalidDeclaration(
            f"format={shown(declared)}.",
            allowed="a format of sf.Date, and perhaps a blank or T and %H:%M or %H:%M:%S: "
            '"%d/%m/%Y %H:%M"',
            remedy="Convert another format to YYYY-MM-DD HH:MM:SS in the data.",
        )


def moment_pattern(form: str) -> str:
    """Returns a regular expression that matches a date with time or alone; the date's parts are its
    first groups.

    >>> pattern = moment_pattern("%d/%m/%Y %H:%M")
    >>> [bool(re.fullmatch(pattern, text)) for text in ("1/12/2024 09:30", "1/12/2024", "1/12")]
    [True, True, False]
    """
    date, sign, clock = _parts(form)
    if not clock:
        return date_pattern(date)
    return f"{date_pattern(date)}({sign}{_CLOCKS[clock]})?"


def moment_order(form: str) -> str:
    r"""Returns the replacement string that turns a match of ``moment_pattern`` into an ISO 8601
    date.

    >>> print(moment_order("%d/%m/%Y %H:%M"))
    \3-\2-\1
    """
    return iso_order(_parts(form)[0])


def in_moment_format(moment: datetime.date, form: str) -> str:
    """Returns a date, with its time if it has one, written in a format.

    >>> in_moment_format(datetime.datetime(2024, 2, 1, 9, 30), "%d/%m/%Y %H:%M")
    '01/02/2024 09:30'
    """
    date, sign, clock = _parts(form)
    day = in_format(moment, date)
    if isinstance(moment, datetime.datetime):
        return f"{day}{sign}{moment.strftime(clock)}"
    return day


def has_seconds(form: str) -> bool:
    """Whether the times of a declared format include seconds."""
    return form.endswith("%S")


def iso_moment(form: str, text: str) -> str | None:
    """Returns a date with time as YYYY-MM-DD HH:MM[:SS], or the date alone; None if it is not in
    the format.

    >>> iso_moment("%m/%d/%Y %H:%M", "3/31/2024 09:30"), iso_moment("%m/%d/%Y", "3/31/2024")
    ('2024-03-31 09:30', '2024-03-31')
    """
    match = re.fullmatch(moment_pattern(form), text, re.ASCII)
    if match is None:
        return None
    date, _, clock = _parts(form)
    year, month, day = (match[place].zfill(2) for place in places(date))
    if ":" not in text:
        return f"{year}-{month}-{day}"
    size = len("00:00:00" if has_seconds(clock) else "00:00")
    return f"{year}-{month}-{day} {text[-size:]}"


def _parts(form: str) -> tuple[str, str, str]:
    """Returns the format of the date, the sign after it, and that of the clock; "" for none."""
    if form in DATE_FORMATS:
        return form, "", ""
    place = form.index("%H") - 1
    return form[:place], form[place], form[place + 1 :]


def _formats() -> tuple[str, ...]:
    formats = [*DATE_FORMATS]
    for sign in (" ", "T"):
        for clock in _CLOCKS:
            formats += [f"{date}{sign}{clock}" for date in DATE_FORMATS]
    return tuple(formats)


FORMATS = _formats()

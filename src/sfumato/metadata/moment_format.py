# SPDX-License-Identifier: Apache-2.0
"""The declared formats of times in strings: those of a date, a blank or T, and those of a clock.

A clock is %H:%M or %H:%M:%S. Hours, minutes and seconds have two digits. There is no offset from
UTC: such a time is local.
"""

import re

from sfumato.errors import InvalidDeclaration, shown
from sfumato.metadata.date_format import FORMATS as DATE_FORMATS
from sfumato.metadata.date_format import date_pattern, iso_order, places

_CLOCKS = {
    "%H:%M": "([01][0-9]|2[0-3]):[0-5][0-9]",
    "%H:%M:%S": "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]",
}


def require_moment_format(declared: object) -> None:
    """Refuses a format that is none of the declared ones.

    Raises:
        InvalidDeclaration: it is another one.
    """
    if declared not in FORMATS:
        raise InvalidDeclaration(
            f"format={shown(declared)}.",
            allowed='a format of sf.Date, a blank or T, and %H:%M or %H:%M:%S: "%d/%m/%Y %H:%M"',
            remedy="Convert another format to YYYY-MM-DD HH:MM:SS in the data.",
        )


def moment_pattern(form: str) -> str:
    """Returns the pattern of a time, for a match of the whole string; the date has three groups.

    >>> bool(re.fullmatch(moment_pattern("%d/%m/%Y %H:%M"), "1/12/2024 09:30"))
    True
    """
    date, sign, clock = _parts(form)
    return f"{date_pattern(date)}{sign}{_CLOCKS[clock]}"


def moment_order(form: str) -> str:
    r"""Returns the date of a time in the order of ISO 8601, as a replacement of the pattern.

    >>> print(moment_order("%d/%m/%Y %H:%M"))
    \3-\2-\1
    """
    return iso_order(_parts(form)[0])


def has_seconds(form: str) -> bool:
    """Whether times of a format have seconds."""
    return form.endswith("%S")


def iso_moment(form: str, text: str) -> str | None:
    """Returns a time of a format as YYYY-MM-DD HH:MM:SS; None if it is written otherwise.

    >>> iso_moment("%m/%d/%Y %H:%M", "3/31/2024 09:30")
    '2024-03-31 09:30'
    """
    match = re.fullmatch(moment_pattern(form), text, re.ASCII)
    if match is None:
        return None
    date, _, clock = _parts(form)
    year, month, day = (match[place].zfill(2) for place in places(date))
    size = len("00:00:00" if has_seconds(clock) else "00:00")
    return f"{year}-{month}-{day} {text[-size:]}"


def _parts(form: str) -> tuple[str, str, str]:
    place = form.index("%H") - 1
    return form[:place], form[place], form[place + 1 :]


def _formats() -> tuple[str, ...]:
    formats = []
    for sign in (" ", "T"):
        for clock in _CLOCKS:
            formats += [f"{date}{sign}{clock}" for date in DATE_FORMATS]
    return tuple(formats)


FORMATS = _formats()

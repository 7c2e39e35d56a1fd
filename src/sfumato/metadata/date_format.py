# SPDX-License-Identifier: Apache-2.0
"""The declared formats of dates in strings: a subset that every engine reads in the same way.

A format has %d, %m and %Y, each once, with one of "/", ".", "-" between them; or it is "%Y%m%d".
A day and a month have one or two digits (two in "%Y%m%d"), a year has four.
"""

import datetime
import itertools

from sfumato.errors import InvalidDeclaration, shown

_PARTS = ("%d", "%m", "%Y")
_SEPARATORS = ("/", ".", "-")
_TOGETHER = "%Y%m%d"
# 0001 to 9999
YEAR_PATTERN = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"


def require_format(declared: object) -> None:
    """Refuses a date format that is not supported.

    Raises:
        InvalidDeclaration: the format is not one of the supported ones.
    """
    if declared not in FORMATS:
        raise InvalidDeclaration(
            f"format={shown(declared)}.",
            allowed='%d, %m and %Y, each once, with "/", "." or "-" between them; or "%Y%m%d"',
            remedy="Convert another format to YYYY-MM-DD in the data.",
        )


def date_pattern(form: str) -> str:
    """Returns a regular expression that matches dates in a declared format, with a group for each
    part.

    >>> date_pattern("%Y%m%d") == YEAR_PATTERN + "([0-9]{2})([0-9]{2})"
    True
    """
    digits = "([0-9]{2})" if form == _TOGETHER else "([0-9]{1,2})"
    pattern = form.replace(".", "[.]")
    for part, group in (("%d", digits), ("%m", digits), ("%Y", YEAR_PATTERN)):
        pattern = pattern.replace(part, group)
    return pattern


def places(form: str) -> tuple[int, int, int]:
    """Returns the numbers of the groups of ``date_pattern`` that match the year, the month and the
    day, in this order.

    >>> places("%d/%m/%Y")
    (3, 2, 1)
    """
    order = sorted(_PARTS, key=form.index)
    return order.index("%Y") + 1, order.index("%m") + 1, order.index("%d") + 1


def in_format(day: datetime.date, form: str) -> str:
    """Returns a date written in a format, with two digits for day and month.

    >>> in_format(datetime.date(2024, 2, 1), "%d/%m/%Y")
    '01/02/2024'
    """
    written = form.replace("%Y", f"{day.year:04}")
    return written.replace("%m", f"{day.month:02}").replace("%d", f"{day.day:02}")


def iso_order(form: str) -> str:
    r"""Returns the replacement string that turns a match of ``date_pattern`` into an ISO 8601 date.

    >>> print(iso_order("%d/%m/%Y"))
    \3-\2-\1
    """
    return "-".join(rf"\{place}" for place in places(form))


def _formats() -> tuple[str, ...]:
    formats = []
    for separator in _SEPARATORS:
        for order in itertools.permutations(_PARTS):
            formats.append(separator.join(order))
    return (*formats, _TOGETHER)


FORMATS = _formats()

# SPDX-License-Identifier: Apache-2.0
"""Values as strings: CAST to VARCHAR, and dates in a constant format (TO_CHAR, STRFTIME).

Every string is computed while planning, one for each code that the value can have, so engines see
a table of codes. ``functions`` uses it; ``spelling`` reads constants in a format with it.
"""

import datetime
import re
from collections.abc import Callable, Mapping

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import EPOCH
from sfumato.metadata.zones import DAY
from sfumato.plan.evaluate import day
from sfumato.plan.scalar import Constant, DatePart, Lookup, Part, Scalar
from sfumato.plan.value_range import span
from sfumato.sql.timestamps import trunc
from sfumato.sql.typed import Day, Instant, Label, Number, Truth, Typed, text

# The most codes of which each gets a string.
_MOST = 10_000
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
# TO_CHAR's patterns, the longest first, as STRFTIME's.
_TO_CHAR = {
    "HH24": "%H",
    "YYYY": "%Y",
    "Month": "%B",
    "Mon": "%b",
    "DDD": "%j",
    "Dy": "%a",
    "MM": "%m",
    "DD": "%d",
    "MI": "%M",
    "SS": "%S",
    "YY": "%y",
    "IYYY": "%G",
    "IW": "%V",
}
_PATTERN = re.compile("|".join(sorted(_TO_CHAR, key=len, reverse=True)) + '|[A-Za-z]+|"[^"]*"')
_TIMES = {"%S": "SECOND", "%M": "MINUTE", "%H": "HOUR"}
_DIRECTIVES: Mapping[str, Callable[[datetime.datetime], str]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "G": lambda moment: f"{moment.isocalendar().year:04}",
    "m": lambda moment: f"{moment.month:02}",
    "V": lambda moment: f"{moment.isocalendar().week:02}",
    "d": lambda moment: f"{moment.day:02}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "H": lambda moment: f"{moment.hour:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "B": lambda moment: _MONTHS[moment.month - 1],
    "b": lambda moment: _MONTHS[moment.month - 1][:3],
    "A": lambda moment: _DAYS[moment.weekday()],
    "a": lambda moment: _DAYS[moment.weekday()][:3],
    "%": lambda moment: "%",
}
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)
_EPOCH = datetime.datetime.combine(EPOCH, datetime.time())


def as_text(typed: Typed) -> Label:
    """Returns CAST(value AS VARCHAR) of a string, whole number, date or Boolean.

    Raises:
        UnsupportedSql: another value, or one of too many values.
    """
    match typed:
        case Label():
            return typed
        case Day(expression):
            return _by_code(expression, lambda code: day(code).isoformat())
        case Truth():
            return _by_code(typed.codes, lambda code: "true" if code else "false")
        case Number(expression, step) if step.denominator == 1:
            return _by_code(expression, lambda code: str(code * step.numerator))
    raise UnsupportedSql(
        "A CAST to VARCHAR of something else than a whole number, a date or a declared text.",
        remedy="Leave the CAST out, ROUND a number first, or take DATE_TRUNC('day', ...) of a moment.",
    )


def formatted(typed: Day | Instant, pattern: str) -> Label:
    """Returns a date or timestamp in a format of STRFTIME.

    Raises:
        UnsupportedSql: a directive that is not known, or too many different strings.
    """
    _require_known(pattern)
    unit = next((unit for sign, unit in _TIMES.items() if sign in pattern), "DAY")
    moment = trunc(unit, typed) if isinstance(typed, Instant) else typed
    size = DAY if isinstance(moment, Day) else moment.step

    def written(code: int) -> str:
        shown = _EPOCH + datetime.timedelta(seconds=code * size)
        return _DIRECTIVE.sub(lambda found: _DIRECTIVES[found[1]](shown), pattern)

    return _by_code(moment.expression, written)


def day_name(moment: Day) -> Label:
    """Returns DAYNAME: the English name of the weekday."""
    return _by_code(DatePart(Part.WEEKDAY, moment.expression), lambda code: _DAYS[code - 1])


def month_name(moment: Day) -> Label:
    """Returns MONTHNAME: the English name of the month."""
    return _by_code(DatePart(Part.MONTH, moment.expression), lambda code: _MONTHS[code - 1])


def strftime_of(pattern: str) -> str:
    """Returns the STRFTIME format equivalent to a format of TO_CHAR or TO_DATE.

    >>> strftime_of("YYYY-MM-DD HH24:MI")
    '%Y-%m-%d %H:%M'

    Raises:
        UnsupportedSql: a pattern that is not known.
    """

    def directive(match: re.Match[str]) -> str:
        if match[0].startswith('"'):
            return match[0][1:-1].replace("%", "%%")
        known = _TO_CHAR.get(match[0])
        if known is None:
            raise UnsupportedSql(
                f"The pattern {match[0][:20]} in a format of a date.",
                allowed=", ".join(_TO_CHAR),
            )
        return known

    return _PATTERN.sub(directive, pattern.replace("%", "%%"))


def read_moment(written: str, pattern: str) -> datetime.datetime:
    """Returns the date and time that a string constant denotes in a STRPTIME format.

    Raises:
        UnsupportedSql: the string does not have the format.
    """
    _require_known(pattern)
    try:
        # a local time, which has no zone
        return datetime.datetime.strptime(written, pattern)  # noqa: DTZ007
    except ValueError:
        raise UnsupportedSql(
            "A constant date that does not have its format.", remedy="DATE '2019-12-31'"
        ) from None


def _require_known(pattern: str) -> None:
    for name in _DIRECTIVE.findall(pattern):
        if name not in _DIRECTIVES:
            raise UnsupportedSql(
                f"The directive %{name} in a format of a date.",
                allowed=", ".join(f"%{known}" for known in _DIRECTIVES),
            )


def _by_code(expression: Scalar, written: Callable[[int], str]) -> Label:
    """Returns the string of each code of an expression; equal strings share a code."""
    low, high = span(expression) or (0, 0)
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return text(written(expression.value))
    if high - low >= _MOST:
        raise UnsupportedSql(
            f"A text of {high - low + 1:,} values.",
            allowed=f"at most {_MOST:,}",
            remedy="Group by the value itself, DATE_TRUNC('month', day), "
            "or declare narrower bounds.",
        )
    strings = [written(code) for code in range(low, high + 1)]
    labels = tuple(dict.fromkeys(strings))
    places = {label: place for place, label in enumerate(labels)}
    return Label(Lookup(expression, low, tuple(places[string] for string in strings)), labels)

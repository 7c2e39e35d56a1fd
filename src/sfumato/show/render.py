# SPDX-License-Identifier: Apache-2.0
"""Formats numbers, intervals and tables as text and as HTML."""

import html
import math
import re
from collections.abc import Sequence
from typing import cast
from unicodedata import east_asian_width

from sfumato.privacy.event import Json

Cells = Sequence[Sequence[str]]
# Shown instead of a number whose interval is the whole range.
UNTOLD = "cannot be told"
# Characters that move a terminal's cursor, end a line, or change the direction of writing.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def number(value: Json) -> str:
    """Returns a number as text for people: with thousands separators; a float has at most six
    significant digits.

    >>> number(1234567), number(1234567.8), number(0.123456789), number(None)
    ('1,234,567', '1,234,570', '0.123457', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return _six_digits(value)


def key(value: Json) -> str:
    """Returns a group key as text for people.

    Numbers have no thousands separators: they may be years or codes. Fractions have at most six
    decimals.

    >>> key(2010), key(900.0), key(0.25), key(1 / 3), key("north")
    ('2010', '900', '0.25', '0.333333', 'north')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return number(value)
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    text = f"{value:.6f}".rstrip("0")
    # what six decimals cannot tell from an integer keeps its digits
    return repr(value) if text.endswith(".") else text


def interval(error: Json) -> str:
    """Returns the interval of an answer's cell as a string for people; empty for a key cell."""
    if not isinstance(error, dict):
        return ""
    bounds = f"[{_end(error, 'low')}, {_end(error, 'high')}]"
    if "rank_error" in error:
        ranks = f"rank +- {number(error['rank_error'])} rows"
        if "leaf_low" in error:
            leaf = f"[{number(error['leaf_low'])}, {number(error['leaf_high'])}]"
            ranks = f"{ranks} of a value in {leaf}"
        return f"{ranks}; interval {UNTOLD if error['low'] is None else bounds}"
    if error["low"] is None:
        return "unbounded"
    return bounds


def _end(error: dict[str, Json], name: str) -> str:
    """An end of the interval of a cell."""
    return _with_digits_of(error[name], error)


def place_of_error(low: float, high: float) -> int:
    """Returns the decimal place of the second digit of half the length of an interval.

    >>> place_of_error(681, 801), place_of_error(0.25, 0.75)
    (0, -2)
    """
    return _exponent((high - low) / 2) - 1


def _with_digits_of(value: Json, error: dict[str, Json]) -> str:
    """A number with six significant digits, or with more if its error is smaller than they show."""
    low, high = error["low"], error["high"]
    numbers = value, low, high
    if all(type(each) in (int, float) for each in numbers):
        exact, first, last = cast(tuple[float, float, float], numbers)
        if exact and 0 < last - first < math.inf:
            place = place_of_error(first, last)
            if place < _exponent(exact) - 5:
                return number(exact) if type(exact) is int else f"{exact:,.{max(-place, 0)}f}"
        if type(exact) is float or abs(exact) >= 10**6:
            return _six_digits(exact)
    return number(value)


def _six_digits(value: float) -> str:
    """A number with at most six significant digits, and with an exponent from 10^15 on."""
    size = abs(value)
    if size >= 1e15 or size < 100:
        return f"{value:.6g}"
    if size >= 1e5:
        return f"{float(f'{value:.6g}'):,.0f}"
    return f"{value:,.1f}" if size >= 1e4 else f"{value:,.2f}"


def _exponent(value: float) -> int:
    """The power of ten of the first digit of a number."""
    return int(f"{value:e}".partition("e")[2])


def estimate(value: Json, error: Json) -> str:
    """A released cell for people; a remark if its interval is the whole possible range."""
    if isinstance(error, dict) and error.get("untold"):
        return UNTOLD
    return _with_digits_of(value, error) if isinstance(error, dict) else number(value)


def cells(
    columns: Sequence[dict[str, Json]], rows: Json, errors: Json
) -> tuple[list[str], list[list[str]]]:
    """Returns the header and rows of a table as text, with a 95% interval after each released
    column.
    """
    assert isinstance(rows, list) and isinstance(errors, list), "an answer's own JSON"
    released = [bool(column["released"]) for column in columns]
    header: list[str] = []
    for column, is_released in zip(columns, released, strict=True):
        header.append(str(column["name"]))
        if is_released:
            header.append("95% interval")
    body = []
    for row, line in zip(rows, errors, strict=True):
        assert isinstance(row, list) and isinstance(line, list), "an answer's own JSON"
        shown: list[str] = []
        for value, error, is_released in zip(row, line, released, strict=True):
            if is_released:
                shown += [estimate(value, error), interval(error)]
            else:
                shown.append(key(value))
        body.append(shown)
    return header, body


def text_table(header: Sequence[str], body: Cells, limit: int = 60) -> str:
    """Returns a table as plain text with control characters escaped; at most ``limit`` rows."""
    names = list(map(_printable, header))
    rows = [list(map(_printable, row)) for row in body[:limit]]
    widths = [max(map(display_width, column)) for column in zip(names, *rows, strict=True)]
    titles = [name + _fill(name, width) for name, width in zip(names, widths, strict=True)]
    rules = ["-" * width for width in widths]
    lines = ["  ".join(titles).rstrip(), "  ".join(rules)]
    for row in rows:
        cells = [_fill(cell, width) + cell for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells))
    if len(body) > limit:
        lines.append(f"... {len(body) - limit:,} more rows")
    return "\n".join(lines)


def display_width(text: str) -> int:
    """The number of terminal columns of a string: two for each wide character, as in Chinese.

    >>> display_width("n"), display_width("误差")
    (1, 4)
    """
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _fill(text: str, width: int) -> str:
    """The spaces that pad a string to a display width."""
    return " " * (width - display_width(text))


def _printable(cell: str) -> str:
    """The text of a cell with control characters escaped."""

    def escaped(match: re.Match[str]) -> str:
        return match[0].encode("unicode_escape").decode()

    return _CONTROLS.sub(escaped, cell)


def html_table(header: Sequence[str], body: Cells, limit: int = 200) -> str:
    """Returns a table as HTML with everything escaped; at most ``limit`` rows."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    rows = []
    for row in body[:limit]:
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
        rows.append(f"<tr>{cells}</tr>")
    sections = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    more = f"<p>... {len(body) - limit:,} more rows</p>" if len(body) > limit else ""
    return f'<table class="sfumato">{sections}</table>{more}'

# SPDX-License-Identifier: Apache-2.0
"""Formats numbers, intervals and tables as text and as HTML."""

import html
import re
from collections.abc import Sequence
from unicodedata import east_asian_width

from sfumato.privacy.event import Json

Cells = Sequence[Sequence[str]]
# Shown instead of a number whose interval is the whole range.
UNTOLD = "cannot be told"
# Characters that move a terminal's cursor, end a line, or change the direction of writing.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def number(value: Json) -> str:
    """Returns a number as text for people: with thousands separators, and at most six significant
    digits.

    >>> number(1234567), number(0.123456789), number(None)
    ('1,234,567', '0.123457', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:,.2f}"
    return f"{value:.6g}"


def key(value: Json) -> str:
    """Returns a group key as text for people.

    Numbers have no thousands separators: they may be years or codes.

    >>> key(2010), key(900.0), key(0.25), key("north")
    ('2010', '900', '0.25', 'north')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return number(value)
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    return repr(value)


def interval(error: Json) -> str:
    """Returns the interval of an answer's cell as a string for people; empty for a key cell."""
    if not isinstance(error, dict):
        return ""
    bounds = f"[{number(error['low'])}, {number(error['high'])}]"
    if "rank_error" in error:
        ranks = f"rank +- {number(error['rank_error'])} rows"
        if "leaf_low" in error:
            leaf = f"[{number(error['leaf_low'])}, {number(error['leaf_high'])}]"
            ranks = f"{ranks} of a value in {leaf}"
        return f"{ranks}; interval {UNTOLD if error['low'] is None else bounds}"
    if error["low"] is None:
        return "unbounded"
    return bounds


def estimate(value: Json, error: Json) -> str:
    """A released cell for people; a remark if its interval is the whole possible range."""
    if isinstance(error, dict) and error.get("untold"):
        return UNTOLD
    return number(value)


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

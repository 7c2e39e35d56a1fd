# SPDX-License-Identifier: Apache-2.0
"""A table of an answer as text and as HTML."""

import html
import re
from collections.abc import Sequence

from sfumato.privacy.event import Json

Cells = Sequence[Sequence[str]]
# What stands where the interval is the whole range.
UNTOLD = "cannot be told"
# What moves a terminal's cursor, ends a line, or turns the direction of writing.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def number(value: Json) -> str:
    """A number for people: thousands apart, six digits.

    >>> number(1234567), number(0.123456789), number(None)
    ('1,234,567', '0.123457', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1e5 else f"{value:,.2f}" if size >= 100 else f"{value:.6g}"


def interval(error: Json) -> str:
    """An interval for people."""
    if not isinstance(error, dict):
        return ""
    if "rank_error" in error:
        return f"rank +- {number(error['rank_error'])} rows"
    if error["low"] is None:
        return "unbounded"
    return f"[{number(error['low'])}, {number(error['high'])}]"


def estimate(value: Json, error: Json) -> str:
    """A released cell for people; where nothing can be told, no number."""
    return UNTOLD if isinstance(error, dict) and error.get("untold") else number(value)


def cells(
    columns: Sequence[dict[str, Json]], rows: Json, errors: Json
) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each released column is followed by its 95% interval."""
    assert isinstance(rows, list) and isinstance(errors, list), "an answer's own JSON"
    released = [bool(column["released"]) for column in columns]
    header: list[str] = []
    for column, is_released in zip(columns, released, strict=True):
        header += [str(column["name"]), "95% interval"] if is_released else [str(column["name"])]
    body = []
    for row, line in zip(rows, errors, strict=True):
        assert isinstance(row, list) and isinstance(line, list), "an answer's own JSON"
        shown: list[str] = []
        for value, error, is_released in zip(row, line, released, strict=True):
            shown += [estimate(value, error), interval(error)] if is_released else [number(value)]
        body.append(shown)
    return header, body


def text_table(header: Sequence[str], body: Cells, limit: int = 60) -> str:
    """A table in plain text, control characters escaped; at most ``limit`` rows."""
    shown = [[_printable(cell) for cell in row] for row in (header, *body[:limit])]
    widths = [max(len(row[place]) for row in shown) for place in range(len(header))]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(shown[0], widths, strict=True)).rstrip()
    ]
    lines.append("  ".join("-" * size for size in widths))
    lines += [
        "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
        for row in shown[1:]
    ]
    if len(body) > limit:
        lines.append(f"... {len(body) - limit:,} more rows")
    return "\n".join(lines)


def _printable(cell: str) -> str:
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), cell)


def html_table(header: Sequence[str], body: Cells, limit: int = 200) -> str:
    """A table in HTML, everything escaped; at most ``limit`` rows."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in body[:limit]
    )
    more = f"<p>... {len(body) - limit:,} more rows</p>" if len(body) > limit else ""
    return (
        f'<table class="sfumato"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}'
    )

# SPDX-License-Identifier: Apache-2.0
"""HTML parts of the report page: sections, tables, and the comparison with a public table."""

import html
from collections.abc import Sequence

from sfumato.show.render import number
from sfumato.synthetic.beside import Comparison

# The most rows of a table.
LISTED = 40
# Cells of tables in words, which are translated with the page.
HIDDEN, APART, AGREES = "less than the noise", "apart", "agrees"
SHARE = " of all rows"
_WORDS = frozenset((HIDDEN, APART, AGREES))


def section(title: str, body: str) -> str:
    """Returns a section of the page."""
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns an HTML table; cells are escaped.

    >>> table(["a"], [["<1"]])
    '<table><tr><th>a</th></tr><tr><td>&lt;1</td></tr></table>'
    """
    head = "".join(f"<th>{text(name)}</th>" for name in header)
    body = []
    for row in rows:
        body.append(f"<tr>{''.join(map(_cell, row))}</tr>")
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def text(words: str) -> str:
    """Escapes words for HTML."""
    return html.escape(words)


def compared_html(comparison: Comparison) -> str:
    """Returns the section on the exact comparison with a public table."""
    ways = []
    for way in comparison.ways:
        worst = f"{way.worst:.4f} ({' x '.join(way.worst_of)})"
        ways.append([f"{way.columns}", f"{way.marginals}", f"{way.mean:.4f}", worst])
    ranges = []
    for each in comparison.ranges:
        ranges.append([each.column, *map(number, (*each.rows, *each.public))])
    far = sorted(comparison.correlations, key=lambda each: -abs(each.rows - each.public))
    pairs = []
    for one in far[:LISTED]:
        pairs.append([" x ".join(one.columns), f"{one.rows:.3f}", f"{one.public:.3f}"])
    intro = (
        f"<p>{comparison.rows:,} rows beside {comparison.public_rows:,} public ones. The table is "
        "declared public, so these numbers are exact and cost nothing.</p>"
    )
    blocks = [
        intro,
        table(["columns together", "marginals", "mean distance", "the worst"], ways),
    ]
    if pairs:
        blocks.append(table(["correlation", "in the rows", "in the public table"], pairs))
    if ranges:
        header = ["column", "least", "median", "greatest"]
        blocks.append(
            table([*header, "least, public", "median, public", "greatest, public"], ranges)
        )
    return "".join(blocks)


def _cell(cell: str) -> str:
    """Returns a table cell; words are marked for translation."""
    words = text(cell)
    if cell in _WORDS or cell.endswith(SHARE):
        words = f"<em>{words}</em>"
    return f"<td>{words}</td>"

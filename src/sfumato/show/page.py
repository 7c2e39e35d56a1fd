# SPDX-License-Identifier: Apache-2.0
"""The frame of every HTML page: one file with one style sheet and without scripts.

Ledger reports, publications, synthetic data and demos are pages.
"""

import html
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def page(title: str, body: str, *, language: str = "en") -> str:
    """Returns a self-contained HTML page; ``body`` is HTML, and the title is escaped.

    The style sheet covers phones, dark screens, print and Chinese text.

    >>> page("A & B", "<p>text</p>").partition("<body>")[2]
    '<main><p>text</p></main></body></html>\\n'
    """
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>{body}</main></body></html>\n"
    )


def text_blocks(text: str) -> str:
    """Returns the text of a terminal as HTML. Lines with columns keep them, and scroll where the
    screen is narrow; other lines are wrapped.

    >>> text_blocks("Is it there?\\nedges  12\\nnodes   3")
    '<pre>Is it there?</pre><pre class="wide">edges  12\\nnodes   3</pre>'
    """
    parts = []
    for has_columns, lines in groupby(text.splitlines(), lambda line: "  " in line):
        kind = ' class="wide"' if has_columns else ""
        parts.append(f"<pre{kind}>{html.escape(chr(10).join(lines))}</pre>")
    return "".join(parts)


def tiles(numbers: Iterable[tuple[str, str]]) -> str:
    """Returns the main numbers of a page, each with its caption, as HTML.

    >>> tiles([("27,253", "persons")])
    '<div class="tiles"><div class="tile"><b>27,253</b><span>persons</span></div></div>'
    """
    shown = "".join(
        f'<div class="tile"><b>{html.escape(number)}</b><span>{html.escape(meaning)}</span></div>'
        for number, meaning in numbers
    )
    return f'<div class="tiles">{shown}</div>'

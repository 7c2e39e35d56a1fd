# SPDX-License-Identifier: Apache-2.0
"""Translates the sentences of an HTML page to the language of the shell, but not its data."""

import html
import re

from sfumato.cli.language import present

_TAG = re.compile(r"(<[^>]+>)")
_NAME = re.compile(r"</?([a-z0-9]+)")
# What these hold is data, code or a style.
_KEPT = frozenset(("td", "text", "style", "code", "script"))


def in_language(page: str) -> str:
    """Returns a page with the text between tags translated, if the catalogue has it.

    Cells of tables, labels of charts and code stay as they are.

    >>> in_language("<p>rows (noisy)</p>")
    '<p>rows (noisy)</p>'
    """
    words = present()
    if not words.sentences:
        return page
    parts = _TAG.split(page)
    inside = ""
    titles: list[int] = []
    for place, part in enumerate(parts):
        if place % 2:
            name = _NAME.match(part)
            inside = "" if name is None or part.startswith("</") else name[1]
            if titles and part == "</tr>":
                _translate_titles(parts, titles)
                titles = []
        elif inside == "pre":
            parts[place] = html.escape(words.told(html.unescape(part)), quote=False)
        elif part.strip() and inside == "th":
            titles.append(place)
        elif part.strip() and inside not in _KEPT:
            text = " ".join(html.unescape(part).split())
            said = html.escape(words.sentence(text), quote=False)
            parts[place] = part[: len(part) - len(part.lstrip())] + said
    return "".join(parts).replace('<html lang="en">', f'<html lang="{words.code}">', 1)


def _translate_titles(parts: list[str], places: list[int]) -> None:
    """Translates the header of a table, whose texts stand at these places."""
    words = present()
    english = [html.unescape(parts[place]) for place in places]
    for place, text, other in zip(places, english, words.titles(english), strict=True):
        said = words.sentence(text) if other == text else other
        parts[place] = html.escape(said, quote=False)

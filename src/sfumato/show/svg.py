# SPDX-License-Identifier: Apache-2.0
"""The SVG document of all charts, whose text and lines have the colour of the page."""

import html
import math
from dataclasses import dataclass
from pathlib import Path
from unicodedata import bidirectional, category

# The width of a picture, in its own units.
WIDTH = 760
# From which number a suffix is used, its size, and the suffix.
_SUFFIXES = (
    (1e9, 1e9, "G"),
    (1e6, 1e6, "M"),
    (1e4, 1e3, "k"),
)
# The kinds of signs that change the direction of the text around them.
_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


@dataclass(frozen=True, slots=True)
class Figure:
    """An SVG chart, which a notebook displays.

    >>> Figure("<svg/>")._repr_svg_()
    '<svg/>'
    """

    svg: str

    def __repr__(self) -> str:
        return "Figure: .save(path) writes it, a notebook shows it"

    def save(self, path: str | Path) -> None:
        """Writes the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


def svg_document(height: float, title: str, inside: str) -> str:
    """Wraps drawn elements into an SVG document.

    Its size is that of its units, so that a saved picture shows text of 12 px or more.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{xml_text(title)}" font-family="system-ui, sans-serif">'
        "<style>.t{font-size:14px;font-weight:600;fill:currentColor}"
        ".h{font-size:12px;font-weight:600;fill:currentColor}"
        ".a{font-size:12px;fill:currentColor;fill-opacity:.75}"
        ".g{stroke:currentColor;stroke-opacity:.15}"
        ".w{stroke:currentColor;stroke-width:1.3;fill:none}</style>"
        f"{inside}</svg>"
    )


def xml_text(words: str) -> str:
    """Escapes a string for XML: control characters become spaces, and signs that change the
    direction of writing are shown by their numbers.

    >>> xml_text("a<\\u202eb")
    'a&lt;\\\\u202eb'
    """
    signs = []
    for sign in words:
        if category(sign) in ("Cc", "Cs", "Cn"):
            sign = " "
        elif bidirectional(sign) in _DIRECTIONS:
            sign = f"\\u{ord(sign):04x}"
        signs.append(sign)
    return html.escape("".join(signs))


def text_width(words: str) -> float:
    """Returns about how wide a text of 12 px is; a sign of Chinese, Japanese or Korean is as wide
    as high.

    >>> text_width("age") < text_width("年龄段")
    True
    """
    return sum(6.6 if sign < "\u2e80" else 12.0 for sign in words)


def shortened(words: str, width: float) -> str:
    """Returns a text of 12 px that is no wider than ``width``, cut at its end.

    >>> shortened("年龄" * 9, 100), shortened("age", 100)
    ('年龄年龄年龄年…', 'age')
    """
    if text_width(words) <= width:
        return words
    while text_width(words + "\u2026") > width:
        words = words[:-1]
    return words + "\u2026"


def ticks(low: float, high: float) -> list[float]:
    """Returns about five round numbers for an axis, from ``low`` or below to ``high`` or above."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    steps = [power * factor for factor in (1, 2, 5, 10)]
    step = next(step for step in steps if step >= raw)
    start = math.floor(low / step)
    end = math.ceil(high / step)
    return [place * step for place in range(start, end + 1)]


def short(value: float) -> str:
    """Returns a number with a suffix: k for thousands, M for millions, G for billions."""
    for least, size, suffix in _SUFFIXES:
        if abs(value) >= least:
            return f"{value / size:,.6g}{suffix}"
    return f"{value:,.6g}"

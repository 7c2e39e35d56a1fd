# SPDX-License-Identifier: Apache-2.0
"""The picture of the bound over the lifetime of the rows, for the page about a release."""

from fractions import Fraction

from sfumato.exact.rational import decimal_text
from sfumato.exact.rounding import float_up
from sfumato.show.palette import DASHES, PALETTE
from sfumato.show.svg import WIDTH, Figure, svg_document, xml_text

# Above this epsilon a document warns: beliefs can change much.
MANY_EPSILON = 3
_LEFT, _RIGHT, _TOP, _BAR, _HEIGHT = 16, 40, 56, 22, 120


def lifetime_picture(epsilon: Fraction, title: str, mark: str) -> Figure:
    """Returns an SVG that shows a lifetime epsilon as a bar, beside a dashed line at epsilon 3.

    ``title`` and ``mark`` are the words above the picture and at the line.
    """
    # room for the line, and for the end of the bar
    whole = max(float_up(epsilon), float(MANY_EPSILON)) * 1.25
    scale = (WIDTH - _LEFT - _RIGHT) / whole
    end, line = _LEFT + float_up(epsilon) * scale, _LEFT + MANY_EPSILON * scale
    bottom = _TOP + _BAR
    value = f"\u03b5 = {decimal_text(epsilon)}"
    return Figure(
        svg_document(
            _HEIGHT,
            title,
            f'<text x="{_LEFT}" y="24" class="t">{xml_text(title)}</text>'
            f'<rect x="{_LEFT}" y="{_TOP}" width="{end - _LEFT:.1f}" height="{_BAR}" rx="3" '
            f'fill="{PALETTE[0]}"/>'
            f'<text x="{_LEFT}" y="{_TOP - 8}" class="h">{xml_text(value)}</text>'
            f'<line x1="{line:.1f}" x2="{line:.1f}" y1="{_TOP - 4}" y2="{bottom + 8}" {DASHES}/>'
            f'<text x="{line:.1f}" y="{bottom + 24}" class="a" text-anchor="middle">'
            f"{xml_text(mark)}</text>",
        )
    )

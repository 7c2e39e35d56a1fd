# SPDX-License-Identifier: Apache-2.0
"""Draws trade-off curves as SVG, for ``sfumato explain-epsilon``.

A curve has the least rate of missed detections for each rate of false alarms.
"""

import math
from collections.abc import Sequence

from sfumato.accounting.interpret import Attacker
from sfumato.show.palette import DASHES, PALETTE
from sfumato.show.svg import Figure, svg_document

_LEFT, _TOP, _SIDE = 64, 52, 380
_HEIGHT = 500

Named = tuple[str, Attacker]


def trade_off_chart(attackers: Sequence[Named]) -> Figure:
    """Returns a chart with the trade-off curve of each guarantee.

    No attacker gets below a curve; guessing lies on the diagonal. The area below the last curve,
    that of the weakest guarantee, is shaded.
    """
    title = "What the best attacker can reach"
    curves = [_curve(attacker) for _, attacker in attackers]
    outline = [f"{_LEFT},{_TOP + _SIDE}", *(f"{x:.1f},{y:.1f}" for x, y in curves[-1])]
    shaded = f'<polygon points="{" ".join(outline)}" fill="currentColor" fill-opacity=".05"/>'
    elements = [_text(_LEFT, 24, title, "t"), shaded, _frame()]
    for place, (curve, (name, attacker)) in enumerate(zip(curves, attackers, strict=True)):
        colour = PALETTE[place % len(PALETTE)]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in curve)
        elements.append(f'<path d="M{line}" fill="none" stroke-width="2.2" stroke="{colour}"/>')
        top = _TOP + 30 + 46 * place
        elements.append(
            f'<rect x="{_LEFT + _SIDE + 24}" y="{top - 10}" width="10" height="10" rx="2" '
            f'fill="{colour}"/>'
        )
        elements.append(_text(_LEFT + _SIDE + 40, top, name, "t"))
        best = math.ceil(1000 * attacker.accuracy("0.5")) / 10
        elements.append(
            _text(_LEFT + _SIDE + 40, top + 17, f"right at most {best:.1f}%, even odds", "a")
        )
    return Figure(svg_document(_HEIGHT, title, "".join(elements)))


def _curve(attacker: Attacker) -> list[tuple[float, float]]:
    """Returns the points of a trade-off curve, in pixels."""
    return [_place(x, y) for x, y in attacker.trade_off()]


def _place(x: float, y: float) -> tuple[float, float]:
    """Returns the pixel of a point, whose coordinates are from 0 to 1."""
    return _LEFT + x * _SIDE, _TOP + (1 - y) * _SIDE


def _frame() -> str:
    """Returns the grid, the labels of the axes, and the diagonal of guessing."""
    parts = []
    for tick in range(0, 101, 20):
        x, y = _place(tick / 100, tick / 100)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + _SIDE}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>'
        )
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + _SIDE}" class="g"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{tick}%", "a", "end"))
        parts.append(_text(x, _TOP + _SIDE + 18, f"{tick}%", "a", "middle"))
    left, top = _place(0, 1)
    right, bottom = _place(1, 0)
    parts.append(
        f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}" {DASHES}/>'
    )
    parts.append(_text(right - 6, top + 14, "guessing: dashed", "a", "end"))
    parts.append(_text(left + 10, bottom - 10, "out of reach", "a"))
    parts.append(
        _text((left + right) / 2, bottom + 38, "false alarms: non-members named", "a", "middle")
    )
    parts.append(_text(left, top - 8, "misses: members not named", "a"))
    return "".join(parts)


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    """Returns a label; ``kind`` is its CSS class."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'

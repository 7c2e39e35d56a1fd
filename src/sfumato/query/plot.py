# SPDX-License-Identifier: Apache-2.0
"""A bar chart with error bars, as SVG."""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

from sfumato.query.render import UNTOLD

_PALETTE = ("#3b6ea5", "#c8794a", "#5b9a68", "#8d6ab0", "#b5a642", "#7a8288", "#b65d78", "#4aa3a3")
_LEFT, _RIGHT, _TOP, _ROW, _BOTTOM = 190, 40, 56, 22, 44
_WIDTH = 760


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label, its series, its value and its interval (None: unbounded).

    ``untold``: nothing can be told of it, and no bar is drawn.
    """

    label: str
    series: str
    value: float
    low: float | None
    high: float | None
    untold: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """An SVG picture; shows itself in a notebook.

    >>> Figure("<svg/>")._repr_svg_()
    '<svg/>'
    """

    svg: str

    def save(self, path: str | Path) -> None:
        """Writes the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


def bar_chart(title: str, axis: str, bars: Sequence[Bar]) -> Figure:
    """Horizontal bars, one colour a series, with their intervals as whiskers."""
    series = list(dict.fromkeys(bar.series for bar in bars))
    low, high = _range(bars)
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)
    bottom = _TOP + _ROW * len(bars)

    def x(value: float) -> float:
        return _LEFT + (min(max(value, low), high) - low) * scale

    parts = [f'<text x="{_LEFT}" y="20" class="t">{_text(title)}</text>', _legend(series)]
    for tick in ticks:
        parts.append(
            f'<line x1="{x(tick):.1f}" y1="{_TOP - 4}" x2="{x(tick):.1f}" y2="{bottom}" class="g"/>'
        )
        parts.append(
            f'<text x="{x(tick):.1f}" y="{bottom + 16}" class="a" text-anchor="middle">{_short(tick)}</text>'
        )
    previous = ""
    for place, bar in enumerate(bars):
        parts.append(
            _bar(
                bar,
                x,
                _TOP + _ROW * place,
                series.index(bar.series),
                show_label=bar.label != previous,
            )
        )
        previous = bar.label
    parts.append(
        f'<text x="{_LEFT}" y="{bottom + 34}" class="a">{_text(axis)}; whiskers: 95% interval</text>'
    )
    return Figure(_document(bottom + _BOTTOM, title, "".join(parts)))


def _range(bars: Sequence[Bar]) -> tuple[float, float]:
    """Zero, the bars and their whiskers; a whisker far beyond all bars is cut."""
    bars = [bar for bar in bars if not bar.untold]
    values = [bar.value for bar in bars]
    reach = 2 * max((abs(value) for value in values), default=1.0)
    ends = [
        end
        for bar in bars
        for end in (bar.low, bar.high)
        if end is not None and abs(end) <= max(reach, 1e-9)
    ]
    low, high = min([0.0, *values, *ends]), max([0.0, *values, *ends])
    return (low, high) if high - low > 1e-100 else (low, low + 1)


def _ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    start = math.floor(low / step)
    return [(start + place) * step for place in range(math.ceil(high / step) - start + 1)]


def _short(value: float) -> str:
    """A tick: thousands as k, millions as M, and so on."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if name == 'k' else size):,.6g}{name}"
    return f"{value:,.6g}"


def _bar(
    bar: Bar, x: Callable[[float], float], top: float, colour: int, *, show_label: bool
) -> str:
    middle, zero, end = top + _ROW / 2, x(0.0), x(bar.value)
    fill = _PALETTE[colour % len(_PALETTE)]
    label = f'<text x="{_LEFT - 8}" y="{middle + 4:.1f}" class="a" text-anchor="end">{_text(bar.label[:28])}</text>'
    shape = (
        f'<rect x="{min(zero, end):.1f}" y="{top + 3:.1f}" width="{abs(end - zero):.1f}" height="{_ROW - 6}" fill="{fill}" '
        f'rx="2"><title>{_text(f"{bar.label} {bar.series}: {bar.value:,.6g}")}</title></rect>'
    )
    whisker = ""
    if bar.untold:
        shape = f'<text x="{zero + 4:.1f}" y="{middle + 4:.1f}" class="a">{UNTOLD}</text>'
    elif bar.low is not None and bar.high is not None:
        left, right = x(bar.low), x(bar.high)
        whisker = (
            f'<path d="M{left:.1f} {middle - 4:.1f}v8M{right:.1f} {middle - 4:.1f}v8M{left:.1f} {middle:.1f}H{right:.1f}" '
            'class="w"/>'
        )
    return (label if show_label else "") + shape + whisker


def _text(words: str) -> str:
    """Words inside XML, which has no control characters."""
    return html.escape(
        "".join(" " if category(each) in ("Cc", "Cs", "Cn") else each for each in words)
    )


def _legend(series: Sequence[str]) -> str:
    if len(series) < 2:
        return ""
    parts, left = [], float(_LEFT)
    for place, name in enumerate(series):
        shown = name[:24]
        fill = _PALETTE[place % len(_PALETTE)]
        parts.append(f'<rect x="{left:.0f}" y="31" width="10" height="10" fill="{fill}" rx="2"/>')
        parts.append(f'<text x="{left + 14:.0f}" y="40" class="a">{_text(shown)}</text>')
        left += 30 + 6.6 * len(shown)
    return "".join(parts)


def _document(height: float, title: str, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{_text(title)}" font-family="system-ui, sans-serif">'
        "<style>.t{font-size:14px;font-weight:600;fill:#222}.a{font-size:11.5px;fill:#555}"
        ".g{stroke:#e6e6e6}.w{stroke:#222;stroke-width:1.3;fill:none}</style>"
        f"{inside}</svg>"
    )

# SPDX-License-Identifier: Apache-2.0
"""Bar charts with error bars, as SVG in the text colour of the page around them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sfumato.show.palette import PALETTE
from sfumato.show.render import UNTOLD
from sfumato.show.svg import (
    WIDTH,
    Figure,
    short,
    shortened,
    svg_document,
    text_width,
    ticks,
    xml_text,
)

_RIGHT, _TOP, _ROW, _BOTTOM = 40, 56, 22, 44
# The narrowest and the widest column of labels.
_LEAST_LEFT, _MOST_LEFT, _GAP = 60, 194, 8
_LEGEND = 18


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart: its label, its series, its value and its interval (None: unbounded).

    With ``untold`` the interval is the whole possible range, and a remark is drawn instead of a
    bar.
    """

    label: str
    series: str
    value: float
    low: float | None
    high: float | None
    untold: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a chart: a bar with its label, or the heading of a group of bars."""

    label: str
    bar: Bar | None = None
    colour: int = 0


def bar_chart(title: str, axis: str, bars: Sequence[Bar]) -> Figure:
    """Draws horizontal bars with their intervals as whiskers.

    Up to eight series have a colour each. With more series, each has a heading above its bars, on
    the common axis.
    """
    bars = _with_few_series(bars)
    series = list(dict.fromkeys(bar.series for bar in bars))
    low, high = _range(bars)
    marks = ticks(low, high)
    low = min(low, marks[0])
    high = max(high, marks[-1])
    lines = _lines(bars, series)
    left = _left(lines)
    scale = (WIDTH - left - _RIGHT) / (high - low)
    legend, height = _legend(series, left)
    top = _TOP + height
    bottom = top + _ROW * len(lines)

    def x(value: float) -> float:
        return left + (min(max(value, low), high) - low) * scale

    elements = [f'<text x="{left}" y="20" class="t">{xml_text(title)}</text>', legend]
    elements += [_tick(tick, x(tick), (top, bottom)) for tick in marks]
    for place, line in enumerate(lines):
        y = top + _ROW * place
        elements.append(_label(line, left, y))
        if line.bar is not None:
            elements.append(_bar(line.bar, x, y, line.colour))
    # a tspan holds a sentence, which pages translate; other texts are data
    caption = f"<tspan>{xml_text(axis)}; whiskers: 95% interval</tspan>"
    elements.append(f'<text x="{left}" y="{bottom + 34}" class="a">{caption}</text>')
    return Figure(svg_document(bottom + _BOTTOM, title, "".join(elements)))


def _with_few_series(bars: Sequence[Bar]) -> Sequence[Bar]:
    """The bars with labels and series exchanged, if only that leaves few series."""
    series = list(dict.fromkeys(bar.series for bar in bars))
    labels = {bar.label for bar in bars}
    if len(series) <= len(PALETTE) or len(labels) > len(PALETTE):
        return bars
    swapped = [replace(bar, label=bar.series, series=bar.label) for bar in bars]
    return sorted(swapped, key=lambda bar: series.index(bar.label))


def _lines(bars: Sequence[Bar], series: Sequence[str]) -> list[_Line]:
    """The lines of a chart; a label is written at the first of its bars only."""
    lines = []
    if len(series) <= len(PALETTE):
        previous = None
        for bar in bars:
            label = "" if bar.label == previous else bar.label
            lines.append(_Line(label, bar, series.index(bar.series)))
            previous = bar.label
        return lines
    for name in series:
        lines.append(_Line(name))
        lines += [_Line(bar.label, bar) for bar in bars if bar.series == name]
    return lines


def _tick(
    tick: float,
    x: float,
    ends: tuple[int, int],
) -> str:
    """A vertical grid line with its label."""
    top, bottom = ends
    line = f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{bottom}" class="g"/>'
    place = f'x="{x:.1f}" y="{bottom + 16}"'
    return f'{line}<text {place} class="a" text-anchor="middle">{short(tick)}</text>'


def _range(bars: Sequence[Bar]) -> tuple[float, float]:
    """The range of the axis: zero, the bars, and their whiskers unless these are far longer."""
    bars = [bar for bar in bars if not bar.untold]
    numbers = [0.0, *(bar.value for bar in bars)]
    longest = 1.0
    if bars:
        longest = max(abs(bar.value) for bar in bars)
    most = max(2 * longest, 1e-9)
    for bar in bars:
        for end in (bar.low, bar.high):
            if end is not None and abs(end) <= most:
                numbers.append(end)
    low = min(numbers)
    high = max(numbers)
    if high - low > 1e-100:
        return (low, high)
    return (low, low + 1)


def _left(lines: Sequence[_Line]) -> int:
    """Where the bars begin: right of the widest label."""
    widest = max((text_width(line.label) for line in lines), default=0.0)
    return min(max(_LEAST_LEFT, math.ceil(widest) + _GAP), _MOST_LEFT)


def _label(line: _Line, left: int, top: int) -> str:
    """The label to the left of a bar, or a heading."""
    kind = "a" if line.bar is not None else "h"
    place = f'x="{left - _GAP}" y="{top + _ROW / 2 + 4:.1f}"'
    words = shortened(line.label, _MOST_LEFT - _GAP)
    return f'<text {place} class="{kind}" text-anchor="end">{xml_text(words)}</text>'


def _bar(
    bar: Bar,
    x: Callable[[float], float],
    top: int,
    colour: int,
) -> str:
    """One bar with its tooltip and its whisker; ``x`` maps a value to its position."""
    middle = top + _ROW / 2
    zero = x(0.0)
    end = x(bar.value)
    if bar.untold:
        return f'<text x="{zero + 4:.1f}" y="{middle + 4:.1f}" class="a">{UNTOLD}</text>'
    fill = PALETTE[colour]
    tip = xml_text(f"{bar.label} {bar.series}: {bar.value:,.6g}")
    place = f'x="{min(zero, end):.1f}" y="{top + 3:.1f}"'
    size = f'width="{abs(end - zero):.1f}" height="{_ROW - 6}"'
    shape = f'<rect {place} {size} fill="{fill}" rx="2"><title>{tip}</title></rect>'
    if bar.low is None or bar.high is None:
        return shape
    left = x(bar.low)
    right = x(bar.high)
    ends = f"M{left:.1f} {middle - 4:.1f}v8M{right:.1f} {middle - 4:.1f}v8"
    return f'{shape}<path d="{ends}M{left:.1f} {middle:.1f}H{right:.1f}" class="w"/>'


def _legend(series: Sequence[str], start: int) -> tuple[str, int]:
    """The legend of the series, and the height that it adds; empty for one series."""
    if not 2 <= len(series) <= len(PALETTE):
        return "", 0
    elements = []
    left, top = float(start), 31
    for series_index, name in enumerate(series):
        shown = name[:24]
        width = 30 + text_width(shown)
        if left > start and left + width > WIDTH:
            left, top = float(start), top + _LEGEND
        fill = PALETTE[series_index]
        box = f'<rect x="{left:.0f}" y="{top}" width="10" height="10" fill="{fill}" rx="2"/>'
        words = f'<text x="{left + 14:.0f}" y="{top + 9}" class="a">{xml_text(shown)}</text>'
        elements.append(box + words)
        left += width
    return "".join(elements), top - 31

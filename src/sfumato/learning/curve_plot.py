# SPDX-License-Identifier: Apache-2.0
"""Draws the curves of an additive model as SVG: one panel per feature, with noise bands."""

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.learning.features import Binned, Feature, Floats, Line, Listed
from sfumato.learning.frames import FrameColumn
from sfumato.metadata.column import EPOCH
from sfumato.show.palette import PALETTE
from sfumato.show.svg import Figure, short, svg_document, ticks, xml_text

_PANELS, _LEFT, _TOP, _WIDTH, _HEIGHT = 3, 56, 70, 190, 120
_ACROSS, _DOWN = 234, 186
# Labels of more values than this would cover each other.
_MOST_LABELS = 4
Span: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """The data of one panel in a chart of a model: the curves of one feature's weights, with noise
    bands.

    ``values`` has one row per line, and its last column is for missing values. ``half`` is half the
    width of the band; None if the noise is unknown.
    """

    feature: Feature
    column: FrameColumn
    values: Floats
    half: Floats | None

    @property
    def name(self) -> str:
        """The name of the feature."""
        return self.feature.name

    def ends(self, line: int) -> tuple[Floats, Floats]:
        """Returns the lower and the upper end of a curve's noise band, at each of its points.
        ``line`` is the index of the curve.
        """
        half = np.zeros_like(self.values[line]) if self.half is None else self.half
        return self.values[line] - half, self.values[line] + half


def curves_chart(curves: Sequence[Curve], lines: Sequence[str], title: str, axis: str) -> Figure:
    """Draws a panel for each curve, all on one scale; ``lines`` are the labels of a panel's lines."""
    ends = [curve.ends(line) for curve in curves for line in range(len(lines))]
    lowest = min(float(low.min()) for low, _ in ends)
    highest = max(float(high.max()) for _, high in ends)
    marks = ticks(lowest, max(highest, lowest + 1e-6))
    elements = [f'<text x="{_LEFT}" y="20" class="t">{xml_text(title)}</text>']
    elements += _legend(lines, axis)
    for place, curve in enumerate(curves):
        left = _LEFT + _ACROSS * (place % _PANELS)
        top = _TOP + _DOWN * (place // _PANELS)
        panel = _Panel(left, top, (marks[0], marks[-1]))
        elements += panel.drawn(curve, marks)
    height = _TOP + _DOWN * math.ceil(len(curves) / _PANELS)
    return Figure(svg_document(height, title, "".join(elements)))


@dataclass(frozen=True, slots=True)
class _Panel:
    """Where a curve is drawn."""

    left: int
    top: int
    scale: Span

    def y(self, value: float) -> float:
        """The pixel of a value."""
        low, high = self.scale
        return self.top + _HEIGHT * (high - value) / (high - low)

    def x(self, share: float) -> float:
        """The pixel of a share of the width; missing values are to the right of 1."""
        return self.left + (_WIDTH - 24) * share

    def drawn(self, curve: Curve, marks: Sequence[float]) -> Iterator[str]:
        """The grid, the lines and the labels."""
        yield _text(self.left, self.top - 8, curve.name[:30], "start")
        for mark in marks:
            y = self.y(mark)
            end = self.left + _WIDTH
            yield f'<line x1="{self.left}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}" class="g"/>'
            yield _text(self.left - 5, y + 4, short(round(mark, 9)), "end")
        for line in range(len(curve.values)):
            yield from self._line(curve, line)
        for share, words in labels_of(curve):
            yield _text(self.x(share), self.top + _HEIGHT + 16, words, "middle")
        yield _text(self.left + _WIDTH - 6, self.top + _HEIGHT + 30, "missing", "middle")

    def _line(self, curve: Curve, line: int) -> Iterator[str]:
        """One line of a curve: steps, a slope or dots, and a dot for missing values."""
        colour = PALETTE[line % len(PALETTE)]
        low, high = curve.ends(line)
        values, known_count = curve.values[line], curve.values.shape[1] - 1
        if isinstance(curve.feature, Line):
            spans = [(0.0, 1.0)]
            yield self._slope(values[:2], (low[:2], high[:2]), colour)
        else:
            spans = [
                (bin_index / known_count, (bin_index + 1) / known_count)
                for bin_index in range(known_count)
            ]
            if isinstance(curve.feature, Binned):
                yield self._steps(
                    values[:known_count], (low[:known_count], high[:known_count]), colour
                )
            else:
                for bin_index, (start, end) in enumerate(spans):
                    ends = (float(low[bin_index]), float(high[bin_index]))
                    yield self._dot((start + end) / 2, float(values[bin_index]), ends, colour)
        missing = (float(low[-1]), float(high[-1]))
        yield self._dot(1 + 18 / (_WIDTH - 24), float(values[-1]), missing, colour)

    def _steps(self, values: Floats, ends: tuple[Floats, Floats], colour: str) -> str:
        """A horizontal line for each bin, with its band."""
        count = len(values)
        elements = []
        for place, value in enumerate(values):
            left, right = self.x(place / count), self.x((place + 1) / count)
            below, above = self.y(float(ends[0][place])), self.y(float(ends[1][place]))
            size = f'width="{right - left:.1f}" height="{below - above:.1f}"'
            where = f'x="{left:.1f}" y="{above:.1f}"'
            elements.append(f'<rect {where} {size} fill="{colour}" fill-opacity="0.2"/>')
            y = self.y(float(value))
            elements.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" {_stroke(colour)}/>')
        return "".join(elements)

    def _slope(self, values: Floats, ends: tuple[Floats, Floats], colour: str) -> str:
        """A line between two ends, with its band."""
        left, right = self.x(0), self.x(1)
        low, high = ends
        outline = [(left, low[0]), (right, low[1]), (right, high[1]), (left, high[0])]
        points = " ".join(f"{x:.1f},{self.y(float(value)):.1f}" for x, value in outline)
        band = f'<polygon points="{points}" fill="{colour}" fill-opacity="0.2"/>'
        first, last = self.y(float(values[0])), self.y(float(values[1]))
        return f'{band}<path d="M{left:.1f} {first:.1f}L{right:.1f} {last:.1f}" {_stroke(colour)}/>'

    def _dot(self, share: float, value: float, ends: Span, colour: str) -> str:
        """A dot with a whisker and a tooltip."""
        x, y = self.x(share), self.y(value)
        whisker = f"M{x:.1f} {self.y(ends[0]):.1f}V{self.y(ends[1]):.1f}"
        tip = f"<title>{value:.3g}, from {ends[0]:.3g} to {ends[1]:.3g}</title>"
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}">{tip}</circle>'
        return f'<path d="{whisker}" {_stroke(colour)}/>{dot}'


def labels_of(curve: Curve) -> list[tuple[float, str]]:
    """Returns the axis labels below a curve, each with its position as a share of the width.

    >>> age = FrameColumn("age", 0)
    >>> labels_of(Curve(Binned("age", (20, 30, 40)), age, np.zeros((1, 5)), None))
    [(0.25, '20'), (0.5, '30'), (0.75, '40')]
    """
    feature, column = curve.feature, curve.column
    if isinstance(feature, Line):
        return [
            (0.0, _format_value(column, feature.lower)),
            (1.0, _format_value(column, feature.upper)),
        ]
    if isinstance(feature, Binned):
        count = len(feature.edges)
        every = [((place + 1) / (count + 1), edge) for place, edge in enumerate(feature.edges)]
        return [
            (share, _format_value(column, edge)) for share, edge in every[:: _label_interval(count)]
        ]
    assert isinstance(feature, Listed), "texts are not drawn"
    texts = column.texts or tuple(str(feature.lower + place) for place in range(feature.count))
    found = [((place + 0.5) / len(texts), text[:12]) for place, text in enumerate(texts)]
    return found[:: _label_interval(len(texts))]


def _label_interval(count: int) -> int:
    """Returns n, where every n-th label is written so that labels do not overlap."""
    return max(math.ceil(count / _MOST_LABELS), 1)


def _format_value(column: FrameColumn, code: int) -> str:
    """Formats the value that a code stands for."""
    if column.is_date:
        return str(EPOCH + datetime.timedelta(days=code))
    return short(round(float(code * column.step), 6))


def _legend(lines: Sequence[str], axis: str) -> Iterator[str]:
    """What the vertical axes show, and the colours of the lines."""
    yield _text(_LEFT, 40, axis, "start")
    if len(lines) < 2:
        return
    for place, name in enumerate(lines[: len(PALETTE)]):
        yield _text(_LEFT + 84 * place, 55, name[:12], "start", PALETTE[place])


def _stroke(colour: str) -> str:
    """The stroke of a line."""
    return f'stroke="{colour}" stroke-width="2" fill="none"'


def _text(x: float, y: float, words: str, anchor: str, colour: str = "") -> str:
    """A label."""
    fill = f' style="fill:{colour}"' if colour else ""
    at = f'x="{x:.1f}" y="{y:.1f}" class="a" text-anchor="{anchor}"'
    return f"<text {at}{fill}>{xml_text(words)}</text>"

# SPDX-License-Identifier: Apache-2.0
"""Draws the distribution of a number: shares of ranges with bands, and the median."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.show.axes import HEIGHT, LEFT, RIGHT, TOP, Axis, level, percent, title_of, words
from sfumato.show.palette import BLUE, LIGHT, ORANGE
from sfumato.show.svg import WIDTH, Figure, short, svg_document, ticks

BLUE_LINE = f'fill="none" stroke="{BLUE}" stroke-width="1.6"'


@dataclass(frozen=True, slots=True)
class Span:
    """A bar of a distribution chart: a range of numbers, where it is drawn, and its estimated share
    of the devices with an interval.
    """

    name: str
    ends: tuple[float, float]
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Middle:
    """The estimated median of a distribution and the ends of its interval, as drawn in a chart."""

    estimate: float
    low: float
    high: float


def distribution_chart(
    title: str,
    spans: Sequence[Span],
    median: Middle,
    confidence: str,
) -> Figure:
    """Draws a step for each range with its interval as a band, and the median above them."""
    bottom = TOP + HEIGHT
    lowest = min(0.0, *(each.low for each in spans))
    marks = ticks(lowest, max(each.high for each in spans))
    across = Axis((spans[0].ends[0], spans[-1].ends[1]), (LEFT, WIDTH - RIGHT))
    up = Axis((marks[0], marks[-1]), (bottom, TOP))
    parts = [title_of(title)]
    parts += [level(up(mark), f"{100 * mark:.4g}%") for mark in marks]
    parts += _bands(spans, across, up)
    parts += _median(median, across)
    for mark in ticks(*across.values):
        if across.values[0] <= mark <= across.values[1]:
            parts.append(words(across(mark), bottom + 16, short(mark), "middle"))
    interval = percent(float(confidence))
    caption = f"share of devices in each range; band, and bar of the median: {interval} interval"
    parts.append(words(LEFT, bottom + 36, caption))
    return Figure(svg_document(bottom + 46, title, "".join(parts)))


def _bands(spans: Sequence[Span], across: Axis, up: Axis) -> Iterator[str]:
    """Yields the intervals as boxes, and one line through the estimates."""
    line = ""
    for each in spans:
        left, right = (across(end) for end in each.ends)
        box = f'x="{left:.1f}" y="{up(each.high):.1f}" width="{right - left:.2f}"'
        height = up(each.low) - up(each.high)
        tip = f"<title>{each.name}: {100 * each.share:.3g}%</title>"
        yield f'<rect {box} height="{height:.1f}" fill="{LIGHT}">{tip}</rect>'
        line += f"{'L' if line else 'M'}{left:.1f} {up(each.share):.1f}H{right:.1f}"
    yield f'<path d="{line}" {BLUE_LINE}/>'


def _median(median: Middle, across: Axis) -> Iterator[str]:
    """Yields the median as a dashed line, its interval as a bar above the steps."""
    low, high = across(median.low), across(median.high)
    box = f'x="{low:.1f}" y="{TOP - 12}" width="{max(high - low, 2):.1f}" height="6"'
    yield f'<rect {box} fill="{ORANGE}" fill-opacity="0.5"/>'
    x = across(median.estimate)
    line = f'x1="{x:.1f}" y1="{TOP - 12}" x2="{x:.1f}" y2="{TOP + HEIGHT}"'
    yield f'<line {line} stroke="{ORANGE}" stroke-dasharray="5 4"/>'
    yield words(x, TOP - 18, f"median {short(median.estimate)}", "middle")

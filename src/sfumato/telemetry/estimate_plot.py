# SPDX-License-Identifier: Apache-2.0
"""Draws estimates with their intervals, and the p-values of the hypothesis "no device"."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.show.axes import TOP, Axis, percent, title_of, upright, words
from sfumato.show.palette import BLUE, DASHES, GREY
from sfumato.show.svg import Figure, short, svg_document, ticks, xml_text

_ROW = 22
# Where the labels of values end and estimates begin, and where these end.
_LABELS, _ESTIMATES = 190, 500
# Smaller p-values are drawn as this power of 10.
_LEAST = -12
_CHANCES = Axis((0, _LEAST), (540, 720))
_LETTERS = 28


@dataclass(frozen=True, slots=True)
class Finding:
    """A value with its estimate, its interval and its p-value."""

    label: str
    estimate: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Group:
    """Values, with or without a heading; those with p-values of at most ``level`` are found."""

    findings: Sequence[Finding]
    level: float
    heading: str = ""

    @property
    def rows(self) -> int:
        """The number of rows in the picture."""
        return len(self.findings) + bool(self.heading)


def largest(
    table: pa.Table,
    count: int,
    level: float,
    heading: str = "",
) -> Group:
    """Returns a chart group of the ``count`` values with the largest estimates, the largest first.

    >>> columns = {"value": ["a", "b"], "estimate": [1.0, 9.0], "low": [0.0, 8.0]}
    >>> table = pa.table({**columns, "high": [2.0, 10.0], "p_value": [0.5, 1e-9]})
    >>> [each.label for each in largest(table, 1, 0.05).findings]
    ['b']
    """
    order = table.sort_by([("estimate", "descending")])
    findings = []
    for row in order.slice(0, count).to_pylist():
        label = str(row["value"])
        findings.append(
            Finding(label, row["estimate"], row["low"], row["high"], row["p_value"]),
        )
    return Group(findings, level, heading)


def estimate_chart(title: str, groups: Sequence[Group], confidence: str) -> Figure:
    """Draws a dot with whiskers for each value, and a bar that is longer for smaller p-values.

    The dashed line of a group is its level: bars beyond it are of values that are found, in blue.
    """
    every = [each for group in groups for each in group.findings]
    least = min([0.0, *(each.low for each in every)])
    most = max([least + 1, *(each.high for each in every)])
    marks = ticks(least, most)
    axis = Axis((marks[0], marks[-1]), (_LABELS, _ESTIMATES))
    bottom = TOP + _ROW * sum(group.rows for group in groups)
    parts = [title_of(title, _LABELS), *_grid(axis, marks, bottom)]
    top = float(TOP)
    for group in groups:
        parts += _group(group, axis, top)
        top += _ROW * group.rows
    interval = percent(float(confidence))
    parts.append(words(_LABELS, bottom + 34, f"devices; whiskers: {interval} interval"))
    parts.append(words(_CHANCES(0), bottom + 34, 'p-value of "absent"; blue: found'))
    return Figure(svg_document(bottom + 44, title, "".join(parts)))


def _grid(axis: Axis, marks: Sequence[float], bottom: float) -> Iterator[str]:
    """Yields the vertical lines of estimates and of p-values."""
    for mark in marks:
        yield upright(axis(mark), bottom)
        yield words(axis(mark), bottom + 16, short(mark), "middle")
    for power in range(0, _LEAST - 1, -4):
        name = f"1e{power}" if power else "1"
        yield upright(_CHANCES(power), bottom)
        yield words(_CHANCES(power), bottom + 16, name, "middle")


def _group(group: Group, axis: Axis, top: float) -> Iterator[str]:
    """Yields the heading of a group, its level and its values."""
    if group.heading:
        yield words(_LABELS - 8, top + 15, group.heading[:_LETTERS], "end", "h")
        top += _ROW
    x = _CHANCES(_power(group.level))
    bottom = top + _ROW * len(group.findings)
    yield f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" {DASHES}/>'
    for place, each in enumerate(group.findings):
        colour = BLUE if each.p_value <= group.level else GREY
        middle = top + _ROW * (place + 0.5)
        yield words(_LABELS - 8, middle + 4, each.label[:_LETTERS], "end")
        yield _estimate(each, axis, middle, colour)
        yield _chance(each, middle, colour)


def _estimate(
    each: Finding,
    axis: Axis,
    middle: float,
    colour: str,
) -> str:
    """Returns a dot with whiskers."""
    low, high = axis(each.low), axis(each.high)
    ends = f"M{low:.1f} {middle - 4:.1f}v8M{high:.1f} {middle - 4:.1f}v8"
    tip = f"{each.label}: {each.estimate:,.6g} [{each.low:,.6g}, {each.high:,.6g}]"
    at = f'cx="{axis(each.estimate):.1f}" cy="{middle:.1f}" r="4" fill="{colour}"'
    dot = f"<circle {at}><title>{xml_text(tip)}</title></circle>"
    return f'<path d="{ends}M{low:.1f} {middle:.1f}H{high:.1f}" class="w"/>{dot}'


def _chance(each: Finding, middle: float, colour: str) -> str:
    """Returns a bar that is the longer, the smaller the p-value is."""
    start = _CHANCES(0)
    width = _CHANCES(_power(each.p_value)) - start
    at = f'x="{start:.1f}" y="{middle - 7:.1f}" width="{width:.1f}" height="14"'
    return f'<rect {at} fill="{colour}" rx="2"><title>p-value {each.p_value:.2g}</title></rect>'


def _power(chance: float) -> float:
    """Returns the power of 10 of a probability, as far as it is drawn."""
    return math.log10(min(max(chance, 10.0**_LEAST), 1.0))

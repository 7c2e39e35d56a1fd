# SPDX-License-Identifier: Apache-2.0
"""Draws the noisy counts of one column as SVG, for the report; from released numbers only."""

import math
from collections.abc import Iterator

import numpy as np

from sfumato.noise import Integers
from sfumato.show.bars import Bar, bar_chart
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.merging import has_order
from sfumato.synthetic.quality import said
from sfumato.synthetic.schema import Axis

# The most bars of a column.
_DRAWN = 24
# The standard deviations within which 95% of noise lies.
_NORMAL = 1.96
# From which number on no digit after the point is shown.
_PLAIN = 100


def column_chart(
    base: Base,
    column: int,
) -> str:
    """Returns a bar chart of the noisy counts of a column with their 95% intervals.

    Adjacent cells of an ordered column with many values are added up; of an unordered column, the
    values with the most rows are shown. Counts are cut at 0. Missing values are shown if there are
    any.
    """
    axis, counts = base.schema.axes[column], base.singles[column]
    bars = []
    for label, cells in _groups(base, column):
        count, far = float(counts[cells].sum()), _NORMAL * base.sigma[0] * math.sqrt(len(cells))
        value, low, high = (max(each, 0.0) for each in (count, count - far, count + far))
        bars.append(Bar(label, "noisy count", value, low, high))
    title = axis.name
    if not has_order(axis.kind) and axis.bins > _DRAWN:
        title = f"{axis.name}: {_DRAWN} of {axis.bins:,}"
    rows = "rows" if base.counted is None else "units"
    return bar_chart(title, rows, bars).svg


def _groups(
    base: Base,
    place: int,
) -> Iterator[tuple[str, Integers]]:
    """Yields the label and the cells of each bar."""
    axis = base.schema.axes[place]
    if has_order(axis.kind):
        yield from _neighbours(axis)
    else:
        most = np.argsort(-base.singles[place][: axis.bins], kind="stable")[:_DRAWN]
        shown = np.sort(most)
        for cell, value in zip(shown, axis.values(axis.limits[shown]).to_pylist(), strict=True):
            yield said(value), np.array([cell])
    if base.has_missing(place):
        yield "missing", np.array([axis.bins])


def _neighbours(axis: Axis) -> Iterator[tuple[str, Integers]]:
    """Yields adjacent cells of an ordered column, grouped so that there are few bars."""
    limits = axis.limits
    for cells in np.array_split(np.arange(axis.bins), min(axis.bins, _DRAWN)):
        ends = np.array([limits[cells[0]], limits[cells[-1] + 1] - 1])
        low, high = map(_label, axis.values(ends).to_pylist())
        yield low if low == high else f"{low} to {high}", cells


def _label(value: object) -> str:
    """Formats the end of a bar in few digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= _PLAIN else f"{value:.3g}"
    return said(value)

# SPDX-License-Identifier: Apache-2.0
"""A census as a page: one file of HTML, without scripts, with bars as inline SVG."""

import html

import numpy as np

from sfumato.show import page as show
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import html_table
from sfumato.synopsis.geography.design import Axes
from sfumato.synopsis.geography.estimates import Estimates
from sfumato.synopsis.geography.plan import CensusPlan, rounded
from sfumato.synopsis.geography.quality import HEADER, Quality

# The areas of a level that are shown; the files have all of them.
_SHOWN = 12
_MOST_LINES = 400


def page(estimates: Estimates, quality: Quality, *, account: str, charge: str) -> str:
    """Returns the HTML page: the account, the quality of each table, and the first areas of each
    level.
    """
    plan = estimates.plan
    title = f"Census of {plan.population.table}"
    body = [
        _head(plan, title),
        _account(account, charge),
        _quality(quality),
    ]
    for level in dict.fromkeys(level for level, _ in plan.design.tables):
        body.append(_level(estimates, level))
    return show.page(title, "".join(body))


def _head(plan: CensusPlan, title: str) -> str:
    """Returns the title, and what the numbers are."""
    levels = []
    for name, size in zip(plan.spine.levels, plan.design.tree.sizes, strict=False):
        levels.append(f"{size:,} {name}")
    spine = html.escape(" > ".join(levels))
    return (
        f"<header><h1>{html.escape(title)}</h1><p>{spine}. "
        "Measured once, with exact discrete noise; whole numbers of at least 0, estimated from the "
        "top down. The areas within an area add up to it, cell by cell. No number of the data is "
        "kept exactly."
        "</p></header>"
    )


def _account(account: str, charge: str) -> str:
    """What was charged and what is left."""
    return (
        f"<section><h2>The budget account</h2>{show.text_blocks(account)}"
        f"<p>charge {html.escape(charge)}</p></section>"
    )


def _quality(quality: Quality) -> str:
    """Returns the quality report."""
    table = html_table(list(HEADER), [each.line for each in quality.tables])
    return (
        f"<section><h2>Quality, beside the plan</h2>{table}"
        "<p>Planned: the standard error of a cell by least squares, in rows; exact, and known "
        "before anything was charged. Moved: how far making it whole, non-negative and consistent "
        "moved a cell. Raw, published: the mean absolute error of a cell, by least squares and as "
        "it is published, if what is published were the truth; simulated in "
        f"{quality.runs} runs.</p></section>"
    )


def _level(estimates: Estimates, level: int) -> str:
    """Returns the totals of the first areas of a level as bars, and its tables as numbers."""
    plan = estimates.plan
    name = plan.spine.levels[level]
    size = plan.design.tree.sizes[level]
    parts = [f"<section><h2>{html.escape(name)}</h2>"]
    if size > _SHOWN:
        parts.append(f"<p>The first {_SHOWN} of {size:,} areas; the files have all.</p>")
    parts.append(_bars(estimates, level))
    for at, axes in plan.design.tables:
        if at == level and axes:
            parts.append(_table(estimates, level, axes))
    return "".join([*parts, "</section>"])


def _bars(estimates: Estimates, level: int) -> str:
    """Returns the totals of the first areas with their intervals."""
    plan = estimates.plan
    totals = estimates.published(level, ())[:_SHOWN]
    low, high = estimates.interval(level, ())
    bars = []
    for place, total in enumerate(totals):
        code = plan.spine.codes[level][place]
        bars.append(Bar(code, "rows", float(total), float(low[place]), float(high[place])))
    return bar_chart(f"Total of each {plan.spine.levels[level]}", "rows", bars).svg


def _table(estimates: Estimates, level: int, axes: Axes) -> str:
    """Returns the cells of a table in the first areas."""
    plan = estimates.plan
    table = estimates.published(level, axes)
    low, high = estimates.interval(level, axes)
    header = [
        plan.spine.levels[level],
        *(plan.population.axes[axis].name for axis in axes),
    ]
    body = []
    for place in np.ndindex(*table[:_SHOWN].shape):
        line = [plan.spine.codes[level][place[0]]]
        for axis, cell in zip(axes, place[1:], strict=True):
            line.append(str(plan.population.axes[axis].labels[cell]))
        line.append(f"{int(table[place]):,}")
        line.append(f"[{rounded(float(low[place]))}, {rounded(float(high[place]))}]")
        body.append(line)
    shown = html_table([*header, "estimate", "95% interval"], body[:_MOST_LINES])
    title = html.escape(plan.title(axes))
    return f"<details><summary>{title}</summary>{shown}</details>"

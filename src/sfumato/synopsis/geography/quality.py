# SPDX-License-Identifier: Apache-2.0
"""The quality of a census: planned errors, and simulated errors of the published numbers.

The simulation takes the published estimate as the truth. It uses declarations and released numbers
alone, so it costs nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.noise import Integers
from sfumato.show.render import text_table
from sfumato.synopsis.geography.estimates import Estimates
from sfumato.synopsis.geography.least_squares import by_axes
from sfumato.synopsis.geography.plan import CensusPlan, Split, rounded
from sfumato.synopsis.geography.topdown import TopDown
from sfumato.synopsis.geography.tree import Floats

HEADER = (
    "level",
    "table",
    "cells",
    "share",
    "planned",
    "moved",
    "zeros",
    "raw",
    "published",
)


@dataclass(frozen=True, slots=True)
class TableQuality:
    """The quality of one table.

    ``planned`` is the exact standard error of least squares. ``moved`` is the mean distance of
    published cells from least squares, and ``empty`` the share of published cells that are 0. The
    last two fields are simulated mean absolute errors, of least squares and of the published
    numbers.
    """

    level: str
    table: str
    cells: int
    share: float
    planned: float
    moved: float
    empty: float
    squares: float
    published: float

    @property
    def line(self) -> list[str]:
        """The quality as text, in the order of ``HEADER``."""
        shares = [
            f"{self.share:.1%}",
            rounded(self.planned),
            rounded(self.moved),
        ]
        errors = [
            f"{self.empty:.0%}",
            rounded(self.squares),
            rounded(self.published),
        ]
        return [
            self.level,
            self.table,
            f"{self.cells:,}",
            *shares,
            *errors,
        ]


@dataclass(frozen=True, slots=True)
class Quality:
    """The error of each table of a census: as planned, and as simulated in ``runs`` runs."""

    tables: tuple[TableQuality, ...]
    runs: int

    def __repr__(self) -> str:
        body = [table.line for table in self.tables]
        return (
            f"{text_table(list(HEADER), body)}\n"
            "planned: the standard error of a cell in rows, exact. moved: how far publishing\n"
            "moved a cell. raw, published: mean absolute errors of least squares and of what is "
            f"published,\nsimulated in {self.runs} runs with the published table as the truth"
        )


def quality(estimates: Estimates, *, topdown: TopDown, runs: int) -> Quality:
    """Computes the quality of a census by simulation; see ``Census.quality``.

    Raises:
        WrongUse: fewer than one run.
    """
    if not isinstance(runs, int) or not 1 <= runs <= 1000:
        raise WrongUse(f"runs={shown(runs)}.", allowed="from 1 to 1,000")
    plan = estimates.plan
    split = estimates.split
    raw, published = _simulated(plan, split, estimates.counts, topdown, runs)
    planned = plan.standard_errors(split)
    tables = []
    for place, (level, axes) in enumerate(plan.design.tables):
        whole = estimates.published(level, axes)
        moved = np.abs(whole - estimates.unbiased(level, axes)).mean()
        tables.append(
            TableQuality(
                plan.spine.levels[level],
                plan.title(axes),
                whole.size,
                float(split.shares[place]),
                planned[place],
                float(moved),
                float((whole == 0).mean()),
                raw[place],
                published[place],
            )
        )
    return Quality(tuple(tables), runs)


def _simulated(
    plan: CensusPlan,
    split: Split,
    counts: Sequence[Integers],
    topdown: TopDown,
    runs: int,
) -> tuple[list[float], list[float]]:
    """The mean absolute errors of least squares and of what is published, for each table."""
    raw = np.zeros(len(split.shares))
    published = np.zeros(len(split.shares))
    least = plan.squares(split)
    for _ in range(runs):
        estimates = least.estimates(_measured_again(plan, split, counts))
        whole = topdown.estimates(plan.given_zeros(split, estimates))
        raw += _errors(plan, estimates, counts)
        published += _errors(plan, whole, counts)
    return list(raw / runs), list(published / runs)


def _measured_again(
    plan: CensusPlan, split: Split, counts: Sequence[Integers]
) -> list[Floats | None]:
    """Returns the tables of the published estimate with new noise."""
    task = plan.of(split)
    measured: list[Floats | None] = [None] * len(split.shares)
    for place, mechanism in zip(task.measured, task.mechanisms, strict=True):
        level, axes = plan.design.tables[place]
        table = by_axes(counts[level], plan.design.detail(level), axes)
        noise = mechanism.noise.sample(math.prod(table.shape)).reshape(table.shape)
        measured[place] = table + noise.astype(float) / plan.population.cube.refinement
    return measured


def _errors(
    plan: CensusPlan,
    estimates: Sequence[Floats] | Sequence[Integers],
    counts: Sequence[Integers],
) -> Floats:
    """The mean absolute error of each table of an estimate, the published one being the truth."""
    found = []
    for level, axes in plan.design.tables:
        wrong: Floats = np.subtract(estimates[level], counts[level], dtype=float)
        found.append(np.abs(by_axes(wrong, plan.design.detail(level), axes)).mean())
    return np.array(found)

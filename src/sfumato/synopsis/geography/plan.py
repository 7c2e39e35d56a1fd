# SPDX-License-Identifier: Apache-2.0
"""The plan of a census: tables, splits of the cost, exact errors; from declarations alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, allowance
from sfumato.show.render import number, text_table
from sfumato.synopsis.geography.design import Axes, Design
from sfumato.synopsis.geography.facts import (
    Impossible,
    Totals,
    impossible_cells,
    public_totals,
)
from sfumato.synopsis.geography.impossible import (
    conditioned,
    impossible_in,
)
from sfumato.synopsis.geography.least_squares import (
    LeastSquares,
    PublicTotals,
)
from sfumato.synopsis.geography.population import Population, population
from sfumato.synopsis.geography.spine import Spine
from sfumato.synopsis.geography.split import (
    Objective,
    even,
    least_error,
)
from sfumato.synopsis.geography.task import CensusTask
from sfumato.synopsis.geography.tree import Floats
from sfumato.synopsis.geography.tree_squares import Mask
from sfumato.synopsis.one_table import require_one_table

# The tables of a level: the axes of one, or a list of the axes of several; [] is the total.
Tables: TypeAlias = Mapping[str, Sequence[str] | Sequence[Sequence[str]]]
# More tables than this make planning slow, and each of them nearly unreadable.
_MOST_TABLES = 200
_MOST_AXES = 8


@dataclass(frozen=True, slots=True)
class Split:
    """A split of the cost among the tables, with a name; shares add up to 1, and some may be 0."""

    name: str
    shares: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class CensusPlan:
    """The tables of a census, and ways to split the cost among them with their exact errors, best
    first.
    """

    spine: Spine
    population: Population
    design: Design
    weights: Mapping[str, float]
    allowance: Allowance
    splits: tuple[Split, ...]
    impossible: Mask
    public: PublicTotals
    recodes: Mapping[str, str]

    @property
    def task(self) -> CensusTask:
        """The task that measures with the best split of the cost."""
        return self.of(self.splits[0])

    def of(self, split: Split) -> CensusTask:
        """Returns the task that measures with a given split of the cost."""
        recodes = tuple(sorted(self.recodes.items()))
        place = self.population
        return CensusTask(
            place,
            self.spine,
            self.design,
            split.shares,
            self.allowance,
            recodes,
        )

    def named(self, name: str | None) -> Split:
        """Returns the split of this name, by default the best (WrongUse if there is none)."""
        found = {split.name: split for split in self.splits}
        if name is None:
            return self.splits[0]
        if name not in found:
            raise WrongUse(f"split={shown(name)}.", allowed=", ".join(found))
        return found[name]

    def squares(self, split: Split) -> LeastSquares:
        """Returns the least-squares problem of the census, for the noise of a split of the cost."""
        return LeastSquares(self.design, self.of(split).precisions, self.public)

    def given_zeros(self, split: Split, estimates: list[Floats]) -> list[Floats]:
        """Returns least-squares estimates after conditioning on the declared impossible cells."""
        return conditioned(self.squares(split), estimates, self.impossible)

    def cell_errors(self, split: Split, level: int, axes: Axes) -> Floats:
        """The standard error of each cell of a table by least squares, with a row for each area.

        It is 0 for an impossible cell.
        """
        variances = self.squares(split).variances(level, axes)
        never = impossible_in(self.impossible, axes)
        errors = np.sqrt(variances)
        found: Floats = np.multiply.outer(errors, ~never)
        return found

    def standard_errors(self, split: Split) -> list[float]:
        """Returns, for each table, the root of the mean variance of its cells, in rows; exact.

        It is the error of least squares, before estimates are rounded or made non-negative.
        """
        squares = self.squares(split)
        found = []
        for level, axes in self.design.tables:
            found.append(math.sqrt(float(squares.variances(level, axes).mean())))
        return found

    def title(self, axes: Axes) -> str:
        """Returns the names of a table's axes as text."""
        return " x ".join(self.population.axes[axis].name for axis in axes) or "total"

    @cached_property
    def lines(self) -> list[list[str]]:
        """A line of text for each table, under ``header``."""
        errors = [self.standard_errors(split) for split in self.splits]
        lines = []
        for place, (level, axes) in enumerate(self.design.tables):
            cells = self.design.tree.sizes[level] * self.design.cells(axes)
            share = f"{float(self.splits[0].shares[place]):.1%}"
            margin = reach(self.allowance.norm) * errors[0][place]
            line = [
                self.spine.levels[level],
                self.title(axes),
                f"{cells:,}",
                share,
            ]
            line.append(f"+- {rounded(margin)}")
            line += [rounded(each[place]) for each in errors]
            lines.append(line)
        return lines

    @property
    def header(self) -> list[str]:
        """The header of the table that shows the plan."""
        names = [split.name for split in self.splits]
        return [
            "level",
            "table",
            "cells",
            "share",
            "95% margin",
            *names,
        ]

    def __repr__(self) -> str:
        weights = ", ".join(f"{level} {number(weight)}" for level, weight in self.weights.items())
        return (
            f"{text_table(self.header, self.lines)}\n"
            "share, margin: of the first split. Below the name of each split: the standard error\n"
            "of a cell in rows, by least squares; exact. Published numbers are mostly nearer.\n"
            f"weights of the levels: {weights}\nnothing was charged"
        )


def census_plan(
    dataset: Dataset,
    table: str,
    spine: Spine,
    *,
    tables: Tables,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    recodes: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    zeros: Sequence[Impossible] = (),
    public_totals: Totals | None = None,
) -> CensusPlan:
    """Plans the tables of a census at a cost, from declarations alone; planning is not charged.

    Args and errors are those of ``census``.

    >>> import pyarrow as pa, sfumato as sf
    >>> spine = Spine("state > county", pa.table({"state": ["A", "A", "B"], "county": [1, 2, 3]}))
    >>> columns = {"county": sf.Integer(1, 3), "sex": sf.Category("F", "M")}
    >>> survey = Dataset("survey", {"people": sf.Table("people.csv", columns=columns)})
    >>> planned = census_plan(survey, "people", spine, rho="0.1",
    ...                       tables={"state": ["sex"], "county": []})
    >>> best = planned.splits[0]
    >>> best.name, [round(error, 1) for error in planned.standard_errors(best)]
    ('least error', [2.6, 2.7])
    """
    _require_kinds(spine, recodes, weights)
    require_one_table(table)
    allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
    listed = _tables(spine, tables)
    expressions = dict(recodes or {})
    names = list(dict.fromkeys(name for _, axes in listed for name in axes))
    people = population(dataset, table, spine, names, expressions)
    design = _design(spine, people, listed)
    counted = _weights(spine, design, weights or {})
    return CensusPlan(
        spine,
        people,
        design,
        {spine.levels[level]: weight for level, weight in counted.items()},
        allowed,
        _splits(design, counted, allowed.norm),
        impossible_cells(people.axes, zeros),
        _public(spine, design, public_totals),
        expressions,
    )


def _require_kinds(spine: object, recodes: object, weights: object) -> None:
    """Raises WrongUse for arguments that would fail later or be misunderstood."""
    if not isinstance(spine, Spine):
        raise WrongUse(
            f"spine={shown(spine)}.",
            allowed='sf.synopsis.Spine("nation > state > county", table)',
        )
    if weights is not None and not isinstance(weights, Mapping):
        raise WrongUse(f"weights={shown(weights)}.", allowed='{"county": 2}')
    is_mapping = recodes is None or isinstance(recodes, Mapping)
    texts = recodes.values() if isinstance(recodes, Mapping) else ()
    if not is_mapping or not all(isinstance(text, str) for text in texts):
        raise WrongUse(
            f"recodes={shown(recodes)}.",
            allowed="""{"age_group": "CASE WHEN age < 15 THEN '0-14' ELSE '15+' END"}""",
        )


def reach(norm: Norm, confidence: Number = "0.95") -> float:
    """Returns the number of standard errors that an error exceeds with probability 1 - confidence.

    For Gaussian noise it is the sub-Gaussian bound (Canonne, Kamath, Steinke 2020, corollary 17),
    for Laplace noise Chebyshev's inequality; both are upper bounds.

    >>> round(reach(Norm.L2), 3), round(reach(Norm.L1), 3)
    (2.716, 4.472)
    """
    fraction = to_fraction("confidence", confidence)
    level = positive("confidence", fraction, at_most=1 - Fraction(1, 10**12))
    miss = float(1 - level)
    if norm is Norm.L2:
        return math.sqrt(2 * math.log(2 / miss))
    return 1 / math.sqrt(miss)


def _design(
    spine: Spine,
    people: Population,
    tables: Sequence[tuple[int, tuple[str, ...]]],
) -> Design:
    """Returns the design of tables that are given by the names of their axes."""
    names = [axis.name for axis in people.axes]
    lowest = max(level for level, _ in tables)
    numbered = []
    for level, axes in tables:
        numbered.append((level, tuple(sorted(map(names.index, axes)))))
    sizes = tuple(axis.size for axis in people.axes)
    return Design(spine.tree.upto(lowest), sizes, tuple(numbered))


def rounded(value: float) -> str:
    """Returns a number of rows as text with three significant digits.

    >>> rounded(12345.678), rounded(0.01234), rounded(1e-12)
    ('12,300.0', '0.0123', '0')
    """
    if abs(value) < 1e-6:
        return "0"
    return number(float(f"{value:.3g}"))


def _public(spine: Spine, design: Design, stated: Totals | None) -> PublicTotals:
    return public_totals(spine, design.tree, {} if stated is None else stated)


def _tables(spine: Spine, tables: Tables) -> list[tuple[int, tuple[str, ...]]]:
    """Returns the levels and axes of all tables, level by level, each once.

    Raises:
        WrongUse: no tables, too many, no such level, or axes that are no names.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise WrongUse(
            "A census without tables.",
            allowed='{"state": ["age", "sex"], "county": ["sex"]}',
        )
    listed = []
    for level, wanted in tables.items():
        place = spine.place(level)
        for axes in _listed(level, wanted):
            listed.append((place, axes))
    listed.sort(key=lambda each: each[0])
    if not listed or len(listed) > _MOST_TABLES:
        raise WrongUse(f"{len(listed)} tables.", allowed=f"from 1 to {_MOST_TABLES}")
    distinct = {(level, frozenset(axes)): axes for level, axes in listed}
    if len({name for axes in distinct.values() for name in axes}) > _MOST_AXES:
        raise WrongUse(
            "A census by many axes.",
            allowed=f"at most {_MOST_AXES} in all tables",
        )
    return [(level, axes) for (level, _), axes in distinct.items()]


def _listed(level: str, wanted: object) -> list[tuple[str, ...]]:
    """Returns the axes of each table of a level."""
    allowed = '["age", "sex"] for one table, [["age", "sex"], ["race"], []] for several'
    if not isinstance(wanted, list | tuple):
        raise WrongUse(
            f"The tables of {level!r}: {shown(wanted)}.",
            allowed=allowed,
        )
    several = [wanted] if all(isinstance(each, str) for each in wanted) else list(wanted)
    tables_of_level = []
    for axes in several:
        is_listed = isinstance(axes, list | tuple)
        if not is_listed or not all(isinstance(name, str) for name in axes):
            raise WrongUse(
                f"A table of {level!r} that is {shown(axes)}.",
                allowed=allowed,
            )
        if len(set(axes)) < len(axes):
            raise WrongUse(
                f"A table of {level!r} with an axis twice.",
                allowed="each axis once",
            )
        tables_of_level.append(tuple(axes))
    return tables_of_level


def _weights(spine: Spine, design: Design, stated: Mapping[str, float]) -> dict[int, float]:
    """What each level with tables counts; 1 unless it is stated."""
    levels = list(dict.fromkeys(level for level, _ in design.tables))
    weights = dict.fromkeys(levels, 1.0)
    for name, weight in stated.items():
        level = spine.place(name)
        if level not in weights:
            raise WrongUse(f"A weight of {name!r}, which has no table.")
        if not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise WrongUse(
                f"The weight {shown(weight)} of {name!r}.",
                allowed="above 0",
            )
        weights[level] = float(weight)
    return weights


def _splits(design: Design, weights: Mapping[int, float], norm: Norm) -> tuple[Split, ...]:
    """Returns the ways to split the cost, that of least error first."""
    each = []
    for level, _ in design.tables:
        beside = sum(other == level for other, _ in design.tables)
        each.append(weights[level] / beside)
    objective = Objective(design, tuple(each), norm)
    count = len(design.tables)
    tried = [
        Split("least error", least_error(objective)),
        Split("even by level", even(design)),
        Split("even by table", (Fraction(1, count),) * count),
    ]
    lowest = design.tree.levels - 1
    alone = [int(level == lowest) for level, _ in design.tables]
    tried.append(
        Split(
            "lowest level alone",
            tuple(Fraction(one, sum(alone)) for one in alone),
        )
    )
    errors = {}
    for split in tried:
        errors[split.name] = objective.error(np.array([float(share) for share in split.shares]))
    kept: list[Split] = []
    for split in tried:
        is_new = split.shares not in [each.shares for each in kept]
        if is_new and errors[split.name] < math.inf:
            kept.append(split)
    return tuple(sorted(kept, key=lambda split: errors[split.name]))

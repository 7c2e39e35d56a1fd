# SPDX-License-Identifier: Apache-2.0
"""A synopsis of several columns: the plan that compares layouts, and the measured ``Tables``.

``measure.plan`` and ``measure.measure`` return these for workloads of several columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from sfumato.errors import UnknownName, UnsupportedSql, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.plan.value import GroupKey
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance
from sfumato.query.marginals import marginal_cube
from sfumato.query.task import Stored
from sfumato.show.render import number, text_table
from sfumato.show.svg import Figure
from sfumato.synopsis.accuracy import Spread, bound, reach_of, require_confidence
from sfumato.synopsis.cell_query import Weights, cell_query, listed, weights_of
from sfumato.synopsis.document import document
from sfumato.synopsis.estimate import Estimate, miss_of
from sfumato.synopsis.grid import Grid
from sfumato.synopsis.grid_task import GridTask, fits
from sfumato.synopsis.layout import Layout, layouts
from sfumato.synopsis.measurement import cost_text
from sfumato.synopsis.plot import STEPS, TILES, Groups, bands, heat_map
from sfumato.synopsis.solution import Solution
from sfumato.synopsis.wanted import Wanted

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class TablesPlan:
    """The strategies for a workload over several columns with their errors, best first; costs no
    budget.

    The error of a strategy is the root of the mean over the workload's terms of the mean squared
    error of their queries, in rows. It is exact if its blocks divide the cells evenly, and an upper
    bound otherwise.

    >>> import sfumato as sf
    >>> columns = {"age": sf.Integer(0, 63), "sex": sf.Category("F", "M")}
    >>> people = Dataset("survey", {"people": sf.Table("people.csv", columns=columns)})
    >>> planned = sf.synopsis.plan(people, "people", sf.synopsis.cells("age", "sex"), rho="0.5")
    >>> round(planned.error(planned.candidates[0]), 2)
    1.0
    """

    table: str
    wanted: Wanted
    cube: BoundedCube
    allowance: Allowance
    candidates: tuple[Layout, ...]

    @property
    def task(self) -> GridTask:
        """The task that measures the best strategy."""
        return self.of(self.candidates[0])

    def of(self, layout: Layout) -> GridTask:
        """Returns the task that measures with a given strategy; raises WrongUse if it has too many
        integers.
        """
        try:
            return GridTask(self.table, self.cube, layout, self.allowance)
        except WrongUse as error:
            fitting = [one.name for one in self.candidates if fits(one)]
            if fits(layout) or not fitting:
                raise
            remedy = f"strategy={fitting[0]!r} is the best of those that are small enough."
            raise WrongUse(error.problem, allowed=error.allowed, remedy=remedy) from None

    def error(
        self,
        layout: Layout | None = None,
        confidence: Number | None = None,
        *,
        over: Number = 1,
    ) -> float:
        """Returns the expected error of a strategy, by default the best, or an error bound.

        The expected error is that of continuous noise; discrete noise has a little less. With a
        ``confidence``, returns a bound within which all queries of the workload are with this
        probability; with ``over``, at least this share of them (``accuracy``).
        """
        found = self.candidates[0] if layout is None else layout
        require_confidence(confidence, over)
        if confidence is None:
            return math.sqrt(self._squared(found)) / self.cube.refinement
        task = self.of(found)
        return bound(self._spread(task), reach_of(task), confidence, over) / self.cube.refinement

    def worst(self, layout: Layout | None = None) -> float:
        """Returns an upper bound of the standard error of every query of the workload, in rows."""
        task = self.of(self.candidates[0] if layout is None else layout)
        return math.sqrt(self._spread(task).worst) / self.cube.refinement

    def _spread(self, task: GridTask) -> Spread:
        grid = task.layout.grid
        queries, worst = extremes(self.wanted, grid, self.cube.cube.axes, task.precisions)
        return Spread(self._squared(task.layout), worst, queries)

    def _squared(self, layout: Layout) -> float:
        """Returns the mean squared error of a strategy, in squared steps."""
        amount = float(self.allowance.amount)
        if self.allowance.norm is Norm.L2:
            return layout.factor * float(self.cube.l2.value) / (2 * amount)
        return layout.factor * 2 * float(self.cube.l1.value) ** 2 / amount**2

    def __repr__(self) -> str:
        body = []
        for layout in self.candidates:
            error = f"+- {number(self.error(layout))}"
            body.append([layout.name, f"{len(layout.shares):,}", error])
        header = ["strategy", "layers", "expected error"]
        return f"{text_table(header, body)}\n{cost_text(self.allowance)}"


def extremes(
    wanted: Wanted, grid: Grid, axes: Sequence[GroupKey], precisions: Sequence[float]
) -> tuple[int, float]:
    """Returns the number of queries of a workload, and an upper bound of their variances."""
    known, queries, worst = grid.information(precisions), 0, 0.0
    places = {key.value.name: place for place, key in enumerate(axes)}
    for term in wanted.terms:
        number, largest = 1, {}
        for name, kind in term.factors:
            workload = kind(len(axes[places[name]].codes or ()))
            number *= workload.queries
            largest[places[name]] = grid.chains[places[name]].largest(workload)
        queries += number
        worst = max(worst, grid.variance(largest, known))
    return queries, worst


def plan_tables(dataset: Dataset, table: str, wanted: Wanted, allowed: Allowance) -> TablesPlan:
    """Returns the candidate strategies for a workload over several columns, compared at a cost
    (``allowed``).

    Raises:
        UnknownName, MissingDeclaration, WrongUse: as ``session.marginals``.
    """
    cube = marginal_cube(dataset, table, [wanted.names])
    sizes = {}
    for key in cube.cube.axes:
        values = len(key.codes or ())
        sizes[key.value.name] = values, values + 1
    found = layouts(wanted, sizes, allowed.norm)
    return TablesPlan(table, wanted, cube, allowed, tuple(found))


class Tables:
    """The noisy measurements of several columns; answers computed from them cost no budget.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> columns = {"age": sf.Integer(0, 63), "sex": sf.Category("F", "M")}
    >>> rows = pa.table({"age": [30, 40, 40], "sex": ["F", "F", "M"]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": sf.Table(rows, columns=columns)}, dataset="tiny",
    ...                 budget=sf.Budget(10**5), ledger=folder.name + "/l.db") as session:
    ...     both = sf.synopsis.cells("age", "sex")
    ...     found = sf.synopsis.measure(session, "people", both, epsilon=50_000)
    >>> round(found.answer("age > 35 AND sex = 'F'").value)
    1
    >>> folder.cleanup()

    Attributes:
        plan: the workload, and the strategies that were compared.
        task: the strategy that was measured, and its cost.
        stored: the stored integers, and the id of the charge.
    """

    def __init__(self, plan: TablesPlan, task: GridTask, dataset: Dataset, stored: Stored) -> None:
        self.plan = plan
        self.task = task
        self.stored = stored
        self._dataset = dataset

    @property
    def axes(self) -> tuple[GroupKey, ...]:
        """The columns, each with a cell for every declared value and a cell for missing values."""
        return self.task.plan.cube.axes

    def answer(self, where: str = "TRUE", confidence: Number = "0.95") -> Estimate:
        """Returns the estimated number of rows that pass an SQL test, with an interval.

        The test is one or more tests of one column each, joined by AND. The interval holds the
        bounded count with at least this probability.

        Raises:
            UnsupportedSql: a test of another column or of two at once, or a combination of columns
                that no layer has.
        """
        return self.answers([where], confidence)[0]

    def answers(self, wheres: Sequence[str], confidence: Number = "0.95") -> list[Estimate]:
        """Returns an estimate of the number of rows that pass each test; each interval holds by
        itself.

        Raises:
            As ``answer``.
        """
        names = self.task.plan.cube.names
        tests = [
            weights_of(where, self._dataset, self.task.table, names) for where in listed(wheres)
        ]
        return self._estimates(tests, miss_of(confidence))

    def error(self, confidence: Number = "0.95", *, over: Number = 1) -> float:
        """Returns an error bound for the queries of the workload, in rows, with the given
        confidence.

        ``over`` is the share of the queries that stay within the bound, for example "0.99".
        """
        return self.plan.error(self.task.layout, confidence, over=over)

    def to_json(self) -> str:
        """Returns the synopsis as JSON, with its cost and charge id; ``from_json`` reads it."""
        return document(self.task, self.plan.wanted, self._dataset, self.stored)

    def query(self, sql: str, confidence: Number = "0.95") -> "pyarrow.Table":
        """The groups of ``SELECT keys, COUNT(*) AS n FROM ... WHERE ... GROUP BY keys``, as Arrow.

        Beside COUNT(*) it knows COUNT(x), and SUM(x) of whole numbers. The columns are those of the
        statement; beside a count ``n`` its standard error ``n_error``, and ``n_low`` and
        ``n_high``. Every declared combination of values is a group, as in ``session.query``.

        Raises:
            UnsupportedSql: what cannot be answered from the layers, by name.
        """
        import pyarrow

        miss = miss_of(confidence)
        read = cell_query(sql, self._dataset, self.task.table, self.task.plan.cube.names)
        columns = read.columns(lambda asked: self._estimates(asked, miss))
        return pyarrow.table(columns)

    def plot(self, column: str, by: str | None = None) -> Figure:
        """Draws the counts of a column with their intervals, or a heat map of two columns.

        For many values, counts of ranges are drawn.

        Raises:
            UnknownName: no such column.
            UnsupportedSql: no layer has both.
        """
        names = [column] if by is None else [column, by]
        axes = {key.value.name: key for key in self.axes}
        if column == by:
            raise WrongUse(f"A map of {shown(column)} by itself.", allowed="two columns")
        for name in names:
            if name not in axes:
                raise UnknownName(f"No column {shown(name)}.", allowed=", ".join(axes))
        most = STEPS if by is None else TILES
        groups = [Groups.of(axes[name], most) for name in names]
        every = product(*(each.queries for each in groups))
        asked = [dict(zip(names, cells, strict=True)) for cells in every]
        rows = self._estimates(asked, miss_of("0.95"))
        if by is None:
            return bands(f"{self.task.table} by {column}", "rows", groups[0].names, rows)
        wide = len(groups[1].names)
        table = [rows[first : first + wide] for first in range(0, len(rows), wide)]
        title = f"{self.task.table} by {column} and {by}"
        return heat_map(title, (column, by), (groups[0].names, groups[1].names), table)

    def __repr__(self) -> str:
        (total,) = self._estimates([{}], miss_of("0.95"))
        names = ", ".join(key.value.name for key in self.axes[:8])
        more = ", ..." if len(self.axes) > 8 else ""
        return (
            f"Tables of {names}{more} in {self.task.table!r}: {self.task.layout.name}, "
            f"{len(self.task.cells):,} layers; {total} rows\ncharge {self.stored.charge[:12]}"
        )

    @cached_property
    def _solution(self) -> Solution:
        grid, precisions = self.task.layout.grid, self.task.precisions
        scores = grid.scores(self.task.noisy(self.stored.body), precisions)
        return Solution(grid, grid.information(precisions), scores)

    @cached_property
    def _reach(self) -> Callable[[float, float], float]:
        return reach_of(self.task)

    def _estimates(self, queries: Sequence[Weights], miss: float) -> list[Estimate]:
        """The estimates of sums over cells; each interval misses with at most a probability."""
        names, refinement = self.task.plan.cube.names, self.task.plan.refinement
        places = {name: place for place, name in enumerate(names)}
        factors = []
        for weights in queries:
            factors.append({places[name]: cells for name, cells in weights.items()})
        estimates = []
        for weights, (value, variance) in zip(
            queries, self._solution.estimates(factors), strict=True
        ):
            if math.isinf(variance):
                raise UnsupportedSql(
                    f"No layer of this synopsis has {', '.join(sorted(weights))} together.",
                    remedy="Measure a synopsis whose workload has them, or ask with session.query.",
                )
            far = self._reach(variance, miss)
            estimates.append(Estimate.within(value, math.sqrt(variance), far, refinement))
        return estimates

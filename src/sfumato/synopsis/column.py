# SPDX-License-Identifier: Apache-2.0
"""A synopsis of one column: the plan that compares strategies, and the measured ``Synopsis``.

``measure.plan`` and ``measure.measure`` return these. All that a ``Synopsis`` computes from its
stored integers is post-processing, and costs no budget.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import UnsupportedSql, shown
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
from sfumato.synopsis.bound import least_factor
from sfumato.synopsis.cell_query import Weights, cell_query, listed, weights_of
from sfumato.synopsis.dense import DenseLayer
from sfumato.synopsis.document import document
from sfumato.synopsis.estimate import (
    Estimate,
    gaussian_reach,
    laplace_reach,
    miss_of,
    noise_width,
)
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.measurement import LayersTask, cost_text
from sfumato.synopsis.plot import STEPS, Groups, Strip, bands, layers, values_of
from sfumato.synopsis.strategy import Strategy, strategies
from sfumato.synopsis.wanted import Kind, Term, Wanted
from sfumato.synopsis.workload import Floats

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class Plan:
    """The strategies for the queries of one column with their expected errors, best first; costs no
    budget.

    The error is the root of the mean squared error over the queries, in rows. It is exact if the
    blocks of the strategy divide the cells evenly, and an upper bound otherwise.
    """

    table: str
    axis: str
    kind: Kind
    cube: BoundedCube
    allowance: Allowance
    candidates: tuple[Strategy, ...]

    @property
    def task(self) -> LayersTask:
        """The task that measures the column with the best strategy."""
        return self.of(self.candidates[0])

    def of(self, strategy: Strategy) -> LayersTask:
        """Returns the task that measures with a given strategy."""
        return LayersTask(self.table, self.axis, self.cube, strategy, self.allowance)

    def error(
        self,
        strategy: Strategy | None = None,
        confidence: Number | None = None,
        *,
        over: Number = 1,
    ) -> float:
        """Returns the expected error of a strategy, by default the best; or a bound.

        With a ``confidence``, all queries of the workload are within the bound with at least this
        probability; with ``over``, at least this share of them is (``accuracy``).
        """
        task = self.of(self.candidates[0] if strategy is None else strategy)
        spread = self._spread(task)
        require_confidence(confidence, over)
        if confidence is None:
            return math.sqrt(spread.mean) / self.cube.refinement
        return bound(spread, reach_of(task), confidence, over) / self.cube.refinement

    def worst(self, strategy: Strategy | None = None) -> float:
        """Returns an upper bound of the standard error of every query of the workload, in rows."""
        task = self.of(self.candidates[0] if strategy is None else strategy)
        return math.sqrt(self._spread(task).worst) / self.cube.refinement

    def _spread(self, task: LayersTask) -> Spread:
        stack = task.strategy.stack
        workload = self.kind(stack.cells)
        mean = stack.error(workload, task.precisions)
        return Spread(mean, stack.worst(workload, task.precisions), workload.queries)

    @property
    def least(self) -> float | None:
        """A lower bound of the error of every linear strategy, in rows.

        None for more than 2,048 values, and where units are replaced: then the bound is not proved.
        Discrete noise has a little less variance than the continuous noise of the bound.
        """
        factor = least_factor(self.kind(self.candidates[0].stack.cells))
        if factor is None or self.cube.l1.value**2 != self.cube.l2.value:
            return None
        amount = float(self.allowance.amount)
        if self.allowance.norm is Norm.L2:
            squared = factor * float(self.cube.l2.value) / (2 * amount)
        else:
            squared = factor * 2 * float(self.cube.l1.value) ** 2 / amount**2
        return math.sqrt(squared) / self.cube.refinement

    def plot(self, strategy: Strategy | None = None) -> Figure:
        """Draws the layers of a strategy, by default of the best."""
        chosen = self.candidates[0] if strategy is None else strategy
        stacked: Sequence[Layer | DenseLayer] = chosen.stack.layers
        strips = []
        for layer, share in zip(stacked, chosen.shares, strict=True):
            blocks, cells = layer.size(chosen.stack.cells), chosen.stack.cells
            if isinstance(layer, DenseLayer):
                strips.append(Strip("weighted sums", cells / blocks, blocks, cells, float(share)))
            else:
                name = f"blocks of {layer.width:,}"
                strip = Strip(name, layer.width, blocks, cells, float(share), layer.halves)
                strips.append(strip)
        title = f"{chosen.name} over {chosen.stack.cells:,} values of {self.axis}"
        return layers(title, strips)

    def __repr__(self) -> str:
        body = []
        for strategy in self.candidates:
            widths = ", ".join(str(layer.width) for layer in strategy.stack.layers)
            body.append([strategy.name, widths, f"+- {number(self.error(strategy))}"])
        header = ["strategy", "blocks of", "expected error"]
        lines = [text_table(header, body)]
        if self.least is not None:
            lines.append(f"no linear strategy is below +- {number(self.least)}")
        return "\n".join([*lines, cost_text(self.allowance)])


def plan_column(dataset: Dataset, table: str, axis: str, kind: Kind, allowed: Allowance) -> Plan:
    """Returns the candidate strategies for the queries of one column, compared at a cost
    (``allowed``).

    Raises:
        UnknownName, MissingDeclaration, WrongUse: as ``session.marginals``.

    >>> import sfumato as sf
    >>> from sfumato.query.allowance import allowance
    >>> from sfumato.synopsis.workload import Ranges
    >>> people = sf.Table("people.csv", columns={"age": sf.Integer(0, 127)})
    >>> survey = Dataset("survey", {"people": people})
    >>> best, *_ = plan_column(survey, "people", "age", Ranges, allowance(rho="0.01")).candidates
    >>> best.name
    'tree of 2'
    """
    cube = marginal_cube(dataset, table, [[axis]])
    (key,) = cube.cube.axes
    size = len(key.codes or ())
    times = 1
    if cube.l2.value:
        times = math.ceil(cube.l1.value**2 / cube.l2.value)
    found = strategies(kind(size), allowed.norm, halves_cost=times)
    return Plan(table, axis, kind, cube, allowed, found)


class Synopsis:
    """The noisy measurements of one column; answers computed from them cost no budget.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40, 40]}), columns={"age": sf.Integer(0, 63)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10**5),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     found = sf.synopsis.measure(
    ...         session, "people", sf.synopsis.ranges("age"), epsilon=50_000
    ...     )
    >>> round(found.answer("age BETWEEN 35 AND 45").value)
    2
    >>> folder.cleanup()

    Attributes:
        plan: the workload, and the strategies that were compared.
        task: the strategy that was measured, and its cost.
        stored: the stored integers, and the id of the charge.
    """

    def __init__(self, plan: Plan, task: LayersTask, dataset: Dataset, stored: Stored) -> None:
        self.plan = plan
        self.task = task
        self.stored = stored
        self._dataset = dataset

    @property
    def axis(self) -> GroupKey:
        """The column, with one cell for each of its declared values."""
        (key,) = self.task.plan.cube.axes
        return key

    @cached_property
    def counts(self) -> Floats:
        """The estimated number of rows of each declared value: least squares over all layers."""
        noisy = self.task.noisy(self.stored.body)
        estimate = self.task.strategy.stack.estimate(noisy, self.task.precisions)
        return estimate / self.task.plan.refinement

    def answer(self, where: str, confidence: Number = "0.95") -> Estimate:
        """Returns the estimated number of rows that pass an SQL test, with an interval.

        The interval holds the bounded count with at least this probability.

        Raises:
            UnsupportedSql: a test of another column, one that SQL does not allow, or one that rows
                without a value pass: this synopsis does not have them.
        """
        test = weights_of(where, self._dataset, self.task.table, [self.axis.value.name])
        return self._estimates([test], where, miss_of(confidence))[0]

    def answers(self, wheres: Sequence[str], confidence: Number = "0.95") -> list[Estimate]:
        """Returns an estimate of the number of rows that pass each test; each interval holds by
        itself.

        Raises:
            As ``answer``.
        """
        return [self.answer(where, confidence) for where in listed(wheres)]

    def query(self, sql: str, confidence: Number = "0.95") -> "pyarrow.Table":
        """The groups of ``SELECT keys, COUNT(*) AS n FROM ... WHERE ... GROUP BY keys``, as Arrow.

        As ``Tables.query``, of this column alone.

        Raises:
            UnsupportedSql: what cannot be answered from the layers, by name.
        """
        import pyarrow

        miss = miss_of(confidence)
        read = cell_query(sql, self._dataset, self.task.table, [self.axis.value.name])
        return pyarrow.table(read.columns(lambda asked: self._estimates(asked, sql, miss)))

    def error(self, confidence: Number = "0.95", *, over: Number = 1) -> float:
        """Returns an error bound for the queries of the workload, in rows, with the given
        confidence.

        ``over`` is the share of the queries that stay within the bound, for example "0.99".
        """
        return self.plan.error(self.task.strategy, confidence, over=over)

    def to_json(self) -> str:
        """Returns the synopsis as JSON, with its cost and charge id; ``from_json`` reads it."""
        wanted = Wanted((Term(((self.plan.axis, self.plan.kind),)),))
        return document(self.task, wanted, self._dataset, self.stored)

    def reconstruct(self, *, nonnegative: bool = True, integer: bool = True) -> Floats:
        """Returns counts that are non-negative integers with about the same total, for histograms.

        Sums of them are biased where counts are small: use ``answer`` for numbers.
        """
        counts = self.counts
        if nonnegative:
            counts = _nonnegative(counts)
        if integer:
            return _whole(counts)
        return counts

    def to_arrow(self) -> "pyarrow.Table":
        """Returns a table with a row for each declared value: its count and its standard error."""
        import pyarrow

        codes = self.axis.codes or ()
        values = values_of(self.axis)
        error = self._deviation(np.eye(1, len(codes)).ravel())
        errors = np.full(len(codes), error)
        names = self.axis.value.name, "n", "n_error"
        columns = [pyarrow.array(values), pyarrow.array(self.counts), pyarrow.array(errors)]
        return pyarrow.table(dict(zip(names, columns, strict=True)))

    def plot(self) -> Figure:
        """Draws the counts of the values with their intervals; of many values, counts of ranges."""
        groups = Groups.of(self.axis, STEPS)
        rows = []
        for query in groups.queries:
            rows.append(self._estimate(query[:-1], miss_of("0.95")))
        name = self.axis.value.name
        return bands(f"{self.task.table} by {name}", "rows", groups.names, rows)

    def __repr__(self) -> str:
        total = self._estimate(np.ones(len(self.counts)), miss_of("0.95"))
        name = self.axis.value.name
        layers = len(self.task.cells)
        return (
            f"Synopsis of {name!r} in {self.task.table!r}: {self.task.strategy.name}, "
            f"{layers} layers; {total} rows with a value\ncharge {self.stored.charge[:12]}"
        )

    def _estimate(self, query: Floats, miss: float) -> Estimate:
        value = float(query @ self.counts)
        far = self._reach(query, miss)
        return Estimate(value, self._deviation(query), value - far, value + far)

    def _deviation(self, query: Floats) -> float:
        """Returns the standard deviation of the estimate of a query, in rows; an upper bound."""
        variance = self.task.strategy.stack.variance(query, self.task.precisions)
        return math.sqrt(variance) / self.task.plan.refinement

    def _reach(self, query: Floats, miss: float) -> float:
        """A bound on the error of a query that is exceeded with probability at most ``miss``."""
        tail = math.log(2 / miss)
        coefficients = self.task.strategy.stack.coefficients(query, self.task.precisions)
        scaled = []
        for counted, mechanism in zip(coefficients, self.task.mechanisms, strict=True):
            scaled.append(np.abs(counted) * noise_width(mechanism.noise))
        weights = np.concatenate(scaled)
        squared = float((weights**2).sum())
        if self.task.allowance.norm is Norm.L2:
            return gaussian_reach(squared, tail) / self.task.plan.refinement
        return laplace_reach(squared, float(weights.max()), tail) / self.task.plan.refinement

    def _estimates(self, queries: Sequence[Weights], sql: str, miss: float) -> list[Estimate]:
        """Returns the estimates of sums over the declared values."""
        found = []
        for weights in queries:
            cells = weights.get(self.axis.value.name)
            if cells is not None and len(queries) > 1 and cells[-1] and not cells[:-1].any():
                # the group of missing values, beside those that are known
                found.append(_UNKNOWN)
                continue
            if cells is None or cells[-1]:
                name = self.axis.value.name
                raise UnsupportedSql(
                    f"{shown(sql)} counts rows without a value of {shown(name)}, "
                    "which are not in this synopsis.",
                    allowed=f"{name} IS NOT NULL, or another test of it",
                    remedy=f"Measure a synopsis of {name} and another column: it has them.",
                )
            found.append(self._estimate(cells[:-1], miss))
        return found


# The number of rows without a value, which the layers of one column do not count.
_UNKNOWN = Estimate(math.nan, math.inf, 0.0, math.inf)


def _nonnegative(counts: Floats) -> Floats:
    """Returns the nearest counts of at least 0 with the same total, by a common shift; or all 0."""
    total = max(float(counts.sum()), 0.0)
    ordered = np.sort(counts)[::-1]
    over = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    kept = int(np.flatnonzero(ordered > over)[-1]) if (ordered > over).any() else 0
    moved: Floats = np.maximum(counts - over[kept], 0.0)
    return moved


def _whole(counts: Floats) -> Floats:
    """Whole counts with the rounded total, by largest remainders."""
    floors = np.floor(counts)
    rest = round(float((counts - floors).sum()))
    raised = np.argsort(floors - counts, kind="stable")[:rest]
    floors[raised] += 1
    return floors

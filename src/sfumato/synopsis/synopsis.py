# SPDX-License-Identifier: Apache-2.0
"""A synopsis of one column: measured once, it answers every question about the column.

``plan`` compares strategies and is free; ``measure`` charges one; what a ``Synopsis`` computes from
the stored integers is post-processing, and free.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import UnsupportedSql, WrongUse, shown
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.metadata.column import Text
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.plan.cube import BoundedCube
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import predicates
from sfumato.plan.scalar import Field, Leaf, Scalar, leaves
from sfumato.plan.value import GroupKey
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.marginals import marginal_cube
from sfumato.query.render import number, text_table
from sfumato.query.session import Session
from sfumato.query.task import Stored
from sfumato.sql.lower import understand
from sfumato.synopsis.measurement import LayersTask
from sfumato.synopsis.strategy import Strategy, strategies
from sfumato.synopsis.workload import Cells, Floats, Prefixes, Ranges, Workload

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class Wanted:
    """The queries that a synopsis is wanted for: a column, and a kind of workload over it."""

    axis: str
    kind: Callable[[int], Workload]


def ranges(axis: str) -> Wanted:
    """Every range of the values of a column: ages 20 to 29, incomes up to 50,000."""
    return Wanted(axis, Ranges)


def prefixes(axis: str) -> Wanted:
    """Every range from the least value: cumulative counts, quantiles."""
    return Wanted(axis, Prefixes)


def cells(axis: str) -> Wanted:
    """Every value by itself: a histogram."""
    return Wanted(axis, Cells)


@dataclass(frozen=True, slots=True)
class Plan:
    """The strategies for a synopsis, the best first, with their exact expected error; free.

    The error is the root of the mean squared error over the queries, in rows. It is exact if the
    blocks of the strategy fill the cells, and else at most that.
    """

    table: str
    wanted: Wanted
    cube: BoundedCube
    allowance: Allowance
    candidates: tuple[Strategy, ...]

    @property
    def task(self) -> LayersTask:
        """The task that measures the best strategy."""
        return self.of(self.candidates[0])

    def of(self, strategy: Strategy) -> LayersTask:
        """The task that measures a strategy."""
        return LayersTask(self.table, self.wanted.axis, self.cube, strategy, self.allowance)

    def error(self, strategy: Strategy) -> float:
        """The expected error of a strategy."""
        workload = self.wanted.kind(strategy.stack.cells)
        squared = strategy.stack.error(workload, self.of(strategy).precisions)
        return math.sqrt(squared) / self.cube.refinement

    def __repr__(self) -> str:
        body = []
        for strategy in self.candidates:
            widths = ", ".join(str(layer.width) for layer in strategy.stack.layers)
            body.append([strategy.name, widths, f"+- {number(self.error(strategy))}"])
        header = ["strategy", "blocks of", "expected error"]
        return f"{text_table(header, body)}\nnothing was charged"


def plan(
    dataset: Dataset,
    table: str,
    wanted: Wanted,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
) -> Plan:
    """Compares the strategies for a workload at a cost, from declarations alone.

    Raises:
        UnknownName, MissingDeclaration, WrongUse: as ``session.marginals``.

    >>> import sfumato as sf
    >>> people = sf.Table("people.csv", columns={"age": sf.Integer(0, 127)})
    >>> survey = Dataset("survey", {"people": people})
    >>> best, *_ = plan(survey, "people", ranges("age"), rho="0.01").candidates
    >>> best.name
    'tree of 2'
    """
    allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
    cube = marginal_cube(dataset, table, [[wanted.axis]])
    (key,) = cube.cube.axes
    size = len(key.codes or ())
    times = 1
    if cube.l2.value:
        times = math.ceil(cube.l1.value**2 / cube.l2.value)
    found = strategies(wanted.kind(size), allowed.norm, halves_cost=times)
    return Plan(table, wanted, cube, allowed, tuple(found))


def measure(
    session: Session,
    table: str,
    wanted: Wanted,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    strategy: str | None = None,
) -> "Synopsis":
    """Measures the best strategy for a workload, charged once; all answers are free.

    ``strategy`` names another one of ``plan(...).candidates``.

    Raises:
        As ``plan`` and ``Session.ask``.
    """
    planned = plan(session.dataset, table, wanted, epsilon=epsilon, rho=rho, delta=delta)
    task = planned.task
    if strategy is not None:
        named = {each.name: each for each in planned.candidates}
        if strategy not in named:
            raise WrongUse(f"strategy={shown(strategy)}.", allowed=", ".join(named))
        task = planned.of(named[strategy])
    return Synopsis(task, session.dataset, session.ask(task))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a query, in rows, with its standard error and its interval.

    >>> Estimate(1203.5, 10.2, 1183, 1224)
    1,203.50 [1,183, 1,224]
    """

    value: float
    standard_error: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


class Synopsis:
    """The noisy layers of one column, and every answer that they give; all of it is free.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40, 40]}), columns={"age": sf.Integer(0, 63)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10**5),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     found = measure(session, "people", ranges("age"), epsilon=50_000)
    >>> round(found.answer("age BETWEEN 35 AND 45").value)
    2
    >>> folder.cleanup()

    Attributes:
        task: the strategy that was measured, and its cost.
        stored: the stored integers, and the id of the charge.
    """

    def __init__(self, task: LayersTask, dataset: Dataset, stored: Stored) -> None:
        self.task = task
        self.stored = stored
        self._dataset = dataset

    @property
    def axis(self) -> GroupKey:
        """The column, with a cell for each of its declared values."""
        (key,) = self.task.plan.cube.axes
        return key

    @cached_property
    def counts(self) -> Floats:
        """The estimated number of rows of each declared value: least squares over all layers."""
        noisy = self.task.noisy(self.stored.body)
        estimate = self.task.strategy.stack.estimate(noisy, self.task.precisions)
        return estimate / self.task.plan.refinement

    def answer(self, where: str, confidence: Number = "0.95") -> Estimate:
        """The number of rows that pass a test of SQL on the column, with an interval.

        The interval holds the bounded count with at least this probability.

        Raises:
            UnsupportedSql: a test of another column, or one that SQL does not allow.
        """
        return self._estimate(self._query(where), confidence)

    def reconstruct(self, *, nonnegative: bool = True, integer: bool = True) -> Floats:
        """The counts as a plausible table: not below 0, whole, with about the same total.

        It is what a histogram shows. Ranges of it are biased where counts are small: use ``answer``
        for numbers.
        """
        counts = self.counts
        if nonnegative:
            counts = _nonnegative(counts)
        if integer:
            return _whole(counts)
        return counts

    def to_arrow(self) -> "pyarrow.Table":
        """A row for each declared value: its count and its standard error."""
        import pyarrow

        codes = self.axis.codes or ()
        kind = self.axis.value.type
        assert not isinstance(kind, Text), "a cube has no open axis"
        values = [kind.decode(code) for code in codes]
        error = self._deviation(np.eye(1, len(codes)).ravel())
        errors = np.full(len(codes), error)
        names = self.axis.value.name, "n", "n_error"
        columns = [pyarrow.array(values), pyarrow.array(self.counts), pyarrow.array(errors)]
        return pyarrow.table(dict(zip(names, columns, strict=True)))

    def __repr__(self) -> str:
        total = self._estimate(np.ones(len(self.counts)), "0.95")
        name = self.axis.value.name
        layers = len(self.task.cells)
        return (
            f"Synopsis of {name!r} in {self.task.table!r}: {self.task.strategy.name}, "
            f"{layers} layers; {total} rows with a value\ncharge {self.stored.charge[:12]}"
        )

    def _estimate(self, query: Floats, confidence: Number) -> Estimate:
        fraction = to_fraction("confidence", confidence)
        level = positive("confidence", fraction, at_most=1 - Fraction(1, 10**12))
        value = float(query @ self.counts)
        far = self._reach(query, float(1 - level))
        return Estimate(value, self._deviation(query), value - far, value + far)

    def _deviation(self, query: Floats) -> float:
        """The standard deviation of the estimate of a query, in rows; an upper bound."""
        variance = self.task.strategy.stack.variance(query, self.task.precisions)
        return math.sqrt(variance) / self.task.plan.refinement

    def _reach(self, query: Floats, miss: float) -> float:
        """A bound on the error of a query that is exceeded with probability at most ``miss``."""
        tail = math.log(2 / miss)
        coefficients = self.task.strategy.stack.coefficients(query, self.task.precisions)
        scaled = []
        for counted, mechanism in zip(coefficients, self.task.mechanisms, strict=True):
            scaled.append(np.abs(counted) * _width(mechanism.noise))
        weights = np.concatenate(scaled)
        bound = _gaussian if self.task.allowance.norm is Norm.L2 else _laplace
        return _UP * bound(weights, tail) / self.task.plan.refinement

    def _query(self, where: str) -> Floats:
        """Which declared values pass a test, as 1 and 0."""
        task = self.task
        question = understand(f"SELECT COUNT(*) FROM {task.table} WHERE {where}", self._dataset)
        tests = predicates(question.raw.relation)
        name = self.axis.value.name
        for test in tests:
            for leaf in leaves(test):
                if not isinstance(leaf, Field) or leaf.column.name != name:
                    raise UnsupportedSql(
                        f"A synopsis of {name!r} does not know {shown(where)}.",
                        allowed=f"tests of {name}",
                        remedy="Measure a synopsis of that column, or ask with session.query.",
                    )
        codes = self.axis.codes or ()
        query = np.ones(len(codes))
        for test in tests:
            query *= [_passes(test, code) for code in codes]
        return query


# Above the rounding error of the floats in a bound.
_UP = 1 + 2.0**-30


def _width(noise: Noise) -> float:
    """The scale b of discrete Laplace noise, or the parameter sigma of discrete Gaussian noise."""
    if isinstance(noise, DiscreteGaussian):
        return math.sqrt(noise.sigma_squared)
    assert isinstance(noise, DiscreteLaplace), "bought by an epsilon or a rho"
    return float(noise.scale)


def _gaussian(weights: Floats, tail: float) -> float:
    """The sub-Gaussian bound of a sum of discrete Gaussian noise of these widths.

    Source: Canonne, Kamath, Steinke (2020), corollary 17.
    """
    return math.sqrt(2 * float((weights**2).sum()) * tail)


def _laplace(weights: Floats, tail: float) -> float:
    """The Chernoff bound of a sum of discrete Laplace noise of these widths w.

    ln E exp(s X) <= -ln(1 - s^2 w^2) <= 2 ln 2 s^2 w^2 for s w <= 1/sqrt 2, since a discrete
    Laplace variable has no larger moments than the continuous one.
    """
    doubled = 2 * math.log(2) * float((weights**2).sum())
    if not doubled:
        return 0.0
    rate = min(math.sqrt(tail / doubled), 1 / (math.sqrt(2) * float(weights.max())))
    return tail / rate + doubled * rate


def _passes(test: Scalar, code: int) -> bool:
    """Whether a test is TRUE for a code of the column."""

    def lookup(leaf: Leaf) -> int:
        return code

    return evaluate(test, lookup) is True


def _nonnegative(counts: Floats) -> Floats:
    """The nearest counts of at least 0 with the same total, by a common shift; or all 0."""
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

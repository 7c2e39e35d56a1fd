# SPDX-License-Identifier: Apache-2.0
"""``frontier``: measures on public rows how accurate a recipe is at each epsilon.

It shows what a privacy guarantee costs in accuracy before a private fit is paid for.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.accounting.interpret import Attacker
from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import linear
from sfumato.learning.fit import fit
from sfumato.learning.frontier_plot import chart
from sfumato.learning.model import Model
from sfumato.learning.ordinary import PublicRows, accuracies, read_rows, require_models
from sfumato.learning.recipe import Recipe
from sfumato.learning.scorable import Scorable
from sfumato.learning.score import score
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.privacy.guarantee import ApproxDP, PureDP
from sfumato.query.connect import connect
from sfumato.query.cost import Cost
from sfumato.query.session import Session
from sfumato.show.svg import Figure

# The largest cost that a budget states: its noise is far below one row.
_WITHOUT_NOISE = 10**5
_MOST_FOLDS = 100
# Knuth's multiplier spreads neighbouring row numbers over the folds.
_SPREAD = 2654435761


@dataclass(frozen=True, slots=True)
class Point:
    """The accuracy of several private fits at one epsilon: their mean, minimum and maximum, from 0
    to 1.

    ``attacker`` bounds the probability that anyone guesses rightly whether a person's rows are in
    the data, when both cases are equally likely.

    >>> Point("1", 0.85, 0.84, 0.86, 0.7311)
    Point(epsilon='1', mean=0.85, low=0.84, high=0.86, attacker=0.7311)
    """

    epsilon: str
    mean: float
    low: float
    high: float
    attacker: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """A recipe's accuracy at several epsilons, with two baselines: without noise, and the largest
    class.

    The baselines are the accuracy without noise, and that of always predicting the largest class.
    Each of ``folds`` fits is tested on other rows. If fits are independent, their median lies
    between the least and the greatest of n with probability 1 - 2^(1 - n). A frontier on private
    rows (``private_frontier``) has one fit per epsilon, its band is the 95% interval of the score,
    and the baselines are None because nobody may know them. ``reference`` is the mean accuracy of
    the best ordinary model, which has no privacy: of public rows only, if one was handed in.

    >>> Frontier((Point("1", 0.85, 0.84, 0.86, 0.7311),), 0.87, 0.6, None, 10)
    epsilon  accuracy  least  greatest  attacker right at most
    1        85.0%     84.0%  86.0%     73.2%
    without noise: 87.0%, largest class: 60.0%, 10 fits each
    """

    points: tuple[Point, ...]
    without: float | None
    largest_class: float | None
    delta: str | None
    folds: int
    reference: float | None = None

    def __repr__(self) -> str:
        head = ("epsilon", "accuracy", "least", "greatest", "attacker right at most")
        rows = [head, *map(_texts, self.points)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            padded = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*lines, self._last_line])

    @property
    def _last_line(self) -> str:
        """The last line of the table: the baselines, or what the band is."""
        if self.without is None or self.largest_class is None:
            return "one fit each; least and greatest: the 95% interval of its score"
        last = f"without noise: {self.without:.1%}, largest class: {self.largest_class:.1%}"
        if self.reference is not None:
            last = f"{last}, an ordinary model: {self.reference:.1%}"
        return f"{last}, {self.folds} fits each"

    def plot(self) -> Figure:
        """Draws accuracy with its band, and the attacker's probability on a second axis."""
        epsilons = [float(point.epsilon) for point in self.points]
        band = [(point.low, point.mean, point.high) for point in self.points]
        odds = [point.attacker for point in self.points]
        known = {
            "without noise": self.without,
            "the largest class": self.largest_class,
            "an ordinary model": self.reference,
        }
        lines = {name: share for name, share in known.items() if share is not None}
        return chart(epsilons, band, odds, lines, self._band)

    @property
    def _band(self) -> str:
        """A caption for the band of the picture."""
        return "95% interval of its score" if self.without is None else "least to greatest fit"

    def to_json(self) -> dict[str, Json]:
        """Returns all numbers as JSON."""
        points: list[Json] = []
        for point in self.points:
            band: dict[str, Json] = {"mean": point.mean, "low": point.low, "high": point.high}
            points.append({"epsilon": point.epsilon, **band, "attacker": point.attacker})
        return {
            "points": points,
            "without_noise": self.without,
            "largest_class": self.largest_class,
            "delta": self.delta,
            "folds": self.folds,
            "reference": self.reference,
        }

    def save(self, path: str | Path) -> None:
        """Writes the chart (to a ``.svg`` path) or the numbers (to a ``.json`` path).

        Raises:
            WrongUse: another ending.
        """
        ending = Path(path).suffix
        if ending == ".svg":
            self.plot().save(path)
        elif ending == ".json":
            Path(path).write_text(json.dumps(self.to_json(), indent=1), encoding="utf-8")
        else:
            raise WrongUse(f"{Path(path).name!r} ends with {ending!r}.", allowed=".svg, .json")


def frontier(
    recipe: Recipe[Any],
    public: Any,
    columns: Mapping[str, ColumnType],
    statement: str,
    *,
    label: str,
    epsilons: Sequence[Number],
    delta: Number | None = None,
    folds: int = 10,
    table: str = "data",
    reference: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> Frontier:
    """Measures, on PUBLIC rows, how accurate a recipe is at each epsilon. Nothing is charged.

    The rows are not protected: use an open data set, or synthetic rows, similar to the private
    ones. The statement reads them as the table ``table``. Each fold holds out other rows (by row
    number) and fits with the real noise, in a ledger of its own; the held-out rows are scored
    exactly.

    Args:
        public: what Arrow can read: a pyarrow, pandas or polars table, a mapping of lists.
        columns: the declarations of its columns, as the private table will have them.
        epsilons: ascending costs; with ``delta`` each is a block, as in ``fit``.
        folds: the number of fits at each epsilon, from 2 to 100; 1 / folds of the rows are held
            out.
        table: the name of the rows in the statement.
        reference: an ordinary classifier with ``fit(X, y)`` and ``predict(X)``, or a list of them,
            of which the best is drawn beside. It has no privacy, and reads these public rows only.
        progress: called after each fit with its number and the number of fits.

    Raises:
        WrongUse: no or unsorted epsilons, folds, rows in a file, a label that is a number, a
            reference that is no classifier.
        Others as ``fit``.

    >>> import sfumato as sf
    >>> rows = {"age": [20, 70] * 500, "smoker": [True, False] * 500}
    >>> columns = {"age": sf.Integer(0, 99), "smoker": sf.Boolean()}
    >>> from sfumato import learning as ln
    >>> found = frontier(ln.NaiveBayes(bins=4), rows, columns, "SELECT age, smoker FROM data",
    ...                  label="smoker", epsilons=[1, 3], folds=2)
    >>> found.without, found.largest_class, found.points[1].mean > 0.9
    (1.0, 0.5..., True)
    """
    epsilon_list = ascending(epsilons)
    if type(folds) is not int or not 2 <= folds <= _MOST_FOLDS:
        raise WrongUse(f"folds={shown(folds)}.", allowed=f"a whole number from 2 to {_MOST_FOLDS}")
    tried = _Tried(recipe, {table: columns}, statement, label)
    ordinary = () if reference is None else require_models(reference)
    costs: list[dict[str, Any]] = []
    for each in epsilon_list:
        costs.append({"epsilon": each, "delta": delta})
    costs.append(_without_noise(delta))
    rows, done = _read_public(public), count(1)
    measured: list[list[float]] = []
    beside: list[list[float]] = []
    for fold in range(folds):
        train, test = _split_fold(rows, fold, folds)
        models = []
        for cost in costs:
            models.append(tried.model(train, cost))
            if progress is not None:
                progress(next(done), folds * len(costs))
        measured.append(tried.accuracies(test, models))
        if ordinary:
            beside.append(accuracies(ordinary, tried.read(train, table), tried.read(test, table)))
    private = _frontier(epsilon_list, delta, measured)
    if ordinary:
        return replace(private, reference=max(map(fmean, zip(*beside, strict=True))))
    return private


def _without_noise(delta: Number | None) -> dict[str, Any]:
    """Returns a cost so large that its noise is negligible.

    It is a rho where rows are sampled: samples have no block of so large an epsilon.
    """
    if delta is None:
        return {"epsilon": _WITHOUT_NOISE}
    return {"rho": _WITHOUT_NOISE}


def _frontier(
    epsilons: Sequence[Number],
    delta: Number | None,
    measured: Sequence[Sequence[float]],
) -> Frontier:
    """Builds the frontier from accuracies: one row per fold.

    A row has one accuracy per epsilon, then the one without noise, then one per class.
    """
    columns = list(zip(*measured, strict=True))
    last = len(epsilons)
    points = map(_point, epsilons, [delta] * last, columns)
    classes = [fmean(each) for each in columns[last + 1 :]]
    stated = None if delta is None else decimal_text(positive("delta", delta))
    return Frontier(tuple(points), fmean(columns[last]), max(classes), stated, len(measured))


@dataclass(frozen=True, slots=True)
class _Tried:
    """The recipe, tables and statement that all fits of a frontier share."""

    recipe: Recipe[Any]
    tables: Mapping[str, Mapping[str, ColumnType]]
    statement: str
    label: str

    def model(self, rows: pa.Table, cost: Mapping[str, Any]) -> Scorable:
        """Fits the recipe to some rows, in a ledger of its own."""
        with tempfile.TemporaryDirectory() as folder, self._session(rows, folder) as session:
            fitted_model: Scorable = fit(
                session,
                self.recipe,
                self.statement,
                label=self.label,
                **cost,
            )
            return fitted_model

    def accuracies(self, rows: pa.Table, models: Sequence[Scorable]) -> list[float]:
        """Returns the share of right predictions of each model, then of always predicting each
        class.

        The scores have noise of a millionth of a row, so they are exact.
        """
        accuracies = []
        with tempfile.TemporaryDirectory() as folder, self._session(rows, folder) as session:
            examples = Examples.of(session.dataset, self.statement, self.label, models[0].bag)
            for model in (*models, *_constants(examples)):
                counted = score(
                    session, model, self.statement, label=self.label, epsilon=_WITHOUT_NOISE
                )
                accuracies.append(counted.accuracy)
        return accuracies

    def read(self, rows: pa.Table, table: str) -> PublicRows:
        """Reads public rows as an ordinary model does."""
        columns = self.tables[table]
        described = Dataset("frontier", {table: Table(rows, columns=columns)})
        examples = Examples.of(described, self.statement, self.label, self.recipe.bag)
        return read_rows(rows, columns, table, self.statement, examples)

    def _session(self, rows: pa.Table, folder: str) -> Session:
        """Opens a session over some rows, with the largest possible budget."""
        tables = {name: Table(rows, columns=columns) for name, columns in self.tables.items()}
        budget = Budget(10**6, "0.5")
        return connect(tables, dataset="frontier", budget=budget, ledger=Path(folder) / "ledger.db")


def _read_public(public: Any) -> pa.Table:
    """Converts the public rows to an Arrow table."""
    if isinstance(public, pa.Table):
        return public
    if isinstance(public, str | Path | Table):
        raise WrongUse(
            f"Public rows of type {type(public).__name__}.",
            allowed="a table in memory",
            remedy="pyarrow.parquet.read_table(path), pyarrow.csv.read_csv(path)",
        )
    try:
        return pa.table(public)
    except (TypeError, ValueError, pa.ArrowException) as unread:
        raise WrongUse("Public rows that Arrow cannot read.", allowed="a table") from unread


def _split_fold(rows: pa.Table, fold: int, folds: int) -> tuple[pa.Table, pa.Table]:
    """Splits rows into the training rows and the test rows of a fold."""
    places = np.arange(rows.num_rows, dtype=np.uint64) * np.uint64(_SPREAD)
    held = (places % np.uint64(2**32) >> np.uint64(16)) % np.uint64(folds) == fold
    return rows.filter(~held), rows.filter(held)


def _constants(examples: Examples) -> list[Model]:
    """Returns one model per class that always predicts this class."""
    features, classes = examples.features(linear), examples.classes
    none = Cost("0", "0", "0", ())
    models = []
    for place, name in enumerate(classes):
        scores = np.zeros((len(classes), features.width))
        scores[place] = 1
        recipe, bounds = f"always {name}", (0.0, 0.0)
        columns = examples.columns
        models.append(Model(recipe, features, columns, scores, classes, bounds, none, ""))
    return models


def ascending(epsilons: Sequence[Number]) -> list[Number]:
    """Returns epsilons as a list, after checking that they are positive and strictly ascending.

    Raises:
        WrongUse, InvalidNumber: they do not, or one is not above 0.

    >>> ascending(["0.1", 1])
    ['0.1', 1]
    """
    exact = [positive("epsilons", epsilon) for epsilon in epsilons]
    if not exact or sorted(set(exact)) != exact:
        raise WrongUse(f"epsilons={shown(epsilons)}.", allowed='ascending: ["0.1", 1, 3]')
    return list(epsilons)


def attacker(epsilon: Number, delta: Number | None) -> float:
    """Returns the largest probability with which any attacker guesses rightly whether a unit is in
    the data, at even prior odds.

    >>> round(attacker(1, None), 4)
    0.7311
    """
    promise: PureDP | ApproxDP = PureDP(epsilon)
    if delta is not None:
        promise = ApproxDP(epsilon, delta)
    return Attacker(promise).accuracy("0.5")


def _point(epsilon: Number, delta: Number | None, accuracies: Sequence[float]) -> Point:
    """Returns the point of the frontier for one epsilon."""
    stated = decimal_text(positive("epsilons", epsilon))
    return Point(
        stated, fmean(accuracies), min(accuracies), max(accuracies), attacker(epsilon, delta)
    )


def _texts(point: Point) -> tuple[str, ...]:
    """Formats a row of the table; the attacker's probability is rounded up."""
    shares = [f"{share:.1%}" for share in (point.mean, point.low, point.high)]
    return point.epsilon, *shares, f"{np.ceil(point.attacker * 1000) / 10:.1f}%"

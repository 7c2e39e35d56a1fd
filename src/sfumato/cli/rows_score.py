# SPDX-License-Identifier: Apache-2.0
"""Scores synthetic rows: a model trained on them is tested on the private rows, for a charge.

``sfumato synthesize --score`` uses it.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.learning.additive import Additive
from sfumato.learning.fit import fit
from sfumato.learning.model import Model
from sfumato.learning.naive_bayes import NaiveBayes
from sfumato.learning.recipe import Recipe
from sfumato.learning.ridge import Ridge
from sfumato.learning.score import Score, score
from sfumato.learning.score_within import score_within
from sfumato.metadata.column import Boolean, Category, ColumnType, Integer, Real
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session

# Synthetic rows are public: the model is fitted to them with nearly no noise.
_RHO = 10_000
_BUDGET = Budget(epsilon=10**6, delta="1e-6")


def tested(
    session: Session,
    table: str,
    rows: pa.Table,
    label: str,
    epsilon: Number,
    within: Number | None = None,
) -> Score:
    """Counts privately how many private rows a model predicts right, trained on synthetic ``rows``.

    The model reads every other synthetic column with declared values. For classes it is
    ``Additive`` (two classes) or ``NaiveBayes``; for a number it is ``Ridge``, and a prediction is
    right if it is at most ``within`` away. Only the test is a release; it costs ``epsilon``.

    Raises:
        UnknownName: the rows have no such column.
        WrongUse: the label has no classes, or is a number without ``within``; nothing was charged.
    """
    columns = _readable_columns(session, table, rows)
    if label not in rows.column_names:
        raise UnknownName(
            f"No synthetic column {shown(label)}.", allowed=", ".join(rows.column_names)
        )
    _require_scored(label, columns.get(label), within)
    names = ", ".join(_quoted(name) for name in columns)
    model = _train_model(rows, columns, names, label)
    statement = f"SELECT {names} FROM {_quoted(table)}"
    if within is None:
        return score(session, model, statement, label=label, epsilon=epsilon)
    return score_within(session, model, statement, label=label, within=within, epsilon=epsilon)


def require_scorable(
    session: Session,
    table: str,
    label: str,
    within: Number | None,
) -> None:
    """Raises an error for a label column that ``tested`` would refuse. Reads declarations only, so
    that a mistake is found before synthetic rows are paid for.

    Raises:
        UnknownName: the table has no such column.
        WrongUse: the label has no classes, or is a number without ``within``.
    """
    columns = session.dataset.tables[table].columns
    if label not in columns:
        raise UnknownName(f"No column {shown(label)}.", allowed=", ".join(columns))
    _require_scored(label, columns[label], within)


def _require_scored(label: str, kind: ColumnType | None, within: Number | None) -> None:
    """Refuses a label that cannot be scored."""
    if isinstance(kind, Integer | Real) and within is None:
        raise WrongUse(
            f"The column {shown(label)} has no classes.",
            allowed="a category or boolean; of a number, how far off a right prediction may be",
            remedy="--score-within 1000",
        )
    if isinstance(kind, Category | Boolean) and within is not None:
        raise WrongUse(f"A tolerance of {shown(label)}, which has classes.", allowed="none")
    if not isinstance(kind, Category | Boolean | Integer | Real):
        raise WrongUse(
            f"The column {shown(label)} cannot be scored.", allowed="a category, boolean or number"
        )


def _train_model(
    rows: pa.Table,
    columns: Mapping[str, ColumnType],
    names: str,
    label: str,
) -> Model:
    """Fits a model of the label to the public synthetic rows, with almost no noise."""
    with tempfile.TemporaryDirectory(prefix="sfumato-score-") as folder:
        ledger = Path(folder) / "ledger.db"
        known = {"rows": Table(rows.select(list(columns)), columns=dict(columns))}
        with connect(known, dataset="synthetic", budget=_BUDGET, ledger=ledger) as public:
            recipe = _recipe(columns[label])
            return fit(public, recipe, f"SELECT {names} FROM rows", label=label, rho=_RHO)


def nearest_guess(rows: pa.Table, label: str, within: Number) -> float:
    """The share of rows whose label is within a tolerance of the median: the best constant guess."""
    values = rows[label].drop_null().to_numpy().astype(np.float64)
    if not len(values):
        return 0.0
    far = float(to_fraction("within", within))
    return float((np.abs(values - np.median(values)) <= far).mean())


def most_frequent(rows: pa.Table, label: str) -> float:
    """The share of the most frequent label, which is the accuracy of the best constant guess."""
    counts = rows[label].drop_null().value_counts().field("counts").to_numpy()
    return float(counts.max(initial=0)) / max(int(counts.sum()), 1)


def _recipe(label: ColumnType) -> Recipe[Model]:
    """The recipe that predicts a label."""
    if isinstance(label, Integer | Real):
        return Ridge()
    if isinstance(label, Category) and len(label.values) > 2:
        return NaiveBayes()
    return Additive()


def _readable_columns(session: Session, table: str, rows: pa.Table) -> Mapping[str, ColumnType]:
    """The declared types of the synthetic columns that a classifier reads."""
    types: dict[str, ColumnType] = {}
    for name, kind in session.dataset.tables[table].columns.items():
        is_known = isinstance(kind, Category | Boolean | Integer | Real)
        if is_known and name in rows.column_names:
            types[name] = kind
    return types


def _quoted(name: str) -> str:
    """An identifier of SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'

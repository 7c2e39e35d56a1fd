# SPDX-License-Identifier: Apache-2.0
"""A classifier trained on synthetic rows, tested on the private ones by a charged count."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.learning.additive import Additive
from sfumato.learning.fit import fit
from sfumato.learning.model import Model
from sfumato.learning.naive_bayes import NaiveBayes
from sfumato.learning.recipe import Recipe
from sfumato.learning.score import Score, score
from sfumato.metadata.column import Boolean, Category, ColumnType, Integer, Real
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session

# Synthetic rows are public: the classifier is fitted to them with nearly no noise.
_RHO = 10_000
_BUDGET = Budget(epsilon=10**6, delta="1e-6")


def tested(
    session: Session,
    table: str,
    rows: pa.Table,
    label: str,
    epsilon: Number,
) -> Score:
    """How many private rows a classifier predicts that was trained on synthetic ``rows``.

    The classifier reads every other synthetic column with declared values; it is ``Additive`` for
    two classes, ``NaiveBayes`` for more.
    The test is the one release; it costs ``epsilon``.

    Raises:
        UnknownName: the rows have no such column.
        WrongUse: a label that has no classes; nothing was charged.
    """
    columns = _readable(session, table, rows)
    if label not in rows.column_names:
        raise UnknownName(
            f"No synthetic column {shown(label)}.", allowed=", ".join(rows.column_names)
        )
    if not isinstance(columns.get(label), Category | Boolean):
        raise WrongUse(
            f"The column {shown(label)} has no classes.", allowed="a category or boolean"
        )
    names = ", ".join(_quoted(name) for name in columns)
    with tempfile.TemporaryDirectory(prefix="sfumato-score-") as folder:
        ledger = Path(folder) / "ledger.db"
        known = {"rows": Table(rows.select(list(columns)), columns=dict(columns))}
        with connect(known, dataset="synthetic", budget=_BUDGET, ledger=ledger) as public:
            recipe = _recipe(columns[label])
            model = fit(public, recipe, f"SELECT {names} FROM rows", label=label, rho=_RHO)
    statement = f"SELECT {names} FROM {_quoted(table)}"
    return score(session, model, statement, label=label, epsilon=epsilon)


def most_frequent(rows: pa.Table, label: str) -> float:
    """The share of the most frequent value among the rows, which a guess of it would get right."""
    counts = rows[label].drop_null().value_counts().field("counts").to_numpy()
    return float(counts.max(initial=0)) / max(int(counts.sum()), 1)


def _recipe(label: ColumnType) -> Recipe[Model]:
    """The recipe for the classes of a label."""
    if isinstance(label, Category) and len(label.values) > 2:
        return NaiveBayes()
    return Additive()


def _readable(session: Session, table: str, rows: pa.Table) -> Mapping[str, ColumnType]:
    """The synthetic columns that a classifier reads, as they are declared."""
    found: dict[str, ColumnType] = {}
    for name, kind in session.dataset.tables[table].columns.items():
        is_known = isinstance(kind, Category | Boolean | Integer | Real)
        if is_known and name in rows.column_names:
            found[name] = kind
    return found


def _quoted(name: str) -> str:
    """An identifier of SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'

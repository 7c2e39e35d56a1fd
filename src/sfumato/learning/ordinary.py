# SPDX-License-Identifier: Apache-2.0
"""Fits ordinary models, without privacy, to PUBLIC rows: what a frontier draws beside its own.

Nothing here reads a session. The rows are declared values in memory, and their owner says that they
are public.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sfumato.errors import UnsupportedSql, WrongUse, shown
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features, Floats, linear
from sfumato.learning.frames import FrameColumn, codes_of
from sfumato.metadata.coded import Coded
from sfumato.metadata.column import Column, ColumnType
from sfumato.plan.rows import MISSING


@dataclass(frozen=True, slots=True)
class PublicRows:
    """Public rows encoded for ordinary (not private) models: a matrix of features from 0 to 1, and
    the class of each row.

    A number is its place between its bounds; a declared value and a missing one have a column each.
    """

    features: Floats
    labels: Sequence[str]


def require_models(reference: Any) -> tuple[Any, ...]:
    """Returns ordinary models as a tuple: one that is given, or a list of them.

    Raises:
        WrongUse: one has no fit or no predict.
    """
    models = tuple(reference) if isinstance(reference, list | tuple) else (reference,)
    for model in models:
        if not all(callable(getattr(model, name, None)) for name in ("fit", "predict")):
            raise WrongUse(
                f"reference={shown(model)}.",
                allowed="a classifier with fit(X, y) and predict(X), or a list of them",
                remedy="sklearn.linear_model.LogisticRegression()",
            )
    return models


def accuracies(models: Sequence[Any], train: PublicRows, test: PublicRows) -> list[float]:
    """Returns the share of right predictions on the test rows of each model, fitted to the others.

    Each model is copied, so that the caller's stays unfitted.
    """
    shares = []
    for model in models:
        fitted = copy.deepcopy(model)
        fitted.fit(train.features, np.array(train.labels))
        right = np.asarray(fitted.predict(test.features)) == np.array(test.labels)
        shares.append(float(right.mean()))
    return shares


def read_rows(
    rows: pa.Table,
    columns: Mapping[str, ColumnType],
    table: str,
    statement: str,
    examples: Examples,
) -> PublicRows:
    """Returns the rows that a SELECT reads from public data, encoded as features and classes by
    their declared types.

    Raises:
        UnsupportedSql: DuckDB does not run the statement.
    """
    declared = {name: _declared(rows[name], kind, name) for name, kind in columns.items()}
    with duckdb.connect(config={"enable_external_access": "false", "threads": "1"}) as public:
        public.register(table, pa.table(declared))
        try:
            read = public.sql(statement).to_arrow_table()
        except duckdb.Error as failed:
            raise UnsupportedSql(
                f"The public rows do not answer {shown(statement)}: {failed}"
            ) from None
    label = FrameColumn.of(examples.labelled)
    codes = label.codes(read[label.name].to_pylist())
    known = codes != MISSING
    matrix = _matrix(examples.features(linear), codes_of(read, examples.columns))
    return PublicRows(matrix[known], [label.texts[code - label.lower] for code in codes[known]])


def _declared(values: pa.ChunkedArray, kind: ColumnType, name: str) -> list[object]:
    """The values of a column as declared: the labels of codes, and numbers within their bounds."""
    read: list[object] = values.to_pylist()
    if not isinstance(kind, Coded):
        return read
    column = FrameColumn.of(Column(name, kind))
    lower, upper = kind.lower_code, kind.upper_code
    codes = [int(code) for code in column.codes(read)]
    return [
        None if code == MISSING else kind.decode(min(max(code, lower), upper)) for code in codes
    ]


def _matrix(features: Features, codes: Sequence[Any]) -> Floats:
    """The weights of the coordinates of each row."""
    matrix = np.zeros((len(codes[0]), features.width))
    each = np.arange(len(matrix))
    for places, weight in features.shares(codes):
        matrix[each, places] += np.asarray(weight) / features.scale
    return matrix

# SPDX-License-Identifier: Apache-2.0
"""Ordinary models on public rows: read as declared, fitted to copies, refused by name."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql, WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.ordinary import PublicRows, accuracies, read_rows, require_models
from sfumato.metadata import Dataset

COLUMNS = {
    "age": sf.Integer(0, 100, missing="N"),
    "town": sf.Category({"1": "north", "2": "south"}),
    "ill": sf.Boolean(),
}
ROWS = pa.table(
    {
        "age": ["0", "25", "300", "N"],
        "town": ["1", "2", "9", "1"],
        "ill": ["true", "false", "true", "false"],
    }
)


def read(statement: str, label: str = "ill") -> PublicRows:
    described = Dataset("public", {"data": sf.Table(ROWS, columns=COLUMNS)})
    return read_rows(ROWS, COLUMNS, "data", statement, Examples.of(described, statement, label))


class Majority:
    """Predicts the class that most rows have."""

    def __init__(self) -> None:
        self.best = ""

    def fit(self, features: Any, labels: Any) -> None:
        values, counts = np.unique(labels, return_counts=True)
        self.best = values[counts.argmax()]

    def predict(self, features: Any) -> Any:
        return np.array([self.best] * len(features))


class Constant(Majority):
    """Predicts the last class in the alphabet."""

    def fit(self, features: Any, labels: Any) -> None:
        self.best = max(labels)


def test_values_are_read_as_they_are_declared() -> None:
    found = read("SELECT age, town, ill FROM data")
    # a number has its lower end, its upper end and missing; a category its values and missing
    assert found.features.tolist() == [
        [1, 0, 0, 1, 0, 0],
        [0.75, 0.25, 0, 0, 1, 0],
        [0, 1, 0, 0, 0, 1],
        [0, 0, 1, 1, 0, 0],
    ]
    assert found.labels == ["True", "False", "True", "False"]


def test_a_statement_selects_and_computes_with_declared_values() -> None:
    found = read("SELECT town = 'north' AS north, ill FROM data WHERE age < 50")
    assert found.labels == ["True", "False"]
    assert found.features[:, 1].tolist() == [1, 0]


def test_each_model_is_scored_on_the_test_rows_and_the_callers_stays_unfitted() -> None:
    train = PublicRows(np.zeros((3, 1)), ["a", "a", "b"])
    test = PublicRows(np.zeros((4, 1)), ["a", "b", "b", "b"])
    models = (Majority(), Constant())
    assert accuracies(models, train, test) == [0.25, 0.75]
    assert [model.best for model in models] == ["", ""]


def test_what_is_no_model_is_refused_with_what_works() -> None:
    one = Majority()
    assert require_models(one) == (one,)
    for wrong in ("logistic", [one, 3], [object()]):
        with pytest.raises(WrongUse, match=r"reference=[\s\S]*LogisticRegression\(\)"):
            require_models(wrong)


def test_a_statement_that_public_rows_do_not_answer_is_refused() -> None:
    described = Dataset("public", {"data": sf.Table(ROWS, columns=COLUMNS)})
    examples = Examples.of(described, "SELECT age, ill FROM data", "ill")
    with pytest.raises(UnsupportedSql, match="do not answer"):
        read_rows(ROWS, COLUMNS, "data", "SELECT nothing FROM data", examples)

# SPDX-License-Identifier: Apache-2.0
"""Naive Bayes against the formula, from counts without noise."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.naive_bayes import ClassCounts, NaiveBayes
from sfumato.metadata.dataset import Dataset
from sfumato.privacy import Norm
from sfumato.query.allowance import Allowance, allowance
from tests.learning.rows import COLUMNS, frame

TOWN = Dataset("town", {"people": sf.Table(frame(10), columns=COLUMNS)})
EXAMPLES = Examples.of(TOWN, "SELECT city, ill, age FROM people", "ill")


def task(allowed: Allowance | None = None) -> ClassCounts:
    recipe = NaiveBayes(edges={"age": [50]})
    return recipe.task(EXAMPLES, allowed or allowance(epsilon=10**6))


def test_scores_are_log_probabilities() -> None:
    counts = np.array(
        [
            [3000, 1000, 0, 0, 3600, 400, 0],
            [500, 500, 5000, 0, 1000, 5000, 0],
        ]
    )
    scores = task().scores(counts.astype("<i8").tobytes())
    prior = np.array([0.4, 0.6])
    wanted = np.log([0.75, 0.25]) + np.log(0.4) / 2
    assert np.abs(scores[0, :2] - wanted).max() < 0.01
    east_and_old = scores[:, 0] + scores[:, 5]
    truth = prior * [0.75 * 0.1, 1 / 12 * 5 / 6]
    share = np.exp(east_and_old[0]) / np.exp(east_and_old).sum()
    assert share == pytest.approx(truth[0] / truth.sum(), abs=0.01)


def test_noise_that_drowns_everything_gives_finite_scores() -> None:
    drowned = task(allowance(epsilon="0.001"))
    counts = np.random.default_rng(1).integers(-9000, 9000, 14)
    assert np.isfinite(drowned.scores(counts.astype("<i8").tobytes())).all()
    assert np.isfinite(drowned.scores(bytes(8 * 14))).all()


@pytest.mark.parametrize(
    ("allowed", "norm", "value"),
    [
        (allowance(epsilon=1), Norm.L1, 2),
        (allowance(rho=1), Norm.L2, 2),
        (allowance(epsilon=1, delta="1e-6"), Norm.L2, 2),
    ],
)
def test_a_row_counts_once_in_each_feature(allowed: Allowance, norm: Norm, value: int) -> None:
    found = task(allowed)
    assert found.event.distance.norm is norm and found.event.distance.value == value
    assert found.cells == (14,) and found.size == 8 * 14
    assert found.form != task(allowance(epsilon="0.5")).form
    assert found.counted.distance(norm).value == Fraction(value)


def test_one_class_is_refused() -> None:
    rows = sf.Table("p.csv", columns={"age": sf.Integer(0, 9), "c": sf.Category("a")})
    known = Examples.of(Dataset("d", {"p": rows}), "SELECT age, c FROM p", "c")
    with pytest.raises(WrongUse, match="one value"):
        NaiveBayes().task(known, allowance(epsilon=1))


@pytest.mark.parametrize("recipe", [NaiveBayes(bins=4), ln.DecisionTree(depth=1)])
def test_a_number_is_no_class_until_it_is_declared_as_the_refusal_advises(
    tmp_path: Path, recipe: Any
) -> None:
    rows = pa.table({"age": [10, 50, 90] * 100, "digit": [0, 1, 2] * 100})
    columns = {"age": sf.Integer(0, 99), "digit": sf.Integer(0, 9)}
    asked: dict[str, Any] = {
        "statement": "SELECT age, digit FROM people",
        "label": "digit",
        "epsilon": 5,
    }

    def fitted(kind: Any) -> Any:
        people = sf.Table(rows, columns=columns | {"digit": kind})
        ledger = tmp_path / f"{type(kind).__name__}.db"
        with sf.connect(
            {"people": people}, dataset="digits", budget=sf.Budget(9), ledger=ledger
        ) as session:
            return ln.fit(session, recipe, **asked)

    with pytest.raises(WrongUse, match="a number") as refusal:
        fitted(columns["digit"])
    words = re.search(r"sf\.Category\((\[.*\])\)", refusal.value.remedy or "")
    assert words is not None
    model = fitted(sf.Category(*json.loads(words[1])))
    assert model.classes == ("0", "1", "2")

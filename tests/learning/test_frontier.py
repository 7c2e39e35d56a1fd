# SPDX-License-Identifier: Apache-2.0
"""Frontiers on public rows: against a plain count, with the real noise, refused in time."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.learning.frontier import _split_fold
from tests.learning.rows import COLUMNS, frame

SELECT = "SELECT age, city, ill FROM data"


def found(rows: Any, **more: Any) -> ln.Frontier:
    asked: dict[str, Any] = {"label": "ill", "epsilons": ["0.001", 5], "folds": 3, **more}
    recipe = asked.pop("recipe", ln.NaiveBayes(bins=4))
    return ln.frontier(recipe, rows, asked.pop("columns", COLUMNS), SELECT, **asked)


def test_a_frontier_has_what_a_plain_count_has() -> None:
    rows = frame(3000)
    said: list[tuple[int, int]] = []
    frontier = found(rows, progress=lambda done, of: said.append((done, of)))
    ill = sum(rows["ill"].to_pylist()) / 3000
    # folds hold out numbers of rows that differ a little
    assert frontier.largest_class == pytest.approx(max(ill, 1 - ill), abs=0.01)
    # the law allows 83.4% at best; independent columns cost little here
    assert 0.75 < frontier.without < 0.86
    drowned, precise = frontier.points
    assert abs(precise.mean - frontier.without) < 0.03
    # a scale of 2,000 beside 3,000 rows: far from what the rows say
    assert drowned.mean < precise.mean - 0.05 and drowned.low <= drowned.mean <= drowned.high
    assert said == [(place, 9) for place in range(1, 10)]


def test_the_attacker_is_the_closed_form_of_the_guarantee() -> None:
    pure = found(frame(300), folds=2).points[1]
    assert pure.attacker == pytest.approx(math.exp(5) / (1 + math.exp(5)), rel=1e-9)
    both = found(frame(300), folds=2, epsilons=[1], delta="0.01").points[0]
    assert both.attacker == pytest.approx((math.e + 0.01) / (1 + math.e), rel=1e-9)


def test_every_row_is_held_out_once() -> None:
    rows = pa.table({"n": list(range(1000))})
    held: list[int] = []
    for fold in range(7):
        kept, out = _split_fold(rows, fold, 7)
        assert sorted([*kept["n"].to_pylist(), *out["n"].to_pylist()]) == list(range(1000))
        held += out["n"].to_pylist()
    assert sorted(held) == list(range(1000))


def test_constant_models_predict_one_class() -> None:
    three = {"a": [0, 1, 2] * 40, "k": ["x", "y", "z"] * 40}
    columns = {"a": sf.Integer(0, 9), "k": sf.Category("x", "y", "z")}
    asked: dict[str, Any] = {"label": "k", "epsilons": [1], "folds": 2}
    frontier = ln.frontier(ln.NaiveBayes(), three, columns, "SELECT a, k FROM data", **asked)
    assert frontier.largest_class == pytest.approx(1 / 3, abs=0.1)


def test_pictures_and_numbers_are_saved(tmp_path: Path) -> None:
    frontier = found(frame(300), folds=2)
    frontier.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text("utf-8") == frontier.plot().svg
    frontier.save(tmp_path / "a.json")
    form = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert [each["epsilon"] for each in form["points"]] == ["0.001", "5"]
    assert form["without_noise"] == frontier.without and form["delta"] is None
    with pytest.raises(WrongUse, match="ends with"):
        frontier.save(tmp_path / "a.png")


@pytest.mark.parametrize(
    "more",
    [
        {"epsilons": []},
        {"epsilons": [3, 1]},
        {"epsilons": [1, 1]},
        {"folds": 1},
        {"folds": 2.0},
        {"recipe": "naive"},
    ],
    ids=str,
)
def test_what_cannot_be_measured_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(WrongUse):
        found(frame(50), **more)


def test_files_and_numbers_are_refused() -> None:
    for rows in ("adult.csv", Path("adult.parquet"), sf.Table(frame(5), columns=COLUMNS), 7):
        with pytest.raises(WrongUse, match="Public rows"):
            found(rows)
    with pytest.raises(InvalidNumber):
        found(frame(50), epsilons=[0, 1])
    with pytest.raises(WrongUse, match="a number"):
        ln.frontier(
            ln.Ridge(),
            frame(200),
            COLUMNS,
            "SELECT age, pay FROM data",
            label="pay",
            epsilons=[1],
            delta="1e-6",
            folds=2,
        )


def test_a_recipe_of_samples_has_a_frontier() -> None:
    recipe = ln.LogisticRegression(steps=2, order=ln.Poisson("0.5"), checkpoints=1)
    frontier = found(frame(200), recipe=recipe, epsilons=[8], delta="1e-3", folds=2)
    assert 0 < frontier.without <= 1 and frontier.points[0].mean > 0


def test_rows_are_read_under_a_name_of_ones_own() -> None:
    statement = "SELECT age, ill FROM people"
    asked: dict[str, Any] = {"label": "ill", "epsilons": [9], "folds": 2, "table": "people"}
    frontier = ln.frontier(ln.NaiveBayes(bins=4), frame(200), COLUMNS, statement, **asked)
    assert len(frontier.points) == 1


def test_the_best_ordinary_model_is_drawn_beside() -> None:
    class Always:
        """Predicts one class, whatever the rows are."""

        def __init__(self, said: str) -> None:
            self.said = said

        def fit(self, features: Any, labels: Any) -> None:
            assert features.min() >= 0 and features.max() <= 1

        def predict(self, features: Any) -> list[str]:
            return [self.said] * len(features)

    frontier = found(frame(300), folds=2, reference=[Always("True"), Always("False")])
    assert frontier.reference == pytest.approx(frontier.largest_class)
    assert f"an ordinary model: {frontier.reference:.1%}" in repr(frontier)
    assert "an ordinary model: " in frontier.plot().svg
    assert frontier.to_json()["reference"] == frontier.reference
    plain = found(frame(300), folds=2)
    assert plain.reference is None and "ordinary" not in repr(plain) + plain.plot().svg


def test_a_reference_that_is_no_model_is_refused_before_a_fit() -> None:
    said: list[int] = []
    with pytest.raises(WrongUse, match="reference="):
        found(frame(50), reference="best", progress=lambda done, of: said.append(done))
    assert said == []

# SPDX-License-Identifier: Apache-2.0
"""Models: what they predict by hand, and that files give them back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.features import Binned, Features, Line, Listed
from sfumato.learning.frames import ColumnReport, FrameColumn
from sfumato.learning.load import load
from sfumato.learning.model import Model
from sfumato.query.cost import Cost

COST = Cost("1", "0.5", "0.000001", ({"release": "training"},))
FEATURES = Features((Binned("age", (50,)), Line("pay", 0, 10), Listed("city", 0, 2)))
COLUMNS = (
    FrameColumn("age", 0),
    FrameColumn("pay", 0),
    FrameColumn("city", 0, ("east", "west")),
)
SCORES = np.array([[1.0, 2.0, 9.0, 0.0, 4.0, 7.0, -1.0, 1.0, 0.5]])
FRAME = {"age": [10, 60, None], "pay": [0, 5, 10], "city": ["east", "west", "?"]}


def model(**change: Any) -> Model:
    given: dict[str, Any] = {
        "recipe": "additive",
        "features": FEATURES,
        "columns": COLUMNS,
        "scores": SCORES,
        "classes": ("no", "yes"),
        "bounds": (0.0, 1.0),
        "cost": COST,
        "charge": "c",
    }
    return Model(**(given | change))


def test_scores_are_sums_of_curves() -> None:
    wanted = np.array([1 + 0 - 1, 2 + 2 + 1, 9 + 4 + 0.5])
    found = model().predict_proba(FRAME)
    assert np.allclose(found[:, 1], 1 / (1 + np.exp(-wanted))) and np.allclose(found.sum(axis=1), 1)
    assert model().predict(FRAME) == ["no", "yes", "yes"]
    assert model().curve("age").tolist() == [[1.0, 2.0, 9.0]]


def test_a_number_is_predicted_within_its_bounds() -> None:
    number = model(classes=(), bounds=(10.0, 20.0), scores=SCORES / 10)
    assert np.allclose(number.predict(FRAME), [10.0, 15.0, 20.0])
    with pytest.raises(WrongUse):
        number.predict_proba(FRAME)


def test_an_empty_frame_one_row_and_a_report() -> None:
    empty: dict[str, Any] = {"age": [], "pay": [], "city": []}
    assert model().predict(empty) == []
    assert model(classes=(), bounds=(10.0, 20.0)).predict(empty).tolist() == []
    assert model().predict({"age": 60, "pay": "5", "city": "west"}) == ["yes"]
    predicted, report = model().predict(FRAME, report=True)
    assert predicted == ["no", "yes", "yes"]
    assert report == (
        ColumnReport("age", 3, 1, 0),
        ColumnReport("pay", 3, 0, 0),
        ColumnReport("city", 3, 0, 1),
    )


def test_a_saved_model_is_the_same(tmp_path: Path) -> None:
    one = model()
    one.save(tmp_path / "model.sfm")
    again = load(tmp_path / "model.sfm")
    assert again.features == FEATURES and again.columns == COLUMNS and again.cost == COST
    assert (again.predict_proba(FRAME) == one.predict_proba(FRAME)).all()


def test_what_a_frame_lacks_is_named() -> None:
    with pytest.raises(UnknownName, match="city"):
        model().predict({"age": [1], "pay": [1]})
    with pytest.raises(sf.SfumatoError, match="agee"):
        model().curve("agee")

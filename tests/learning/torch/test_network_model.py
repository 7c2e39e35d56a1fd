# SPDX-License-Identifier: Apache-2.0
"""Trained networks predict classes, probabilities and numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.frames import ColumnReport, FrameColumn
from sfumato.learning.torch.network_model import NetworkModel, load, no_loss, require_released
from sfumato.learning.torch.reading import Input, Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.query.cost import Cost

READING = Reading((Input(0, 10, 20, is_class=False),), Input(1, 0, 1, is_class=True))


def model(outputs: int, classes: tuple[str, ...]) -> NetworkModel:
    line = nn.Linear(1, outputs)
    with torch.no_grad():
        line.weight.copy_(torch.arange(1.0, outputs + 1).reshape(-1, 1))
        line.bias.fill_(0)
    columns = (FrameColumn("age", 10),)
    return NetworkModel(line, READING, columns, classes, (5, 9), Cost("1", "1", "0", ()), "c")


def test_probabilities_are_the_softmax_of_the_outputs() -> None:
    frame: Any = {"age": [10, 20, None]}
    found = model(2, ("no", "yes")).predict_proba(frame)
    share = 1 / (1 + np.exp(-1))
    assert np.abs(found[:, 1] - [0.5, share, 0.5]).max() < 1e-6
    single = model(1, ("no", "yes"))
    assert np.abs(single.predict_proba(frame)[:, 1] - [0.5, share, 0.5]).max() < 1e-6
    assert model(3, ("a", "b", "c")).predict({"age": [20]}) == ["c"]


def test_a_number_is_between_its_bounds() -> None:
    number = model(1, ())
    assert np.abs(np.array(number.predict({"age": [10, 15, 99]})) - [5, 7, 9]).max() < 1e-6
    with pytest.raises(WrongUse, match="a number"):
        number.predict_proba({"age": [10]})
    with pytest.raises(UnknownName, match="age"):
        number.predict({"pay": [1]})


def test_an_empty_frame_one_row_and_a_report() -> None:
    empty: Any = {"age": []}
    assert model(3, ("a", "b", "c")).predict(empty) == []
    assert model(1, ()).predict(empty).tolist() == []
    assert model(3, ("a", "b", "c")).predict({"age": "20"}) == ["c"]
    predicted, report = model(2, ("no", "yes")).predict({"age": [20, "x", None]}, report=True)
    assert predicted == ["yes", "no", "no"] and report == (ColumnReport("age", 3, 1, 1),)


def test_a_picture_is_read_as_its_numbers() -> None:
    inputs = tuple(Input(place, 0, 255, is_class=False) for place in range(4))
    columns = (FrameColumn("pixels", 0, length=4),)
    read = Reading(inputs, Input(4, 0, 1, is_class=True))
    cost = Cost("1", "1", "0", ())
    whole = NetworkModel(nn.Unflatten(1, (2, 2)), read, columns, (), (0, 255), cost, "c")
    frame: Any = {"pixels": [[255, 0, 0, 0], [51, 9, 9, 9], None]}
    assert np.array(whole.predict(frame)).tolist() == pytest.approx([255, 51, 0])


def test_a_saved_network_predicts_the_same_in_a_module_of_the_same_layers(tmp_path: Path) -> None:
    path, frame = tmp_path / "line.sfm", {"age": [10, 13, None]}
    saved = model(2, ("no", "yes"))
    saved.save(path)
    fresh = nn.Linear(1, 2)
    found = load(path, fresh)
    assert (found.predict_proba(frame) == saved.predict_proba(frame)).all()
    assert repr(found) == repr(saved) == "network Linear of age (cost: epsilon = 1, charge c)"
    # the caller's module is copied
    assert not torch.equal(fresh.weight, found.module.weight)  # type: ignore[arg-type]
    with pytest.raises(WrongUse, match="another module"):
        load(path, nn.Linear(1, 3))
    for damaged in (b"", path.read_bytes()[:100], b"{}"):
        (tmp_path / "no.sfm").write_bytes(damaged)
        with pytest.raises(WrongUse, match="no network"):
            load(tmp_path / "no.sfm", fresh)


class Training(nn.Module):
    """Works in training mode alone."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(1, 2)

    def forward(self, x: Any) -> Any:
        if not self.training:
            raise ValueError("no evaluation")
        return self.out(x)


class Halved(nn.Module):
    """Has a buffer of a type that NumPy lacks, or a state that it does not read again."""

    def __init__(self, *, forgets: bool = False) -> None:
        super().__init__()
        self.forgets, self.out = forgets, nn.Linear(1, 2)
        if not forgets:
            self.register_buffer("short", torch.ones(1, dtype=torch.bfloat16))

    def forward(self, x: Any) -> Any:
        return self.out(x)

    def load_state_dict(self, state: Any, *more: Any, **others: Any) -> Any:
        if self.forgets:
            state = {name: value + 1 for name, value in state.items()}
        return super().load_state_dict(state, *more, **others)


class Halves(nn.Linear):
    """Has two outputs, for a loss that takes both."""

    def __init__(self) -> None:
        super().__init__(1, 2)

    def forward(self, x: Any) -> Any:
        return super().forward(x).split(1, 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Training, "It says: ValueError: no evaluation"),
        (Halved, "It says: TypeError: Got unsupported ScalarType BFloat16"),
        (lambda: Halved(forgets=True), "predicts something else"),
    ],
)
def test_a_module_of_which_no_model_can_be_made_is_refused(make: Any, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        require_released(Recorded(make(), no_loss), READING)
    for taken in (nn.Linear(1, 2), Halves()):
        require_released(Recorded(taken, no_loss), READING)

# SPDX-License-Identifier: Apache-2.0
"""Trained networks predict classes, probabilities and numbers."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.frames import FrameColumn
from sfumato.learning.torch.network_model import NetworkModel
from sfumato.learning.torch.reading import Input, Reading
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

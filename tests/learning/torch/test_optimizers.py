# SPDX-License-Identifier: Apache-2.0
"""Optimizers against torch's own, and their state as bytes."""

from typing import Any

import numpy as np
import pytest
import torch

from sfumato.errors import WrongUse
from sfumato.learning.torch import SGD, Adam
from sfumato.learning.torch.optimizers import Weights

PAIRS = [
    (SGD(0.3), lambda value: torch.optim.SGD(value, lr=0.3)),
    (SGD(0.3, 0.7), lambda value: torch.optim.SGD(value, lr=0.3, momentum=0.7)),
    (Adam(0.1, 0.8, 0.95), lambda value: torch.optim.Adam(value, lr=0.1, betas=(0.8, 0.95))),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_steps_are_those_of_torch(ours: Any, theirs: Any) -> None:
    random = np.random.default_rng(0)
    start = random.normal(size=5)
    value = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer, state = theirs([value]), Weights.start(start)
    for _ in range(7):
        gradient = random.normal(size=5)
        value.grad = torch.from_numpy(gradient)
        optimizer.step()
        state = Weights.from_bytes(ours.after(state, 7 * gradient, 7.0).to_bytes())
    assert np.abs(state.weights - value.detach().numpy()).max() < 1e-9
    assert state.released == 7 and len(state.to_bytes()) == Weights.size(5)


def test_settings_that_are_none_are_refused() -> None:
    for make in (
        lambda: SGD(0),
        lambda: SGD(1, 1.0),
        lambda: Adam(float("nan")),
        lambda: Adam("x"),
    ):
        with pytest.raises(WrongUse):
            make()

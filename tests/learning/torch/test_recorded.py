# SPDX-License-Identifier: Apache-2.0
"""The two ways to the gradients of rows agree with ordinary backward passes."""

from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.learning.torch.choice import needs_whole
from sfumato.learning.torch.recorded import Recorded
from tests.learning.torch.nets import LOSS, READING, RULED, UNRULED, frozen, linear, stemmed


@pytest.mark.parametrize("make", [*RULED.values(), *UNRULED.values()])
def test_vectors_are_those_of_ordinary_backward_passes(make: Any) -> None:
    torch.manual_seed(0)
    network = Recorded(make(), LOSS)
    x, y = READING.drawn(16, seed=1)
    for ours, slow in zip(network.vectors(x, y), network.one_by_one(x, y), strict=True):
        assert torch.allclose(ours, slow, rtol=1e-3, atol=1e-5)


def test_weights_are_set_and_the_module_comes_back_plain() -> None:
    module = linear()
    network = Recorded(module, LOSS)
    x, _ = READING.drawn(16, seed=1)
    assert torch.allclose(network.module(x), module(x), atol=1e-6)
    network.load(np.zeros(network.width))
    assert not network.plain()(x).any() and module(x).any()
    network.load(network.start)
    assert torch.equal(network.plain()(x), module(x))
    assert not network.plain().training and "forward" not in vars(network.plain()[0])  # type: ignore[index]


def test_a_forward_of_one_layer_alone_is_kept() -> None:
    module = linear()
    module[0].forward = MethodType(lambda layer, x: 2 * type(layer).forward(layer, x), module[0])
    network = Recorded(module, LOSS)
    x, _ = READING.drawn(16, seed=1)
    assert torch.allclose(network.module(x), module(x), atol=1e-6)
    assert torch.equal(network.plain()(x), module(x)) and needs_whole(network, READING)


def test_a_stem_is_what_comes_before_the_first_layer_that_is_trained() -> None:
    x, _ = READING.drawn(16, seed=1)
    network = Recorded(stemmed(), LOSS)
    assert network.stem is not None and [*map(len, (network.stem, network._rest))] == [2, 1]  # type: ignore[arg-type]
    assert torch.equal(network._rest(network.begun(x)), network.module(x))
    hooked = stemmed()
    hooked.register_forward_pre_hook(lambda _, inputs: (inputs[0] / 2,))
    for whole in (linear(), frozen(), hooked, stemmed().requires_grad_(requires_grad=False)):
        network = Recorded(whole, LOSS)
        assert network.stem is None and network.begun(x) is x

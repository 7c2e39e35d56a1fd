# SPDX-License-Identifier: Apache-2.0
"""The two ways to the gradients of rows agree with ordinary backward passes."""

from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch.choice import needs_whole
from sfumato.learning.torch.recorded import Recorded, modes_kept
from tests.learning.torch.nets import (
    LOSS,
    READING,
    RULED,
    UNRULED,
    WIDTH,
    Keeping,
    frozen,
    linear,
    stemmed,
)


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
    assert not network.plain(network.weights)(x).any() and module(x).any()
    plain = network.plain(network.start)
    assert torch.equal(plain(x), module(x))
    assert not plain.training and "forward" not in vars(plain[0])  # type: ignore[index]


def test_a_forward_of_one_layer_alone_is_kept() -> None:
    module = linear()
    module[0].forward = MethodType(lambda layer, x: 2 * type(layer).forward(layer, x), module[0])
    network = Recorded(module, LOSS)
    x, _ = READING.drawn(16, seed=1)
    assert torch.allclose(network.module(x), module(x), atol=1e-6)
    assert torch.equal(network.plain(network.start)(x), module(x)) and needs_whole(network, READING)


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


class Counted:
    """A loss that keeps labels, and counts its calls."""

    last: Any = None
    calls = 0

    def __call__(self, outputs: Any, labels: Any) -> Any:
        self.calls += 1
        self.last = labels
        return LOSS(outputs, labels)


def kept_by(network: Recorded, loss: Counted) -> list[Any]:
    """What a model and the caller's loss have kept of rows."""
    model: Any = network.plain(network.start)
    return [each for each in (model.last, model.calls, loss.last, loss.calls) if each is not None]


def test_a_model_holds_nothing_of_rows_but_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    module, loss = Keeping(), Counted()
    network = Recorded(module, loss)
    x, y = READING.drawn(16, seed=1)
    # with its graph, which no copy takes
    network.loss(network.module(x), y)
    assert kept_by(network, loss) == [0, 0] and module.calls == 0
    changed = network.start + 1
    one = network.plain(changed)
    assert all(
        (value == start + 1).all()
        for value, start in zip(one.parameters(), module.parameters(), strict=True)
    )
    # the mutant copies neither: what saw rows is released
    monkeypatch.setattr("sfumato.learning.torch.recorded._copied", lambda brought: brought)
    network = Recorded(module, loss)
    network.loss(network.module(x), y)
    assert [*map(len, kept_by(network, loss)[::2])] == [16, 16]


def test_copies_are_taken_anew_at_the_weights_of_the_start() -> None:
    network = Recorded(Keeping(), Counted())
    x, y = READING.drawn(16, seed=1)
    network.load(network.start + 1)
    network.loss(network.module(x), y)
    network.renew()
    module: Any = network.module
    loss: Any = network.loss
    assert module.calls == loss.calls == 0 and (network.weights == network.start).all()


def test_what_cannot_be_copied_is_refused() -> None:
    module = Keeping()
    module(READING.drawn(16, seed=1)[0])
    for brought, loss in ((module, LOSS), (linear(), Counted())):
        if loss is not LOSS:
            loss.last = module.last  # type: ignore[attr-defined]
        with pytest.raises(WrongUse, match="that cannot be copied: RuntimeError"):
            Recorded(brought, loss)


def test_parts_in_which_nothing_is_trained_keep_their_mode() -> None:
    stem = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Dropout(0.5))
    stem.requires_grad_(requires_grad=False).eval()
    module = nn.Sequential(stem, nn.Dropout(0.5), linear().eval())
    network = Recorded(module, LOSS)
    assert [layer.training for layer in network.module] == [False, True, True]  # type: ignore[union-attr]
    assert modes_kept(module) == ("0", "0.0", "0.1", "0.2", "2.1") and not modes_kept(linear())
    # both drop nothing: the one that comes in training mode would
    x, _ = READING.drawn(16, seed=1)
    assert torch.allclose(network.module[0](x), stem(x), atol=1e-6)  # type: ignore[index]


def encoder(**settings: Any) -> nn.Module:
    """A frozen layer of torch's transformers, in evaluation mode."""
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, **settings)
    return layer.requires_grad_(requires_grad=False).eval()


@pytest.mark.parametrize(
    "make",
    [
        encoder,
        lambda: nn.TransformerEncoder(encoder(), 2).eval(),
        lambda: nn.LSTM(4, 4, 2, dropout=0.5, batch_first=True).requires_grad_(False).eval(),
    ],
)
def test_frozen_layers_go_through_lines_and_not_through_fused_kernels(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer, x = make(), torch.rand(16, 3, 4)

    def first(found: Any) -> Any:
        return found[0] if isinstance(found, tuple) else found

    with torch.no_grad():
        wanted = first(layer(x))
    for kernel in ("_transformer_encoder_layer_fwd", "_native_multi_head_attention"):
        monkeypatch.setattr(torch, kernel, None)
    network = Recorded(layer, LOSS)
    with torch.no_grad():
        found = first(network.module(x))
    assert torch.allclose(found, wanted, atol=1e-5)
    assert not network.plain(network.start).training

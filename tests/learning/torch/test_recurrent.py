# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and cells in lines return what torch's own return, and so do their gradients."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from sfumato.errors import WrongUse
from sfumato.learning.torch import recurrent as module
from sfumato.learning.torch.isolation import require_isolated_elsewhere
from sfumato.learning.torch.recorded import Recorded
from sfumato.learning.torch.recurrent import one_step, recurrent
from sfumato.learning.torch.unrolled import Tape
from tests.learning.torch.nets import CLASSES, LOSS, READING, Cells, Padded, Started, sums

# what torch says where oneDNN does not compute such a layer
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")
# five rows of four positions, or four rows of five
X = torch.linspace(-2, 2, 5 * 4 * 6).reshape(5, 4, 6).sin()
BOTH = {"bidirectional": True, "num_layers": 2}
LAYERS = [
    nn.LSTM(6, 3, batch_first=True),
    nn.LSTM(6, 3, num_layers=2, bias=False, batch_first=True),
    nn.LSTM(6, 3, proj_size=2, batch_first=True, **BOTH),
    nn.LSTM(6, 3, bidirectional=True),
    nn.GRU(6, 3, num_layers=2, batch_first=True),
    nn.GRU(6, 3, **BOTH),
    nn.RNN(6, 3, batch_first=True),
    nn.RNN(6, 3, nonlinearity="relu", bias=False, **BOTH),
]
CELLS = [
    nn.LSTMCell(6, 3),
    nn.GRUCell(6, 3, bias=False),
    nn.RNNCell(6, 3),
    nn.RNNCell(6, 3, nonlinearity="relu"),
]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_recurrent_layers_are_those_of_torch(layer: Any) -> None:
    tape = Tape(is_on=True)
    found, last = recurrent(layer, tape, X)
    torch.testing.assert_close((found, last), layer(X))
    ways, positions = 1 + layer.bidirectional, X.shape[layer.batch_first]
    steps = 1 + positions * (2 if getattr(layer, "proj_size", 0) else 1)
    assert len(tape.seen) == layer.num_layers * ways * steps
    # from the states at the end, which are not zeros
    torch.testing.assert_close(recurrent(layer, Tape(), X, last), layer(X, last))


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_cells_are_those_of_torch(cell: Any) -> None:
    tape = Tape(is_on=True)
    found = one_step(cell, tape, X[0])
    torch.testing.assert_close(found, cell(X[0]))
    torch.testing.assert_close(one_step(cell, tape, X[1, :], found), cell(X[1], found))
    assert len(tape.seen) == 4


def test_what_is_not_known_goes_to_torch_and_is_not_noted() -> None:
    tape, layer, cell = Tape(is_on=True), nn.GRU(6, 3), nn.GRUCell(6, 3)
    torch.testing.assert_close(recurrent(layer, tape, X[0]), layer(X[0]))
    torch.testing.assert_close(one_step(cell, tape, X[0, 0]), cell(X[0, 0]))
    for wrong in (torch.zeros(1, 1, 3), torch.zeros(2, 4, 3)):
        with pytest.raises(RuntimeError, match="hidden"):
            recurrent(layer, tape, X, wrong)
    assert not tape.seen


@pytest.mark.parametrize("call", [recurrent, one_step])
def test_a_packed_sequence_is_refused(call: Any) -> None:
    packed = pack_padded_sequence(X, torch.tensor([4, 4, 3, 2, 1]), batch_first=True)
    with pytest.raises(WrongUse, match="hangs on all of them") as refused:
        call(nn.GRU(6, 3), Tape(), packed)
    assert "padded to a declared length" in str(refused.value)


def wanted(net: nn.Module, x: Any, y: Any) -> list[torch.Tensor]:
    """The gradient of each row by torch's own layers, in one backward pass for each."""
    rows = []
    for row in range(len(x)):
        loss = LOSS(net(x[row : row + 1]), y[row : row + 1]).sum()
        rows.append(torch.autograd.grad(loss, list(net.parameters())))
    return [torch.stack(parts).flatten(1) for parts in zip(*rows, strict=True)]


def off(net: nn.Module) -> float:
    """How far one pass, and ``torch.func.vmap``, are from the gradients of torch's own layers."""
    network = Recorded(net, LOSS)
    x, y = READING.drawn(16, seed=3)
    found, one = [], torch.zeros(16, dtype=torch.float64)
    one[7] = 2.0**29
    for block, whole, right in zip(
        network.bookkeeping(x, y), network.vectors(x, y), wanted(net, x, y), strict=True
    ):
        total = block.total(block.integers(one)).flatten() * block.unit / one[7]
        found.append((total - right[7]).abs().max())
        found.append((whole - right).abs().max())
    return float(torch.stack(found).max())


@pytest.mark.parametrize("make", [Padded, Started, Cells])
def test_gradients_are_those_of_torchs_own_layers(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(2)
    net = make()
    assert off(net) < 1e-4 and net(torch.zeros(2, 12)).shape == (2, CLASSES)
    # broken: gates are too large
    right = module._gates
    monkeypatch.setattr(module, "_gates", lambda values, count: right(values * 1.05, count))
    assert off(net) > 1e-3


class Wide(nn.Module):
    """A layer over four positions, all that it returns."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.LazyLinear(CLASSES)

    def forward(self, x: Any) -> Any:
        outputs, last = self.layer(x.reshape(len(x), 4, 3))
        if isinstance(last, tuple):
            last = torch.cat(last, 2)
        return self.out(torch.cat([outputs.flatten(1), last.transpose(0, 1).flatten(1)], 1))


@pytest.mark.long
@pytest.mark.parametrize("width", [3, 7, 17, 20])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_no_width_moves_a_bit_of_another_row(kind: Any, width: int) -> None:
    """Narrow products and short rows are where torch computes a row by its place."""
    torch.manual_seed(width)
    settings = {"proj_size": width - 2} if kind is nn.LSTM else {}
    net = Wide(kind(3, width, batch_first=True, **BOTH, **settings))
    net(torch.zeros(2, 12))
    for whole in (False, True):
        require_isolated_elsewhere(sums(net, whole=whole))

# SPDX-License-Identifier: Apache-2.0
"""Small networks, and rows of which they are the examples."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from sfumato.engines.base import UnitRows
from sfumato.learning.torch.gradients import GradientSums, lattice_for
from sfumato.learning.torch.reading import Input, Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.metadata.column import Column, Integer
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.value import Value
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import Opened

WIDTH, CLASSES = 12, 3
LOSS = nn.CrossEntropyLoss(reduction="none")
READING = Reading(
    tuple(Input(place, 0, 9, is_class=False) for place in range(WIDTH)),
    Input(WIDTH, 0, CLASSES - 1, is_class=True),
)


class Shaped(nn.Module):
    """Views a row as another shape, with integers for an embedding."""

    def __init__(self, *shape: int, tokens: bool = False) -> None:
        super().__init__()
        self.shape, self.tokens = shape, tokens

    def forward(self, x: Any) -> Any:
        found = x.reshape(len(x), *self.shape)
        return (found * 9).long() if self.tokens else found


class Centred(nn.Module):
    """Takes the mean over the batch away: it mixes rows."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.out(x - x.mean(0))


class Tied(nn.Module):
    """Calls one layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.out(self.inner(torch.tanh(self.inner(x))))


class Attention(nn.Module):
    """Self-attention over 3 positions, with the weights of positions where ``told``."""

    def __init__(self, *, told: bool = False) -> None:
        super().__init__()
        self.told = told
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.out = nn.Linear(12, CLASSES)

    def forward(self, x: Any) -> Any:
        x = x.repeat(1, 4)[:, :12].reshape(len(x), 3, 4)
        return self.out(self.attention(x, x, x, need_weights=self.told)[0].flatten(1))


class Recurrent(nn.Module):
    """The outputs of a recurrent layer at all of 4 positions."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(20, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(x.reshape(len(x), 4, 3))[0].flatten(1))


class Padded(nn.Module):
    """Sequences of their own lengths: both ways with short outputs, the time in the first axis."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)
        self.out = nn.Linear(4, CLASSES)

    def forward(self, x: Any) -> Any:
        last = (x[:, :1] * 3.99).long()
        outputs, (hidden, _) = self.layer(x.reshape(len(x), 4, 3).transpose(0, 1))
        # the output at the last position of each row
        place = last.unsqueeze(2).expand(-1, 1, 4)
        found = outputs.transpose(0, 1).gather(1, place).squeeze(1)
        return self.out(found + hidden.sum((0, 2)).unsqueeze(1))


class Started(nn.Module):
    """A plain recurrent layer from a state that the row gives."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.out = nn.Linear(WIDTH, 5), nn.Linear(20, CLASSES)
        self.layer = nn.RNN(3, 5, batch_first=True, nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        start = self.start(x).unsqueeze(0)
        return self.out(self.layer(x.reshape(len(x), 4, 3), start)[0].flatten(1))


class Cells(nn.Module):
    """The three cells on top of each other, at three positions."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.LSTMCell(4, 5), nn.GRUCell(5, 4, bias=False)
        self.last, self.out = nn.RNNCell(4, 3), nn.Linear(3, CLASSES)

    def forward(self, x: Any) -> Any:
        one = other = last = None
        for part in x.split(4, 1):
            one = self.one(part, one)
            other = self.other(one[0], other)
            last = self.last(other, last)
        return self.out(last)


class Keeping(nn.Module):
    """Keeps what it saw last, with its graph, and counts its calls: no output hangs on either."""

    def __init__(self, width: int = WIDTH, classes: int = CLASSES) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(width, width), nn.Linear(width, classes)
        self.last: Any = None
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.last = torch.softmax(self.inner(x), 1)
        return self.out(self.last * x)


class Adapted(nn.Module):
    """A frozen layer with a trained product of low rank (LoRA)."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.down, self.up = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, WIDTH, bias=False)
        self.frozen.requires_grad_(requires_grad=False)

    def forward(self, x: Any) -> Any:
        return self.out(torch.tanh(self.frozen(x) + self.up(self.down(x))))


class Shared(nn.Module):
    """Two layers with one weight, and a table that is the weight of a layer too where ``table``."""

    def __init__(self, *, table: bool = False) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(11, 4), nn.Linear(11 * WIDTH, CLASSES)
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.last = nn.Linear(4, 11)
        self.other.weight = self.one.weight
        if table:
            self.last.weight = self.words.weight

    def forward(self, x: Any) -> Any:
        x = self.words((x * 9).long())
        return self.out(self.last(self.other(torch.tanh(self.one(x)))).flatten(1))


def volume() -> Any:
    convolution = nn.Conv3d(
        1, 3, (2, 1, 2), stride=(1, 1, 2), padding=(1, 0, 1), dilation=(1, 1, 2)
    )
    tail = (nn.Tanh(), nn.Flatten(), nn.Linear(3 * 3 * 2 * 2, CLASSES))
    return nn.Sequential(Shaped(1, 2, 2, 3), convolution, *tail)


def scaled() -> Any:
    normal = nn.RMSNorm(4)
    tail = (nn.Linear(4, 4), nn.Flatten(), nn.Linear(WIDTH, CLASSES))
    return nn.Sequential(Shaped(3, 4), nn.Linear(4, 4), normal, *tail)


def lstm() -> Any:
    return Recurrent(nn.LSTM(3, 5, num_layers=2, batch_first=True))


def gru() -> Any:
    return Recurrent(nn.GRU(3, 5, batch_first=True))


def encoder() -> Any:
    """A layer of torch's transformers."""
    layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    return nn.Sequential(Shaped(3, 4), layer, nn.Flatten(), nn.Linear(WIDTH, CLASSES))


def frozen() -> nn.Module:
    """A first layer that is not trained."""
    module = linear()
    module[0].weight.requires_grad_(requires_grad=False)
    return module


def stemmed() -> Any:
    """Layers in which nothing is trained, before one that is."""
    stem = (nn.Linear(WIDTH, 9).requires_grad_(requires_grad=False), nn.Tanh())
    return nn.Sequential(*stem, nn.Linear(9, CLASSES))


def linear() -> Any:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(inplace=True), nn.Linear(8, CLASSES))


def wide() -> Any:
    """A weight that goes through float32."""
    hidden = nn.Linear(WIDTH, 260)
    return nn.Sequential(hidden, nn.Tanh(), nn.Linear(260, 260), nn.Tanh(), nn.Linear(260, CLASSES))


def image() -> Any:
    convolution = nn.Conv2d(1, 4, 2, stride=1, padding=1)
    tail = (nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 20, CLASSES))
    return nn.Sequential(Shaped(1, 3, 4), convolution, *tail)


def series() -> Any:
    convolution = nn.Conv1d(2, 3, 3, padding=1, dilation=1)
    return nn.Sequential(Shaped(2, 6), convolution, nn.Tanh(), nn.Flatten(), nn.Linear(18, CLASSES))


def words() -> Any:
    table = nn.Embedding(11, 4)
    tail = (nn.LayerNorm(4), nn.Linear(4, 5), nn.Tanh(), nn.Flatten(), nn.Linear(60, CLASSES))
    return nn.Sequential(Shaped(WIDTH, tokens=True), table, *tail)


# By the name of the rule or of the reason for none.
RULED = {
    "linear": linear,
    "wide": wide,
    "conv2d": image,
    "conv1d": series,
    "embedding": words,
    "frozen": frozen,
    "stem": stemmed,
    "tied": Tied,
    "shared": Shared,
    "adapted": Adapted,
    "attention": Attention,
    "encoder": encoder,
    "conv3d": volume,
    "rms": scaled,
    "lstm": lstm,
    "gru": gru,
    "padded": Padded,
    "started": Started,
    "cells": Cells,
}
UNRULED = {"told": partial(Attention, told=True), "table": partial(Shared, table=True)}


def plan(most: int = 1, relation: Relation = Relation.ADD_REMOVE) -> BoundedRows:
    columns = tuple(Column(f"x{place}", Integer(0, 9)) for place in range(WIDTH + 1))
    rows = RowList(Scan("people", columns=columns), tuple(map(Value.of, columns)))
    return BoundedRows(rows, "who" if most > 1 else None, most, relation)


def sums(
    module: nn.Module,
    *,
    most: int = 1,
    whole: bool = False,
    clip: Fraction = Fraction(1),
    loss: Any = LOSS,
) -> GradientSums:
    network = Recorded(module, loss)
    lattice = lattice_for(max(network.width, 1), clip, Fraction(1))
    return GradientSums(plan(most), READING, lattice, whole or most > 1, network)


def codes(count: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    values = random.integers(0, 10, (count, WIDTH))
    return np.column_stack([values, random.integers(0, CLASSES, count)])


def opened(statistic: GradientSums, rows: Any, starts: Any = None) -> Opened:
    """The rows as a charge would open them."""
    found = Opened(statistic.plan)
    starts = np.arange(len(rows) + 1) if starts is None else np.asarray(starts)
    found._units = UnitRows(rows, starts)
    return found

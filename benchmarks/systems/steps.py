# SPDX-License-Identifier: Apache-2.0
"""The networks whose steps are timed, batches, and an ordinary step. Imports torch alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.systems.batches import CLASSES, MLP_WIDTHS, made_up

LOSS = nn.CrossEntropyLoss(reduction="none")


class Picture(nn.Module):  # type: ignore[misc]
    """Views a row as a picture."""

    def forward(self, x: Any) -> Any:
        return x.reshape(len(x), 1, 28, 28)


class Encoder(nn.Module):  # type: ignore[misc]
    """A layer of a transformer, of linear layers and a kernel of attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        rows, positions, width = x.shape
        parts = self.into(self.first(x)).reshape(rows, positions, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, positions, width))
        return x + self.narrow(functional.relu(self.wide(self.second(x))))


class Transformer(nn.Module):  # type: ignore[misc]
    """Three encoder layers over 64 tokens out of 700."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(701, 64)
        self.layers = nn.Sequential(*(Encoder(64, 4) for _ in range(3)))
        self.out = nn.Linear(64, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.out(self.layers(self.words(x.long())).mean(1))


def mlp() -> nn.Module:
    """669,706 parameters."""
    first, second, last = map(nn.Linear, MLP_WIDTHS, MLP_WIDTHS[1:])
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)


def cnn() -> nn.Module:
    """26,010 parameters: the network of Papernot et al., "Tempered sigmoid activations" (2021)."""
    first, second = nn.Conv2d(1, 16, 8, 2, 3), nn.Conv2d(16, 32, 4, 2)
    head = (nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, CLASSES))
    pool = nn.MaxPool2d(2, 1)
    return nn.Sequential(Picture(), first, nn.Tanh(), pool, second, nn.Tanh(), pool, *head)


@dataclass(frozen=True)
class Shape:
    """A network, and its inputs: whole numbers from 0 to ``largest``, tokens where ``tokens``."""

    make: Callable[[], nn.Module]
    width: int
    largest: int
    tokens: bool = False


SHAPES = {
    "MLP": Shape(mlp, 784, 255),
    "CNN": Shape(cnn, 784, 255),
    "logistic": Shape(lambda: nn.Linear(784, CLASSES), 784, 255),
    "transformer": Shape(Transformer, 64, 699, tokens=True),
}


def made(name: str) -> nn.Module:
    """The network, always with the same weights."""
    torch.manual_seed(0)
    return SHAPES[name].make()


def codes(name: str, rows: int) -> Any:
    """Made-up rows, the label in the last column."""
    shape = SHAPES[name]
    return made_up(rows, shape.width, shape.largest)


def batch(name: str, rows: int) -> tuple[Any, Any]:
    """The same rows as a network gets them: shares of the largest number, or tokens."""
    found, shape = codes(name, rows), SHAPES[name]
    x = torch.from_numpy(found[:, :-1].astype(np.float32))
    if not shape.tokens:
        x = x / shape.largest
    return x, torch.from_numpy(found[:, -1])


def ordinary(name: str) -> Callable[[float, int], Callable[[], object]]:
    """The step without privacy: forward, backward, plain gradient descent."""

    def make(scale: float, rows: int) -> Callable[[], object]:
        torch.set_num_threads(1)
        module, (x, y) = made(name), batch(name, rows)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

        def step() -> None:
            optimizer.zero_grad()
            LOSS(module(x), y).mean().backward()
            optimizer.step()

        return step

    return make

# SPDX-License-Identifier: Apache-2.0
"""Optimizers (``SGD``, ``Adam``): compute weights from noisy gradients, so they cost no budget."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.learning.features import Floats
from sfumato.learning.torch.total import PIECE
from sfumato.noise import Integers


@dataclass(frozen=True, slots=True)
class Weights:
    """The state of an optimizer after some releases: the network's weights, and two moments of the
    gradients.
    """

    released: int
    weights: Floats
    first: Floats
    second: Floats

    @classmethod
    def start(
        cls,
        weights: Floats,
    ) -> "Weights":
        """Returns the optimizer state before the first step."""
        zeros = np.zeros(len(weights))
        return cls(0, weights, zeros, zeros)

    @staticmethod
    def size(width: int) -> int:
        """Returns the size in bytes of a stored state of ``width`` weights."""
        return 8 * (1 + 3 * width)

    def to_bytes(self) -> bytes:
        """Serialises the state as little-endian floats, for a checkpoint."""
        parts = (np.array([float(self.released)]), self.weights, self.first, self.second)
        return np.concatenate(parts).astype("<f8").tobytes()

    @classmethod
    def from_bytes(
        cls,
        body: bytes,
    ) -> "Weights":
        """Reads a state from a checkpoint."""
        numbers = np.frombuffer(body, "<f8").astype(np.float64)
        return cls(int(numbers[0]), *np.split(numbers[1:], 3))


@dataclass(frozen=True, slots=True)
class SGD:
    """Stochastic gradient descent with momentum, on noisy gradients.

    >>> SGD(0.5).after(Weights.start(np.zeros(1)), np.ones(1)).weights.tolist()
    [-0.5]
    """

    rate: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _require(rate=self.rate, momentum=self.momentum)

    def after(
        self,
        state: Weights,
        sums: Floats | Integers,
        example: float = 1.0,
    ) -> Weights:
        """Returns the optimizer's state after one more step, with the noisy gradient ``sums`` /
        ``example``.
        """
        weights, speeds = np.empty_like(state.weights), state.first
        if self.momentum:
            speeds = np.empty_like(state.first)
        for part in _pieces(weights):
            speed = np.asarray(sums[part], np.float64) / example
            if self.momentum:
                speed += self.momentum * state.first[part]
                speeds[part] = speed
            speed *= -self.rate
            np.add(state.weights[part], speed, out=weights[part])
        return Weights(state.released + 1, weights, speeds, state.second)


@dataclass(frozen=True, slots=True)
class Adam:
    """The optimizer Adam of Kingma and Ba (2015), on noisy gradients.

    >>> Adam(0.5).after(Weights.start(np.zeros(1)), np.ones(1)).weights.round(6).tolist()
    [-0.5]
    """

    rate: float = 0.001
    first: float = 0.9
    second: float = 0.999

    def __post_init__(self) -> None:
        _require(rate=self.rate, first=self.first, second=self.second)

    def after(
        self,
        state: Weights,
        sums: Floats | Integers,
        example: float = 1.0,
    ) -> Weights:
        """Returns the optimizer's state after one more step, with the noisy gradient ``sums`` /
        ``example``.
        """
        count = state.released + 1
        weights, first, second = (np.empty_like(state.weights) for _ in range(3))
        for part in _pieces(weights):
            gradient = np.asarray(sums[part], np.float64) / example
            first[part] = self.first * state.first[part] + (1 - self.first) * gradient
            second[part] = self.second * state.second[part] + (1 - self.second) * gradient**2
            mean = first[part] / (1 - self.first**count)
            square = second[part] / (1 - self.second**count)
            weights[part] = state.weights[part] - self.rate * mean / (np.sqrt(square) + 1e-8)
        return Weights(count, weights, first, second)


Optimizer: TypeAlias = SGD | Adam


def _pieces(values: Floats) -> Iterator[slice]:
    """Yields slices of many numbers, small enough for the processor's cache."""
    for first in range(0, len(values), PIECE):
        yield slice(first, first + PIECE)


def _require(
    *,
    rate: float,
    **shares: float,
) -> None:
    """Raises unless the rate is positive and the decay rates are from 0 to 1."""
    if not isinstance(rate, int | float) or not 0 < rate < 1e6:
        raise WrongUse(f"rate={shown(rate)}.", allowed="above 0")
    for name, share in shares.items():
        if not isinstance(share, int | float) or not 0 <= share < 1:
            raise WrongUse(f"{name}={shown(share)}.", allowed="from 0 to below 1")

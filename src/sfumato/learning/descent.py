# SPDX-License-Identifier: Apache-2.0
"""Gradient descent on noisy sums: what a run computes of released numbers, all of it free.

The first release counts the examples by coordinate and target; it gives the scale of each
coordinate, a start, and the number of examples. Every later one is a noisy gradient. Steps are
divided by the curvature of a coordinate plus a multiple of the noise, so that one setting serves
every epsilon.
"""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.learning.features import Floats
from sfumato.noise import Integers

MOMENTUM = 0.8
# Counts are damped by this many, and curvatures by that many standard deviations of the noise.
COUNTS_DAMPED, _DAMPED = 3.0, 28.0
# The share of the start that is taken from each feature alone, as if features were independent.
START = 1 / 3
# Weights are averaged over the last steps, in this share.
_AVERAGED = 0.8
LEAST_RATE = 0.01


@dataclass(frozen=True, slots=True)
class State:
    """What a run has computed so far: a function of released numbers.

    ``released`` releases; ``counts`` of the first one, ``weights``, their ``speed``, and the
    ``total`` of the ``averaged`` last weights.
    """

    released: int
    averaged: int
    counts: Floats
    weights: Floats
    speed: Floats
    total: Floats

    @classmethod
    def start(cls, width: int) -> "State":
        """The state before the first release."""
        zeros = np.zeros(width)
        return cls(
            0,
            0,
            np.zeros(2 * width),
            zeros,
            zeros,
            zeros,
        )

    @staticmethod
    def size(width: int) -> int:
        """The number of bytes of a state."""
        return 8 * (2 + 5 * width)

    def to_bytes(self) -> bytes:
        """The state as little-endian floats; what a checkpoint stores."""
        numbers = np.array([self.released, self.averaged], np.float64)
        parts = (numbers, self.counts, self.weights, self.speed, self.total)
        return np.concatenate(parts).astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, body: bytes) -> "State":
        """Reads a stored state."""
        numbers = np.frombuffer(body, "<f8").astype(np.float64)
        width = (len(numbers) - 2) // 5
        counts, weights, speed, total = np.split(numbers[2:], [2 * width, 3 * width, 4 * width])
        return cls(
            int(numbers[0]),
            int(numbers[1]),
            counts,
            weights,
            speed,
            total,
        )

    @property
    def result(self) -> Floats:
        """The average of the last weights, or the weights if none were averaged yet."""
        if self.averaged:
            return self.total / self.averaged
        return self.weights


@dataclass(frozen=True, slots=True)
class Descent:
    """Gradient descent on noisy sums, of logistic regression or else of least squares.

    The first of ``releases`` counts examples by coordinate and target; the others are gradients.
    ``noise`` is their standard deviation, in examples. An example has ``features`` coordinates.
    """

    features: int
    releases: int
    noise: float
    logistic: bool

    def after(
        self,
        state: State,
        released: Integers,
        scale: float,
    ) -> State:
        """The state after one more release; ``scale`` is one example in its integers."""
        numbers = released.astype(np.float64) / scale
        if state.released == 0:
            return self._begun(state, numbers)
        return self._stepped(state, numbers)

    def _begun(
        self,
        state: State,
        counts: Floats,
    ) -> State:
        """The start from noisy counts: each feature alone, damped by the noise."""
        base, rate = self.rates(counts)
        middle = self._score(np.array([base]))
        weights = middle / self.features + START * (self._score(rate) - middle)
        return replace(state, released=1, counts=counts, weights=weights)

    def rates(self, counts: Floats) -> tuple[float, Floats]:
        """The mean target of all examples, and of those of each coordinate, damped by the noise."""
        without, having = np.split(np.maximum(counts, 0), 2)
        all_of_them = max(float(without.sum() + having.sum()), 1.0)
        base = float(np.clip(having.sum() / all_of_them, LEAST_RATE, 1 - LEAST_RATE))
        damped = COUNTS_DAMPED * self.noise
        rate = (having + base * damped) / (without + having + max(damped, 1.0))
        return base, np.clip(rate, LEAST_RATE, 1 - LEAST_RATE)

    def _score(self, rate: Floats) -> Floats:
        """The score whose prediction is a rate."""
        if self.logistic:
            found: Floats = np.log(rate / (1 - rate))
            return found
        return rate

    def _stepped(
        self,
        state: State,
        gradient: Floats,
    ) -> State:
        """One step against a noisy gradient, with momentum."""
        without, having = np.split(state.counts, 2)
        speed = MOMENTUM * state.speed + gradient
        weights = state.weights - speed * self.pace(without + having)
        later = replace(state, released=state.released + 1, weights=weights, speed=speed)
        if not self.is_averaged(later.released):
            return later
        return replace(later, averaged=later.averaged + 1, total=later.total + weights)

    def pace(self, counts: Floats) -> Floats:
        """By how much a coordinate of so many examples moves for a gradient of one."""
        curvature = 0.25 if self.logistic else 1.0
        size = self.features * curvature * np.maximum(counts, 1.0)
        found: Floats = 1 / (size + _DAMPED * self.noise)
        return found

    def is_averaged(self, released: int) -> bool:
        """Whether the weights after so many releases belong to the average."""
        return released > (1 - _AVERAGED) * self.releases

# SPDX-License-Identifier: Apache-2.0
"""Gradient descent on noisy sums: a pure function of released numbers, so it costs no budget.

``Training`` (``run``) feeds it one release after the other. The first release counts the examples
by feature coordinate and target; from it come the number of examples, the scale of each coordinate
and the starting weights. Every later release is a noisy gradient. A step is divided by the
curvature of its coordinate plus a multiple of the noise, so one setting serves every epsilon.
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
    """The state of a noisy gradient descent after some releases, as a checkpoint stores it.

    ``released`` is the number of releases so far, ``counts`` the first release, ``weights`` the
    current weights and ``speed`` their momentum. ``total`` is the sum of the last ``averaged``
    weights.
    """

    released: int
    averaged: int
    counts: Floats
    weights: Floats
    speed: Floats
    total: Floats

    @classmethod
    def start(cls, width: int) -> "State":
        """Returns the state of a descent over ``width`` weights before the first release."""
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
        """Returns the number of bytes that a stored state of ``width`` weights takes."""
        return 8 * (2 + 5 * width)

    def to_bytes(self) -> bytes:
        """Serialises the state as little-endian floats, for a checkpoint."""
        numbers = np.array([self.released, self.averaged], np.float64)
        parts = (numbers, self.counts, self.weights, self.speed, self.total)
        return np.concatenate(parts).astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, body: bytes) -> "State":
        """Reads a state from a checkpoint."""
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
        """The average of the last weights; the current weights before averaging begins."""
        if self.averaged:
            return self.total / self.averaged
        return self.weights


@dataclass(frozen=True, slots=True)
class Descent:
    """Noisy gradient descent for logistic regression or least squares; each step uses a noisy sum
    over all examples that it reads.

    The first of ``releases`` counts examples by coordinate and target, the others are gradients.
    ``noise`` is their standard deviation, in examples. ``features`` is the number of columns.
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
        """Returns the state after one more release: the noisy integers ``released``, which are
        counts first and gradients later.

        ``scale`` is what one example adds to the integers.
        """
        numbers = released.astype(np.float64) / scale
        if state.released == 0:
            return self._begun(state, numbers)
        return self._stepped(state, numbers)

    def _begun(
        self,
        state: State,
        counts: Floats,
    ) -> State:
        """Returns the starting weights from the noisy counts: each feature alone, damped by the
        noise.
        """
        base, rate = self.rates(counts)
        middle = self._score(np.array([base]))
        weights = middle / self.features + START * (self._score(rate) - middle)
        return replace(state, released=1, counts=counts, weights=weights)

    def rates(self, counts: Floats) -> tuple[float, Floats]:
        """Returns the mean target of all examples, and the mean target at each coordinate, shrunk
        towards it in proportion to the noise.
        """
        without, having = np.split(np.maximum(counts, 0), 2)
        all_of_them = max(float(without.sum() + having.sum()), 1.0)
        base = float(np.clip(having.sum() / all_of_them, LEAST_RATE, 1 - LEAST_RATE))
        damped = COUNTS_DAMPED * self.noise
        rate = (having + base * damped) / (without + having + max(damped, 1.0))
        return base, np.clip(rate, LEAST_RATE, 1 - LEAST_RATE)

    def _score(self, rate: Floats) -> Floats:
        """Returns the score that predicts a given rate."""
        if self.logistic:
            found: Floats = np.log(rate / (1 - rate))
            return found
        return rate

    def _stepped(
        self,
        state: State,
        gradient: Floats,
    ) -> State:
        """Takes one step against a noisy gradient, with momentum."""
        without, having = np.split(state.counts, 2)
        speed = MOMENTUM * state.speed + gradient
        weights = state.weights - speed * self.pace(without + having)
        later = replace(state, released=state.released + 1, weights=weights, speed=speed)
        if not self.is_averaged(later.released):
            return later
        return replace(later, averaged=later.averaged + 1, total=later.total + weights)

    def pace(self, counts: Floats) -> Floats:
        """Returns the step size (learning rate) of each coordinate, given its noisy number of
        examples.
        """
        curvature = 0.25 if self.logistic else 1.0
        size = self.features * curvature * np.maximum(counts, 1.0)
        found: Floats = 1 / (size + _DAMPED * self.noise)
        return found

    def is_averaged(self, released: int) -> bool:
        """Whether the weights after this many releases belong to the final average."""
        return released > (1 - _AVERAGED) * self.releases

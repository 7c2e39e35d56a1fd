# SPDX-License-Identifier: Apache-2.0
"""Diffprivlib's principal components of pictures, as it is and with its sampler mended.

Its sampler of a direction (``Bingham``) draws one from a wider law and accepts it with a
probability in which a factor stands on the wrong side of the fraction (Kent, Ganeiban, Mardia, "A
new method to simulate the Bingham and related distributions", 2013). In 784 numbers next to none
is accepted, and where noise is small the factor overflows. So it is also measured with that
factor in its place, in logarithms; all else is the library's.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from diffprivlib.mechanisms import Bingham  # type: ignore[import-not-found]
from diffprivlib.models import PCA  # type: ignore[import-not-found]
from numpy.random import default_rng

from benchmarks.systems.persons import Numbers
from benchmarks.systems.pictures import pixels

# The CPU seconds after which a fit is given up.
_PATIENCE = 20
# Rows are cut to this length. Of 7, 9 and 12, around a noisy mean or around 0, the best on these
# pictures: so it is flattered.
_LENGTH = 7.0
_BISECTIONS = 200


class Mended(Bingham):  # type: ignore[misc]
    """The sampler with its factor on the right side, in logarithms."""

    def randomise(self, value: Numbers) -> Numbers:
        """A direction."""
        values, axes = np.linalg.eigh(value)
        size = len(values)
        slopes = self.epsilon * (values.max() - values) / 4 / self.sensitivity
        tuned = _tuned(slopes)
        widths = 1 + 2 * slopes / tuned
        most = (size * np.log(size / tuned) - size + tuned) / 2
        random = default_rng()
        while True:
            drawn = random.normal(size=size) / np.sqrt(widths)
            squares = drawn**2 / (drawn @ drawn)
            chance = size / 2 * np.log(squares @ widths) - squares @ slopes - most
            if np.log(random.random()) <= chance:
                found: Numbers = axes @ (drawn / np.linalg.norm(drawn))
                return found


def _tuned(slopes: Numbers) -> float:
    """The constant of the wider law with which most are accepted."""
    low, high = 1.0, float(len(slopes))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if (1 / (middle + 2 * slopes)).sum() <= 1:
            high = middle
        else:
            low = middle
    return high


def directions(count: int, epsilon: float) -> Numbers:
    """Directions of the library as it is.

    Raises:
        TimeoutError: it found none in time.
    """
    with _patience():
        return _fitted(count, epsilon)


def mended(count: int, epsilon: float) -> Numbers:
    """The same with the mended sampler."""
    with patch("diffprivlib.models.utils.Bingham", Mended):
        return _fitted(count, epsilon)


def _fitted(count: int, epsilon: float) -> Numbers:
    model = PCA(count, epsilon=epsilon, centered=True, data_norm=_LENGTH)
    found: Numbers = model.fit(pixels() / 255).components_
    return found


@contextmanager
def _patience() -> Iterator[None]:
    """So many CPU seconds, then an error."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done after {_PATIENCE} CPU seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

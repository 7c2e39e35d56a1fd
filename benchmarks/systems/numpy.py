# SPDX-License-Identifier: Apache-2.0
"""Numpy's own generators: floats from a source that can be predicted, so not private at all."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems import Call, Make
from benchmarks.systems.scores import RATE, normal, votes

PACKAGES = ("numpy",)

_GENERATOR = np.random.default_rng()


def _gumbel(scores: Callable[[int], NDArray[Any]], scale: float, n: int) -> Call:
    given = scores(n)
    return lambda: np.argmax(RATE * given + _GENERATOR.gumbel(size=n))


WORKS: dict[str, Make] = {
    "laplace": lambda scale, n: partial(_GENERATOR.laplace, 0.0, scale, n),
    "gaussian": lambda scale, n: partial(_GENERATOR.normal, 0.0, scale, n),
    "laplace one": lambda scale, n: partial(_GENERATOR.laplace, 0.0, scale),
    "gaussian one": lambda scale, n: partial(_GENERATOR.normal, 0.0, scale),
    "argmax of gumbel, normal": partial(_gumbel, normal),
    "argmax of gumbel, votes": partial(_gumbel, votes),
    "bits": lambda scale, n: lambda: _GENERATOR.random(n) < 0.2689414213699951,
}

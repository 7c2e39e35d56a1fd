# SPDX-License-Identifier: Apache-2.0
"""The pictures of MNIST, and how much of their variance some directions hold."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.systems import Call, Make
from benchmarks.systems.persons import Numbers

_FILE = Path("shared", "data", "mnist", "mnist.npz")
SHAPE = (28, 28)
# Directions from a number of them and an epsilon: a row each.
Fit = Callable[[int, float], Numbers]


def mnist() -> Path | None:
    """The file, in this folder or one above it; None if there is none."""
    for folder in Path(__file__).resolve().parents:
        if (folder / _FILE).exists():
            return folder / _FILE
    return None


@cache
def pixels() -> Numbers:
    """The 60,000 training pictures, a row of 784 numbers from 0 to 255 each."""
    path = mnist()
    assert path is not None, "asked for only where it is"
    with np.load(path) as file:
        found: Numbers = file["x_train"].reshape(-1, SHAPE[0] * SHAPE[1])
    return found


@cache
def _covariance() -> tuple[Numbers, Numbers]:
    """The covariance of the numbers, and its eigenvalues from the largest on."""
    matrix = np.cov(pixels().astype(np.float64).T)
    return matrix, np.linalg.eigvalsh(matrix)[::-1]


def share(axes: Numbers) -> float:
    """The variance in the space of some directions, over the most that so many can have."""
    matrix, values = _covariance()
    basis = np.linalg.qr(axes.T)[0]
    return float(np.trace(basis.T @ matrix @ basis) / values[: len(axes)].sum())


def works(fits: Mapping[str, Fit]) -> dict[str, Make]:
    """For each fit, which gives directions, the share of the variance of 10 and of 50 of them."""
    found: dict[str, Make] = {}
    for name, fit in fits.items():
        for count in (10, 50):
            found[f"{name}, {count} directions, share of the best"] = _make(fit, count)
    return found


def _make(fit: Fit, count: int) -> Make:
    def make(epsilon: float, run: int) -> Call:
        return lambda: share(fit(count, epsilon))

    return make

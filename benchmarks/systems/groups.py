# SPDX-License-Identifier: Apache-2.0
"""Round clusters of points, and what centers cost: the squared distances from the nearest one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.systems import Call, Make
from benchmarks.systems.persons import Numbers

POINTS, WIDTH, CLUSTERS, SPREAD = 20_000, 5, 8, 0.1
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Groups:
    """Points in the box from -1 to 1, and the least cost that is known."""

    points: Numbers
    best: float


def cost(points: Numbers, centers: Numbers) -> float:
    """The sum of the squared distances from the nearest center."""
    return float(_squares(points, centers).min(axis=1).sum())


def _squares(points: Numbers, centers: Numbers) -> Numbers:
    apart = points[:, np.newaxis, :] - centers[np.newaxis, :, :]
    found: Numbers = (apart**2).sum(axis=2)
    return found


@cache
def groups(run: int) -> Groups:
    """The points of a run; the best centers are k-means from those that the points were drawn at."""
    random = np.random.default_rng(run)
    true = random.uniform(-0.9, 0.9, (CLUSTERS, WIDTH))
    points = true[random.integers(CLUSTERS, size=POINTS)] + random.normal(
        0, SPREAD, (POINTS, WIDTH)
    )
    points = np.clip(points, -1, 1)
    centers = true
    for _ in range(_ROUNDS):
        nearest = _squares(points, centers).argmin(axis=1)
        centers = np.stack([points[nearest == place].mean(axis=0) for place in range(CLUSTERS)])
    return Groups(points, cost(points, centers))


def works(fits: dict[str, Callable[[float, Numbers], Numbers]]) -> dict[str, Make]:
    """For each fit, which gives centers of points at an epsilon, its cost over the best."""
    return {f"{name}, cost / best": _make(fit) for name, fit in fits.items()}


def _make(fit: Callable[[float, Numbers], Numbers]) -> Make:
    def make(epsilon: float, run: int) -> Call:
        def ratio() -> float:
            found = groups(run)
            return cost(found.points, fit(epsilon, found.points)) / found.best

        return ratio

    return make

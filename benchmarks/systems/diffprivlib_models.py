# SPDX-License-Identifier: Apache-2.0
"""Diffprivlib's models, with all bounds declared. All are pure: their delta is 0."""

from collections.abc import Callable

import numpy as np
from diffprivlib.models import KMeans, LogisticRegression, RandomForestClassifier  # type: ignore[import-not-found]

from benchmarks.systems import Make, diffprivlib_directions, groups, pictures
from benchmarks.systems.persons import Numbers, one_hot, persons, works


def _logistic(*, binned: bool) -> Callable[[float], Numbers]:
    """Each column puts at most 1 into a row, so its norm is at most the root of their number."""

    def fit(epsilon: float) -> Numbers:
        train = persons("train")
        norm = float(np.sqrt(len(train.codes)))
        model = LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000)
        model.fit(one_hot("train", binned=binned), train.rich)
        found: Numbers = model.predict_proba(one_hot("test", binned=binned))[:, 1]
        return found

    return fit


def _forest(epsilon: float) -> Numbers:
    """25 trees of depth 5, of columns as codes."""
    train, test = persons("train"), persons("test")
    highest = [size - 1 for size in train.sizes.values()]
    model = RandomForestClassifier(
        n_estimators=25,
        max_depth=5,
        epsilon=epsilon,
        bounds=(np.zeros(len(highest)), np.array(highest)),
        classes=[False, True],
    )
    model.fit(np.stack(list(train.codes.values()), axis=1), train.rich)
    rows = np.stack(list(test.codes.values()), axis=1)
    found: Numbers = model.predict_proba(rows)[:, 1]
    return found


def _centers(epsilon: float, points: Numbers) -> Numbers:
    """Centers of points in the box from -1 to 1."""
    model = KMeans(groups.CLUSTERS, epsilon=epsilon, bounds=(-1, 1))
    found: Numbers = model.fit(points).cluster_centers_
    return found


WORKS: dict[str, Make] = {
    **groups.works({"KMeans": _centers}),
    **pictures.works(
        {
            "PCA": diffprivlib_directions.directions,
            "PCA, mended": diffprivlib_directions.mended,
        }
    ),
    **works(
        {
            "logistic": _logistic(binned=False),
            "logistic, our bins": _logistic(binned=True),
            "forest": _forest,
        }
    ),
}

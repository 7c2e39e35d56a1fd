# SPDX-License-Identifier: Apache-2.0
"""The transform against the points of every hyperplane, one by one."""

import numpy as np
import pytest

from sfumato.telemetry.oracles.incidence import incident
from sfumato.telemetry.oracles.points import Space


@pytest.mark.parametrize(
    ("prime", "dimension"), [(2, 2), (2, 5), (3, 2), (3, 4), (5, 3), (7, 3), (11, 2)]
)
@pytest.mark.parametrize("most", [3, 1 << 40])
def test_a_transform_counts_the_points_of_every_hyperplane(prime, dimension, most):
    space = Space(prime, dimension)
    counts = np.random.default_rng(5).integers(0, most, space.points)
    wanted = [
        sum(int(counts[space.on(plane, place)]) for place in range(space.on_plane))
        for plane in range(space.points)
    ]
    assert incident(space, counts, space.points).tolist() == wanted
    for fewer in (1, 2, space.points - 1):
        assert incident(space, counts, fewer).tolist() == wanted[:fewer]

# SPDX-License-Identifier: Apache-2.0
"""The transform against the points of every hyperplane, one by one."""

import numpy as np
import pytest

from sfumato.telemetry.oracles.incidence import incidence, incident
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


@pytest.mark.parametrize(("prime", "dimension"), [(2, 3), (3, 3), (5, 2)])
def test_a_row_of_the_incidence_has_a_one_for_each_point_of_its_hyperplane(prime, dimension):
    space = Space(prime, dimension)
    found = incidence(space, space.points)
    for plane in range(space.points):
        on = sorted(space.on(plane, place) for place in range(space.on_plane))
        assert np.flatnonzero(found[plane]).tolist() == on
    assert set(found.ravel().tolist()) == {0.0, 1.0}

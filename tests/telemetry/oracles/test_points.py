# SPDX-License-Identifier: Apache-2.0
"""Points and hyperplanes against all vectors of small spaces."""

import itertools

import numpy as np
import pytest

from sfumato.telemetry.oracles.points import Space

SPACES = [(2, 2), (2, 4), (3, 2), (3, 3), (3, 4), (5, 3), (7, 2)]


def vectors(prime, dimension):
    """Each point as its coordinates, by number: all vectors whose first coordinate not 0 is 1."""
    every = itertools.product(range(prime), repeat=dimension)
    return [each for each in every if next((x for x in each if x), 0) == 1]


def planes(prime, dimension):
    """For each hyperplane by number, the numbers of its points, by multiplication."""
    points = vectors(prime, dimension)
    found = []
    for coefficients in points:
        turned = coefficients[::-1]
        sums = [sum(a * b for a, b in zip(turned, each, strict=True)) % prime for each in points]
        found.append({number for number, total in enumerate(sums) if total == 0})
    return found


@pytest.mark.parametrize(("prime", "dimension"), SPACES)
def test_on_numbers_the_points_of_a_hyperplane(prime, dimension):
    space = Space(prime, dimension)
    for plane, wanted in enumerate(planes(prime, dimension)):
        found = [space.on(plane, place) for place in range(space.on_plane)]
        assert len(found) == len(wanted) and set(found) == wanted


@pytest.mark.parametrize(("prime", "dimension"), SPACES)
def test_beyond_numbers_the_points_off_a_hyperplane(prime, dimension):
    space = Space(prime, dimension)
    every = set(range(space.points))
    for plane, wanted in enumerate(planes(prime, dimension)):
        found = [space.beyond(plane, place) for place in range(prime ** (dimension - 1))]
        assert len(found) == len(every - wanted) and set(found) == every - wanted


@pytest.mark.parametrize(("prime", "dimension"), SPACES)
def test_two_hyperplanes_share_the_stated_points(prime, dimension):
    space, every = Space(prime, dimension), planes(prime, dimension)
    assert len(every) == space.points
    shared = {len(one & other) for one, other in itertools.combinations(every, 2)}
    assert shared == {space.on_both}


@pytest.mark.parametrize(("prime", "dimension"), [*SPACES, (11, 5), (53, 3)])
def test_many_points_are_those_of_one_at_a_time(prime, dimension):
    space = Space(prime, dimension)
    planes = np.arange(0, space.points, max(1, space.points // 200))
    on = np.arange(len(planes)) * 7 % space.on_plane
    beyond = np.arange(len(planes)) * 7 % prime ** (dimension - 1)
    pairs = zip(planes.tolist(), on.tolist(), strict=True)
    assert space.on_many(planes, on).tolist() == [space.on(*pair) for pair in pairs]
    pairs = zip(planes.tolist(), beyond.tolist(), strict=True)
    assert space.beyond_many(planes, beyond).tolist() == [space.beyond(*pair) for pair in pairs]


def test_the_least_space_is_taken():
    assert Space.of(2, 7).dimension == 3 and Space.of(2, 8).dimension == 4
    assert Space.of(7, 2).dimension == 2

# SPDX-License-Identifier: Apache-2.0
"""Blurred places: the law of distances, what two places lose, and what repeated reports show."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidNumber
from sfumato.mechanisms.blur import Blur
from sfumato.privacy.relaxations import MetricDP
from sfumato.testing import assert_follows


def law(rate, reach):
    """The probability of each offset, from the definition."""
    weights = {}
    for first, second in itertools.product(range(-reach, reach + 1), repeat=2):
        weights[first, second] = math.exp(-rate * math.hypot(first, second))
    total = sum(weights.values())
    return {offset: weight / total for offset, weight in weights.items()}


def radii(probabilities):
    """The cdf of the squared distance."""
    squares = {}
    for (first, second), probability in probabilities.items():
        square = first * first + second * second
        squares[square] = squares.get(square, 0.0) + probability

    def cdf(x):
        return sum(probability for square, probability in squares.items() if square <= x)

    return cdf


def test_a_place_is_reported_with_exactly_the_probability_of_its_distance():
    blur = Blur(1, per=2, step=1)
    drawn = [blur.release((100, -7)) for _ in range(1500)]
    squares = [round((x - 100) ** 2 + (y + 7) ** 2) for x, y in drawn]
    cdf, wrong = radii(law(0.5, 45)), radii(law(0.35, 45))
    assert_follows(squares, cdf, notices=wrong)


def test_proposals_that_are_never_refused_are_noticed(monkeypatch):
    """Without the ratio, distances are those of two wide Laplace draws."""
    monkeypatch.setattr("sfumato.mechanisms.blur._SHARE", Fraction(3, 10))
    monkeypatch.setattr("sfumato.mechanisms.blur.is_below", lambda bounds, entropy: True)
    blur = Blur(1, per=2, step=1)
    squares = [round(x * x + y * y) for x, y in (blur.release((0, 0)) for _ in range(1500))]
    with pytest.raises(AssertionError, match="from the stated law"):
        assert_follows(squares, radii(law(0.5, 45)), notices=radii(law(0.2, 60)))


def test_lattice_points_are_as_hard_to_tell_apart_as_stated():
    """All pairs of a lattice of 9 x 9, and all reports near them."""
    blur = Blur(1, per=4, step=2)
    rate = float(blur.rate)
    points = list(itertools.product(range(9), repeat=2))
    reports = np.array(list(itertools.product(range(-6, 15), repeat=2)))
    logs = {p: -rate * np.hypot(reports[:, 0] - p[0], reports[:, 1] - p[1]) for p in points}
    worst = 0.0
    for one, other in itertools.combinations(points, 2):
        loss = np.abs(logs[one] - logs[other]).max()
        metres = 2 * math.dist(one, other)
        assert loss <= float(blur.guarantee.at(str(metres)).epsilon) + 1e-9
        worst = max(worst, loss / metres)
    assert worst == pytest.approx(1 / 4)


def test_a_report_is_on_the_lattice_next_to_the_place():
    blur = Blur(10**6, per="1km", step="30m")
    for x, y in ((44, -46), (14.9, 15.1), (0, 0)):
        east, north = blur.release((x, y))
        assert (east % 30, north % 30) == (0, 0)
        assert math.hypot(east - x, north - y) <= 30 / math.sqrt(2) + 1e-9


def test_the_mean_and_the_radius_are_those_of_the_plane():
    """A step of a tenth of per: within 1% of 2 and 4.744 per/epsilon."""
    blur = Blur(1, per="200m", step="20m")
    whole = law(float(blur.rate), 160)
    mean = 20 * sum(probability * math.hypot(*offset) for offset, probability in whole.items())
    assert mean == pytest.approx(2 * 200, rel=0.01)
    assert blur.error("0.95") == pytest.approx(4.744 * 200, rel=0.01)
    fine = Blur(1, per="200m", step="1m")
    assert fine.error("0.95") == pytest.approx(4.744 * 200, rel=0.001)


def test_the_mean_of_a_hundred_reports_of_one_home_comes_near_it():
    """Reports cost: a hundred of one place are a hundred times the epsilon."""
    blur = Blur(1, per="200m", step="20m")
    reports = np.array([blur.release((1000, 500)) for _ in range(100)])
    near = math.hypot(*(reports.mean(axis=0) - (1000, 500)))
    # the mean is off by sqrt(6) per / 10 in root mean square, and by twice that in 2% at most
    assert near < 4 * 200 * math.sqrt(6) / 10 < blur.error("0.95")
    assert blur.guarantee.of_reports(100) == MetricDP(100, 200)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Blur(1, per="0m", step=1),
        lambda: Blur(1, per=10, step=11),
        lambda: Blur(1, per=10, step=0),
        lambda: Blur(0, per=10, step=1),
        lambda: Blur(1, per=10, step=1).release((math.nan, 0)),
        lambda: Blur(1, per=10, step=1).release((0, math.inf)),
        lambda: Blur(1, per=10, step=1).error(1),
    ],
)
def test_what_is_no_place_or_scale_is_refused(wrong):
    with pytest.raises(InvalidNumber):
        wrong()

# SPDX-License-Identifier: Apache-2.0
"""A lattice of losses: what it refuses, and that crops and scales lose no more than they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.loss.lattice import Lattice, norm
from sfumato.errors import InvalidNumber


def lattice(weights, **changes) -> Lattice:
    base = Lattice(0.5, -2, np.array(weights, dtype=float), 0.7, 0.1, 0.0, 0.0, 0.0, 0.0)
    return replace(base, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"step": 0.0},
        {"step": math.nan},
        {"tilt": -1.0},
        {"log_mass": math.inf},
        {"blur": -1e-9},
        {"shift": math.nan},
        {"error": -1.0},
        {"hidden": -1.0},
        {"weights": np.zeros(0)},
        {"weights": np.array([0.5, -1e-9])},
        {"weights": np.array([0.5, math.nan])},
    ],
)
def test_a_lattice_cannot_be_built_wrong(changes) -> None:
    with pytest.raises(InvalidNumber):
        replace(lattice([0.5, 0.5]), **changes)


def test_losses_and_moments_are_those_of_the_weights() -> None:
    x = lattice([0.25, 0.5, 0.25])
    assert x.losses.tolist() == [-1.0, -0.5, 0.0]
    assert x.moments() == pytest.approx((-0.5, 0.125))


weights = st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda w: sum(w) > 0.1)


@given(weights, st.floats(0, 0.4))
def test_a_crop_says_what_it_lost(w: list[float], most: float) -> None:
    x = lattice(w)
    y = x.cropped(most)
    lost = sum(w) - float(y.weights.sum())
    assert -1e-12 <= lost <= y.error + 1e-12 and y.error <= 2 * most * (1 + 1e-6) + 1e-12
    kept = set(np.round(y.losses, 9)) <= set(np.round(x.losses, 9))
    assert kept
    for loss, weight in zip(y.losses, y.weights, strict=True):
        assert weight == w[round(float(loss) / 0.5) + 2]


@given(weights)
def test_scaling_changes_no_mass(w: list[float]) -> None:
    x = lattice(w, error=1e-3)
    y = x.scaled()
    before = x.weights * math.exp(x.log_mass)
    assert y.weights * math.exp(y.log_mass) == pytest.approx(before, rel=1e-13)
    assert y.error * math.exp(y.log_mass) >= x.error * math.exp(x.log_mass)


@given(weights)
def test_norms_and_totals_are_not_below_the_true_ones(w: list[float]) -> None:
    x = lattice(w)
    assert x.total >= math.fsum(w) and norm(x.weights) ** 2 >= math.fsum(
        each * each for each in w
    ) * (1 - 1e-15)

# SPDX-License-Identifier: Apache-2.0
"""The noise of a descent: against the very steps of the descent, pushed one noise at a time."""

import numpy as np
import pytest

from sfumato.learning.descent import Descent, State
from sfumato.learning.descent_noise import DescentNoise, gains, portions, slopes
from sfumato.learning.features import Features, Listed

COUNTS = np.array([300.0, 80.0, 2.0])


def averaged(descent: Descent, pushes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The result of a linear descent to 0 whose gradients are the weights times the counts."""
    counts = np.concatenate([COUNTS / 2, COUNTS / 2])
    state = State(1, 0, counts, start, np.zeros(3), np.zeros(3))
    for push in pushes:
        gradient = COUNTS * state.weights + push
        state = descent._stepped(state, gradient)
    return state.result


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_the_gains_are_those_of_the_steps_themselves(steps: int) -> None:
    descent = Descent(2, steps + 1, 4.0, False)
    pace = descent.pace(COUNTS)
    variance, kept = gains(pace * COUNTS, steps + 1, descent)
    found = np.zeros(3)
    for step in range(steps):
        pushes = np.zeros((steps, 3))
        pushes[step] = 1
        found += averaged(descent, pushes, np.zeros(3)) ** 2
    assert variance * pace**2 == pytest.approx(found)
    assert kept == pytest.approx(averaged(descent, np.zeros((steps, 3)), np.ones(3)))


def test_the_noise_of_a_curve_is_that_of_weights_minus_their_mean() -> None:
    features = Features((Listed("a", 0, 2),))
    counts = np.concatenate([COUNTS / 3, COUNTS * 2 / 3])
    state = State(11, 8, counts, np.zeros(3), np.zeros(3), np.zeros(3))
    noise = DescentNoise(Descent(1, 11, 4.0, True), 1.0)
    minus = np.eye(3) - np.tile(COUNTS / COUNTS.sum(), (3, 1))
    wanted = np.sqrt(minus**2 @ noise.of_weights(state, features))
    assert noise.of_curves(state, features) == pytest.approx(wanted)
    # samples add noise of their own
    assert (
        DescentNoise(noise.descent, 0.1).of_weights(state, features)
        > noise.of_weights(state, features)
    ).all()


def test_without_examples_and_without_steps_there_is_a_number() -> None:
    assert portions(np.zeros(4)).tolist() == [0.25] * 4
    state = State(1, 0, np.zeros(6), np.zeros(3), np.zeros(3), np.zeros(3))
    found = DescentNoise(Descent(1, 11, 4.0, True), 1.0).of_curves(
        state, Features((Listed("a", 0, 2),))
    )
    assert np.isfinite(found).all()


def test_slopes_are_means_over_the_other_features() -> None:
    features = Features((Listed("a", 0, 2), Listed("b", 0, 1)))
    weights, sizes = np.array([0.3, -0.2, 0.0, 0.5, -0.5]), np.array([5.0, 5, 0, 5, 5])
    found = slopes(weights, sizes, features)

    def slope(score: np.ndarray) -> np.ndarray:
        rate = 1 / (1 + np.exp(-score))
        return rate * (1 - rate)

    # the scores of b are 0.5 and -0.5; a normal law of that variance is near
    wanted = (slope(weights[:3] + 0.5) + slope(weights[:3] - 0.5)) / 2
    assert found[:3] == pytest.approx(wanted, rel=0.01)
    assert slopes(weights * 1e6, sizes, features).max() < 0.26

# SPDX-License-Identifier: Apache-2.0
"""The descent: without noise it reaches the optimum; its state survives its bytes."""

import numpy as np
import pytest

from sfumato.learning.descent import Descent, State


def test_a_state_survives_its_bytes() -> None:
    random = np.random.default_rng(3)
    state = State(7, 2, random.normal(size=10), *random.normal(size=(3, 5)))
    body = state.to_bytes()
    again = State.from_bytes(body)
    assert len(body) == State.size(5) and again.to_bytes() == body
    assert (again.released, again.averaged) == (7, 2)
    assert (again.weights == state.weights).all() and (again.counts == state.counts).all()


@pytest.mark.parametrize("logistic", [True, False])
def test_without_noise_it_finds_the_optimum(logistic: bool) -> None:
    # two features of two values: 0-1 and 2-3; the optimum is that of Newton's method
    random = np.random.default_rng(1)
    on = np.stack([random.integers(0, 2, 4000), 2 + random.integers(0, 2, 4000)], axis=1)
    rate = 0.2 + 0.3 * (on[:, 0] == 1) + 0.3 * (on[:, 1] == 3)
    target = random.uniform(size=4000) < rate
    design = np.zeros((4000, 4))
    np.put_along_axis(design, on, 1, axis=1)
    descent = Descent(2, 400, 1e-9, logistic)
    counts = np.concatenate([design[~target].sum(axis=0), design[target].sum(axis=0)])
    state = descent.after(State.start(4), np.rint(counts * 1000).astype(np.int64), 1000.0)
    for _ in range(399):
        score = design @ state.weights
        predicted = 1 / (1 + np.exp(-score)) if logistic else score
        gradient = design.T @ (predicted - target)
        state = descent.after(state, np.rint(gradient * 1000).astype(np.int64), 1000.0)
    assert np.abs(gradient).max() < 1
    assert state.averaged == 321 and np.abs(state.result - state.weights).max() < 0.1


def test_noise_that_drowns_everything_moves_little() -> None:
    descent = Descent(2, 10, 1e6, logistic=True)
    counts = np.array([-5e6, 5e6, 3e5, 0, 0, 0, 0, 1e6]).astype(np.int64)
    state = descent.after(State.start(4), counts, 1.0)
    state = descent.after(state, np.array([10**6, -(10**6), 0, 5]), 1.0)
    assert np.isfinite(state.weights).all() and np.abs(state.weights).max() < 6
    assert (state.result == state.weights).all()


def test_no_examples_are_no_error() -> None:
    descent = Descent(1, 5, 1.0, logistic=True)
    state = descent.after(State.start(3), np.zeros(6, np.int64), 1.0)
    assert np.isfinite(state.weights).all()

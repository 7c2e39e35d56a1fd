# SPDX-License-Identifier: Apache-2.0
"""Runs: what is charged is what the pieces do, and a checkpoint is what the next piece starts
from.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.learning.additive import Additive
from sfumato.learning.budget import Budgeted
from sfumato.learning.descent import State
from sfumato.learning.examples import SCORES, Residuals, Targets
from sfumato.learning.examples_of import Examples
from sfumato.learning.order import Poisson
from sfumato.learning.run import Training, checkpointed
from sfumato.metadata.dataset import Dataset
from sfumato.privacy import Repeated, Sampled
from sfumato.privacy.event import Block, Composed
from tests.learning.rows import COLUMNS, SELECT, frame

TOWN = Dataset("town", {"people": sf.Table(frame(10), columns=COLUMNS)})
EXAMPLES = Examples.of(TOWN, SELECT, "ill")


def training(recipe: Additive | None = None, budget: Budgeted | None = None) -> Training:
    recipe = recipe or Additive(steps=9, checkpoints=3)
    return recipe.training(EXAMPLES, budget or Budgeted(rho=Fraction(1, 10)), [Fraction(8)])


def test_the_pieces_do_what_is_charged() -> None:
    run = training()
    assert run.sizes == (4, 3, 3) and isinstance(run.event, Composed)
    earlier: dict[int, bytes] = {}
    for place, part in enumerate(run.event.events, start=1):
        piece = run.piece(place, earlier)
        assert piece.event == part == Repeated(run.step, run.sizes[place - 1])
        assert len(piece.cells) == piece.steps and piece.ready(TOWN) is EXAMPLES.plan
        state = replace(piece.state, released=piece.state.released + piece.steps)
        earlier[place] = state.to_bytes()
        assert len(earlier[place]) == piece.size


def test_the_first_release_counts_and_the_others_are_gradients() -> None:
    run = training()
    first = run.piece(1, {})
    width = run.counted.features.width
    assert first.cells == (2 * width, width, width, width)
    assert isinstance(first._sums(0).reading, Targets)
    weights = np.linspace(-2000, 2000, width)
    state = replace(State.start(width), released=3, weights=weights)
    reading = run.piece(2, {1: state.to_bytes()})._sums(3, state).reading
    assert isinstance(reading, Residuals) and reading.logistic
    wanted = np.clip(weights, -1024, 1024) * SCORES
    assert np.abs(reading.weights - wanted).max() <= 0.5


def test_a_lost_piece_is_skipped() -> None:
    run = training()
    state = replace(State.start(run.counted.features.width), released=4)
    after_a_loss = run.piece(3, {1: state.to_bytes()})
    assert after_a_loss.state.released == 4 and after_a_loss.steps == 3
    # without any checkpoint the next piece counts
    assert run.piece(2, {}).cells[0] == 2 * run.counted.features.width


def test_a_block_and_samples() -> None:
    bought = Budgeted(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    run = training(budget=bought)
    assert isinstance(run.event, Block) and run.event.epsilon == 1
    sampled = training(Additive(steps=3, order=Poisson("0.1")))
    assert isinstance(sampled.step, Sampled) and sampled.example == sampled.counted.steps / 10


def test_runs_that_differ_have_different_forms() -> None:
    one = training()
    others = [
        training(Additive(steps=8, checkpoints=3)),
        training(Additive(steps=9, checkpoints=2)),
        training(Additive(steps=9, checkpoints=3, bins=5)),
        training(Additive(steps=9, checkpoints=3, order=Poisson("0.5"))),
        training(budget=Budgeted(rho=Fraction(1, 9))),
        replace(one, recipe="another"),
    ]
    assert len({run.form for run in [one, *others]}) == 7
    assert training().form == one.form and "10 releases" in one.line


@pytest.mark.parametrize(("releases", "checkpoints"), [(1, 9), (10, 1), (10, 3), (7, 7)])
def test_releases_are_divided_evenly(releases: int, checkpoints: int) -> None:
    sizes = checkpointed(releases, checkpoints)
    assert sum(sizes) == releases and max(sizes) - min(sizes) <= 1 and min(sizes) >= 1

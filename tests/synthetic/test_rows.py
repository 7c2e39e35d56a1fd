# SPDX-License-Identifier: Apache-2.0
"""Rows have the marginals of the model, and no row that the model excludes."""

import numpy as np
import pytest

from sfumato.synthetic.estimate import Fitted
from sfumato.synthetic.rows import Dice, sampled, systematic
from sfumato.synthetic.tree import JunctionTree
from sfumato.testing import Replay

SIZES = (3, 4, 2)


def model(total=1000.0, seed=1):
    tree = JunctionTree.over(SIZES, [(0, 1), (1, 2)])
    random = np.random.default_rng(seed)
    parts = [((0, 1), random.normal(0, 1, (3, 4))), ((1, 2), random.normal(0, 1, (4, 2)))]
    barred = np.zeros((3, 4))
    barred[0, 1:3] = -1e6
    tables = tree.summed([*parts, ((0, 1), barred)])
    return Fitted(tree, (), tree.marginals(tables, total), total)


def counts(rows, pair):
    shape = [SIZES[each] for each in pair]
    flat = np.ravel_multi_index(rows[:, list(pair)].T, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_rows_are_within_rounding_of_the_model(seed):
    rows = sampled(model(), 1000, Dice(Replay(seed)))
    for pair in ((0, 1), (1, 2)):
        # the rows of each given cell are rounded once: less than 2 off for each cell
        assert np.abs(counts(rows, pair) - model().marginal(pair)).max() < 2


def test_a_cell_that_cannot_occur_never_does():
    for seed in range(20):
        found = counts(sampled(model(), 997, Dice(Replay(seed))), (0, 1))
        assert found[0, 1] == found[0, 2] == 0


def test_rows_of_replayed_entropy_are_identical():
    one, same, other = (sampled(model(), 100, Dice(Replay(seed))) for seed in (1, 1, 2))
    assert (one == same).all() and not (one == other).all()


def test_few_rows_and_none():
    assert sampled(model(), 0, Dice()).shape == (0, 3)
    assert sampled(model(), 1, Dice()).shape == (1, 3)


def test_systematic_positions_follow_their_weights():
    found = systematic(np.array([0.0, 1.0, 0.0, 2.0, 0.0]), 9, Dice(Replay(1)))
    assert np.bincount(found, minlength=5).tolist() == [0, 3, 0, 6, 0]
    # in random order
    assert found.tolist() != sorted(found.tolist())
    assert systematic(np.zeros(3), 0, Dice()).size == 0

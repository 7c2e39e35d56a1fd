# SPDX-License-Identifier: Apache-2.0
"""Runs at a clip that moves: what a piece does with releases, and what it stores."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.learning.budget import Budgeted
from sfumato.learning.order import FullBatch, Poisson
from sfumato.learning.torch import SGD
from sfumato.learning.torch.adaptive import AdaptiveClip
from sfumato.learning.torch.adaptive_training import AdaptiveTraining, parts_of
from sfumato.privacy import Norm
from tests.learning.torch.nets import linear, sums
from tests.learning.torch.test_adaptive import adaptive

CLIP = AdaptiveClip("0.25", "0.5", rate="0.4")


def training(order: Any = None) -> AdaptiveTraining:
    budget, sigma = Budgeted(rho=Fraction(1, 10)), Fraction(2**18)
    statistic = adaptive(clipping=CLIP)
    order = order or FullBatch()
    return AdaptiveTraining("made", statistic, order, (1, 2), sigma, budget, SGD(1.0), 100)


class Told:
    """A curator that answers with the same numbers, and notes at which clip it was asked."""

    def __init__(self, numbers: Any) -> None:
        self.numbers, self.clips = np.asarray(numbers), list[float]()

    def measure(self, statistic: Any, mechanism: Any, of: Any) -> Any:
        self.clips.append(statistic.moved)
        return self.numbers


def test_the_step_is_that_of_gradients_and_the_clip_follows_the_count() -> None:
    run = training()
    width = run.sums.lattice.size
    # 75 of 100 units are within the clip: it shrinks by exp(-0.4 (0.75 - 0.5))
    told = Told([int(100 / run.sums.lattice.step)] * width + [75 * run.sums.weight])
    first = run.piece(1, {})
    body = first.run(told)  # type: ignore[arg-type]
    assert len(body) == first.size and first.cells == (width + 1,)
    # each of the gradients is 1, at the first clip
    assert np.allclose(run.weights(body), run.start.weights - 1)
    second = run.piece(2, {1: body})
    assert np.isclose(second.moved, np.exp(-0.1), rtol=1e-15)
    assert second.event == replace(first, steps=2).event and second.cells == (width + 1,) * 2
    after = run.weights(second.run(told))  # type: ignore[arg-type]
    assert np.allclose(after, run.weights(body) - np.exp(-0.1) - np.exp(-0.2))
    assert told.clips == [1.0, second.moved, CLIP.after(second.moved, 0.75)]
    assert second.ready(None) is run.sums.plan  # type: ignore[arg-type]


def test_expected_counts_are_of_the_declared_size() -> None:
    run = training(Poisson("0.1"))
    assert run.everyone == 10 * run.sums.weight


def test_the_count_is_an_item_of_its_own() -> None:
    run = training()
    (item,) = parts_of(run.sums)
    assert item["sensitivity"] == str(run.sums.weight**2) and "1/20" in item["release"]
    apart = run.sums.distance(Norm.L2).value
    assert 0.0499 < float(run.sums.weight**2 / apart) <= 0.05
    assert parts_of(sums(linear())) == ()

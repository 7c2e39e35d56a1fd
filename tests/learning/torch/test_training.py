# SPDX-License-Identifier: Apache-2.0
"""Runs of networks: what is charged is what the pieces do."""

from fractions import Fraction
from typing import Any

from sfumato.learning.budget import Budgeted
from sfumato.learning.order import FullBatch, Poisson
from sfumato.learning.torch import SGD
from sfumato.learning.torch.training import NetworkTraining
from sfumato.privacy import Repeated, Sampled
from sfumato.privacy.event import Block, Composed
from tests.learning.torch.nets import linear, sums


def training(order: Any = None, budget: Any = None) -> NetworkTraining:
    budget = budget or Budgeted(rho=Fraction(1, 10))
    sizes, sigma = (3, 2), Fraction(2**18)
    return NetworkTraining(
        "made", sums(linear()), order or FullBatch(), sizes, sigma, budget, SGD(1.0), 100
    )


def test_the_pieces_do_what_is_charged() -> None:
    run = training()
    assert isinstance(run.event, Composed)
    earlier: dict[int, bytes] = {}
    for place, part in enumerate(run.event.events, start=1):
        piece = run.piece(place, earlier)
        assert piece.event == part == Repeated(run.step, run.sizes[place - 1])
        assert piece.cells == (run.sums.lattice.size,) * run.sizes[place - 1]
        earlier[place] = piece.state.to_bytes()
        assert len(earlier[place]) == piece.size
    assert piece.ready(None) is run.sums.plan  # type: ignore[arg-type]


def test_samples_and_blocks() -> None:
    run = training(Poisson("0.1"), Budgeted(epsilon=Fraction(1), delta=Fraction(1, 10**6)))
    assert isinstance(run.event, Block) and isinstance(run.step, Sampled)
    # a mean over the expected sample of ten
    assert run.example * run.sums.lattice.step == 10

# SPDX-License-Identifier: Apache-2.0
"""What is drawn is what is charged; nothing else can be an order."""

from fractions import Fraction
from typing import Any

import pytest

from sfumato.errors import SfumatoError, WrongUse
from sfumato.learning.order import (
    Cyclic,
    Fixed,
    FullBatch,
    Poisson,
    drawn,
    event_of,
    require_order,
)
from sfumato.privacy import PureEvent, Relation
from sfumato.privacy.event import FixedSample, PoissonSample, Sampled

STEP = PureEvent(Fraction(1))


class Recorder:
    """A curator that only notes what is drawn."""

    def __init__(self) -> None:
        self.designs: list[object] = []

    def sample(self, design: object) -> str:
        self.designs.append(design)
        return "sample"


@pytest.mark.parametrize("order", [Poisson("0.25"), Fixed(5, 20)])
def test_what_is_drawn_is_what_is_charged(order: Any) -> None:
    curator: Any = Recorder()
    assert drawn(order, curator) == "sample"
    assert event_of(order, STEP) == Sampled(curator.designs[0], STEP)
    assert order.share == Fraction(1, 4)


def test_all_units_are_no_sample() -> None:
    curator: Any = Recorder()
    assert drawn(FullBatch(), curator) is None and not curator.designs
    assert event_of(FullBatch(), STEP) is STEP


def test_designs_are_those_of_their_fields() -> None:
    assert Poisson("0.1").design == PoissonSample(Fraction(1, 10))
    assert Fixed(3, 9).design == FixedSample(3, 9)


@pytest.mark.parametrize("rate", [0, -1, "1.01"])
def test_a_rate_is_a_share(rate: object) -> None:
    with pytest.raises(WrongUse, match="rate"):
        Poisson(rate)


@pytest.mark.parametrize(("size", "population"), [(0, 100), (-1, 100), (100, 50), (1.5, 100)])
def test_a_size_is_that_of_a_sample(size: Any, population: int) -> None:
    with pytest.raises(SfumatoError):
        Fixed(size, population)


def test_a_loader_of_batches_is_no_order() -> None:
    for loader in ([1, 2, 3], "shuffled", None, iter(())):
        with pytest.raises(WrongUse, match="order="):
            require_order(loader, Relation.ADD_REMOVE)


def test_samples_go_with_their_neighbours() -> None:
    require_order(Poisson("0.5"), Relation.ADD_REMOVE)
    require_order(Fixed(1, 2), Relation.REPLACE_ONE)
    require_order(FullBatch(), Relation.REPLACE_ONE)
    with pytest.raises(WrongUse):
        require_order(Poisson("0.5"), Relation.REPLACE_ONE)
    with pytest.raises(WrongUse):
        require_order(Fixed(1, 2), Relation.ADD_REMOVE)


def test_batches_that_take_turns_are_no_sample() -> None:
    assert Cyclic(20).share == Fraction(1, 20)
    # under no relation is a measurement of one batch priced
    for relation in Relation:
        with pytest.raises(WrongUse, match="without streams"):
            require_order(Cyclic(20), relation)
    for separation in (0, -1, True, 2.5, "20", 2**21 + 1):
        with pytest.raises(WrongUse, match="separation"):
            Cyclic(separation)  # type: ignore[arg-type]

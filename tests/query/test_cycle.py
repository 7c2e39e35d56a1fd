# SPDX-License-Identifier: Apache-2.0
"""Cycles: how far all rows move, by exhaustive search; who takes part; what a curator refuses.

Each with the mutant that it catches.
"""

import copy
import pickle
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.engines.base import UnitRows
from sfumato.errors import EngineFailed, InvalidDeclaration
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.encoder import SquareRoot, squared
from sfumato.metadata.column import Column, Integer
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Integers, RoundedGaussian
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.value import Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Event, Repeated
from sfumato.privacy.unit import Relation
from sfumato.query import statistic
from sfumato.query.curator import Curator
from sfumato.query.cycle import Cycle, Turning
from sfumato.query.reserved import Reserved
from sfumato.query.statistic import BoundedStatistic, Opened
from sfumato.query.stream_state import Past
from sfumato.testing import assert_at_most

APART = Distance(Norm.L2, Fraction(2**20), Relation.ADD_REMOVE)
COLUMN = Column("place", Integer(0, 99))
PLAN = BoundedRows(
    RowList(Scan("people", columns=(COLUMN,)), (Value.of(COLUMN),)), None, 1, Relation.ADD_REMOVE
)
NOISE = AdditiveMechanism(RoundedGaussian(2**14))


class Present(BoundedStatistic[Integers]):
    """A 1 at the place of each unit that is there."""

    def __init__(self, size: int, apart: Distance = APART) -> None:
        self.size, self.apart = size, apart

    def distance(self, norm: Norm) -> Distance:
        return self.apart

    def exact(self, opened: Opened) -> Integers:
        return np.bincount(opened.unit_rows(PLAN).codes[:, 0], minlength=self.size).astype(np.int64)


def opened(units: int) -> Opened:
    """The data of so many units, each with its place."""
    found = Opened(PLAN)
    found._units = UnitRows(np.arange(units)[:, None], np.arange(units + 1))
    return found


def rows(cycle: Cycle, sums: Integers) -> Integers:
    """All exact rows of some sums."""
    memory, found = cycle.encoder.begin(cycle.size), []
    for each in sums:
        memory, row = cycle.row(memory, each)
        found.append(row)
    return np.stack(found)


def patterns(cycle: Cycle) -> Iterator[tuple[int, ...]]:
    """All sets of steps that are as far apart as stated: those of batches, and all others."""
    for count in range(1, cycle.steps + 1):
        for steps in combinations(range(cycle.steps), count):
            if all(b - a >= cycle.separation for a, b in pairwise(steps)):
                yield steps


def farthest(cycle: Cycle) -> Fraction:
    """The largest squared distance of all rows over patterns and signs; a sum is one number."""
    longest = 2**10
    random = np.random.default_rng(5)
    worst = 0
    for steps in patterns(cycle):
        for signs in product((-1, 1), repeat=len(steps)):
            sums = random.integers(-(2**40), 2**40, (cycle.steps, 1))
            moved = sums.copy()
            moved[list(steps), 0] += longest * np.array(signs)
            apart = (rows(cycle, moved) - rows(cycle, sums)).ravel()
            worst = max(worst, int(apart @ apart))
    return Fraction(worst)


SMALL = [(5, 1, 3), (7, 2, 2), (7, 2, 4), (8, 3, 3), (8, 3, 8), (5, 5, 2), (6, 2, 1)]


@pytest.mark.parametrize(("steps", "separation", "bands"), SMALL)
def test_all_rows_of_a_cycle_together_move_by_at_most_their_proved_distance(
    steps: int, separation: int, bands: int
) -> None:
    cycle = Cycle(APART, 1, steps, separation, bands)
    proved = cycle.distance(cycle.participations).value
    found = farthest(cycle)
    # a column that is cut off after the last step is counted whole
    assert Fraction(9, 10) * proved <= found <= proved
    # a single participation is the column of the event
    assert cycle.event(NOISE).column == cycle.distance(1).value <= proved


@pytest.mark.parametrize("mutant", ["rarer", "column", "one row"])
def test_the_search_notices(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = Cycle(APART, 1, 8, 2, 4)
    honest = SquareRoot.sensitivity

    def wrong(self: SquareRoot, participations: int, separation: int) -> int:
        if mutant == "rarer":
            # a unit takes part more often than is paid for
            return honest(self, participations - 1, separation)
        if mutant == "column":
            # columns that share rows, as if they did not
            return participations * squared(self.coefficients, 1, 1)
        return participations * self.unit**2

    monkeypatch.setattr(SquareRoot, "sensitivity", wrong)
    assert farthest(cycle) > cycle.distance(cycle.participations).value


def test_what_rounding_adds_is_counted() -> None:
    # sums that move by a single step: rows round half of it up
    near = Distance(Norm.L2, Fraction(1), Relation.ADD_REMOVE)
    cycle = Cycle(near, 1, 4, 1, 4)
    sums = np.array([[1], [0], [0], [1]])
    moved = sums + np.array([[1], [1], [1], [1]])
    apart = (rows(cycle, moved) - rows(cycle, sums)).ravel()
    assert apart @ apart <= cycle.distance(4).value
    # the broken version forgets the roundings
    one = Cycle(near, 1, 2, 2, 2)
    single = (rows(one, np.array([[1], [0]])) - rows(one, np.array([[0], [0]]))).ravel()
    assert single @ single > one.encoder.sensitivity(1, 2) / Fraction(2**36)
    assert single @ single <= one.distance(1).value


def test_one_band_in_one_batch_is_what_single_steps_cost() -> None:
    cycle = Cycle(APART, 7, 12, 1, 1)
    assert cycle.distance(12).value == 12 * APART.value
    sums = np.arange(84).reshape(12, 7) - 40
    assert (rows(cycle, sums) == sums).all()


def test_both_relations_are_those_of_the_sums() -> None:
    for relation in Relation:
        cycle = Cycle(replace(APART, relation=relation), 2, 9, 3, 3)
        assert cycle.distance(3).relation is relation


def attendance(turning: Turning, steps: int, size: int) -> Integers:
    """Who is there in each step; the noise is 0."""
    return np.stack([turning.next(Present(size)) for _ in range(steps)])


def begun(cycle: Cycle, data: Opened) -> Turning:
    return Turning(cycle, NOISE, data, np.zeros(cycle.steps * cycle.size, np.int64))


def test_a_unit_takes_part_once_in_a_separation(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = Cycle(APART, 50, 11, 4, 1)

    def most() -> int:
        there = attendance(begun(cycle, opened(50)), 11, 50)
        windows = [there[first : first + 4].sum(axis=0) for first in range(8)]
        return int(np.max(windows))

    there = attendance(begun(cycle, opened(50)), 11, 50)
    assert all((there[first : first + 4].sum(axis=0) == 1).all() for first in range(8))

    # the broken version draws the batch of each step anew
    def anew(self: Opened, count: int) -> Any:
        return lambda number: opened(50)

    monkeypatch.setattr(Opened, "batches", anew)
    assert most() > 1


def together(count: int) -> None:
    """Fails unless two units are in one of four batches a quarter of the time."""
    same = 0
    for _ in range(count // 100):
        batch = opened(100).batches(4)
        numbers = np.zeros(100, int)
        for number in range(4):
            numbers[batch(number).unit_rows(PLAN).codes[:, 0]] = number
        same += int((numbers[::2] == numbers[1::2]).sum())
    assert_at_most(same, count // 2, 0.25, notices=0.36)
    assert_at_most(count // 2 - same, count // 2, 0.75, notices=0.86)


def test_units_draw_their_batches_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    together(8_000)
    # the broken version deals units out in turn: a unit more would move all behind it
    monkeypatch.setattr(statistic, "below_many", lambda count, units: np.arange(units) % count)
    with pytest.raises(AssertionError, match="was stated"):
        together(8_000)


def holding(*events: Event, past: Past | None = None) -> Curator:
    return Curator("charge", Reserved(Composed(events)), opened(3), past)


def test_a_cycle_is_taken_once_with_so_many_rows() -> None:
    cycle = Cycle(APART, 3, 2, 1, 2)
    event = cycle.event(NOISE)
    noise = np.array([10, 20, 30, 400, 500, 600])
    curator = Curator("charge", Reserved(Composed((event,)), [noise]), opened(3))
    turn = curator.turn(cycle, NOISE)
    # each row has noise of its own: 1, then 1 + 1/2, rounded half up
    assert curator.row(turn, Present(3)).tolist() == [11, 21, 31]
    assert curator.row(turn, Present(3)).tolist() == [402, 502, 602]
    with pytest.raises(EngineFailed):
        curator.row(turn, Present(3))
    assert curator.end() == "engine"


def test_what_was_not_reserved_is_refused(tmp_path: Path) -> None:
    cycle = Cycle(APART, 3, 4, 2, 2)
    event = cycle.event(NOISE)
    wider = replace(APART, value=4 * APART.value)

    class Mine(Cycle):
        __slots__ = ()

    def twice(curator: Curator) -> None:
        # a band that is begun again would draw its rows a second time
        curator.turn(cycle, NOISE)
        curator.turn(cycle, NOISE)

    def of_another(curator: Curator) -> None:
        turn = holding(event).turn(cycle, NOISE)
        curator.turn(cycle, NOISE)
        curator.row(turn, Present(3))

    def ended(curator: Curator) -> None:
        turn = curator.turn(cycle, NOISE)
        curator.end()
        curator.row(turn, Present(3))

    for attack in (
        twice,
        of_another,
        ended,
        lambda curator: curator.turn(replace(cycle, separation=4), NOISE),
        lambda curator: curator.turn(replace(cycle, bands=1), NOISE),
        lambda curator: curator.turn(cycle, AdditiveMechanism(DiscreteGaussian(2**14))),
        lambda curator: curator.turn(Mine(APART, 3, 4, 2, 2), NOISE),
        lambda curator: curator.row(curator.turn(cycle, NOISE), Present(3, wider)),
        lambda curator: curator.row(curator.turn(cycle, NOISE), Present(4)),
    ):
        with pytest.raises(EngineFailed):
            attack(holding(event))
    # two that were reserved are two
    both = holding(Repeated(event, 2))
    assert both.turn(cycle, NOISE) is not both.turn(cycle, NOISE)


def test_a_stream_that_is_paid_once_has_no_cycle_in_each_piece(tmp_path: Path) -> None:
    cycle = Cycle(APART, 3, 4, 2, 2)
    event = cycle.event(NOISE)
    past = Past(tmp_path, "charge", 0, 1)
    with pytest.raises(EngineFailed):
        Curator("charge", Reserved(event), opened(3), past).turn(cycle, NOISE)
    # without a secret state the same stream is one piece of a series, and paid for it
    assert Curator("charge", Reserved(event), opened(3)).turn(cycle, NOISE)


def test_exact_sums_are_not_copied_out() -> None:
    turning = begun(Cycle(APART, 3, 4, 2, 2), opened(3))
    assert repr(turning) == "Turning()"
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            copied(turning)


def test_no_cycle_of_other_sums() -> None:
    for fields in ((0, 4, 2, 2), (3, 0, 1, 1), (3, 4, 0, 2), (3, 4, 2, 5), (3, 4, 2, 0)):
        with pytest.raises(InvalidDeclaration):
            Cycle(APART, *fields)
    with pytest.raises(InvalidDeclaration):
        Cycle(replace(APART, norm=Norm.L1), 3, 4, 2, 2)
    with pytest.raises(InvalidDeclaration):
        Cycle(APART, 3, 4, 2, 2).event(AdditiveMechanism(DiscreteLaplace(4)))
    with pytest.raises(InvalidDeclaration):
        Opened(PLAN).batches(3)

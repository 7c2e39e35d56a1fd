# SPDX-License-Identifier: Apache-2.0
"""Sums of clipped gradients against ordinary backward passes, and neighbours against their
distance, with broken versions.
"""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.errors import InvalidDeclaration
from sfumato.learning.torch import gradients as module
from sfumato.learning.torch.gradients import GradientSums, lattice_for
from sfumato.plan.rows import MISSING
from sfumato.privacy import Norm
from sfumato.privacy.unit import Relation
from tests.learning.torch.nets import (
    CLASSES,
    LOSS,
    RULED,
    UNRULED,
    WIDTH,
    codes,
    linear,
    opened,
    sums,
)

EACH = [(name, make, name in UNRULED) for name, make in (RULED | UNRULED).items()]


def wanted(statistic: GradientSums, rows: Any, starts: Any = None) -> Any:
    """The sum of the clipped gradients of units, one backward pass a row, in float64."""
    network = statistic.network
    starts = range(len(rows) + 1) if starts is None else starts
    x, y, _ = statistic.reading.tensors(rows, len(rows))
    by_row = torch.cat(list(network.one_by_one(x, y)), 1).double().numpy()
    total = np.zeros(network.width)
    for first, last in pairwise(starts):
        gradient = by_row[first:last].sum(axis=0)
        length = float(np.sqrt((gradient**2).sum()))
        total += gradient * min(1.0, float(statistic.lattice.clip) / max(length, 1e-30))
    return total


def released(statistic: GradientSums, rows: Any, starts: Any = None) -> Any:
    return statistic.exact(opened(statistic, rows, starts))


def moved(statistic: GradientSums, one: Any, other: Any) -> float:
    return float(((released(statistic, one) - released(statistic, other)) ** 2).sum())


@pytest.mark.parametrize(("name", "make", "whole"), EACH, ids=[each[0] for each in EACH])
@pytest.mark.parametrize("clip", [Fraction(1, 8), Fraction(64)])
def test_the_sum_is_that_of_ordinary_backward_passes(
    name: str, make: Any, whole: bool, clip: Fraction
) -> None:
    torch.manual_seed(1)
    statistic = sums(make(), whole=whole, clip=clip)
    rows = codes(40)
    found = released(statistic, rows) * float(statistic.lattice.step)
    expected = wanted(statistic, rows)
    # inside a row, integers are fine beside the clip; those of float32 are coarser
    near = (4e-3 if name == "wide" else 3e-4) * (float(clip) + np.abs(expected).max())
    assert np.abs(found - expected).max() < near
    assert np.abs(expected).max() > 0.05


@pytest.mark.parametrize("relation", list(Relation))
def test_gradients_of_neighbours_are_as_near_as_their_distance_says(relation: Relation) -> None:
    torch.manual_seed(2)
    net = linear()
    with torch.no_grad():
        net[0].weight *= 50
    statistic = sums(net, clip=Fraction(1, 4))
    rows = codes(300, seed=3)
    bound = float(statistic.lattice.distance(relation).value)
    for place in (0, 7, 299):
        other = np.delete(rows, place, 0)
        if relation is Relation.REPLACE_ONE:
            other = rows.copy()
            other[place] = codes(1, seed=place)
        assert moved(statistic, rows, other) <= bound
    # the clip binds: a neighbour is nearly as far as it may be
    far = moved(statistic, rows, np.delete(rows, 7, 0))
    assert far > 0.9 * float(statistic.lattice.distance(Relation.ADD_REMOVE).value)


def test_an_unclipped_chunk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    statistic = sums(linear(), clip=Fraction(1, 16))
    rows = codes(20)
    bound = float(statistic.lattice.distance(Relation.ADD_REMOVE).value)
    assert moved(statistic, rows, rows[1:]) <= bound
    monkeypatch.setattr(module, "clip_factors", lambda squares, *_, **__: np.ones(len(squares)))
    assert moved(statistic, rows, rows[1:]) > 2 * bound


def test_the_integers_of_a_row_are_within_the_clip() -> None:
    torch.manual_seed(4)
    for make in RULED.values():
        statistic = sums(make(), clip=Fraction(1, 16))
        rows = codes(30)
        for row in rows[:6]:
            fine = statistic._total(statistic._rows(opened(statistic, row[np.newaxis])))
            # in Python's integers
            length = sum(int(each) ** 2 for each in fine)
            most = statistic.lattice.clip / statistic.fine
            assert length <= most**2
            assert length > (Fraction(9, 10) * most) ** 2


class Halving(nn.Module):
    """Is trained, and writes into what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(9, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.out(x.mul_(0.5))


def test_what_a_stem_makes_of_rows_is_kept_and_changes_no_bit() -> None:
    torch.manual_seed(3)
    frozen = nn.Linear(WIDTH, 9).requires_grad_(requires_grad=False)
    calls: list[int] = []
    frozen.register_forward_hook(lambda *_: calls.append(1))
    statistic = sums(nn.Sequential(frozen, nn.Tanh(), Halving()))
    rows = codes(600)
    data = opened(statistic, rows)
    plain = sums(nn.Sequential(nn.Sequential(frozen, nn.Tanh(), Halving())))
    assert statistic.network.stem is not None and plain.network.stem is None
    for weights in (statistic.network.start, 2 * statistic.network.start):
        found = statistic.at(weights).exact(data)
        assert len(calls) == 3
        assert (found == plain.at(weights).exact(opened(plain, rows))).all()
        calls[3:] = []
    # rows of another charge are computed anew
    statistic.exact(opened(statistic, rows[:9]))
    assert len(calls) == 4


def test_what_is_longer_than_the_rows_is_not_kept() -> None:
    torch.manual_seed(3)
    wide = nn.Linear(WIDTH, 40).requires_grad_(requires_grad=False)
    statistic = sums(nn.Sequential(wide, nn.Linear(40, CLASSES)))
    data = opened(statistic, codes(300))
    first = statistic.exact(data)
    assert list(data._kept.values()) == [None]
    assert (statistic.exact(data) == first).all() and first.any()


def test_the_same_rows_in_any_order_and_on_any_threads_have_the_same_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(5)
    rows = codes(700)
    other = np.random.default_rng(0).permutation(rows)
    for make in (linear, RULED["embedding"], RULED["wide"]):
        statistic = sums(make())
        whole = released(statistic, rows)
        assert (whole == released(statistic, other)).all()
        with monkeypatch.context() as patched:
            # three chunks, one by one
            patched.setattr(module, "_AT_ONCE", 1)
            assert (whole == released(statistic, rows)).all()
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(threads + 2)
            assert (whole == released(statistic, rows)).all()
        finally:
            torch.set_num_threads(threads)


def test_a_unit_with_several_rows_is_clipped_once() -> None:
    torch.manual_seed(6)
    statistic = sums(linear(), most=900, clip=Fraction(1, 4))
    rows = codes(1000)
    # the first has 900 rows, more than a chunk; then units of 1, 2, ... rows
    starts = [0, 900, *np.cumsum(range(1, 14)) + 900, 1000]
    found = released(statistic, rows, starts) * float(statistic.lattice.step)
    assert np.abs(found - wanted(statistic, rows, starts)).max() < 1e-3
    bound = float(statistic.lattice.distance(Relation.ADD_REMOVE).value)
    without = released(statistic, rows[900:], np.array(starts[1:]) - 900)
    far = float(((released(statistic, rows, starts) - without) ** 2).sum())
    assert far <= bound
    # the broken version: each row is clipped by itself
    split = sums(linear(), clip=Fraction(1, 4))
    assert moved(split, rows, rows[900:]) > 100 * bound
    with pytest.raises(InvalidDeclaration, match="one by one"):
        GradientSums(statistic.plan, statistic.reading, statistic.lattice, False, statistic.network)


def test_other_units_do_not_move_a_bit_of_a_long_one() -> None:
    torch.manual_seed(6)
    statistic = sums(linear(), most=900)
    rows = codes(1300)
    alone = released(statistic, rows[:900], [0, 900])
    for more in (1, 7, 400):
        starts = [0, 900, *range(901, 901 + more)]
        both = released(statistic, rows[: 900 + more], starts)
        rest = released(statistic, rows[900 : 900 + more], np.array(starts[1:]) - 900)
        # each is rounded once: half a step at most
        assert np.abs(both - rest - alone).max() <= 1


def test_a_gradient_that_is_not_finite_counts_as_nothing() -> None:
    class Bad(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = linear()

        def forward(self, x: Any) -> Any:
            # 9 / 9 is 1: infinite or not a number
            broken = torch.where(x[:, :1] == 1, torch.inf, 1.0)
            return self.inner(x * broken)

    torch.manual_seed(7)
    good = codes(50)
    good[:, 0] = 3
    bad = codes(300, seed=9)
    bad[:, 0] = 9
    for whole in (False, True):
        statistic = sums(Bad(), whole=whole)
        together = np.concatenate([good[:20], bad, good[20:]])
        assert (released(statistic, together) == released(statistic, good)).all()


@pytest.mark.parametrize("size", [1e30, 1e-30])
@pytest.mark.parametrize("whole", [False, True])
def test_a_huge_or_tiny_gradient_is_clipped_and_moves_nothing_else(
    size: float, whole: bool
) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(WIDTH, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.out(torch.where(x[:, :1] == 1, size, 1.0) * x)

    torch.manual_seed(7)
    statistic = sums(Scaled(), whole=whole, clip=Fraction(1, 4))
    rows = codes(50)
    rows[:, 0] = 3
    one = codes(1, seed=9)
    one[:, 0] = 9
    far = moved(statistic, np.concatenate([rows, one]), rows)
    assert far <= float(statistic.lattice.distance(Relation.ADD_REMOVE).value)


def test_a_missing_label_adds_nothing_and_an_empty_table_is_zero() -> None:
    rows = codes(30)
    unlabelled = codes(9, seed=3)
    unlabelled[:, -1] = [MISSING, -1, 3, 2**40, MISSING, 7, 8, 9, 10]
    for whole in (False, True):
        statistic = sums(linear(), whole=whole)
        both = released(statistic, np.concatenate([unlabelled, rows]))
        assert (both == released(statistic, rows)).all()
        assert not released(statistic, rows[:0]).any()
        assert len(released(statistic, rows[:0])) == statistic.lattice.size


def test_only_the_norm_of_the_lattice_has_a_distance() -> None:
    with pytest.raises(InvalidDeclaration):
        sums(linear()).distance(Norm.L1)


@pytest.mark.parametrize("multiplier", [Fraction(1, 512), Fraction(1), Fraction(10**6)])
def test_the_lattice_is_fine_enough_for_rounded_factors(multiplier: Fraction) -> None:
    lattice = lattice_for(10**6, Fraction(3), multiplier)
    assert 3 / 2**21 <= lattice.step <= 3 / 2**17
    # rounding adds 1% at most
    distance = float(lattice.distance(Relation.ADD_REMOVE).value) ** 0.5
    assert distance * float(lattice.step) < 3 * 1.011
    assert LOSS.reduction == "none"

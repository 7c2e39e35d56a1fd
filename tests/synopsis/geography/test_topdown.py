# SPDX-License-Identifier: Apache-2.0
"""The estimate from the top down: what holds to the last integer, and mutants that break it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synopsis.geography import topdown as module
from sfumato.synopsis.geography.design import Design
from sfumato.synopsis.geography.least_squares import LeastSquares, PublicTotals, by_axes
from sfumato.synopsis.geography.topdown import TopDown, least_totals
from tests.synopsis.geography.trees import tree_of, trees

SIZES = (3, 2, 2)
CHOICES = [(), (0,), (1,), (0, 1), (1, 2), (0, 1, 2)]


def facts(design: Design, known: dict[tuple[int, int], int] | None = None) -> PublicTotals:
    """Public totals by level and area."""
    masks = [np.zeros(size, bool) for size in design.tree.sizes]
    totals = [np.zeros(size) for size in design.tree.sizes]
    for (level, area), total in (known or {}).items():
        masks[level][area], totals[level][area] = True, total
    return PublicTotals(tuple(masks), tuple(totals))


def estimator(design: Design, public: PublicTotals | None = None) -> TopDown:
    stated = facts(design) if public is None else public
    return TopDown(design, np.zeros(design.sizes, bool), stated, least_totals(design, stated))


def made_up(design: Design, seed: int, noise: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Counts of each level in its detail, and their least-squares estimates."""
    draws = np.random.default_rng(seed)
    lowest = draws.poisson(2, (design.tree.sizes[-1], *design.sizes))
    counts = [lowest]
    for level in range(design.tree.levels - 2, -1, -1):
        counts.append(design.tree.gathered(level, counts[-1]))
    counts = counts[::-1]
    every = tuple(range(len(design.sizes)))
    noisy = []
    for level, axes in design.tables:
        table = by_axes(counts[level], every, axes)
        noisy.append(table + draws.normal(0, noise, table.shape))
    precisions = (1 / max(noise, 1e-3) ** 2,) * len(design.tables)
    squares = LeastSquares(design, precisions).estimates(noisy)
    return [by_axes(each, every, design.detail(at)) for at, each in enumerate(counts)], squares


@st.composite
def designs(draw: st.DrawFn) -> Design:
    """Designs with one to three tables at each level."""
    tree = draw(trees())
    tables = []
    for level in range(tree.levels):
        chosen = draw(st.lists(st.sampled_from(CHOICES), min_size=1, max_size=3, unique=True))
        tables += [(level, axes) for axes in chosen]
    return Design(tree, SIZES, tuple(tables))


def require_consistent(design: Design, found: list[np.ndarray]) -> None:
    for level, counts in enumerate(found):
        assert counts.dtype == np.int64
        assert counts.min() >= 0
        if level:
            above = by_axes(found[level - 1], design.detail(level - 1), design.detail(level))
            assert (design.tree.gathered(level - 1, counts) == above).all()


@given(designs(), st.integers(0, 10**6), st.sampled_from([0.5, 3.0, 40.0]))
def test_children_are_their_parents_to_the_last_integer(design, seed, noise):
    _, squares = made_up(design, seed, noise)
    require_consistent(design, estimator(design).estimates(squares))


@given(designs(), st.integers(0, 10**6))
def test_without_noise_the_tables_are_those_of_the_data(design, seed):
    counts, squares = made_up(design, seed, 1e-5)
    found = estimator(design).estimates(squares)
    for level in range(design.tree.levels):
        # totals and the finest table of the chain that is determined are exact
        detail = design.detail(level)
        assert (
            by_axes(found[level], detail, ()).tolist()
            == by_axes(counts[level], detail, ()).tolist()
        )
        if all(design.is_complete(each) for each in range(level + 1)):
            assert (found[level] == counts[level]).all()


FULL = Design(tree_of([3], [2, 3, 1]), SIZES, ((0, (0, 1, 2)), (1, (0, 1)), (2, (0, 1)), (2, ())))


@pytest.mark.parametrize("seed", range(3))
def test_public_totals_are_kept_at_every_level(seed):
    # the last county has one block, so its total is public too
    known = {(0, 0): 400, (1, 1): 37, (1, 2): 0, (2, 0): 90, (2, 5): 0}
    public = facts(FULL, known)
    _, squares = made_up(FULL, seed, 10.0)
    fitted = estimator(FULL, public).estimates(squares)
    require_consistent(FULL, fitted)
    for (level, area), total in known.items():
        assert fitted[level][area].sum() == total
    # the total of a county is at least that of its block
    assert fitted[1][0].sum() >= 90


@pytest.mark.parametrize("seed", range(3))
def test_impossible_cells_are_zero_at_every_level(seed):
    impossible = np.zeros(SIZES, bool)
    impossible[0, 1] = True
    public = facts(FULL)
    keeping = TopDown(FULL, impossible, public, least_totals(FULL, public))
    _, squares = made_up(FULL, seed, 10.0)
    found = keeping.estimates(squares)
    require_consistent(FULL, found)
    assert all(counts[:, 0, 1].sum() == 0 for counts in found)


def test_levels_are_reported_as_they_are_done():
    _, squares = made_up(FULL, 1, 1.0)
    done: list[int] = []
    estimator(FULL).estimates(squares, done.append)
    assert done == [0, 1, 2]


def test_rounding_that_keeps_no_sums_is_noticed(monkeypatch):
    """The mutant rounds each cell to the nearest whole number."""
    monkeypatch.setattr(
        module, "whole_tables", lambda near, rows, columns, groups: np.rint(near).astype(np.int64)
    )
    _, squares = made_up(FULL, 2, 5.0)
    with pytest.raises(AssertionError):
        require_consistent(FULL, estimator(FULL).estimates(squares))


def test_many_small_chunks_are_as_one(monkeypatch):
    _, squares = made_up(FULL, 3, 5.0)
    whole = estimator(FULL).estimates(squares)
    monkeypatch.setattr(module, "_CHUNK", 1)
    for one, other in zip(whole, estimator(FULL).estimates(squares), strict=True):
        assert (one == other).all()

# SPDX-License-Identifier: Apache-2.0
"""Features: every code has a coordinate, and the weights of a feature add up."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.features import (
    Binned,
    Features,
    Group,
    Line,
    Listed,
    binned,
    linear,
    require_edges,
)
from sfumato.plan.rows import MISSING

CODES = st.lists(
    st.integers(-200, 200) | st.sampled_from([MISSING, 2**52, -(2**52)]), min_size=1, max_size=9
)
PARTS = [Listed("a", -2, 5), Binned("b", (-10, 0, 7)), Line("c", -50, 49)]


@given(CODES)
def test_every_code_has_a_coordinate_and_a_whole_weight(codes: list[int]) -> None:
    features = Features(tuple(PARTS))
    columns = [np.array(codes)] * 3
    for start, part, (at, weight) in zip(
        features.starts, PARTS, features.encoded(columns), strict=True
    ):
        weight = np.zeros(len(codes), int) if weight is None else weight
        last = at.astype(int) + (weight > 0)
        assert (at >= start).all() and (last < start + part.width).all()
        assert (weight <= features.scale).all()
        missing = np.array(codes) == MISSING
        assert (at[missing] == start + part.width - 1).all() and not weight[missing].any()


def test_bins_are_between_edges_and_lines_between_bounds() -> None:
    at, _ = Binned("b", (10, 20)).places(np.array([9, 10, 19, 20, 10**9, MISSING]), 1)
    assert at.tolist() == [0, 1, 1, 2, 2, 3]
    at, weight = Line("c", 0, 10).places(np.array([-5, 0, 5, 10, 99]), 64)
    assert at.tolist() == [0] * 5 and weight.tolist() == [0, 0, 32, 64, 64]
    at, _ = Listed("a", 3, 2).places(np.array([3, 4, 5, MISSING]), 1)
    assert at.tolist() == [0, 1, 2, 2]


def test_features_follow_declarations() -> None:
    assert binned("x", sf.Category("a", "b"), {}, 16) == Listed("x", 0, 2)
    assert linear("x", sf.Boolean()) == Listed("x", 0, 2)
    assert binned("x", sf.Integer(1, 4), {}, 16).edges == (2, 3, 4)
    assert binned("x", sf.Real(0, 1, step="1/8"), {"x": [0.5]}, 16).edges == (4,)
    assert binned("x", sf.Integer(0, 99, clip=49), {}, 2).edges == (25,)
    assert linear("x", sf.Date("2000-01-01", "2000-01-11")).upper == 10957 + 10
    assert Features((Listed("x", 0, 2),)).scale == 1 and Features((Line("x", 0, 9),)).scale == 64


@pytest.mark.parametrize(
    "make",
    [
        lambda: Features(()),
        lambda: binned("x", sf.Timestamp("2000-01-01", "2001-01-01", zone="UTC"), {}, 16),
        lambda: linear("x", sf.Text()),
        lambda: linear("x", sf.Integer(0, 9, clip=(3, 3))),
        lambda: binned("x", sf.Date("2000-01-01", "2001-01-01"), {"x": [1]}, 16),
    ],
)
def test_what_is_no_feature_is_refused(make: Any) -> None:
    with pytest.raises((WrongUse, sf.SfumatoError)):
        make()


def test_edges_of_no_feature_are_refused() -> None:
    with pytest.raises(UnknownName, match="agee"):
        require_edges(["age"], {"agee": [1]})


@given(
    st.lists(st.integers(-3000, 3000), max_size=6, unique=True).map(sorted),
    st.lists(st.integers(-(2**52), 2**52) | st.integers(-3001, 3001), min_size=1, max_size=20),
)
def test_a_table_of_bins_says_what_a_search_says(edges: list[int], codes: list[int]) -> None:
    """Every edge, and its neighbours, too."""
    near = [*codes, MISSING, *(edge + step for edge in edges for step in (-1, 0, 1))]
    at, _ = Binned("x", tuple(edges)).places(np.array(near, np.int64), 1)
    for code, place in zip(near, at.tolist(), strict=True):
        below = len([edge for edge in edges if edge <= code])
        assert place == (len(edges) + 1 if code == MISSING else below)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 3), st.randoms())
def test_a_group_reads_several_features_as_one(widths: list[int], first: int, random: Any) -> None:
    group = Group(first, tuple(widths))
    rows = [tuple(random.randrange(width) for width in widths) for _ in range(9)]
    cells = group.cells([np.array(each) for each in zip(*rows, strict=True)])
    # the last feature changes fastest, as in a table of all combinations
    every = list(itertools.product(*map(range, widths)))
    assert group.size == len(every) and cells.tolist() == [every.index(row) for row in rows]
    starts = [first + sum(widths[:place]) for place in range(len(widths))]
    found = [each.tolist() for each in group.places(cells)]
    assert found == [[start + row[k] for row in rows] for k, start in enumerate(starts)]
    weights = np.array([random.randrange(-9, 9) for _ in range(first + sum(widths))])
    table = [
        sum(weights[start + at] for start, at in zip(starts, cell, strict=True)) for cell in every
    ]
    assert group.table(weights).tolist() == table
    sums = np.array([random.randrange(-9, 9) for _ in every])
    wanted = np.zeros(first + sum(widths), np.int64)
    for cell, amount in zip(every, sums, strict=True):
        for start, at in zip(starts, cell, strict=True):
            wanted[start + at] += amount
    assert group.folded(sums).tolist() == wanted[first:].tolist()


def test_groups_hold_every_feature_once_and_fit_the_cache() -> None:
    widths = [18] * 7 + [20_000, 3, 70_000, 2]
    features = Features(tuple(Listed(f"x{k}", 0, width - 1) for k, width in enumerate(widths)))
    groups = features.groups
    assert [width for group in groups for width in group.widths] == widths
    assert [group.first for group in groups] == [0, 54, 108, 126, 20_126, 20_129, 90_129]
    assert [group.size for group in groups] == [5832, 5832, 18, 20_000, 3, 70_000, 2]
    assert [group.narrow for group in groups] == [np.uint16] * 5 + [np.uint32, np.uint16]

# SPDX-License-Identifier: Apache-2.0
"""Counts of sets of items on all neighbours of small tables, with broken versions."""

import itertools
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.mining import baskets, unit_keys
from sfumato.mining.baskets import BasketCounts
from sfumato.mining.unit_keys import Reading
from sfumato.privacy.distance import Norm
from tests.mining.notes import plan, rows, together, vector

ITEMS = tuple((0, word) for word in "abcde")
PAIRS = tuple(itertools.combinations(range(5), 2))
THREES = tuple(itertools.combinations(range(5), 3))
OTHERS = together(rows("b", "a b c"), rows("c", "b c", "d e"), rows("d", "z"))
MINE = ["a b c d e", "b c", "e", "x y"]


def statistic(
    keep: int, size: int = 2, *, width: int = 99, relation: Any = sf.AddRemove, chosen: Any = None
) -> BasketCounts:
    candidates = chosen or {2: PAIRS, 3: THREES}[size]
    return BasketCounts(Reading(plan(relation), (0,)), keep, width, size, ITEMS, candidates)


def units() -> list[list[Any]]:
    return [rows("a", *some) for size in range(4) for some in itertools.combinations(MINE, size)]


def farthest(counts: BasketCounts, norm: Norm, *, replaced: bool = False) -> int:
    """How far counts are from those without a unit, or with another one in its place."""
    found = [np.array(vector(counts, together(mine, OTHERS))) for mine in units()]
    moved = [np.abs(one - other) for one in found for other in (found if replaced else found[:1])]
    return max(int(each.sum() if norm is Norm.L1 else (each**2).sum()) for each in moved)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize(("keep", "size"), [(2, 2), (3, 2), (4, 3), (9, 2)])
def test_counts_of_sets_of_items_move_by_at_most_their_proved_distance(
    norm: Norm, relation: Any, keep: int, size: int
) -> None:
    counts = statistic(keep, size, relation=relation)
    moved = farthest(counts, norm, replaced=relation is sf.ReplaceOne)
    assert moved <= counts.distance(norm).value
    if relation is sf.AddRemove and keep < 5:
        assert moved == counts.distance(norm).value, "the bound is attained"


def test_a_narrow_width_is_the_bound() -> None:
    counts = statistic(9, width=4, chosen=PAIRS[:4])
    assert counts.distance(Norm.L1).value == 4
    assert farthest(counts, Norm.L1) == 4
    with pytest.raises(InvalidDeclaration, match="candidates"):
        statistic(9, width=3, chosen=PAIRS[:4])


def test_a_basket_that_is_not_cut_before_it_is_counted_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = unit_keys._cut
    monkeypatch.setattr(
        unit_keys, "_cut", lambda unit, key, hashed, keep: honest(unit, key, hashed, 99)
    )
    counts = statistic(2)
    assert farthest(counts, Norm.L1) > counts.distance(Norm.L1).value


@pytest.mark.parametrize(
    "chosen",
    [
        ((0, 1), (0, 1)),
        ((1, 0),),
        ((0, 0),),
        ((-1, 0), (0, 4)),
        ((0, 5),),
        ((0, 1, 2),),
        ((),),
    ],
)
def test_a_candidate_twice_or_by_another_name_is_refused(chosen: Any) -> None:
    with pytest.raises(InvalidDeclaration):
        statistic(9, chosen=chosen)


def test_an_index_below_zero_would_count_a_unit_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that the check is for: the set {a, e} is there under two names."""
    monkeypatch.setattr(BasketCounts, "__post_init__", lambda self: None)
    counts = statistic(2, chosen=((-1, 0), (0, 4)))
    found = vector(counts, rows("a", "a e"))
    assert sum(found) == 2 > counts.distance(Norm.L1).value


def test_the_counts_are_those_of_units_with_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    table = together(rows("a", "a b", "c"), OTHERS)
    have = [set("abc"), set("abc"), set("bcde"), set()]
    for size, candidates in ((2, PAIRS), (3, THREES)):
        expected = [
            sum({ITEMS[item][1] for item in each} <= items for items in have) for each in candidates
        ]
        assert vector(statistic(9, size), table) == expected
        with monkeypatch.context() as patched:
            patched.setattr(baskets, "_CELLS", 1)
            patched.setattr(baskets, "_BYTES", 1)
            patched.setattr(unit_keys, "_AT_ONCE", 2)
            assert vector(statistic(9, size), table) == expected


def test_no_candidates_and_no_items_are_counted_as_nothing() -> None:
    reading = Reading(plan(), (0,))
    assert vector(BasketCounts(reading, 9, 9, 2, (), ()), OTHERS) == []

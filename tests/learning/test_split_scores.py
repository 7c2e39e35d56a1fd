# SPDX-License-Identifier: Apache-2.0
"""Scores of tuples of tests against their proved distance on neighbours, and against fractions."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning import split_scores
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import binned
from sfumato.learning.split_scores import LeafSizes, Sorting, SplitScores
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened

KINDS = {"x": sf.Integer(0, 3), "c": sf.Category("p", "q"), "y": sf.Category("a", "b", "c")}
OTHERS = [
    {"who": f"o{place}", "x": place % 4, "c": "pq"[place % 2], "y": "aabc"[place % 4]}
    for place in range(9)
]
MINE = [
    {"who": "me", "x": x, "c": c, "y": y}
    for x, c, y in ((0, "p", "a"), (3, "q", "c"), (None, None, "b"), (1, "p", None))
]
# x at least 2, then c is p below and y is missing above
LEVELS = (np.array([2]), np.array([5, 4]))


def sorting(most: int = 1, relation: Any = sf.AddRemove) -> Sorting:
    rows = pa.Table.from_pylist([*MINE, *OTHERS])
    table = sf.Table(rows, unit=sf.Unit("who", max_rows_total=most), columns=KINDS)
    found = Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, c, y FROM t", "y")
    features = found.features(lambda name, kind: binned(name, kind, {}, 4))
    return Sorting(found.plan, features, found.places, found.label)


def exact(statistic: Any, rows: list[dict[str, object]]) -> Any:
    plan = statistic.sorting.plan
    opened = Opened(plan, rows=Reference({"t": rows}).rows(plan, "key"))
    with opened:
        return statistic.exact(opened)


def pairs(relation: Any) -> Any:
    """Datasets of neighbours: nothing of mine, or some of it."""
    mine = [
        list(rows)
        for size in range(4)
        for rows in itertools.combinations_with_replacement(MINE, size)
    ]
    if relation is sf.ReplaceOne:
        return [(one + OTHERS, other + OTHERS) for one in mine[::3] for other in mine]
    return [([*OTHERS], one + OTHERS) for one in mine] + [([], one) for one in mine]


def farthest(statistic: SplitScores, relation: Any) -> int:
    """How far the score of any tuple moves: the most in each node, added up."""
    found = 0
    for one, other in pairs(relation):
        moved = zip(exact(statistic, one), exact(statistic, other), strict=True)
        found = max(found, sum(int(np.abs(a - b).max()) for a, b in moved))
    return found


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("depth", [0, 2])
def test_scores_of_tuples_move_by_at_most_their_proved_distance(
    most: int, relation: Any, depth: int
) -> None:
    statistic = SplitScores(sorting(most, relation), LEVELS[:depth])
    assert 0 < farthest(statistic, relation) <= statistic.distance(Norm.LINF).value


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_leaf_sizes_move_by_at_most_their_proved_distance(most: int, relation: Any) -> None:
    statistic = LeafSizes(sorting(most, relation), LEVELS)
    moved = [exact(statistic, one) - exact(statistic, other) for one, other in pairs(relation)]
    longest = max(int(np.abs(each).sum()) for each in moved)
    assert 0 < longest <= statistic.distance(Norm.L1).value
    assert max(int((each**2).sum()) for each in moved) <= statistic.distance(Norm.L2).value


def squares(sizes: Any) -> Any:
    return (sizes * sizes).sum(axis=1) // 256


def heavier(statistic: Sorting, rows: Any) -> Any:
    found = WEIGHTED(statistic, rows)
    return split_scores.Weighted(found.coordinates, found.classes, 0 * found.weights + 256)


WEIGHTED = Sorting._weighted
BROKEN = {
    "squares that are not divided": (1, split_scores, "_purity", squares),
    "rows of a unit that do not share": (3, Sorting, "_weighted", heavier),
}


@pytest.mark.parametrize("name", BROKEN)
def test_scores_that_are_bounded_wrongly_are_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, where, what, broken = BROKEN[name]
    monkeypatch.setattr(where, what, broken)
    statistic = SplitScores(sorting(most), ())
    assert farthest(statistic, sf.AddRemove) > statistic.distance(Norm.LINF).value


def test_a_unit_weighs_at_most_the_declared_weight() -> None:
    assert [sorting(most).weight for most in (1, 3, 16, 17, 2**20)] == [256, 256, 256, 512, 2**24]
    for rows in (MINE, MINE * 5):
        for most in (1, 3, 5):
            statistic = LeafSizes(sorting(most), LEVELS)
            assert exact(statistic, rows).sum() <= statistic.sorting.weight


def test_scores_are_those_of_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = exact(SplitScores(sorting(), LEVELS[:1]), OTHERS)
    for node in (0, 1):
        below = [row for row in OTHERS if (row["x"] >= 2) == bool(node)]
        for test in range(8):
            sides: Any = ([], [])
            for row in below:
                passed = row["x"] >= test if test < 5 else "pq".find(row["c"]) == test - 5
                sides[passed].append(row["y"])
            wanted = 0
            for side in sides:
                total = sum(side.count(each) ** 2 for each in "abc")
                wanted += int(Fraction(256 * total, max(len(side), 1)))
            assert found[node][test] == wanted
    monkeypatch.setattr(split_scores, "_SMALL", 1)
    again = exact(SplitScores(sorting(), LEVELS[:1]), OTHERS)
    assert [each.tolist() for each in again] == [each.tolist() for each in found]


def test_a_row_without_a_class_changes_no_score() -> None:
    statistic = SplitScores(sorting(), LEVELS)
    with_it, without = exact(statistic, [MINE[3], *OTHERS]), exact(statistic, OTHERS)
    assert all((one == other).all() for one, other in zip(with_it, without, strict=True))
    assert not exact(LeafSizes(sorting(3), LEVELS), []).any()


def test_other_norms_and_long_units_are_refused() -> None:
    with pytest.raises(InvalidDeclaration):
        SplitScores(sorting(), ()).distance(Norm.L1)
    with pytest.raises(InvalidDeclaration):
        LeafSizes(sorting(), ()).distance(Norm.LINF)
    with pytest.raises(InvalidDeclaration):
        sorting(2**20 + 1)

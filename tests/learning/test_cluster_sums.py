# SPDX-License-Identifier: Apache-2.0
"""Cluster sums against their proved distance on neighbours and against plain arithmetic."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning import cluster_sums
from sfumato.learning.cluster_sums import ClusterSums
from sfumato.learning.examples_of import Examples
from sfumato.learning.points import STEPS, Box
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query import unit_vectors
from sfumato.query.statistic import Opened

KINDS = {"x": sf.Integer(0, 8), "y": sf.Integer(0, 8)}
CENTERS = np.array([[-STEPS, -STEPS], [0, 512], [STEPS, STEPS]])
POINTS = ((0, 0), (8, 8), (8, 0), (None, 3), (5, 5))
ROWS: list[dict[str, object]] = [
    {"who": who, "x": x, "y": y} for who in "ab" for x, y in POINTS
]  # fmt: skip


def sums(
    norm: Norm = Norm.L2, *, most: int = 1, relation: Any = sf.AddRemove, reach: int = 256
) -> ClusterSums:
    table = sf.Table(
        pa.Table.from_pylist(ROWS), unit=sf.Unit("who", max_rows_total=most), columns=KINDS
    )
    found = Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, y FROM t", None)
    box = Box((0, 0), (8, 8))
    return ClusterSums(found.plan, found.places, box, CENTERS, np.full(3, reach), norm)


def exact(statistic: ClusterSums, rows: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)


def farthest(statistic: ClusterSums, *, replaced: bool) -> int:
    """How far any rows of one unit move the sums."""
    mine, rest = ROWS[:5], ROWS[5:]
    base = exact(statistic, rest)
    moved = [
        exact(statistic, [*rows, *rest]) - base
        for size in range(4)
        for rows in itertools.combinations_with_replacement(mine, size)
    ]
    pairs = itertools.combinations(moved, 2) if replaced else ((each, 0 * each) for each in moved)
    if statistic.norm is Norm.L1:
        return max(int(np.abs(one - other).sum()) for one, other in pairs)
    return max(int(((one - other) ** 2).sum()) for one, other in pairs)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("most", [1, 3])
def test_cluster_sums_move_by_at_most_their_proved_distance(norm: Norm, most: int) -> None:
    for relation in (sf.AddRemove, sf.ReplaceOne):
        statistic = sums(norm, most=most, relation=relation)
        found = farthest(statistic, replaced=relation is sf.ReplaceOne)
        assert 0 < found <= statistic.distance(norm).value


BROKEN = {
    "an unclipped unit": (3, unit_vectors, "clipped", lambda vectors, bound, norm: vectors),
    "offsets that are not cut": (1, cluster_sums.np, "clip", lambda values, low, high: values),
}


@pytest.mark.parametrize("name", BROKEN)
def test_sums_that_are_bounded_wrongly_are_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, where, what, broken = BROKEN[name]
    monkeypatch.setattr(where, what, broken)
    statistic = sums(most=most)
    assert farthest(statistic, replaced=False) > statistic.distance(Norm.L2).value


def test_sums_are_those_of_plain_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    points = random.integers(0, 9, (50, 2))
    rows: list[dict[str, object]] = [
        {"who": str(place), "x": int(x), "y": int(y)} for place, (x, y) in enumerate(points)
    ]
    wanted = np.zeros((3, 3), int)
    for x, y in points.tolist():
        place = np.array([x - 4, y - 4]) * 256
        near = int(((CENTERS - place) ** 2).sum(axis=1).argmin())
        wanted[near] += [STEPS, *np.clip((place - CENTERS[near]) * 4, -STEPS, STEPS)]
    assert exact(sums(), rows).tolist() == wanted.ravel().tolist()
    monkeypatch.setattr(cluster_sums, "_AT_ONCE", 10)
    monkeypatch.setattr(unit_vectors, "_AT_ONCE", 7)
    assert exact(sums(), rows).tolist() == wanted.ravel().tolist()


def test_a_row_with_a_missing_number_adds_nothing() -> None:
    assert not exact(sums(), [ROWS[3]]).any()
    assert not exact(sums(most=3), []).any()


def test_centers_outside_the_box_are_refused() -> None:
    with pytest.raises(InvalidDeclaration):
        sums(reach=0)
    with pytest.raises(InvalidDeclaration):
        sums(most=10**6)

# SPDX-License-Identifier: Apache-2.0
"""Products of offsets against their proved distance on neighbours and against plain sums."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning import scatter
from sfumato.learning.examples_of import Examples
from sfumato.learning.points import STEPS, Box
from sfumato.learning.scatter import RadiusCounts, Scatter, radii
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query import unit_vectors
from sfumato.query.statistic import Opened

KINDS = {"x": sf.Integer(0, 8), "y": sf.Integer(0, 8)}
BOX = Box((0, 0), (8, 8))
CENTER = np.array([256, -256])
RADIUS = int(radii(2)[-8])
POINTS = ((0, 0), (8, 8), (8, 3), (None, 3), (5, 4))
ROWS: list[dict[str, object]] = [{"who": who, "x": x, "y": y} for who in "ab" for x, y in POINTS]


def plan(most: int = 1, relation: Any = sf.AddRemove) -> BoundedRows:
    unit = sf.Unit("who", max_rows_total=most)
    table = sf.Table(pa.Table.from_pylist(ROWS), unit=unit, columns=KINDS)
    return Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, y FROM t", None).plan


def products(most: int = 1, relation: Any = sf.AddRemove, radius: int = RADIUS) -> Scatter:
    return Scatter(plan(most, relation), (0, 1), BOX, CENTER, radius, 64)


def counts(norm: Norm, most: int = 1, relation: Any = sf.AddRemove) -> RadiusCounts:
    return RadiusCounts(plan(most, relation), (0, 1), BOX, CENTER, norm)


def exact(statistic: Any, rows: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        found: np.ndarray = statistic.exact(opened)
        return found


def moved(statistic: Any, relation: Any) -> list[np.ndarray]:
    """How any rows of one unit move a statistic."""
    mine, rest = ROWS[:5], ROWS[5:]
    base = exact(statistic, rest)
    found = [
        exact(statistic, [*rows, *rest]) - base
        for size in range(4)
        for rows in itertools.combinations_with_replacement(mine, size)
    ]
    if relation is sf.ReplaceOne:
        return [one - other for one, other in itertools.combinations(found, 2)]
    return found


def farthest(statistic: Any, relation: Any) -> int:
    return max(int((each**2).sum()) for each in moved(statistic, relation))


RELATIONS = pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])


@RELATIONS
@pytest.mark.parametrize("most", [1, 3])
def test_scatter_moves_by_at_most_its_proved_distance(most: int, relation: Any) -> None:
    statistic = products(most, relation)
    assert 0 < farthest(statistic, relation) <= statistic.distance(Norm.L2).value


@RELATIONS
@pytest.mark.parametrize("most", [1, 3])
def test_radius_counts_move_by_at_most_their_proved_distance(most: int, relation: Any) -> None:
    for norm in (Norm.L1, Norm.L2):
        statistic = counts(norm, most, relation)
        each = moved(statistic, relation)
        sizes = [np.abs(one).sum() if norm is Norm.L1 else (one**2).sum() for one in each]
        assert 0 < max(sizes) <= statistic.distance(norm).value


BROKEN = {
    "offsets that are not cut": (scatter, "clipped", lambda vectors, length, norm: vectors),
    "squares that count as much": (scatter, "SQUARE", 3),
}


@pytest.mark.parametrize("name", BROKEN)
def test_products_that_are_bounded_wrongly_are_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*BROKEN[name])
    # along one axis a square is all that there is
    statistic = Scatter(plan(), (0, 1), BOX, np.array([-STEPS, -STEPS]), RADIUS, 64)
    far = exact(statistic, [{"who": "a", "x": 8, "y": 0}])
    assert (far**2).sum() > statistic.distance(Norm.L2).value


def test_products_are_those_of_plain_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(2).integers(0, 9, (40, 2))
    rows: list[dict[str, object]] = [
        {"who": str(place), "x": int(x), "y": int(y)} for place, (x, y) in enumerate(points)
    ]
    total = np.zeros((2, 2))
    for point in points:
        offset = ((point - 4) * 256 - CENTER) * 64 / RADIUS
        offset *= min(1, 64 / np.linalg.norm(offset))
        total += np.outer(offset, offset)
    wanted = np.array([2 * total[0, 0], 3 * total[0, 1], 2 * total[1, 1]])
    found = exact(products(), rows)
    assert np.abs(found - wanted).max() < 40 * 3 * 64 * 4
    assert np.abs(found / wanted - 1).max() < 0.1
    monkeypatch.setattr(scatter, "_AT_ONCE", 14)
    monkeypatch.setattr(unit_vectors, "_AT_ONCE", 7)
    assert exact(products(), rows).tolist() == found.tolist()
    assert exact(products(3), rows).tolist() == (8 * found).tolist()


def test_rows_are_counted_at_their_radius() -> None:
    rows: list[dict[str, object]] = [{"who": "a", "x": 5, "y": 3}, {"who": "b", "x": 0, "y": 8}]
    found = exact(counts(Norm.L2), rows)
    apart = [0, np.hypot(-1280, 1280)]
    wanted = np.zeros(len(radii(2)), int)
    for each in apart:
        wanted[int((radii(2) < each).sum())] += STEPS
    assert found.tolist() == wanted.tolist()


def test_a_row_with_a_missing_number_adds_nothing_to_scatter() -> None:
    for statistic in (products(), products(3), counts(Norm.L2)):
        assert not exact(statistic, [ROWS[3]]).any() and not exact(statistic, []).any()


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(InvalidDeclaration):
        products().distance(Norm.L1)
    for wrong in ({"most": 1025}, {"radius": 1}):
        with pytest.raises(InvalidDeclaration):
            products(**wrong)
    with pytest.raises(InvalidDeclaration):
        Scatter(plan(), (0, 1), BOX, CENTER, RADIUS, 2048)
    with pytest.raises(InvalidDeclaration):
        counts(Norm.L2, most=2**22)
    assert [products(most).weight for most in (1, 2, 3, 1024)] == [1, 4, 8, 2048]

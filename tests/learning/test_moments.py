# SPDX-License-Identifier: Apache-2.0
"""Second moments against their proved distance on neighbours and against plain sums."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning import moments as module
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features, linear
from sfumato.learning.moments import SecondMoments
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened

KINDS = {"x": sf.Integer(0, 64), "c": sf.Category("p", "q"), "y": sf.Real(0, 1, step="1/64")}
ROWS = [
    {"who": who, "x": x, "c": c, "y": y}
    for who in "ab"
    for x, c, y in ((0, "p", 1.0), (64, "q", 1.0), (20, None, 0.25), (None, "p", None))
]


def moments(most: int = 1, relation: Any = sf.AddRemove) -> SecondMoments:
    table = sf.Table(
        pa.Table.from_pylist(ROWS), unit=sf.Unit("who", max_rows_total=most), columns=KINDS
    )
    found = Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, c, y FROM t", "y")
    kinds = found.plan.rows.values
    features = Features(tuple(linear(each.name, each.type) for each in kinds))
    return SecondMoments(found.plan, features, (0, 1, 2), 2)


def exact(statistic: SecondMoments, rows: list[dict[str, object]]) -> Any:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)


def farthest(statistic: SecondMoments, *, replaced: bool) -> int:
    """How far any rows of one unit move the moments, squared."""
    mine = [row for row in ROWS if row["who"] == "a"]
    rest = [row for row in ROWS if row["who"] == "b"]
    base = exact(statistic, rest)
    moved = [
        exact(statistic, [*rows, *rest]) - base
        for size in range(4)
        for rows in itertools.combinations_with_replacement(mine, size)
    ]
    pairs = itertools.combinations(moved, 2) if replaced else ((each, 0 * each) for each in moved)
    return max(int(((one - other) ** 2).sum()) for one, other in pairs)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_moments_move_by_at_most_their_proved_distance(most: int, relation: Any) -> None:
    statistic = moments(most, relation)
    found = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert 0 < found <= statistic.distance(Norm.L2).value


def test_units_that_are_not_clipped_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "clipped", lambda vectors, bound, norm: vectors)
    statistic = moments(3)
    assert farthest(statistic, replaced=False) > statistic.distance(Norm.L2).value


def test_moments_are_the_sums_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"who": str(k), "x": k, "c": "pq"[k % 2], "y": k / 64} for k in range(60)]
    statistic = moments()
    total = np.zeros((9, 9))
    for row in rows:
        each = np.zeros(9)
        each[[0, 1]] = 64 - row["x"], row["x"]
        each[3 + "pq".index(row["c"])] = 64
        each[[6, 7]] = 64 - 64 * row["y"], 64 * row["y"]
        total += np.outer(each, each)
    assert exact(statistic, rows).tolist() == total[np.triu_indices(9)].tolist()
    monkeypatch.setattr(module, "_AT_ONCE", 30)
    assert exact(statistic, rows).tolist() == total[np.triu_indices(9)].tolist()
    assert exact(moments(3), rows).tolist() == total[np.triu_indices(9)].tolist()


def test_a_row_without_its_required_value_adds_nothing() -> None:
    assert not exact(moments(), [ROWS[3]]).any() and not exact(moments(3), []).any()


def test_other_norms_and_long_units_are_refused() -> None:
    with pytest.raises(InvalidDeclaration):
        moments().distance(Norm.L1)
    with pytest.raises(InvalidDeclaration):
        moments(10**6)

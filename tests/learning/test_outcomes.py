# SPDX-License-Identifier: Apache-2.0
"""Counts of right predictions: against plain Python, and on neighbours."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features, linear
from sfumato.learning.outcomes import (
    AddedRightCounts,
    RightCounts,
    WeightOutcomes,
    integer_weights,
    predicted,
)
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened

KINDS = {"x": sf.Integer(0, 64), "c": sf.Category("p", "q"), "y": sf.Category("a", "b", "c")}
MINE = [
    {"who": "me", "x": x, "c": c, "y": y}
    for x, c, y in ((0, "p", "a"), (64, "q", "a"), (20, None, "c"), (None, "p", None))
]
REST = [{"who": "you", "x": 50, "c": "q", "y": "b"}]
# class a likes small x, b likes q, c a missing c
SCORES = np.array([[1.0, -1, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 0], [0, 0, 0, 0, 0, 0.25]])


def outcomes(most: int = 1, relation: Any = sf.AddRemove) -> WeightOutcomes:
    table = sf.Table(
        pa.Table.from_pylist(MINE), unit=sf.Unit("who", max_rows_total=most), columns=KINDS
    )
    found = Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, c, y FROM t", "y")
    features = found.features(linear)
    weights = integer_weights(SCORES)
    return WeightOutcomes(found.plan, found.label, features, found.places, weights)


def exact(statistic: WeightOutcomes, rows: list[dict[str, object]]) -> Any:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)


def reached(statistic: WeightOutcomes, norm: Norm, *, replaced: bool) -> int:
    """How far any rows of one unit move the counts, in L1 or squared L2."""
    base = exact(statistic, REST)
    moved = [
        exact(statistic, [*rows, *REST]) - base
        for size in range(4)
        for rows in itertools.combinations_with_replacement(MINE, size)
    ]
    pairs = itertools.combinations(moved, 2) if replaced else ((each, 0 * each) for each in moved)
    gaps = [one - other for one, other in pairs]
    if norm is Norm.L1:
        return max(int(np.abs(gap).sum()) for gap in gaps)
    return max(int((gap**2).sum()) for gap in gaps)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_outcomes_move_by_at_most_their_proved_distance(
    most: int, relation: Any, norm: Norm
) -> None:
    statistic = outcomes(most, relation)
    found = reached(statistic, norm, replaced=relation is sf.ReplaceOne)
    # the rows of one unit reach it: right ones against wrong ones
    assert found == statistic.distance(norm).value


def test_a_mutant_that_forgets_the_replaced_unit_is_noticed() -> None:
    added = outcomes(3)
    assert (
        reached(outcomes(3, sf.ReplaceOne), Norm.L1, replaced=True) > added.distance(Norm.L1).value
    )


def test_another_norm_is_refused() -> None:
    with pytest.raises(InvalidDeclaration, match="Outcomes in"):
        outcomes().distance(Norm.LINF)


def test_a_row_without_a_label_adds_nothing() -> None:
    unlabelled = [{"who": str(k), "x": k, "c": "p", "y": y} for k, y in enumerate([None, "d"])]
    assert exact(outcomes(), unlabelled).tolist() == [0, 0]


def test_counts_are_those_of_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.learning.outcomes._AT_ONCE", 24)
    random = np.random.default_rng(5)
    rows = []
    right = 0
    for k in range(300):
        x, c, y = int(random.integers(0, 65)), "pq"[k % 2], "abc"[random.integers(0, 3)]
        rows.append({"who": str(k), "x": x, "c": c, "y": y})
        a = (64 - x) / 64 - x / 64
        b = 0.5 * (c == "q")
        # b and c may both have 0: the first of them
        right += y == ("a" if a >= b else "b")
    assert exact(outcomes(), rows).tolist() == [right, 300 - right]


def test_one_row_of_weights_is_for_the_second_class() -> None:
    features = Features((linear("x", sf.Integer(0, 64)),))
    weights = integer_weights(np.array([[-1.0, 1.0, 0.0]]))
    codes = [np.array([0, 31, 32, 33, 64])]
    assert predicted(weights, features, codes).tolist() == [0, 0, 0, 1, 1]


def test_weights_that_are_no_numbers_are_cut() -> None:
    found = integer_weights(np.array([[np.nan, np.inf], [-np.inf, 1e300]]))
    assert found.tolist() == [[0, 2**30], [-(2**30), 2**30]]
    statistic = replace(outcomes(), weights=integer_weights(np.full((3, 6), np.inf)))
    # all equal: the first class
    assert exact(statistic, MINE[:2]).sum() == 1


def counts(most: int, relation: Any) -> RightCounts:
    """Three models: one is right about small x, one about q, one always says b."""
    base = outcomes(most, relation)
    always = integer_weights(np.array([[0.0] * 6, [1.0] * 6, [0.0] * 6]))
    models = tuple(replace(base, weights=each) for each in (base.weights, -base.weights, always))
    kind = AddedRightCounts if relation is sf.AddRemove else RightCounts
    return kind(models)


def moves(statistic: RightCounts) -> list[Any]:
    """By how much any rows of one unit move each count."""
    base = exact(statistic, REST)  # type: ignore[arg-type]
    return [
        exact(statistic, [*rows, *REST]) - base  # type: ignore[arg-type]
        for size in range(4)
        for rows in itertools.combinations_with_replacement(MINE, size)
    ]


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_right_counts_move_by_at_most_their_proved_distance(most: int, relation: Any) -> None:
    statistic = counts(most, relation)
    found = moves(statistic)
    if relation is sf.ReplaceOne:
        found = [one - other for one, other in itertools.combinations(found, 2)]
    assert max(int(np.abs(gap).max()) for gap in found) == most
    assert statistic.distance(Norm.LINF).value == most
    for norm in (Norm.L1, Norm.L2):
        with pytest.raises(InvalidDeclaration):
            statistic.distance(norm)


def test_right_counts_move_in_one_direction_where_a_unit_comes_or_goes() -> None:
    added = counts(3, sf.AddRemove)
    assert added.is_monotone and all((gap >= 0).all() for gap in moves(added))
    replaced = counts(3, sf.ReplaceOne)
    found = [one - other for one, other in itertools.combinations(moves(replaced), 2)]
    # replaced units move counts both ways, so this class must refuse them
    assert any((gap > 0).any() and (gap < 0).any() for gap in found)
    assert not replaced.is_monotone
    with pytest.raises(InvalidDeclaration, match="together"):
        AddedRightCounts(replaced.models)
    with pytest.raises(InvalidDeclaration, match="plan"):
        AddedRightCounts((outcomes(1), outcomes(2)))

# SPDX-License-Identifier: Apache-2.0
"""Sums over examples against their proved distance on neighbours, and against plain arithmetic;
with broken versions.
"""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning import examples
from sfumato.learning import features as features_module
from sfumato.learning.examples import (
    SCORES,
    Classes,
    Encoded,
    ExampleSums,
    Label,
    Reading,
    Residuals,
    Targets,
    predictions,
    steps_for,
)
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features, Listed, binned, linear
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query import unit_vectors
from sfumato.query.statistic import Opened

KINDS = {"x": sf.Integer(0, 9), "c": sf.Category("p", "q"), "y": sf.Boolean()}
ROWS = [
    {"who": who, "x": x, "c": c, "y": y}
    for who in "ab"
    for x, c, y in ((0, "p", True), (9, "q", True), (4, None, False), (None, "p", None))
]
WEIGHTS = np.array([2000, -700, 30, 900, -4000, 12, 0, 5, 7, 1, 1, 1, 1, 1, 1, 1])
READINGS = [Classes(2), Targets(), Residuals(WEIGHTS, logistic=True), Residuals(WEIGHTS, False)]


def sums(
    reading: Reading, norm: Norm = Norm.L2, *, most: int = 1, relation: Any = sf.AddRemove,
    make: Any = None, steps: int = 64,
) -> ExampleSums:  # fmt: skip
    table = sf.Table(
        pa.Table.from_pylist(ROWS), unit=sf.Unit("who", max_rows_total=most), columns=KINDS
    )
    found = Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, c, y FROM t", "y")
    features = found.features(make or (lambda name, kind: binned(name, kind, {}, 3)))
    return ExampleSums(found.plan, features, found.places, found.label, reading, steps, norm)


def exact(statistic: ExampleSums, rows: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)


def farthest(statistic: ExampleSums, *, replaced: bool) -> int:
    """How far any rows of one unit move the sums; from any other rows if it is replaced."""
    mine = [row for row in ROWS if row["who"] == "a"]
    rest = [row for row in ROWS if row["who"] == "b"]
    chosen = [
        list(some)
        for size in range(4)
        for some in itertools.combinations_with_replacement(mine, size)
    ]
    base = exact(statistic, rest)
    moved = [exact(statistic, [*rows, *rest]) - base for rows in chosen]
    pairs = itertools.combinations(moved, 2) if replaced else ((each, 0 * each) for each in moved)
    if statistic.norm is Norm.L1:
        return max(int(np.abs(one - other).sum()) for one, other in pairs)
    return max(int(((one - other) ** 2).sum()) for one, other in pairs)


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: type(reading).__name__)
@pytest.mark.parametrize("make", [None, linear], ids=["bins", "lines"])
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("most", [1, 3])
def test_the_examples_move_by_at_most_their_proved_distance(
    reading: Reading, make: Any, norm: Norm, most: int
) -> None:
    for relation in (sf.AddRemove, sf.ReplaceOne):
        statistic = sums(reading, norm, most=most, relation=relation, make=make)
        replaced = relation is sf.ReplaceOne
        assert 0 < farthest(statistic, replaced=replaced) <= statistic.distance(norm).value


def test_the_distance_is_attained() -> None:
    statistic = sums(Classes(2))
    assert statistic.distance(Norm.L2).value == 2 * 64**2 == farthest(statistic, replaced=False)


BROKEN = {
    "an unclipped unit": (unit_vectors, "clipped", lambda vectors, bound, norm: vectors),
    "a prediction beyond one": (
        examples,
        "predictions",
        lambda steps, logistic: 2 * predictions(steps, logistic=logistic),
    ),
    "rows as units": (
        ExampleSums,
        "_several",
        lambda statistic, encoded, starts: statistic._single(encoded),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_sums_that_are_bounded_wrongly_are_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*BROKEN[name])
    weights = np.full(16, 20 * SCORES)
    most = 1 if name == "a prediction beyond one" else 3
    statistic = sums(Residuals(weights, logistic=True), most=most)
    assert farthest(statistic, replaced=False) > statistic.distance(Norm.L2).value


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_what_a_unit_adds_depends_on_its_own_rows_alone(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [ROWS[place] | {"who": str(k)} for k, place in enumerate(random.integers(0, 8, 40))]
    for reading in READINGS:
        statistic = sums(reading)
        apart = sum(exact(statistic, [row]) for row in rows)
        assert (exact(statistic, rows) == apart).all()


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row | {"who": f"{row['who']}{k}"} for k in range(20) for row in ROWS]
    for most in (1, 3):
        statistic = sums(READINGS[2], most=most)
        whole = exact(statistic, rows)
        with monkeypatch.context() as patch:
            patch.setattr(unit_vectors, "_AT_ONCE", 7)
            assert (exact(statistic, rows) == whole).all()


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_features_in_groups_are_features(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [ROWS[place] | {"who": str(k)} for k, place in enumerate(random.integers(0, 8, 30))]
    for reading in READINGS:
        together = exact(sums(reading), rows)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ExampleSums, "groups", ())
            assert (exact(sums(reading), rows) == together).all()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(features_module, "_CELLS", 1)
            assert (exact(sums(reading), rows) == together).all()


def test_a_residual_is_the_gradient_of_the_logistic_loss() -> None:
    rows = [{"who": str(k), "x": k, "c": "pq"[k % 2], "y": k % 3 == 0} for k in range(10)]
    weights = np.array([300, -200, 700, 0, -500, 400, 9])
    statistic = sums(Residuals(weights, logistic=True), steps=2**12)
    found = exact(statistic, rows) / 2**12
    wanted = np.zeros(7)
    for row in rows:
        # three equal bins of 0 to 9 (edges 3 and 6), then c
        on = [sum(row["x"] >= edge for edge in (3, 6)), 4 + "pq".index(row["c"])]
        score = weights[on].sum() / SCORES
        wanted[on] += 1 / (1 + np.exp(-score)) - row["y"]
    assert np.abs(found - wanted).max() < 10 * 2.0**-12


def test_a_missing_label_adds_nothing() -> None:
    row = {"who": "a", "x": 3, "c": "p", "y": None}
    for reading in READINGS:
        assert not exact(sums(reading), [row]).any()


def test_no_rows_are_no_error() -> None:
    for most in (1, 3):
        assert not exact(sums(READINGS[2], most=most), []).any()


def test_extreme_weights_are_cut() -> None:
    huge = np.full(7, 2**62)
    found = exact(sums(Residuals(huge, logistic=True)), [ROWS[2]])
    assert (
        found.tolist() == exact(sums(Residuals(huge // 2**20, logistic=True)), [ROWS[2]]).tolist()
    )


def test_predictions_are_shares() -> None:
    table = predictions(1024, logistic=True)
    assert table[0] == 0 and table[-1] == 1024 and table[len(table) // 2] == 512
    straight = predictions(100, logistic=False)
    assert straight.min() == 0 and straight.max() == 100
    assert straight[len(straight) // 2 + SCORES // 2] == 50


def test_steps_shrink_for_units_with_many_rows() -> None:
    features = sums(Targets()).features
    assert steps_for(1, features, 4096) == 4096
    many = steps_for(10**6, features, 4096)
    assert many == 1024 and 10**6 * many * 2 < 2**31
    statistic = sums(Targets())
    with pytest.raises(InvalidDeclaration):
        replace(statistic, steps=2**30)
    with pytest.raises(InvalidDeclaration):
        replace(statistic, norm=Norm.LINF)
    with pytest.raises(InvalidDeclaration):
        statistic.distance(Norm.L1)


def test_encoded_rows_are_dropped_with_the_data() -> None:
    statistic = sums(Targets())
    opened = Opened(statistic.plan, rows=Reference({"t": ROWS}).rows(statistic.plan, "key"))
    with opened:
        statistic.exact(opened)
        (kept,) = opened._kept.values()
        assert isinstance(kept, Encoded)
    assert not opened._kept
    assert isinstance(statistic.features, Features)


def test_the_second_block_of_many_coordinates_is_beside_the_first() -> None:
    """Coordinates are kept in 16 bits; those of the second block need more."""
    many = Listed("city", 0, 40_000)
    codes = np.array([[39_999, 1], [7, 0]], np.int64)
    label = Label(1, 0, 1)
    features = Features((many,))
    rows = Encoded(tuple(features.encoded([codes[:, 0]])), codes[:, 1], np.ones(2, np.bool))
    assert rows.features[0][0].dtype == np.uint16
    (before, _), (behind, amount) = Targets().added(rows, features, label, 1)
    assert before.tolist() == [39_999, 7] and behind.tolist() == [80_000, 40_008]
    assert amount.tolist() == [1, 0]

# SPDX-License-Identifier: Apache-2.0
"""Sums over units: no unit adds more than its bound, however many rows it has."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.learning.examples_of import Examples
from sfumato.learning.points import Box, Points
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query import unit_vectors
from sfumato.query.clip import clipped
from sfumato.query.statistic import Opened
from sfumato.query.unit_vectors import Added, UnitVectors


@dataclass(frozen=True)
class Sums(UnitVectors[Points]):
    """The sum of points: a statistic with nothing beside."""

    plan: BoundedRows
    norm: Norm

    length, squared, width = 2 * 1024, 2 * 1024**2, 2

    def __post_init__(self) -> None:
        self.require_bounded()

    def read(self, opened: Opened) -> Points:
        codes = opened.unit_rows(self.plan).codes
        return Box((0, 0), (8, 8)).points([codes[:, 0], codes[:, 1]])

    def added(self, rows: Points) -> Iterator[Added]:
        for place in range(2):
            yield np.full(rows.count, place), rows.matrix[:, place].astype(np.float64)


def sums(most: int, norm: Norm = Norm.L2) -> Sums:
    columns = {"x": sf.Integer(0, 8), "y": sf.Integer(0, 8)}
    rows = pa.table({"who": ["a"], "x": [1], "y": [1]})
    table = sf.Table(rows, unit=sf.Unit("who", max_rows_total=most), columns=columns)
    data = Dataset("tiny", {"t": table}, sf.AddRemove)
    return Sums(Examples.of(data, "SELECT x, y FROM t", None).plan, norm)


def exact(statistic: Sums, rows: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, rows=Reference({"t": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)


def a_row(who: str, x: int, y: int) -> dict[str, object]:
    return {"who": who, "x": x, "y": y}


ROWS = st.lists(
    st.builds(a_row, st.sampled_from("abc"), st.integers(0, 8), st.integers(0, 8)), max_size=9
)


@given(ROWS, st.sampled_from([1, 2, 5]), st.sampled_from([Norm.L1, Norm.L2]))
def test_a_unit_moves_the_sums_by_at_most_the_distance(
    rows: list[dict[str, object]], most: int, norm: Norm
) -> None:
    statistic = sums(most, norm)
    without = [row for row in rows if row["who"] != "a"]
    moved = exact(statistic, rows) - exact(statistic, without)
    size = np.abs(moved).sum() if norm is Norm.L1 else (moved**2).sum()
    assert size <= statistic.distance(norm).value


def test_units_that_are_not_clipped_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_vectors, "clipped", lambda vectors, bound, norm: vectors)
    moved = exact(sums(5), [a_row("a", 8, 8)] * 5)
    assert (moved**2).sum() > sums(5).distance(Norm.L2).value


def test_a_later_chunk_that_is_not_clipped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are added up in chunks; the mutant clips those of the first chunk alone."""
    rows = [a_row("abcdefgh"[place % 8], 8, 8) for place in range(40)]
    chunks: list[int] = []

    def clipped_once(vectors: np.ndarray, bound: int, norm: Norm) -> np.ndarray:
        chunks.append(len(vectors))
        return clipped(vectors, bound, norm) if len(chunks) == 1 else vectors

    def moved(gone: str) -> int:
        chunks.clear()
        whole = exact(sums(5), rows)
        chunks.clear()
        rest = exact(sums(5), [row for row in rows if row["who"] != gone])
        return int(((whole - rest) ** 2).sum())

    monkeypatch.setattr(unit_vectors, "_AT_ONCE", 8)
    most = sums(5).distance(Norm.L2).value
    assert max(moved(who) for who in "abcdefgh") <= most
    monkeypatch.setattr(unit_vectors, "clipped", clipped_once)
    assert max(moved(who) for who in "abcdefgh") > most


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [a_row(str(place % 30), place % 9, place % 7) for place in range(60)]
    whole = [exact(sums(most), rows).tolist() for most in (1, 3)]
    monkeypatch.setattr(unit_vectors, "_AT_ONCE", 7)
    assert [exact(sums(most), rows).tolist() for most in (1, 3)] == whole


def test_other_norms_and_long_units_are_refused() -> None:
    with pytest.raises(InvalidDeclaration):
        sums(1, Norm.LINF)
    with pytest.raises(InvalidDeclaration):
        sums(1).distance(Norm.L1)
    with pytest.raises(InvalidDeclaration):
        sums(2**20)
    assert replace(sums(1)).bound == 1448

# SPDX-License-Identifier: Apache-2.0
"""Clipped sums of units against their proved distance on all neighbours of small tables, with
broken versions.
"""

import itertools
from fractions import Fraction
from math import isqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference_order
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm
from sfumato.query import unit_sums
from sfumato.query.pipeline import compile_rows
from sfumato.query.statistic import Opened
from sfumato.query.unit_sums import UnitSums

ROWS = [
    {"who": who, "x": x, "y": y} for who in "abc" for x, y in ((3, -2), (-3, 1), (2, None), (3, 2))
]
COLUMNS = {"x": sf.Integer(-3, 3), "y": sf.Integer(-2, 2)}


def plan(relation: object = sf.AddRemove, most: int = 2, kinds: object = COLUMNS) -> BoundedRows:
    """At most two rows of each unit."""
    table = sf.Table(
        pa.Table.from_pylist(ROWS), unit=sf.Unit("who", max_rows_total=most), columns=kinds
    )
    declared = Dataset("tiny", {"people": table}, relation)
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    scan = Scan("people", columns=columns, owner=owner_of(declared, "people"))
    return compile_rows(RowList(scan, tuple(map(Value.of, columns))), declared)


def exact(statistic: UnitSums, rows: list[dict[str, object]]) -> list[int]:
    opened = Opened(statistic.plan, rows=Reference({"people": rows}).rows(statistic.plan, "key"))
    with opened:
        return statistic.exact(opened)


def farthest(statistic: UnitSums, *, replaced: bool = False) -> int:
    """How far any small table is from the same without a unit, or with another one in its place."""
    most = 0
    mine, other, rest = ([row for row in ROWS if row["who"] == who] for who in "abc")
    for size, more in itertools.product(range(5), range(5) if replaced else [0]):
        for rows in itertools.combinations(mine, size):
            moved = np.subtract(
                exact(statistic, [*rows, *rest]), exact(statistic, [*other[:more], *rest])
            )
            found = np.abs(moved).sum() if statistic.norm is Norm.L1 else (moved**2).sum()
            most = max(most, int(found))
    return most


@pytest.mark.parametrize(
    ("norm", "bound"), [(Norm.L1, 3), (Norm.L1, 100), (Norm.L2, 3), (Norm.L2, 1)]
)
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_the_sum_moves_by_at_most_its_proved_distance(
    norm: Norm, bound: int, relation: object
) -> None:
    statistic = UnitSums(plan(relation), bound, norm)
    assert farthest(statistic, replaced=relation is sf.ReplaceOne) <= statistic.distance(norm).value


def test_the_bound_is_attained() -> None:
    alone = {"who": "a", "x": 3, "y": None}
    for norm, distance in ((Norm.L1, 3), (Norm.L2, 9)):
        statistic = UnitSums(plan(), 3, norm)
        assert exact(statistic, [alone, alone]) == [3, 0]
        assert statistic.distance(norm).value == distance
    statistic = UnitSums(plan(sf.ReplaceOne), 3, Norm.L2)
    assert statistic.distance(Norm.L2).value == 36, "from (3, 0) to (-3, 0)"


BROKEN = {
    "vectors that are not clipped": (unit_sums, "_shortened", lambda vector, bound, norm: vector),
    "the other norm": (
        unit_sums,
        "_shortened",
        lambda vector, bound, norm: [min(max(each, -bound), bound) for each in vector],
    ),
    "rows of others": (
        unit_sums,
        "_vectors",
        lambda rows: np.where(rows.codes < -9, 0, rows.codes),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_sum_that_is_bounded_wrongly_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, attribute, broken = BROKEN[name]
    monkeypatch.setattr(owner, attribute, broken)
    statistic = UnitSums(plan(), 3, Norm.L1)
    assert farthest(statistic) > statistic.distance(Norm.L1).value


def test_an_order_that_looks_at_other_units_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rows of a unit are kept must not depend on the rows of others."""
    honest = reference_order._ordered
    seen: list[int] = []

    def by_others(key: str, unit: str | None, found: object) -> object:
        rows = honest(key, unit, found)
        seen.append(len(rows))
        return rows if sum(seen) % 2 else rows[::-1]

    def far() -> int:
        most = 0
        mine, rest = [[row for row in ROWS if row["who"] == who] for who in "ac"]
        for size in range(5):
            seen.clear()
            one = exact(UnitSums(plan(), 2, Norm.L1), [*mine[:size], *rest])
            seen.clear()
            other = exact(UnitSums(plan(), 2, Norm.L1), rest)
            most = max(most, int(np.abs(np.subtract(one, other)).sum()))
        return most

    assert far() <= 2
    monkeypatch.setattr(reference_order, "_ordered", by_others)
    assert far() > 2


@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=4), st.integers(1, 2**61))
def test_a_vector_is_shortened_to_the_bound_and_no_further_than_rounding(
    vector: list[int], bound: int
) -> None:
    for norm in (Norm.L1, Norm.L2):
        (found,) = unit_sums._clipped(np.array([vector]), bound, norm).tolist()
        size = sum(map(abs, vector)) if norm is Norm.L1 else isqrt(sum(each**2 for each in vector))
        kept = sum(map(abs, found)) if norm is Norm.L1 else sum(each**2 for each in found)
        assert kept <= (bound if norm is Norm.L1 else bound**2)
        if size < bound:
            assert found == vector
        for each, was in zip(found, vector, strict=True):
            assert each * was >= 0
            # what is lost is rounding: less than one, and of the size a unit of its last place
            assert abs(each) + 1 >= abs(was) * min(Fraction(1), Fraction(bound, size + 1))


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1), max_size=20))
def test_sums_of_units_do_not_overflow(column: list[int]) -> None:
    assert unit_sums._added(np.array(column, np.int64).reshape(-1, 1)) == [sum(column)]


def test_no_rows_are_zeros() -> None:
    assert exact(UnitSums(plan(), 3, Norm.L2), []) == [0, 0]


@pytest.mark.parametrize(
    ("bound", "norm"), [(0, Norm.L1), (True, Norm.L1), (1.5, Norm.L2), (3, Norm.LINF)]
)
def test_a_bound_that_is_none_is_refused(bound: object, norm: Norm) -> None:
    with pytest.raises(InvalidDeclaration):
        UnitSums(plan(), bound, norm)


def test_codes_whose_sums_may_leave_62_bits_are_refused() -> None:
    wide = {"x": sf.Integer(-(2**52), 2**52)}
    assert UnitSums(plan(most=2**9, kinds=wide), 1, Norm.L1)
    with pytest.raises(InvalidDeclaration):
        UnitSums(plan(most=2**10, kinds=wide), 1, Norm.L1)


def test_another_norm_and_another_plan_are_refused() -> None:
    assert UnitSums(plan(), 3, Norm.L1).distance(Norm.LINF).value == 3
    for norm in (Norm.L1, Norm.LINF):
        with pytest.raises(InvalidDeclaration):
            UnitSums(plan(), 3, Norm.L2).distance(norm)
    opened = Opened(plan(), rows=Reference({"people": ROWS}).rows(plan(), "key"))
    with opened, pytest.raises(InvalidDeclaration):
        UnitSums(plan(sf.ReplaceOne), 3, Norm.L1).exact(opened)


def test_long_vectors_are_cut_quickly_and_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a bound of 2^12 all vectors are cut at once; none is cut by itself."""
    kinds = {"x": sf.Integer(-(2**20), 2**20), "y": sf.Integer(-(2**20), 2**20)}
    rows = [{"who": who, "x": 2**20 - 7 * place, "y": -(2**19)} for place, who in enumerate("abc")]
    for norm in (Norm.L1, Norm.L2):
        statistic = UnitSums(plan(kinds=kinds, most=1), 2**12, norm)
        monkeypatch.setattr(unit_sums, "_COARSE", 2**40)
        slow = np.array(exact(statistic, rows))
        monkeypatch.undo()
        with monkeypatch.context() as patched:
            patched.setattr(unit_sums, "_shortened", None)
            quick = np.array(exact(statistic, rows))
        assert (np.abs(quick) <= np.abs(slow)).all() and (np.abs(quick - slow) < 3 * 6).all()


def test_a_text_is_refused_by_name() -> None:
    kinds = {**COLUMNS, "note": sf.Text()}
    with pytest.raises(sf.SfumatoError, match=r"note.*text"):
        UnitSums(plan(kinds=kinds), 3, Norm.L1)

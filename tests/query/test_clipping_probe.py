# SPDX-License-Identifier: Apache-2.0
"""A column read with a step of room: what is beyond can be told, and all else is as it was."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

import sfumato as sf
from sfumato.engines.reference_rows import rows
from sfumato.engines.value_codes import code_of
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Column
from sfumato.plan.relation import Relation, scans
from sfumato.plan.scalar import Field, substituted
from sfumato.plan.scope import provided
from sfumato.query import clipping_probe
from sfumato.query.clipping_probe import Wide, through_bounds, wide, widened
from tests.contracts import plans as world

TIGHT = {
    "age": (
        Column("age", sf.Integer(0, 120)),
        [-7, -1, 0, 5, 120, 121, 1e300],
        [-1, -1, 0, 5, 120, 121, 121],
    ),
    "cost": (
        Column("cost", sf.Real(0, 2, step="0.5")),
        [-9.0, -0.3, -0.2, 0.0, 2.0, 2.2, 2.3, float("inf")],
        [-1, -1, 0, 0, 4, 4, 5, 5],
    ),
    "day": (
        Column("day", sf.Date("2024-01-01", "2024-01-03")),
        ["2023-01-01", "2024-01-01", "2024-01-03", "2024-01-04", "2030-01-01"],
        [19722, 19723, 19725, 19726, 19726],
    ),
    # clocks of Tokyo are nine hours ahead of UTC
    "seen": (
        Column(
            "seen",
            sf.Timestamp(
                "1970-01-02", "1970-01-02", zone="Asia/Tokyo", step=3600, format="%d.%m.%Y %H:%M"
            ),
        ),
        [
            "1.1.1970 23:59",
            "2.1.1970 00:00",
            "02.01.1970 23:59",
            "3.1.1970 00:00",
            "9.9.2000 10:00",
        ],
        [14, 15, 38, 39, 39],
    ),
}


@pytest.mark.parametrize("name", TIGHT)
def test_the_ends_say_what_was_clipped(name: str) -> None:
    column, values, codes = TIGHT[name]
    other = wide(column)
    assert other is not None
    assert [code_of(other, value) for value in values] == codes


def test_markers_of_missing_stay() -> None:
    assert wide(Column("age", sf.Integer(0, 9, missing="-1"))) == Column(
        "age", sf.Integer(-1, 10, missing="-1")
    )
    seen = sf.Timestamp("2020-01-01", "2020-12-31", zone="Asia/Tokyo", missing="-")
    other = wide(Column("seen", seen))
    assert other is not None and other.type.missing == ("-",)
    assert repr(other.type) == (
        "Timestamp('2019-12-31 23:59:59', '2021-01-01 00:00:00', zone='Asia/Tokyo', missing='-')"
    )


@pytest.mark.parametrize(
    "kind",
    [
        sf.Text(),
        sf.Boolean(),
        sf.Category("a", "b"),
        sf.Integer(0, MAX_CODE),
        sf.Date("0001-01-01", "2000-01-01"),
        sf.Date("2000-01-01", "9999-12-31"),
    ],
)
def test_what_has_no_bounds_or_no_room_is_not_read_wide(kind: object) -> None:
    assert wide(Column("x", kind)) is None


def wide_columns(relation: Relation) -> Wide:
    """Every column that can be read wide."""
    declared = {column for scan in scans(relation) for column in scan.columns}
    found = {column: wide(column) for column in provided(relation) if column in declared}
    return {column: other for column, other in found.items() if other is not None}


def is_changed(relation: Relation, data: object) -> bool:
    """Whether anything but the room at the ends is seen in the wide rows."""
    columns = wide_columns(relation)
    other = widened(relation, columns)
    assert {columns.get(column, column) for column in provided(relation)} == set(provided(other))
    narrow = Counter(
        (row.unit, tuple(row.read(Field(column)) for column in provided(relation)))
        for row in rows(relation, data)
    )
    seen = Counter(
        (
            row.unit,
            tuple(
                row.read(through_bounds(Field(column), columns)) for column in provided(relation)
            ),
        )
        for row in rows(other, data)
    )
    return narrow != seen


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(world.relations(depth=3), world.data(6))
def test_read_through_the_bounds_the_rows_are_as_they_were(
    relation: Relation, data: object
) -> None:
    assert not is_changed(relation, data)


def test_tests_that_read_the_room_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    (scan,) = scans(world.scan("people"))
    (n,) = (column for column in scan.columns if column.name == "n")
    beyond = world.Filter(scan, world.Compare(world.Comparison.LT, Field(n), world.Constant(-2)))
    data = {"people": [{"who": "p", "n": "-9"}, {"who": "p", "n": "4"}]}
    assert not is_changed(beyond, data)
    exactly = world.Filter(scan, world.Member(Field(n), (-3,)))
    assert not is_changed(exactly, data)
    monkeypatch.setattr(
        clipping_probe,
        "through_bounds",
        lambda expression, columns: substituted(
            expression, lambda leaf: Field(columns.get(leaf.column, leaf.column))
        ),
    )
    assert is_changed(exactly, data)

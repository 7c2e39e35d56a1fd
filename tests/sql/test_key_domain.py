# SPDX-License-Identifier: Apache-2.0
"""The groups of a computed key: every code that some row can give, and none else where they can be
tried.
"""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import MissingDeclaration
from sfumato.metadata.column import Column, Date, Integer, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.metadata.zones import DAY
from sfumato.plan.evaluate import date_trunc, evaluate
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DateTrunc,
    Field,
    Member,
    Not,
    Operation,
    Part,
)
from sfumato.sql import key_domain as room
from sfumato.sql.key_domain import MOST_GROUPS, image, may_be_missing
from sfumato.sql.lower import understand
from sfumato.sql.timestamps import local_day, part_of, trunc
from sfumato.sql.typed import read
from tests.contracts.effort import examples
from tests.contracts.zones import FIRST, LAST, NAIVE, ZONES, shown, turns

X, Y = Field(Column("x", Integer(-3, 4))), Field(Column("y", Integer(0, 2, missing="N")))
POSITIVE = Compare(Comparison.GT, X, Constant(0))
EXPRESSIONS = st.recursive(
    st.sampled_from([X, Y, Constant(2), Constant(None)]),
    lambda inner: (
        st.builds(Arithmetic, st.sampled_from([Operation.ADD, Operation.MULTIPLY]), inner, inner)
        | st.builds(lambda one, other: Coalesce((one, other)), inner, inner)
        | st.builds(lambda one, other: Case(((POSITIVE, one),), other), inner, inner)
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(EXPRESSIONS)
def test_an_image_is_what_some_row_gives(expression):
    if isinstance(expression, Field):
        return
    reached = set()
    for x in (*range(-3, 5), None):
        for y in (0, 1, 2, None):
            reached.add(
                evaluate(expression, lambda leaf, row={"x": x, "y": y}: row[leaf.column.name])
            )
    assert image(expression) == tuple(sorted(reached - {None}))


def test_a_column_is_its_declared_range():
    assert image(X) == tuple(range(-3, 5))


WIDE = Field(Column("d", Date("1900-01-01", "2199-12-31")))


@pytest.mark.parametrize("part", [Part.YEAR, Part.QUARTER, Part.MONTH, Part.WEEK])
def test_the_periods_of_long_times_are_found_without_trying_every_day(part):
    kind = WIDE.column.type
    wanted = sorted(
        {date_trunc(part, code) for code in range(kind.lower_code, kind.upper_code + 1)}
    )
    assert image(DateTrunc(part, WIDE)) == tuple(wanted)


def test_what_cannot_be_tried_is_the_whole_range():
    product = Arithmetic(
        Operation.MULTIPLY, Field(Column("a", Integer(0, 200))), Field(Column("b", Integer(0, 200)))
    )
    assert image(product) == tuple(range(40_001))
    text = Case(((Member(Field(Column("t", Text())), ("a",)), Constant(5)),), Constant(7))
    assert image(text) == (5, 6, 7)


def test_too_many_groups_are_refused_with_a_way_out():
    for expression in (
        Field(Column("a", Integer(1, MOST_GROUPS + 1))),
        Arithmetic(Operation.MULTIPLY, WIDE, Constant(9)),
    ):
        with pytest.raises(MissingDeclaration, match="GROUP BY a key that may have") as refusal:
            image(expression)
        assert "WIDTH_BUCKET" in refusal.value.remedy
    assert len(image(Field(Column("a", Integer(1, MOST_GROUPS))))) == MOST_GROUPS


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        (X, False), (Y, True), (Arithmetic(Operation.ADD, X, Y), True), (Coalesce((Y, X)), False), (Coalesce((Y, Y)), True),
        (Case(((POSITIVE, Constant(1)),), Constant(None)), True), (Case(((POSITIVE, Constant(1)),), Constant(0)), False),
        (Case(((POSITIVE, Constant(1)), (Not(POSITIVE), Constant(0))), Constant(None)), False),
        (Case(((Member(Y, (1,)), Constant(1)), (Not(Member(Y, (1,))), Constant(0))), Constant(None)), True),
    ],
)  # fmt: skip
def test_null_is_a_group_where_missing_is_declared_or_said(expression, missing):
    assert may_be_missing(expression) is missing


def test_an_absent_column_makes_a_group_of_null():
    assert may_be_missing(X, frozenset({X.column})) and not may_be_missing(X, frozenset({Y.column}))


def test_an_image_that_forgets_null_is_noticed(monkeypatch):
    expression = Coalesce((X, Constant(9)))
    assert 9 in image(expression)
    monkeypatch.setattr(
        room, "_combinations", lambda fields, tests: ({fields[0]: code} for code in range(-3, 5))
    )
    assert 9 not in image.__wrapped__(expression)


@settings(deadline=None, max_examples=examples(0.3))
@given(
    st.sampled_from(ZONES),
    st.integers(FIRST + 3 * DAY, LAST - 3 * DAY),
    st.integers(0, 100) | st.integers(30_000, 10**7),
    st.lists(st.integers(0, 10**7), max_size=20),
)
def test_a_part_of_a_timestamp_has_the_groups_that_where_leaves(zone, low, length, inside):
    kind = Timestamp("1970-01-01", "2038-01-01", zone=zone)
    moment = read(Column("t", kind))
    field = moment.expression
    # a moment behind the last one that is declared is read as that one
    length = min(length, kind.upper_code - low)
    tests = (
        Compare(Comparison.GE, field, Constant(low)),
        Compare(Comparison.LT, field, Constant(low + length + 1)),
    )
    for key in (
        local_day(moment).expression,
        trunc("hour", moment).expression,
        trunc("month", moment).expression,
        part_of("hour", moment).expression,
    ):
        codes = image(key, tests)
        for offset in (0, length, *(each for each in inside if each <= length)):
            assert evaluate(key, lambda leaf, code=low + offset: code) in codes
    # a date is a group if and only if some moment has it, but for a day that is left out whole
    days = image(local_day(moment).expression, tests)
    seconds = {*range(low, low + length, 3600), low + length, *turns(zone)}
    dates = {
        shown(zone, second + shift).toordinal() - NAIVE.toordinal()
        for second in seconds
        for shift in (-1, 0)
        if low <= second + shift <= low + length
    }
    assert set(days) == {*range(min(dates), max(dates) + 1)}
    months = image(trunc("month", moment).expression, tests)
    assert set(months) == {date_trunc(Part.MONTH, date) for date in days}


@pytest.mark.parametrize(
    ("part", "upper", "codes"),
    [
        ("YEAR", "2024-12-31", (2024,)),
        ("MONTH", "2024-03-31", (1, 2, 3)),
        ("QUARTER", "2024-06-30", (1, 2)),
        ("WEEK", "2024-01-14", (1, 2)),
        ("YEAR", "2026-01-01", (2024, 2025, 2026)),
        ("WEEK", "2099-12-31", tuple(range(1, 54))),
    ],
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Los_Angeles", "UTC"])
def test_parts_of_a_local_date_have_no_impossible_groups(part, upper, codes, zone):
    kind = Timestamp("2024-01-01", upper, zone=zone)
    rows = pa.table({"ts": pa.array([], pa.timestamp("us"))})
    declared = Dataset("d", {"t": Table(rows, columns={"ts": kind})})
    question = understand(f"SELECT {part}(ts) AS y, COUNT(*) AS n FROM t GROUP BY y", declared)
    assert question.raw.keys[0].codes == codes

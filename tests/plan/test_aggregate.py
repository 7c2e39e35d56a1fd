# SPDX-License-Identifier: Apache-2.0
"""How many integers an aggregate has, and the most that a row adds to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import _integers
from sfumato.metadata.column import Column, Real
from sfumato.plan.aggregate import (
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Sum,
    largest,
    never_negative,
    numeric,
    width,
)
from sfumato.testing.strategies import TABLE, aggregates, rows, tables

SIGNED = Column("x", sf.Integer(-7, 3))
POSITIVE = Column("x", sf.Integer(2, 9))
HALVES = Column("x", sf.Real(-1, 4, step="0.5"))
TRUTH = Column("x", sf.Boolean())


@pytest.mark.parametrize(
    ("aggregate", "integers", "most", "positive"),
    [
        (CountRows(), 1, 1, True),
        (CountValues(SIGNED), 1, 1, True),
        (CountUnits(), 1, 1, True),
        (Sum(SIGNED), 1, 7, False),
        (Sum(POSITIVE), 1, 9, True),
        (Sum(HALVES), 1, 8, False),
        (Sum(TRUTH), 1, 1, True),
        (Mean(SIGNED), 2, 10, True),
        (Mean(POSITIVE), 2, 7, True),
        (Mean(HALVES), 2, 10, True),
        (Mean(TRUTH), 2, 1, True),
    ],
)
def test_the_most_that_a_row_adds(aggregate, integers, most, positive):
    assert (width(aggregate), largest(aggregate), never_negative(aggregate)) == (integers, most, positive)


def test_only_what_can_be_added_up_is_numeric():
    assert isinstance(numeric(HALVES), Real)
    with pytest.raises(AssertionError, match="lowering admits no other type"):
        numeric(Column("t", sf.Text()))


@given(st.data())
def test_no_row_adds_more_than_the_largest(data):
    table = data.draw(tables())
    aggregate, row = data.draw(aggregates(table), label=TABLE), data.draw(rows(table, unit="p"))
    added = _integers(aggregate, [row])
    assert len(added) == width(aggregate)
    assert sum(map(abs, added)) <= largest(aggregate)
    assert min(added) >= 0 or not never_negative(aggregate)

# SPDX-License-Identifier: Apache-2.0
"""Rows of units by tick: by hand, and by counting rows one by one in Python."""

from collections import Counter
from contextlib import closing

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_ticks import TickFacts, inspect_ticks
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.stream_plan import plan_stream

HOUR = sf.Integer(10, 69)


def facts_of(rows, width, where=""):
    """The facts of a table of rows (unit, hour)."""
    units, hours = zip(*rows, strict=True) if rows else ((), ())
    table = pa.table({"u": pa.array(units, pa.string()), "h": pa.array(hours, pa.int64())})
    source = sf.Table(table, unit=sf.Unit("u"), columns={"h": HOUR})
    dataset = Dataset("d", {"t": source})
    plan = plan_stream(dataset, "t", time="h", horizon=6, rho=1, where=where)
    with closing(DuckDB(dataset.tables)) as engine:
        relation = plan.best.ticks.plan.rows.relation
        return inspect_ticks(engine, relation, Column("h", HOUR), width)


def kept_rows(rows, width, participations, most):
    """The rows that a stream of these limits counts, tick by tick."""
    kept, uses = 0, Counter()
    for tick in range(60 // width + 1):
        here = Counter(
            unit
            for unit, hour in rows
            if unit and hour is not None and (hour - 10) // width == tick
        )
        for unit, size in here.items():
            if uses[unit] < participations:
                uses[unit] += 1
                kept += min(size, most)
    return kept


def test_by_hand():
    rows = [("a", 10), ("a", 11), ("a", 19), ("a", 20), ("b", 69), (None, 10), ("c", None)]
    facts = facts_of(rows, 10)
    assert facts == TickFacts({(1, 3): 1, (2, 1): 1, (1, 1): 1})
    assert (facts.rows, facts.left_out(1, 2), facts.left_out(2, 3)) == (5, 2, 0)
    assert facts.limits_for(0.01) == (2, 3)
    assert facts_of(rows, 10, where="h > 19") == TickFacts({(1, 1): 2})
    assert facts_of([], 10).limits_for(0.01) == (1, 1)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([None, "a", "b", "c"]), st.none() | st.integers(10, 69)),
        max_size=40,
    ),
    width=st.sampled_from([1, 7, 10, 60]),
    participations=st.integers(1, 6),
    most=st.integers(1, 4),
)
def test_what_is_left_out_is_what_a_stream_does_not_count(rows, width, participations, most):
    facts = facts_of(rows, width)
    named = [row for row in rows if None not in row]
    assert facts.rows == len(named)
    lost = facts.left_out(participations, most)
    assert facts.rows - lost == kept_rows(named, width, participations, most)
    ticks, size = facts.limits_for(0.1)
    assert facts.left_out(ticks, size) <= 0.1 * len(named)

# SPDX-License-Identifier: Apache-2.0
"""The integers of the reference, bit for bit; each limit that can be forgotten is noticed."""

from contextlib import closing
from functools import partial

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import duckdb, emit, unit_limits
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.emit import queries
from sfumato.engines.group_sampling import Order
from sfumato.engines.value_sql import Source
from sfumato.errors import EngineFailed
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    quantiles,
)
from sfumato.privacy.distance import Norm
from tests.contracts.conformance import KEY, differing, noticed, reference
from tests.contracts.examples import EXAMPLES, FIVE, MEDIAN, PEOPLE, N
from tests.contracts.verbatim import Verbatim, changed
from tests.contracts.world import FINE, by, content, declared, plan, read

LETTERS = by(PEOPLE, "people.c")


# one by one they are in tests/engines/test_conformance.py
@pytest.mark.long
def test_the_engine_gives_the_integers_of_the_reference():
    assert not list(differing(DuckDB, EXAMPLES))


def odd_by_windows(monkeypatch):
    """The examples of which windows make something else of the weights than the reference does."""
    monkeypatch.setattr(duckdb, "queries", partial(queries, windows=True))
    return differing(DuckDB, EXAMPLES)


def test_windows_give_the_weights_that_a_join_gives(monkeypatch):
    assert not list(odd_by_windows(monkeypatch))
    limited = plan(PEOPLE, CountRows(), keys=(LETTERS,), limits=(2, 1, 3), fine=FINE)
    (shown,) = queries(limited, SOURCES, "key", windows=True)
    assert "OVER (PARTITION BY unit) AS BIGINT) AS total" in printed(shown.query)


def test_a_window_over_all_units_is_noticed(monkeypatch):
    monkeypatch.setattr(unit_limits, *changed(unit_limits, "weighed", "PARTITION BY unit"))
    assert any(odd_by_windows(monkeypatch))


def test_no_row_can_make_a_statement_fail():
    # every kind of statement over the values at the ends of what 64 bits hold, and over nothing
    big = read(PEOPLE, "people.Big")
    reading = [kind(big) for kind in (CountValues, Sum, Mean, CountDistinct)]
    cells = [
        {"who": f"u{index}", "Big": cell}
        for index in range(3)
        for cell in (2**63 - 1, -(2**63), 0, None)
    ]
    for rows in ([], cells):
        with closing(DuckDB(declared(content(people=rows)))) as engine:
            for limits in ((None, None, None), (2**31, 2**31, 2**31), (1, 1, 1)):
                for norm in (Norm.L1, Norm.L2):
                    every = (CountRows(), CountUnits(), *reading, quantiles(big, MEDIAN))
                    engine.run(
                        plan(PEOPLE, *every, keys=(LETTERS,), limits=limits, norm=norm, fine=FINE),
                        KEY,
                    )


_clipped = emit.clipped
_first, OTHER_ORDER = emit._first, Order("another key", numbered=False)
MUTANTS = {
    "other groups than the first": (
        "_first",
        lambda plan, tables, places, order: _first(plan, tables, places, OTHER_ORDER),
    ),
    "rows of a unit that are not cut": changed(emit, "_first", "least(n, 2)", "n"),
    "values of all groups together": changed(
        emit, "_distinct", "PARTITION BY unit, k0", "PARTITION BY unit"
    ),
    "values that are not distinct": changed(emit, "_distinct", "count(DISTINCT v0)", "count(v0)"),
    "values beyond the limit": changed(emit, "_distinct", " <= 2", " <= 3"),
    "heavy units as they are": changed(emit, "_leaves", "OR held > 2", ""),
    "units with few rows too many as they are": changed(
        emit, "_leaves", "WHERE n > 2)", "WHERE n > 4)"
    ),
    "light units as they are": changed(emit, "_leaves", f"weight < {FINE}", "FALSE"),
    "sums that are not clipped": (
        "clipped",
        lambda aggregate, names, limit, narrow: _clipped(aggregate, names, None),
    ),
    "a condition of units that is forgotten": ("CountUnitsWhere", CountDistinct),
    "a row limit of one more": (
        "clipped",
        lambda aggregate, names, limit, narrow: _clipped(
            aggregate, names, limit and limit + 1, narrow=narrow
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_forgotten_limit_is_noticed(monkeypatch, telling, mutant):
    monkeypatch.setattr(emit, *MUTANTS[mutant])
    assert noticed(DuckDB, telling)


SOURCES = {"people": Source("t", dict.fromkeys(["who", *"nxdcbt", "Big"], "VARCHAR"))}
SILENT = {
    "no limit": plan(
        PEOPLE,
        CountRows(),
        CountUnits(),
        Quantiles(N, MEDIAN),
        keys=(LETTERS,),
        limits=(2, None, None),
    ),
    "no group": plan(
        PEOPLE, CountRows(), Sum(N), CountUnits(), CountDistinct(N), limits=(None, 3, 4)
    ),
    "units alone": plan(PEOPLE, CountUnits(), keys=(LETTERS,)),
}


@pytest.mark.parametrize("name", SILENT)
def test_there_is_no_window_where_no_limit_can_bind(name):
    texts = [printed(part.query) for part in queries(SILENT[name], SOURCES, "key")]
    ordered = [text for text in texts if "OVER" in text]
    # the values of a unit are put in order, its groups are not
    assert all("row_number() OVER (PARTITION BY unit ORDER BY h, v0)" in text for text in ordered)
    assert len(ordered) == (name == "no group")


def test_what_is_linear_is_one_statement():
    found = queries(EXAMPLES["clipped rows"][0], SOURCES, "key")
    assert [each.places for each in found] == [(0, 1, 2, 3, 4, 5), (6,), (7,)]


def test_a_private_value_never_enters_the_statement(asker):
    secret = pa.table({"x": ["canary"], "who": ["canary"]})
    ask = asker(secret, {"x": sf.Text()}, sf.Unit("who"))
    bounded = ask.plan(
        CountUnits(), CountDistinct(ask.value("x")), keys=(by(ask.scan, "x"),), limits=(1, 1, None)
    )
    with closing(DuckDB(ask.tables)) as engine:
        assert engine.run(bounded, "key")[0] == {("canary",): (1,)}
        assert "canary" not in engine.statement(bounded) + "".join(
            printed(part.query) for part in queries(bounded, engine._sources, "key")
        )


def test_groups_come_in_one_order_whatever_the_rows(asker):
    words = ["b", "", "a", None, "空", "B"]
    found = []
    for order in (words, words[::-1]):
        ask = asker(pa.table({"x": order}), {"x": sf.Text()})
        with closing(DuckDB(ask.tables)) as engine:
            found.append(
                list(
                    engine.run(
                        ask.plan(CountRows(), keys=(by(ask.scan, "x", missing=True),)), "key"
                    )[0]
                )
            )
    assert found == [[(None,), ("",), ("B",), ("a",), ("b",), ("空",)]] * 2


def test_a_statement_that_fails_is_noticed(monkeypatch):
    monkeypatch.setattr(unit_limits, "_weight", lambda plan, norm, most: Verbatim("1 // 0"))
    tables = declared(FIVE)
    with closing(DuckDB(tables)) as engine, pytest.raises(EngineFailed):
        engine.run(EXAMPLES["weights in L1"][0], KEY)
    assert reference(tables).run(EXAMPLES["weights in L1"][0], KEY)[0]

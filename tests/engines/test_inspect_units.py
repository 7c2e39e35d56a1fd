# SPDX-License-Identifier: Apache-2.0
"""Counts of units, limits and partners: by hand, and by counting rows one by one in Python."""

from collections import Counter, defaultdict
from contextlib import closing

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import inspect_units as room
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_units import (
    LimitFacts,
    group_columns,
    inspect_groups,
    inspect_rows,
    inspect_units,
)
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset

WARD = sf.Category("A", "B", "C")
PEOPLE = {
    "person": ["a"] * 5 + ["b", "b", "c", None],
    "ward": ["A", "A", "A", "B", "C", "A", "B", "A", "A"],
}


def visits(unit, columns=None, data=None):
    """A dataset of one table."""
    kinds = columns or {"ward": WARD}
    return Dataset("d", {"visits": sf.Table(pa.table(data or PEOPLE), unit=unit, columns=kinds)})


def facts_of(dataset, table="visits"):
    with closing(DuckDB(dataset.tables)) as engine:
        return inspect_units(engine, dataset, table, dataset.tables[table].unit)


def groups_of(dataset, column="ward", table="visits"):
    declared = dataset.tables[table]
    with closing(DuckDB(dataset.tables)) as engine:
        return inspect_groups(
            engine, dataset, table, declared.unit, Column(column, declared.columns[column])
        )


def test_units_and_rows_without_one_are_counted():
    facts = facts_of(visits(sf.Unit("person")))
    assert (facts.rows, facts.units, facts.unnamed, facts.without_partner) == (9, 3, 1, 0)
    assert (facts.used, facts.limits) == (8, ())


IDS = ["Bob", "bob", "BOB", "bob", "Ann", None, "é", "e\u0301"]


@pytest.mark.parametrize(
    ("collation", "extra"), [("NOCASE", 2), ("NFC", 1), ("NOCASE.NOACCENT.NFC", 3), ("C", 0)]
)
def test_spellings_that_a_collation_calls_equal_are_counted(tmp_path, collation, extra):
    path = tmp_path / "ids.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE visits (person VARCHAR COLLATE {collation}, place INT)")
        connection.executemany("INSERT INTO visits VALUES (?, 1)", [[name] for name in IDS])
    unit = sf.Unit(["person", "place"], spellings_apart=True)
    facts = facts_of(Dataset("d", {"visits": sf.Table(path, unit=unit, table="visits")}))
    assert facts.units == 6
    assert facts.respelled == ((("person", extra),) if extra else ())


def test_a_file_has_no_collation_to_count():
    assert facts_of(visits(sf.Unit("person", spellings_apart=True))).respelled == ()


def test_limits_of_rows_without_groups():
    unit = sf.Unit("person", max_rows=2, max_rows_total=4)
    assert facts_of(visits(unit)).limits == (
        LimitFacts("max_rows=2", "", over=1, lost=3, out_of=8),
        LimitFacts("max_rows_total=4", "", over=1, lost=1, out_of=8),
    )


def test_limits_by_groups():
    # a has 3, 1, 1 rows in three wards: one is cut, and of the other four two are beyond 2 x 1
    unit = sf.Unit("person", max_rows=2, max_groups=1)
    assert groups_of(visits(unit)) == (
        LimitFacts("max_rows=2", "ward", over=1, lost=1, out_of=8),
        LimitFacts("max_groups=1", "ward", over=2, lost=2, out_of=8),
    )


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        (sf.Unit("person", max_groups=2), WARD),
        (sf.Unit("person", max_rows=9, max_groups=2), sf.Text()),
    ],
)
def test_a_unit_keeps_some_groups_where_rows_are_not_weighed(unit, kind):
    found = groups_of(visits(unit, {"ward": kind}))[-1]
    assert found == LimitFacts("max_groups=2", "ward", over=1, lost=1, out_of=6, of_groups=True)


def test_limits_that_are_not_numbers_count_nothing():
    unit = sf.Unit("person", max_rows=sf.AUTO, max_groups=sf.AUTO)
    dataset = visits(unit)
    assert facts_of(dataset).limits == ()
    assert groups_of(dataset) == ()
    assert list(group_columns(dataset, "visits")) == []


def test_columns_that_may_be_keys_form_groups():
    kinds = {
        "ward": WARD,
        "cost": sf.Real(0, 9),
        "cents": sf.Integer(0, 100_000),
        "age": sf.Integer(0, 99),
        "job": sf.Text(),
    }
    data = {"person": ["a"], **{name: ["1"] for name in kinds}}
    dataset = visits(sf.Unit("person", max_rows=1), kinds, data)
    assert [column.name for column in group_columns(dataset, "visits")] == ["ward", "age", "job"]
    without = Dataset("d", {"visits": sf.Table(pa.table(data), columns=kinds)})
    assert list(group_columns(without, "visits")) == []


def test_a_missing_key_is_a_group_where_missing_is_declared():
    data = {"person": ["a", "a", "a"], "ward": ["A", "N", "N"]}
    unit = sf.Unit("person", max_rows=1)
    (out,) = groups_of(visits(unit, data=data))
    assert (out.over, out.lost, out.out_of) == (0, 0, 1)
    (inside,) = groups_of(visits(unit, {"ward": sf.Category("A", missing="N")}, data))
    assert (inside.over, inside.lost, inside.out_of) == (1, 1, 3)


LINKED = {
    "patients": sf.Table(
        pa.table({"id": ["1", "2", "3", None], "who": ["p", "q", None, "r"]}),
        unit=sf.Unit("who", max_rows=1),
    ),
    "visits": sf.Table(
        pa.table({"patient": [1, 1, 2, 3, 4, None], "ward": list("AABBBA")}),
        unit=sf.Unit("patient", via="patients.who", key="id", max_rows=1),
        columns={"ward": WARD},
    ),
}


def test_keys_without_a_partner_are_counted():
    # patient 3 has no unit, patient 4 does not exist, and one visit has no patient
    facts = facts_of(Dataset("d", LINKED))
    assert (facts.rows, facts.used, facts.unnamed, facts.without_partner) == (6, 3, 1, 2)
    assert facts.limits == (LimitFacts("max_rows=1", "", over=1, lost=1, out_of=3),)


def test_a_chain_of_tables_is_followed():
    drugs = sf.Table(
        pa.table({"visit": ["v1", "v1", "v2", "v9"]}),
        unit=sf.Unit("visit", via="stays.patient", key="id"),
    )
    stays = sf.Table(
        pa.table({"id": ["v1", "v2"], "patient": ["1", "4"]}),
        unit=sf.Unit("patient", via="patients.who", key="id"),
    )
    dataset = Dataset("d", {"patients": LINKED["patients"], "stays": stays, "drugs": drugs})
    facts = facts_of(dataset, "drugs")
    # v2 leads to patient 4, who does not exist; v9 is no stay
    assert (facts.rows, facts.used, facts.without_partner, facts.units) == (4, 2, 2, 1)


def test_units_of_several_columns():
    data = {"person": ["a", "a", "a", "b"], "day": [1, 1, 2, None], "ward": list("AABB")}
    facts = facts_of(visits(sf.Unit(["person", "day"], max_rows=1, name="pd"), data=data))
    assert (facts.units, facts.unnamed, facts.limits[0].lost) == (2, 1, 1)


def test_a_table_without_rows_and_one_without_columns():
    empty = {"person": pa.array([], pa.string()), "ward": pa.array([], pa.string())}
    dataset = visits(sf.Unit("person", max_rows=1, max_groups=1), data=empty)
    facts = facts_of(dataset)
    assert (facts.rows, facts.units, facts.used) == (0, 0, 0)
    assert [limit.lost for limit in groups_of(dataset)] == [0, 0]
    bare = {"t": sf.Table(pa.table({"x": [1, 2]}))}
    with closing(DuckDB(bare)) as engine:
        assert inspect_rows(engine, "t") == 2


# --- by counting one by one ------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["A", "B", "C", None])),
    max_size=20,
)


def counted(data, most_rows, most_groups):
    """Over and lost of both limits, and of all rows together, by counting."""
    units = defaultdict(Counter)
    for person, ward in data:
        if person is not None and ward is not None:
            units[person][ward] += 1
    rows_over = rows_lost = groups_over = both_lost = 0
    for wards in units.values():
        kept = [min(number, most_rows) for number in wards.values()]
        rows_over += max(wards.values()) > most_rows
        rows_lost += sum(wards.values()) - sum(kept)
        groups_over += len(wards) > most_groups
        both_lost += max(sum(kept) - most_rows * most_groups, 0)
    return [(rows_over, rows_lost), (groups_over, both_lost)]


@given(data=ROWS, most_rows=st.integers(1, 4), most_groups=st.integers(1, 3))
def test_limits_take_what_counting_says(data, most_rows, most_groups):
    source = {
        "person": pa.array([person for person, _ in data], pa.string()),
        "ward": pa.array([ward for _, ward in data], pa.string()),
    }
    dataset = visits(sf.Unit("person", max_rows=most_rows, max_groups=most_groups), data=source)
    found = [(limit.over, limit.lost) for limit in groups_of(dataset)]
    assert found == counted(data, most_rows, most_groups)


def test_a_limit_that_is_one_off_is_noticed(monkeypatch):
    right = room._over
    monkeypatch.setattr(room, "_over", lambda number, limit: right(number, limit + 1))
    unit = sf.Unit("person", max_rows=2, max_groups=1)
    data = list(zip(PEOPLE["person"], PEOPLE["ward"], strict=True))
    found = [(limit.over, limit.lost) for limit in groups_of(visits(unit))]
    assert found != counted(data, 2, 1)

# SPDX-License-Identifier: Apache-2.0
"""The way from a row to its unit, along the declared keys."""

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import Owner, owner_of

DATASET = Dataset(
    "hospital",
    {
        "patients": sf.Table("p.csv", unit=sf.Unit("id", name="patient")),
        "visits": sf.Table("v.csv", unit=sf.Unit("patient", via="patients.id", key="card")),
        "drugs": sf.Table("d.csv", unit=sf.Unit("visit_id", via="visits.patient", key="visit")),
        "days": sf.Table("y.csv", unit=sf.Unit(["id", "day"])),
        "rows": sf.Table("r.csv"),
        "prices": sf.Table("c.csv", public=True),
    },
)


def test_columns_name_the_unit_themselves():
    assert owner_of(DATASET, "patients") == Owner(("id",))
    assert owner_of(DATASET, "days") == Owner(("id", "day"))


def test_a_key_names_a_row_of_another_table_step_by_step():
    visits = Owner(("patient",), "patients", ("card",), Owner(("id",)))
    assert owner_of(DATASET, "visits") == visits
    assert owner_of(DATASET, "drugs") == Owner(("visit_id",), "visits", ("visit",), visits)


def test_rows_that_are_their_own_units_and_public_ones_have_no_owner():
    assert owner_of(DATASET, "rows") is None
    assert owner_of(DATASET, "prices") is None


def test_all_on_the_way_have_the_name_of_the_last_unit():
    assert {DATASET.unit_name(table) for table in ("patients", "visits", "drugs")} == {"patient"}


def test_an_edge_is_owned_by_its_pair_and_a_row_of_two_persons_by_nobody():
    tables = {
        "people": sf.Table("p.csv", unit=sf.Unit("id", name="person")),
        "ties": sf.Table("t.csv", unit=sf.Edge("a", "b")),
        "friends": sf.Table("f.csv", unit=sf.Node("a", "b", of="people")),
    }
    dataset = Dataset("graph", tables)
    assert owner_of(dataset, "ties") == Owner(("a", "b"), unordered=True)
    assert dataset.unit_name("friends") == "person"
    with pytest.raises(UnsupportedSql, match="each row is about two units") as refused:
        owner_of(dataset, "friends")
    assert "graph.ask" in refused.value.allowed

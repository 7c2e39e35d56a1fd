# SPDX-License-Identifier: Apache-2.0
"""A dataset needs a name, a relation, plainly named tables, and ways to their units that end."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines.value_codes import code_of
from sfumato.errors import InvalidDeclaration
from sfumato.metadata import Boolean, Column, Dataset, Integer, Table, Text
from sfumato.privacy import AddRemove, Edge, Node, ReplaceOne, Unit

PEOPLE = {"people": Table("people.csv")}


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1))
@settings(deadline=None)
def test_a_dataset_keeps_what_it_was_given(name, version):
    dataset = Dataset(name, PEOPLE, ReplaceOne, version)
    assert (dataset.name, dataset.tables, dataset.relation, dataset.version) == (
        name,
        PEOPLE,
        ReplaceOne,
        version,
    )


def test_a_dataset_is_add_remove_and_version_one_unless_told():
    dataset = Dataset("acs-2019", PEOPLE)
    assert (dataset.relation, dataset.version) == (AddRemove, "1")


@pytest.mark.parametrize("name", ["", "  ", None, 3, b"acs"])
def test_a_dataset_without_a_name_is_refused(name):
    with pytest.raises(InvalidDeclaration, match="dataset="):
        Dataset(name, PEOPLE)


@pytest.mark.parametrize("relation", ["add-remove", None, True])
def test_a_relation_that_is_none_is_refused(relation):
    with pytest.raises(InvalidDeclaration, match="relation="):
        Dataset("acs", PEOPLE, relation)


@pytest.mark.parametrize("tables", [{}, None, {1: Table("people.csv")}])
def test_a_dataset_without_a_table_is_refused(tables):
    with pytest.raises(InvalidDeclaration, match="without a named table"):
        Dataset("acs", tables)


def test_only_devices_that_report_by_themselves_need_no_table():
    assert Dataset("phones", {}, ReplaceOne).tables == {}
    with pytest.raises(InvalidDeclaration, match="for telemetry"):
        Dataset("phones", {}, AddRemove)
    with pytest.raises(InvalidDeclaration, match="without a named table"):
        Dataset("phones", None, ReplaceOne)


@pytest.mark.parametrize("name", ["", "two words", "1st", "a.b", 'a"b', "a;b"])
def test_a_table_without_a_plain_name_is_refused(name):
    with pytest.raises(InvalidDeclaration, match="Table"):
        Dataset("acs", {name: Table("people.csv")})


@pytest.mark.parametrize("table", ["people.csv", None, Table], ids=repr)
def test_a_table_that_is_none_is_refused_by_name(table):
    with pytest.raises(InvalidDeclaration, match="'people'"):
        Dataset("acs", {"people": table})


def table(unit=None, columns=(), *, public=False):
    return Table("t.parquet", unit, {name: Text() for name in columns}, public=public)


HOSPITAL = {
    "patients": table(Unit("id", name="patient")),
    "visits": table(Unit("patient_id", via="patients.id", key="id")),
    "prescriptions": table(Unit("visit_id", via="visits.patient_id")),
    "drugs": table(public=True),
    "wards": table(),
}


def test_the_unit_of_a_table_has_the_name_at_the_end_of_its_way():
    dataset = Dataset("hospital", HOSPITAL)
    assert {name: dataset.unit_name(name) for name in HOSPITAL} == {
        "patients": "patient", "visits": "patient", "prescriptions": "patient", "drugs": None, "wards": None,
    }  # fmt: skip


@given(st.integers(1, 9))
@settings(deadline=None)
def test_a_way_may_be_long_and_in_any_order(length):
    tables = {f"t{n}": table(Unit(f"id{n}", via=f"t{n + 1}.id{n + 1}")) for n in range(length)}
    tables[f"t{length}"] = table(Unit(f"id{length}"))
    for order in (tables, dict(reversed(tables.items()))):
        assert Dataset("long", order).unit_name("t0") == f"id{length}"


@pytest.mark.parametrize(
    "via",
    [
        "visit.patient_id",
        "visits.id",
        "visits.PATIENT_ID",
        "drugs.drug",
        "wards.ward",
        "patients.patient",
    ],
)
def test_a_way_to_what_is_no_unit_is_refused(via):
    with pytest.raises(InvalidDeclaration, match="'beds' goes via") as caught:
        Dataset("hospital", {**HOSPITAL, "beds": table(Unit("visit_id", via=via))})
    assert (
        "patients.id, visits.patient_id, prescriptions.visit_id, beds.visit_id"
        in caught.value.allowed
    )


def test_a_way_that_breaks_further_on_is_told_where():
    tables = {"a": table(Unit("x", via="b.y")), "b": table(Unit("y", via="c.z"))}
    with pytest.raises(InvalidDeclaration, match=r"'b' goes via 'c\.z'"):
        Dataset("d", tables)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_way_in_a_circle_is_refused(length):
    tables = {f"t{n}": table(Unit("id", via=f"t{(n + 1) % length}.id")) for n in range(length)}
    shown = " -> ".join([f"t{n}" for n in range(length)] + ["t0"])
    with pytest.raises(InvalidDeclaration, match=f"circle: {shown}"):
        Dataset("d", tables)


def test_a_way_into_a_circle_is_refused_too():
    tables = {
        "a": table(Unit("id", via="b.id")),
        "b": table(Unit("id", via="c.id")),
        "c": table(Unit("id", via="b.id")),
    }
    with pytest.raises(InvalidDeclaration, match="circle: a -> b -> c -> b"):
        Dataset("d", tables)


@pytest.mark.parametrize(
    ("via", "column"),
    [
        ("patients.id", "patient"),
        ("visits.patient_id", "Patient"),
        ("days.person, day", "day"),
        ("days.person, day", "Person"),
    ],
)
def test_another_column_with_the_name_of_the_unit_is_refused(via, column):
    tables = {**HOSPITAL, "days": table(Unit(["person", "day"]), ["person", "day"])}
    unit = Unit("visit_id", via=via, key="visit")
    with pytest.raises(
        InvalidDeclaration, match=f"'{column}', which is how questions name its unit"
    ) as caught:
        Dataset("hospital", {**tables, "other": table(unit, ["visit_id", column])})
    assert "columns=" in caught.value.remedy
    Dataset(
        "hospital", {**tables, "other": table(unit, ["visit_id", "id", "patient_id", "person_day"])}
    )


def test_the_name_of_a_unit_is_no_other_column_of_its_own_table_either():
    unit = Unit("id", name="patient_id")
    with pytest.raises(
        InvalidDeclaration, match="'Patient_Id', which is how questions name its unit"
    ):
        Dataset("d", {"patients": table(unit, ["id", "Patient_Id"])})
    Dataset("d", {"patients": table(unit, ["id", "age"])})
    # several columns are named by themselves
    Dataset("d", {"days": table(Unit(["person", "day"], name="week"), ["person", "day", "week"])})


def test_the_column_that_names_the_unit_may_be_declared():
    people = Table("p.csv", Unit("person_id"), {"person_id": Integer(0, 9)})
    assert Dataset("d", {"people": people}).unit_name("people") == "person_id"


def test_the_places_of_a_dataset_are_those_of_its_people():
    tables = {
        "a": Table("/a.csv"),
        "b": Table("/b.csv"),
        "same": Table("/a.csv"),
        "drugs": Table("/c.csv", public=True),
    }
    assert Dataset("d", {**tables, "frame": Table(object())}).places == (
        "file /a.csv",
        "file /b.csv",
    )


def test_a_boolean_without_spellings_is_noticed_with_what_it_counts_as_missing():
    columns = {
        "plain": Boolean(missing="N"),
        "spelled": Boolean(true="Y", false="N"),
        "age": Integer(0, 9),
    }
    dataset = Dataset("acs", {"people": Table("people.csv", columns=columns), "other": Table("x")})
    (notice,) = dataset.notices
    assert notice.startswith("people.plain: true is written true, True, TRUE or 1, false is ")
    assert "false, False, FALSE or 0; anything else (Y, yes, t, 2) is missing" in notice
    # what it says is what is read
    column = Column("plain", columns["plain"])
    for word, code in (*columns["plain"].texts(), ("Y", None), ("yes", None), ("t", None)):
        assert code_of(column, word) == code
    # from the declarations alone: the same without the source
    assert dataset.described.notices == dataset.notices


PERSONS = Table("people.csv", unit=Unit("id", name="person"))
FRIENDS = Table("friends.csv", unit=Node("a", "b", of="people"))


@pytest.mark.parametrize(
    "people",
    [
        None,
        Table("people.csv"),
        Table("people.csv", public=True),
        Table("people.csv", unit=Unit(["id", "day"])),
        Table("people.csv", unit=Edge("id", "other")),
        Table("people.csv", unit=Node("id", "other", of="friends")),
    ],
)
def test_nodes_are_listed_by_a_private_table_whose_unit_is_one_column(people):
    tables = {"friends": FRIENDS} | ({"people": people} if people else {})
    with pytest.raises(InvalidDeclaration, match=r"people|friends"):
        Dataset("graph", tables)
    way = {
        "visits": PERSONS,
        "people": Table("people.csv", unit=Unit("visit", via="visits.id", key="id")),
    }
    with pytest.raises(InvalidDeclaration, match="no private table"):
        Dataset("graph", {"friends": FRIENDS, **way})


def test_nodes_have_the_name_and_the_ids_of_the_table_that_lists_them():
    dataset = Dataset("graph", {"people": PERSONS, "friends": FRIENDS})
    assert dataset.unit_name("friends") == "person"
    assert dataset.node_column(FRIENDS.unit) == "id"
    assert dataset.row_unit("people") == PERSONS.unit


@pytest.mark.parametrize(
    "other",
    [
        Table("friends.csv", unit=Edge("a", "b")),
        Table("friends.csv", unit=Unit("a")),
        Table("./friends.csv"),
        Table("friends.csv", public=True),
        Table("friends.csv", unit=Node("b", "a", of="people")),
    ],
)
def test_the_rows_of_nodes_under_a_smaller_unit_are_refused(other):
    with pytest.raises(InvalidDeclaration, match="have the same rows"):
        Dataset("graph", {"people": PERSONS, "friends": FRIENDS, "again": other})
    Dataset("graph", {"people": PERSONS, "friends": FRIENDS, "again": FRIENDS})


def test_a_frame_under_two_units_is_refused_too():
    rows = pa.table({"a": [1], "b": [2]})
    tables = {
        "people": PERSONS,
        "friends": Table(rows, unit=Node("a", "b", of="people")),
        "ties": Table(rows, unit=Edge("a", "b")),
    }
    with pytest.raises(InvalidDeclaration, match="have the same rows"):
        Dataset("graph", tables)


def test_no_way_leads_over_a_row_of_two_persons():
    notes = Table("notes.csv", unit=Unit("friend", via="friends.a"))
    with pytest.raises(InvalidDeclaration, match="no unit of a declared table"):
        Dataset("graph", {"people": PERSONS, "friends": FRIENDS, "notes": notes})

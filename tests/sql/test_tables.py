# SPDX-License-Identifier: Apache-2.0
"""A declared table as rows of units: its owner, its names, its limits."""

import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.errors import Refused, UnsupportedSql
from sfumato.metadata.column import Column, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import Owner, owner_of
from sfumato.plan.relation import Filter, PerUnit, Ranked, Scan, Semi, Union, UnitJoin, scans
from sfumato.plan.scalar import Constant, Field
from sfumato.plan.value import Value
from sfumato.sql import understand
from sfumato.sql.names import Context
from sfumato.sql.tables import declared, fields, require_private, with_columns
from sfumato.sql.typed import Person, Words


def table(unit, **more):
    return sf.Table("t.csv", unit=unit, columns={"a": sf.Integer(0, 9)}, **more)


DATA = Dataset(
    "d",
    {
        "rows": table(None),
        "people": table(sf.Unit("who", max_rows=2, max_groups=3)),
        "stays": table(sf.Unit("person", max_rows=4, name="who")),
        "notes": sf.Table(
            "n.csv", unit=sf.Unit("stay", via="people.who", key="stay"), columns={"stay": sf.Text()}
        ),
        "days": table(sf.Unit(["who", "day"], max_rows_total=5)),
        "known": sf.Table("k.csv", unit=sf.Unit("who"), columns={"who": sf.Integer(0, 99)}),
        "lists": table(None, public=True),
    },
)


def found(name):
    context = Context(DATA)
    return declared(context, exp.to_table(name)), context


@pytest.mark.parametrize(
    ("name", "unit", "width", "limit", "once"),
    [
        ("rows", None, 0, None, False),
        ("people", "who", 1, 6, False),
        ("stays", "who", 1, None, False),
        ("notes", "who", 1, None, False),
        ("days", "who, day", 2, 5, False),
        ("lists", None, 0, None, False),
    ],
)
def test_a_table_has_the_unit_and_the_limits_that_are_declared(name, unit, width, limit, once):
    table, _ = found(name)
    assert (table.unit, table.width, table.limit, table.once) == (unit, width, limit, once)
    assert table.relation.owner == owner_of(DATA, name)
    assert table.public is (name == "lists")


def test_what_names_the_unit_is_known_but_not_read():
    table, context = found("people")
    person = table.scope(context).column(exp.column("who"))
    assert person == Person("who", Words(Field(Column("who", Text()))))
    assert [column.name for column in table.relation.columns] == ["a"]
    # a unit that is reached by a key has the name that it has there, and no text of its own
    notes, context = found("notes")
    assert notes.scope(context).column(exp.column("who")) == Person("who", None)
    assert notes.scope(context).is_unit([exp.column("who")]) and not notes.scope(context).is_unit(
        [exp.column("stay")]
    )


def test_a_unit_goes_by_its_own_name_everywhere():
    stays, context = found("stays")
    for name in ("person", "PERSON", "who", "Who"):
        assert stays.scope(context).is_unit([exp.column(name)])
        # tests read the column of the table
        assert stays.scope(context).column(exp.column(name)).reading == Words(
            Field(Column("person", Text()))
        )
    # where a way leads to a unit it has its name alone, not that of the column at the end
    data = Dataset(
        "d",
        {
            "stays": DATA.tables["stays"],
            "notes": sf.Table(
                "n.csv",
                unit=sf.Unit("stay", via="stays.person", key="stay"),
                columns={"person": sf.Text()},
            ),
        },
    )
    for text in (
        "SELECT COUNT(DISTINCT who) FROM notes WHERE person = 'x'",
        "SELECT COUNT(*) FROM stays WHERE who IN (SELECT who FROM notes)",
        "SELECT COUNT(*) FROM stays WHERE person NOT IN (SELECT who FROM notes)",
        "SELECT AVG(LEAST(n, 9)) FROM (SELECT who, COUNT(*) AS n FROM stays GROUP BY person)",
        "SELECT COUNT(*) FROM notes n JOIN (SELECT person, MAX(a) AS a FROM stays GROUP BY who) s ON n.who = s.person",
        "SELECT COUNT(*) FROM notes JOIN (SELECT who FROM stays GROUP BY who) USING (who)",
        "SELECT AVG(LEAST(n, 9)) FROM (SELECT who, COUNT(*) AS n FROM notes GROUP BY who)",
    ):
        assert understand(text, data).raw.aggregates
    for text in (
        "SELECT who, COUNT(*) FROM stays GROUP BY who",
        "SELECT COUNT(*) FROM notes GROUP BY who",
        "SELECT COUNT(*) FROM notes n JOIN stays s ON n.person = s.person",
        "SELECT UPPER(who), COUNT(*) FROM stays GROUP BY 1",
    ):
        with pytest.raises(Refused):
            understand(text, data)
    read = understand("SELECT COUNT(*) FROM stays WHERE who = 'p1'", data)
    assert read.raw == understand("SELECT COUNT(*) FROM stays WHERE person = 'p1'", data).raw
    assert Column("person", Text()) in read.raw.relation.source.columns


def test_every_column_of_a_table_of_two_names_of_the_unit_is_there():
    for name in ("who", "person", "a"):
        assert understand(f"SELECT COUNT({name}) FROM (SELECT * FROM stays)", DATA).raw.aggregates


def test_too_many_steps_are_refused():
    people, _ = found("people")
    relation = people.relation
    for _ in range(99):
        relation = Filter(relation, Constant(value=True))
    people.over(relation)
    with pytest.raises(UnsupportedSql, match="more than 100 steps"):
        people.over(Filter(relation, Constant(value=True)))


def test_a_unit_that_is_declared_as_a_column_is_tested_as_declared():
    raw = understand("SELECT COUNT(*) FROM known WHERE who BETWEEN 3 AND 5", DATA).raw
    assert raw.relation.source.columns == (Column("who", sf.Integer(0, 99)),)
    with pytest.raises(Refused, match="who names single persons"):
        understand("SELECT AVG(who) FROM known", DATA)
    with pytest.raises(Refused, match="GROUP BY the unit"):
        understand("SELECT COUNT(*) FROM known GROUP BY who", DATA)


def test_the_unit_of_a_via_table_is_tested_through_a_table_that_has_it():
    with pytest.raises(Refused, match="who names single persons"):
        understand("SELECT COUNT(*) FROM notes WHERE who = 'p'", DATA)
    text = "SELECT COUNT(*) FROM notes WHERE who IN (SELECT who FROM people WHERE who = 'p')"
    (notes, people) = scans(understand(text, DATA).raw.relation)
    assert notes.owner == Owner(("stay",), "people", ("stay",), Owner(("who",)))
    assert people.columns[-1] == Column("people.who", Text())


def test_a_column_is_added_to_the_scans_that_are_asked_for_it():
    one, other = Scan("people", "", (), Owner(("who",))), Scan("people", "b.", (), Owner(("who",)))
    extra = Column("b.who", Text())
    single = PerUnit(other, (), ())
    whole = Union((Semi(UnitJoin(one, single), Filter(other, Constant(value=True))),), ((),), ())
    changed = with_columns(whole, {"b.who": extra})
    assert [scan.columns for scan in scans(changed)] == [(), (extra,), (extra,)]
    assert with_columns(one, {}) is one
    assert with_columns(Scan("lists"), {"who": extra}) == Scan("lists")


def test_the_columns_that_tell_rows_apart_are_those_of_the_rows():
    a, b, rank = Column("a", Text()), Column("b", Text()), Column("rank", sf.Integer(1, 9))
    scan = Scan("t", "", (a,), Owner(("who",)))
    assert fields(Ranked(Filter(scan, Constant(value=True)), (), (), rank)) == (
        Field(a),
        Field(rank),
    )
    assert fields(PerUnit(scan, ((b, Value.of(a)),), ())) == (Field(b),)
    assert fields(Union((scan,), ((Field(a),),), (b,))) == (Field(b),)
    assert fields(UnitJoin(scan, PerUnit(scan, (), ()))) == (Field(a),)


def test_public_tables_alone_are_no_question():
    with pytest.raises(Refused, match="public tables alone") as refusal:
        require_private(found("lists")[0])
    assert "without cost" in refusal.value.remedy
    assert require_private(found("rows")[0]).table == "rows"


@pytest.mark.parametrize(
    "text",
    [
        "duckdb_tables()",
        "read_csv('x')",
        "pg_catalog.people",
        "d.information_schema.people",
        "people AS p(a, b)",
        "people TABLESAMPLE 5%",
        "nobody",
    ],
)
def test_anything_else_in_from_is_refused(text):
    with pytest.raises(Refused) as refusal:
        understand(f"SELECT COUNT(*) FROM {text}", DATA)
    assert refusal.value.remedy or refusal.value.allowed

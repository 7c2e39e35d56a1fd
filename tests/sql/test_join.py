# SPDX-License-Identifier: Apache-2.0
"""Joins are on the unit with one row a unit, or to a public table; every other one is refused."""

import pytest

import sfumato as sf
from sfumato.errors import Refused
from sfumato.metadata.column import Column, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows, CountValues
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PublicJoin,
    Ranked,
    Scan,
    Semi,
    Summary,
    UnitJoin,
    is_single,
)
from sfumato.plan.scalar import Arithmetic, Constant, Field, Lookup, Member, Operation, leaves
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.sql import join, understand
from tests.sql.conftest import EVENTS

FROM = "SELECT COUNT(*) FROM "
ON = " ON e.user_id = u.user_id"


@pytest.mark.parametrize(
    "text",
    [
        "events e JOIN users u" + ON,
        "events e JOIN users u ON u.user_id = e.user_id",
        "events JOIN users USING (user_id)",
        "users u JOIN events e" + ON,
        "events e INNER JOIN users u ON (e.user_id = u.user_id)",
    ],
)
def test_a_join_on_the_unit_takes_one_row_of_the_table_that_has_one(ask, text):
    found = ask(FROM + text).raw.relation
    assert isinstance(found, UnitJoin) and not found.outer
    assert isinstance(found.source, Scan) and found.source.table == "events"
    # the declaration is enforced, not assumed: the first row of each unit in the order of all its
    # columns
    assert isinstance(found.other, Filter) and isinstance(found.other.source, Ranked)
    assert found.other.source.ties == tuple(
        Field(column) for column in found.other.source.source.columns
    )
    assert is_single(found.other)


def test_columns_of_both_tables_have_names_of_their_own(ask):
    found = ask(FROM + "users JOIN events USING (user_id)").raw.relation
    names = [column.name for column in (*found.source.columns, *found.other.source.source.columns)]
    assert len(set(names)) == len(names)


def test_outer_joins_keep_the_rows_of_one_side(ask):
    left = ask(FROM + "events e LEFT JOIN users u" + ON).raw.relation
    right = ask(FROM + "users u RIGHT OUTER JOIN events e" + ON).raw.relation
    assert left.outer and right.outer
    assert left.source.table == right.source.table == "events"


def test_tests_of_the_other_side_alone_stand_before_an_outer_join(ask):
    found = ask(
        FROM + "events e LEFT JOIN users u ON e.user_id = u.user_id AND u.age_band = 'b'"
    ).raw.relation
    assert isinstance(found, UnitJoin) and found.other.predicate == Member(
        Field(found.other.source.source.source.columns[0]), (1,)
    )


def test_other_conditions_stand_after_an_inner_join(ask):
    found = ask(
        FROM
        + "events e JOIN users u ON e.user_id = u.user_id AND e.day > u.born AND e.day = u.born"
    ).raw.relation
    assert isinstance(found, Filter) and isinstance(found.source, UnitJoin)
    assert len(found.predicate.operands) == 2


@pytest.mark.parametrize("side", ["", "LEFT "])
def test_a_public_table_is_joined_by_its_key(ask, side):
    found = ask(f"{FROM}events e {side}JOIN products p ON p.product = e.product").raw.relation
    assert isinstance(found, PublicJoin) and found.outer is bool(side)
    assert (found.left, found.right) == (
        Field(Column("product", EVENTS["product"])),
        Column("products.product", sf.Text()),
    )
    assert found.table.owner is None


def public(kind, other):
    """A join of a column of one type to a public one of another."""
    tables = {
        "t": sf.Table("t.csv", unit=sf.Unit("who", max_rows=1), columns={"a": kind}),
        "p": sf.Table("p.csv", public=True, columns={"b": other, "c": sf.Boolean()}),
    }
    return understand(
        "SELECT COUNT(*) FROM t JOIN p ON t.a = p.b", Dataset("d", tables)
    ).raw.relation


def test_a_key_is_coded_as_the_public_column_codes_it():
    category = sf.Category("x", "y")
    leaf = Field(Column("a", category))
    assert public(category, category).left == leaf
    assert public(category, sf.Category("y", "z", "x")).left == Lookup(leaf, 0, (2, 0))
    assert public(category, sf.Category({"x": "first", "y": "second"})).left == leaf
    age = Field(Column("a", Integer(0, 9)))
    assert public(Integer(0, 9), sf.Real(0, 9, step="0.5")).left == Arithmetic(
        Operation.MULTIPLY, age, Constant(2)
    )
    day = sf.Date("2024-01-01", "2024-01-31")
    assert public(day, sf.Date("2020-01-01", "2024-01-31")).left == Field(Column("a", day))
    assert public(sf.Boolean(), sf.Boolean()).left == Field(Column("a", sf.Boolean()))


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (sf.Text(), sf.Category("x", "y")), (sf.Category("x", "y"), sf.Text()),
        (sf.Integer(0, 9), sf.Date("2024-01-01", "2024-01-31")),
        (sf.Real(0, 9, step="0.5"), sf.Integer(0, 9)), (sf.Boolean(), sf.Integer(0, 1)),
    ],
)  # fmt: skip
def test_keys_of_different_types_are_refused_with_the_declaration(kind, other):
    with pytest.raises(Refused, match="different types") as refusal:
        public(kind, other)
    assert "p.b is" in refusal.value.remedy


def test_several_tables_are_joined_one_after_the_other(ask):
    found = ask(
        FROM
        + "products p JOIN events e ON e.product = p.product JOIN users u ON u.user_id = e.user_id"
    ).raw.relation
    assert isinstance(found, UnitJoin) and isinstance(found.source, PublicJoin)


@pytest.mark.parametrize(("kind", "negated"), [("SEMI", False), ("ANTI", True)])
def test_semi_and_anti_joins_test_units(ask, kind, negated):
    found = ask(f"{FROM}events {kind} JOIN users USING (user_id)").raw.relation
    assert isinstance(found, Semi) and found.negated is negated


@pytest.mark.parametrize(
    "text",
    [
        "events a JOIN events b ON a.product = b.product",
        "events a JOIN events b ON a.user_id = b.product",
        "events e JOIN users u ON e.user_id <> u.user_id",
        "events e JOIN users u ON e.user_id = e.user_id",
        "events e JOIN users u ON e.user_id = u.user_id OR TRUE",
        "events e JOIN users u ON TRUE",
        "events e JOIN users u ON UPPER(e.user_id) = u.user_id",
    ],
)
def test_a_join_off_the_unit_is_refused(ask, text):
    with pytest.raises(Refused) as refusal:
        ask(FROM + text)
    assert refusal.value.remedy


def test_a_self_join_on_the_unit_needs_one_row_on_a_side(ask):
    with pytest.raises(Refused, match="several rows a unit on both sides") as refusal:
        ask(FROM + "events a JOIN events b ON a.user_id = b.user_id")
    assert "GROUP BY user_id" in refusal.value.remedy and "ROW_NUMBER" in refusal.value.remedy
    one = "(SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) AS one"
    assert ask(
        f"{FROM}events a JOIN {one} ON one.user_id = a.user_id WHERE one.n > 3"
    ).raw.aggregates


def test_a_join_by_a_key_that_is_not_the_unit_leads_to_the_unit():
    tables = {
        "visits": sf.Table(
            "v.csv",
            unit=sf.Unit("patient_id", max_rows=9),
            columns={"visit_id": sf.Text(), "ward": sf.Category("a", "b")},
        ),
        "drugs": sf.Table(
            "d.csv",
            unit=sf.Unit("visit_id", via="visits.patient_id"),
            columns={"visit_id": sf.Text(), "drug": sf.Text()},
        ),
    }
    data = Dataset("d", tables)
    with pytest.raises(Refused, match="not on the unit") as refusal:
        understand("SELECT COUNT(*) FROM drugs d JOIN visits v ON d.drug = v.visit_id", data)
    assert "a.patient_id = b.patient_id" in refusal.value.remedy
    by_key = "SELECT COUNT(*) FROM drugs d JOIN visits v USING (visit_id)"
    assert isinstance(understand(by_key, data).raw.relation, KeyJoin)
    with pytest.raises(Refused, match="several rows a unit") as refusal:
        understand(
            "SELECT COUNT(*) FROM drugs d JOIN visits v ON d.patient_id = v.patient_id", data
        )
    per = "(SELECT patient_id, MIN(ward) AS ward FROM visits GROUP BY patient_id) AS one"
    asked = understand(
        f"SELECT one.ward, COUNT(*) FROM drugs d JOIN {per} ON one.patient_id = d.patient_id GROUP BY one.ward",
        data,
    )
    assert isinstance(asked.raw.relation, UnitJoin)


def test_the_unit_of_an_absent_row_is_nobody(ask):
    joined = "events e LEFT JOIN users u" + ON
    assert ask(
        f"SELECT COUNT(DISTINCT e.user_id), COUNT(DISTINCT user_id) FROM {joined}"
    ).raw.aggregates
    (counted,) = ask(f"SELECT COUNT(DISTINCT u.user_id) FROM {joined}").raw.aggregates
    assert isinstance(counted, CountUnitsWhere)
    found = ask(f"{FROM}{joined} WHERE u.user_id IS NULL").raw.relation
    assert found.predicate.operand.column in found.source.other.source.source.columns


def test_the_unit_of_a_sub_query_on_the_outer_side_is_marked_where_it_is_read(ask):
    inner = "(SELECT user_id, MIN(day) AS d FROM events GROUP BY user_id) AS q"
    joined = f"users u LEFT JOIN {inner} ON u.user_id = q.user_id"
    for what, kind in (
        ("COUNT(q.user_id)", CountValues),
        ("COUNT(DISTINCT q.user_id)", CountUnitsWhere),
        ("COUNT(DISTINCT CASE WHEN u.age_band = 'a' THEN q.user_id END)", CountUnitsWhere),
        ("COUNT_IF(q.user_id IS NOT NULL)", CountValues),
    ):
        raw = ask(f"SELECT {what} FROM {joined}").raw
        assert [type(each) for each in raw.aggregates] == [kind]
        (_, rows) = raw.relation.other.columns
        assert (rows.summary, rows.column.type) == (Summary.COUNT, sf.Integer(1, 2))
    # a plan that does not read it is as before
    plain = ask(f"SELECT COUNT(q.d), COUNT(DISTINCT u.user_id) FROM {joined}").raw.relation
    assert len(plain.other.columns) == 1
    person = "SELECT COUNT(person) FROM (SELECT user_id AS person, COUNT(*) AS n FROM events GROUP BY user_id)"
    assert ask(person).raw.aggregates == (CountRows(),)


def test_a_later_step_is_joined_to_the_step_before(ask):
    def step(name, test):
        return f"(SELECT DISTINCT user_id FROM events WHERE {test}) AS {name}"

    first = f"users u LEFT JOIN {step('a', 'smoker')} ON a.user_id = u.user_id"
    second = f"JOIN {step('b', 'age > 20')} ON b.user_id = a.user_id"
    raw = ask(f"SELECT COUNT(b.user_id) FROM {first} LEFT {second}").raw
    assert isinstance(raw.relation, UnitJoin) and isinstance(raw.relation.source, UnitJoin)
    assert raw.relation.outer and raw.relation.source.outer
    (mark,) = raw.relation.source.other.columns
    assert Field(mark.column) in leaves(raw.aggregates[0].value.expression)
    assert isinstance(ask(f"SELECT COUNT(*) FROM {first} {second}").raw.relation, Filter)


def test_a_test_of_both_sides_of_an_outer_join_empties_the_other_side(ask):
    on = "ON u.user_id = e.user_id AND u.born < e.day"
    question = ask(f"SELECT COUNT(*), COUNT(u.age_band) FROM events e LEFT JOIN users u {on}")
    assert isinstance(question.raw.relation, UnitJoin) and question.raw.relation.outer
    with pytest.raises(Refused, match="where the outer join finds no row"):
        ask(f"SELECT COUNT(u.user_id) FROM events e LEFT JOIN users u {on}")


def test_a_table_of_one_row_a_group_is_not_one_of_one_row():
    unit = {
        "one": sf.Unit("who", max_rows=1),
        "day": sf.Unit("who", max_rows=1, max_groups=9),
        "total": sf.Unit("who", max_rows_total=1),
    }
    data = Dataset(
        "d",
        {"t": sf.Table("t.csv", unit=sf.Unit("who"))}
        | {name: sf.Table("t.csv", unit=each) for name, each in unit.items()},
    )
    for name in ("one", "total"):
        assert understand(f"SELECT COUNT(*) FROM t JOIN {name} USING (who)", data).raw.aggregates
    with pytest.raises(Refused, match="several rows"):
        understand("SELECT COUNT(*) FROM t JOIN day USING (who)", data)


def test_a_join_that_is_not_checked_is_noticed(ask, monkeypatch):
    text = FROM + "events e JOIN users u ON e.day = u.born"
    with pytest.raises(Refused):
        ask(text)
    monkeypatch.setattr(join, "_require_unit", lambda context, left, right, on: None)
    assert ask(text).raw.aggregates

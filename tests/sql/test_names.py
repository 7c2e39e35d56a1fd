# SPDX-License-Identifier: Apache-2.0
"""Names are found whatever their case; one that is not there says which are."""

import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.errors import Refused, UnknownName
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.scalar import Field
from sfumato.sql import understand
from sfumato.sql.names import Context
from sfumato.sql.tables import declared
from sfumato.sql.typed import Number, Person
from tests.sql.conftest import EVENTS


def scope_of(shop, table, alias=None):
    context = Context(shop)
    return declared(
        context, exp.to_table(table).as_(alias) if alias else exp.to_table(table)
    ).scope(context)


@pytest.fixture
def scope(shop):
    return scope_of(shop, "events", "e")


@pytest.mark.parametrize("name", ["age", "AGE", "Age"])
@pytest.mark.parametrize("prefix", [None, "e", "E"])
def test_a_column_is_found_whatever_its_case(scope, name, prefix):
    assert scope.column(exp.column(name, table=prefix)) == Number(
        Field(Column("age", EVENTS["age"])), 1
    )


def test_an_unknown_column_lists_the_declared_ones(scope):
    with pytest.raises(UnknownName, match="'events' has no declared column 'wage'") as refusal:
        scope.column(exp.column("wage"))
    assert refusal.value.allowed == "region, product, amount, age, day, smoker"


def test_an_unknown_prefix_lists_the_tables(scope):
    with pytest.raises(UnknownName, match="No table 'users'") as refusal:
        scope.column(exp.column("age", table="users"))
    assert refusal.value.allowed == "e"


def test_a_name_of_more_than_two_parts_is_refused(scope):
    with pytest.raises(Refused):
        scope.column(exp.column("age", table="events", db="main"))


@pytest.mark.parametrize("name", ["user_id", "USER_ID", "User_Id"])
@pytest.mark.parametrize("quoted", [True, False])
def test_the_unit_is_known_in_every_spelling(scope, name, quoted):
    assert scope.is_unit([exp.column(name, quoted=quoted)])
    assert scope.is_unit([exp.Paren(this=exp.column(name, table="e"))])
    assert isinstance(scope.column(exp.column(name)), Person)


def test_nothing_else_is_the_unit(scope, shop):
    assert not scope.is_unit([exp.column("age")])
    assert not scope.is_unit([exp.Literal.string("user_id")])
    assert not scope.is_unit([])
    assert not scope_of(shop, "orders").is_unit([exp.column("user_id")])


def test_a_unit_of_two_columns_is_both(shop):
    scope = scope_of(shop, "days")
    who, day = exp.column("who"), exp.column("day")
    assert scope.is_unit([day, who])
    assert not scope.is_unit([who]) and not scope.is_unit([day])
    assert (scope.part(who), scope.part(day), scope.part(exp.column("steps"))) == (0, 1, None)


@pytest.mark.parametrize(
    "text", ["events", "EVENTS", '"events"', '"Events"', "events AS e", "events e"]
)
def test_a_table_is_found_whatever_its_case(ask, text):
    assert ask(f"SELECT COUNT(*) FROM {text}").table == "events"


def test_an_unknown_table_lists_the_declared_ones(ask):
    with pytest.raises(UnknownName, match="No table 'sales'") as refusal:
        ask("SELECT COUNT(*) FROM sales")
    assert refusal.value.allowed == "events, users, orders, events_unbounded, products, days"


def test_a_name_of_two_tables_is_refused_with_both(ask):
    joined = (
        "events e JOIN users u ON e.user_id = u.user_id JOIN products p ON e.product = p.product"
    )
    with pytest.raises(UnknownName, match="Several tables have a column 'product'") as refusal:
        ask(f"SELECT COUNT(product) FROM {joined}")
    assert refusal.value.allowed == "e.product, p.product"
    with pytest.raises(UnknownName, match="No table here has a declared column 'wage'"):
        ask(f"SELECT COUNT(wage) FROM {joined}")
    assert ask(f"SELECT COUNT(p.product), COUNT(DISTINCT user_id) FROM {joined}").raw.aggregates


HYPHENS = {each: sf.Integer(0, 9) for each in ("blood-pressure", "a-b-c", "a")}
STUDY = Dataset(
    "study",
    {
        "t": sf.Table(
            "t.csv",
            unit=sf.Unit("p-id", max_rows=1),
            columns={**HYPHENS, "sex": sf.Category("F", "M")},
        )
    },
)


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT AVG(blood-pressure) FROM t", "blood-pressure"),
        ("SELECT AVG(t.Blood-Pressure) FROM t", "blood-pressure"),
        ("SELECT AVG(1 + a-b-c) FROM t", "a-b-c"),
        ("SELECT COUNT(*) FROM t WHERE blood-pressure > 3", "blood-pressure"),
        ("SELECT COUNT(DISTINCT p-id) FROM t", "p-id"),
        ("SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY 2 - blood-pressure", "blood-pressure"),
    ],
)
def test_a_name_with_a_hyphen_is_told_from_a_subtraction(sql, meant):
    with pytest.raises(UnknownName) as refusal:
        understand(sql, STUDY)
    assert refusal.value.remedy.startswith(
        f'A name with a hyphen stands in double quotes: "{meant}".'
    )
    understand('SELECT AVG("blood-pressure"), AVG("a-b-c"), COUNT(DISTINCT "p-id") FROM t', STUDY)


def test_a_subtraction_of_what_is_not_there_is_no_name_with_a_hyphen():
    with pytest.raises(UnknownName) as refusal:
        understand("SELECT AVG(a - wage) FROM t", STUDY)
    assert refusal.value.remedy.startswith("Use one of these")


@pytest.mark.parametrize(
    ("test", "written"),
    [
        ('sex = "F"', "'F'"),
        ('sex IN ("F", "M")', "'F'"),
        ('sex = "it\'s"', "'it''s'"),
        ('CASE WHEN sex = "M" THEN TRUE END', "'M'"),
    ],
)
def test_a_text_in_double_quotes_is_told_to_be_written_in_single_ones(test, written):
    with pytest.raises(UnknownName) as refusal:
        understand(f"SELECT COUNT(*) FROM t WHERE {test}", STUDY)
    assert (
        refusal.value.remedy
        == f"A text stands in single quotes: {written}. Double quotes name a column."
    )


@pytest.mark.parametrize("test", ["sex = F", "sex IN (M, f)", "'M' = sex AND sex <> F"])
def test_a_declared_value_without_quotes_is_told_to_be_written_in_quotes(test):
    with pytest.raises(UnknownName) as refusal:
        understand(f"SELECT COUNT(*) FROM t WHERE {test}", STUDY)
    word = "M" if "IN" in test else "F"
    assert (
        refusal.value.remedy == f"It is a value of 'sex'. A text stands in single quotes: '{word}'."
    )


def test_no_column_is_declared_is_said_so():
    bare = Dataset("bare", {"t": sf.Table("t.csv")})
    with pytest.raises(UnknownName) as refusal:
        understand("SELECT SUM(x) FROM t", bare)
    assert refusal.value.allowed == "none: no column is declared"


def test_odd_names_are_reached_in_quotes():
    names = ["select", "a b", 'say "hi"', "空", "o'clock", "count(*)", "t.a"]
    odd = Dataset(
        "odd", {"t": sf.Table("t.csv", columns={name: sf.Integer(0, 1) for name in names})}
    )
    for name in names:
        quoted = name.replace('"', '""')
        assert (
            understand(f'SELECT SUM("{quoted}") FROM t', odd).raw.aggregates[0].value.name == name
        )


def test_prefixes_keep_the_columns_of_tables_apart(shop):
    context = Context(shop)
    assert context.prefix("t", ["a", "t.a"]) == ""
    # "t." + "a" is taken by the column "t.a" of the first
    assert context.prefix("t", ["a"]) == "t2."
    assert context.prefix("u", ["a"]) == "u."
    assert [context.name("n"), context.name("n")] == ["n", "n2"]


def test_a_statement_of_too_many_tables_is_refused(ask):
    one = "(SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id)"
    joins = " ".join(f"JOIN {one} AS t{n} USING (user_id)" for n in range(51))
    with pytest.raises(Refused, match="More than 50 tables"):
        ask(f"SELECT COUNT(*) FROM events {joins}")

# SPDX-License-Identifier: Apache-2.0
"""Names are found whatever their case; one that is not there says which are."""

import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.errors import Refused, UnknownName
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.sql import understand
from sfumato.sql.names import Scope, scope_of
from tests.sql.conftest import EVENTS


@pytest.fixture
def scope(shop):
    return Scope("events", "e", shop.tables["events"])


@pytest.mark.parametrize("name", ["age", "AGE", "Age"])
@pytest.mark.parametrize("prefix", [None, "e", "E", "events", "EVENTS"])
def test_a_column_is_found_whatever_its_case(scope, name, prefix):
    assert scope.column(exp.column(name, table=prefix)) == Column("age", EVENTS["age"])


def test_an_unknown_column_lists_the_declared_ones(scope):
    with pytest.raises(UnknownName, match="no declared column 'wage'") as refusal:
        scope.column(exp.column("wage"))
    assert refusal.value.allowed == "region, product, amount, age, day, smoker"


def test_an_unknown_prefix_lists_the_table(scope):
    with pytest.raises(UnknownName, match="No table 'users'") as refusal:
        scope.column(exp.column("age", table="users"))
    assert refusal.value.allowed == "e"


def test_a_name_of_more_than_two_parts_is_refused(scope):
    with pytest.raises(Refused):
        scope.column(exp.column("age", table="events", db="main"))


@pytest.mark.parametrize("name", ["user_id", "USER_ID", "User_Id"])
@pytest.mark.parametrize("quoted", [True, False])
def test_the_unit_is_known_in_every_spelling(scope, name, quoted):
    assert scope.is_unit(exp.column(name, quoted=quoted))
    assert scope.is_unit(exp.column(name, table="e"))


def test_nothing_else_is_the_unit(scope, shop):
    assert not scope.is_unit(exp.column("age"))
    assert not scope.is_unit(exp.Literal.string("user_id"))
    assert not Scope("orders", "orders", shop.tables["orders"]).is_unit(exp.column("user_id"))


@pytest.mark.parametrize("text", ["events", "EVENTS", '"events"', '"Events"', "events AS e", "events e"])
def test_a_table_is_found_whatever_its_case(shop, text):
    scope = scope_of(exp.select("1").from_(text, dialect="duckdb"), shop)
    assert (scope.name, scope.alias) == ("events", "e" if text.endswith(" e") else "events")
    assert scope.table is shop.tables["events"]


def test_an_unknown_table_lists_the_declared_ones(shop):
    with pytest.raises(UnknownName, match="No table 'sales'") as refusal:
        scope_of(exp.select("1").from_("sales"), shop)
    assert refusal.value.allowed == "events, users, orders, events_unbounded"


def test_no_column_is_declared_is_said_so():
    bare = Dataset("bare", {"t": sf.Table("t.csv")})
    with pytest.raises(UnknownName) as refusal:
        understand("SELECT SUM(x) FROM t", bare)
    assert refusal.value.allowed == "none: no column is declared"


def test_odd_names_are_reached_in_quotes():
    names = ["select", "a b", 'say "hi"', "空", "o'clock", "count(*)"]
    odd = Dataset("odd", {"t": sf.Table("t.csv", columns={name: sf.Integer(0, 1) for name in names})})
    for name in names:
        quoted = name.replace('"', '""')
        assert understand(f'SELECT SUM("{quoted}") FROM t', odd).raw.aggregates[0].column.name == name

# SPDX-License-Identifier: Apache-2.0
"""Only five aggregates exist; every other function of the parser is refused."""

import pytest
from sqlglot import exp

from sfumato.errors import MissingDeclaration, Refused, UnsupportedSql
from sfumato.sql import functions
from sfumato.sql.functions import aggregate
from sfumato.sql.names import Scope

ALLOWED = {exp.Count, exp.Sum, exp.Avg}
OTHERS = sorted(set(exp.ALL_FUNCTIONS) - ALLOWED, key=lambda kind: kind.__name__)
AGGREGATES = [kind for kind in OTHERS if issubclass(kind, exp.AggFunc)]


@pytest.fixture
def scope(shop):
    return Scope("events", "events", shop.tables["events"])


def column(name="amount"):
    return exp.column(name)


def test_the_parser_knows_many_aggregates():
    assert len(AGGREGATES) > 60
    assert not [kind for kind in AGGREGATES if issubclass(kind, tuple(ALLOWED))], "none hides under an allowed one"


@pytest.mark.parametrize("kind", AGGREGATES, ids=lambda kind: kind.__name__)
def test_every_other_aggregate_is_refused(scope, kind):
    with pytest.raises(UnsupportedSql) as refusal:
        aggregate(kind(this=column()), scope)
    assert refusal.value.remedy


def test_no_scalar_function_is_an_aggregate(scope):
    scalars = [kind for kind in OTHERS if not issubclass(kind, exp.AggFunc)]
    assert len(scalars) > 300
    assert all(aggregate(kind(this=column()), scope) is None for kind in scalars)


@pytest.mark.parametrize("call", ["my_udf", "error", "random", "getenv", "read_text", "hash", "current_date"])
def test_functions_are_refused_by_the_name_that_was_written(ask, call):
    for text in (f"SELECT {call}(age) FROM events", f"SELECT COUNT(*) FROM events WHERE {call}(age) = 1"):
        with pytest.raises(UnsupportedSql, match=r"function|aggregate|test") as refusal:
            ask(text)
        assert refusal.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(*, age)", "COUNT(age, amount)", "COUNT('x')", "COUNT(NULL)", "COUNT(DISTINCT *)", "COUNT(age + 1)",
        "COUNT(DISTINCT user_id, age)", "COUNT(DISTINCT age + user_id)", "SUM(*)", "SUM()", "SUM(1)", "AVG(DISTINCT age)",
        "SUM(age, amount)", "SUM(age ORDER BY amount)", "AVG(age) OVER ()", "SUM(age) FILTER (WHERE smoker)",
        "SUM(CASE WHEN smoker THEN 1 ELSE 0 END)", "SUM(-age)", "AVG(AVG(age))", "COUNT(COUNT(*))", "SUM(user_id)",
    ],
)  # fmt: skip
def test_an_aggregate_takes_one_column_as_it_is(ask, text):
    with pytest.raises(Refused) as refusal:
        ask(f"SELECT {text} FROM events")
    assert refusal.value.remedy


def test_what_is_missing_is_asked_for_with_its_declaration(ask):
    with pytest.raises(MissingDeclaration) as refusal:
        ask("SELECT AVG(product) FROM events")
    assert "sf.Real(lower, upper)" in refusal.value.allowed
    assert "'product': sf.Real(lower, upper)" in refusal.value.remedy


def test_a_function_let_through_is_noticed(ask, monkeypatch):
    monkeypatch.setattr(functions, "_number", lambda node, scope: scope.column(node.this.this))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"), pytest.raises(Refused):
        ask("SELECT SUM(-age) FROM events")

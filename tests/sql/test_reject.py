# SPDX-License-Identifier: Apache-2.0
"""A refusal names what was written, why, and what to write instead."""

import contextlib
import inspect
import re

import pytest
from sqlglot import exp, parse_one

from sfumato.errors import UnsupportedSql
from sfumato.sql.reject import (
    _RULES,
    NOT_A_QUERY,
    called,
    refuse,
    reject,
    require_few,
    require_only,
    written,
)


def nodes():
    """One node of every kind that can be made; the rest are traits of others."""
    for _, kind in inspect.getmembers(exp, inspect.isclass):
        if issubclass(kind, exp.Expr):
            with contextlib.suppress(TypeError):
                yield kind()


NODES = list(nodes())


def test_every_kind_of_node_has_a_refusal_with_a_remedy():
    assert len(NODES) > 900
    for node in NODES:
        error = reject(node)
        assert isinstance(error, UnsupportedSql), node
        assert error.problem.endswith(".") and error.remedy.endswith("."), node


def test_every_rule_is_reached():
    # a rule above that takes all its nodes would make it dead
    said = [(type(node), (error := reject(node)).problem, error.remedy) for node in NODES]
    for kind, _, (why, instead) in _RULES:
        own = [
            problem
            for made, problem, remedy in said
            if issubclass(made, kind) and remedy == instead
        ]
        assert any(why in problem for problem in own), kind


def test_nothing_is_refused_too():
    assert reject(None).problem == "Nothing is not part of the language of private questions."


def test_a_function_is_called_by_its_name():
    assert "The function f1" in reject(exp.Anonymous(this="f1")).problem
    assert "(ABS)" in reject(exp.Abs()).problem
    assert "(MODE)" in reject(exp.Mode()).problem
    assert len(reject(exp.Anonymous(this="f" * 1000)).problem) < 200


def test_a_function_is_called_as_the_dialect_has_it():
    assert called(parse_one("STRFTIME(a, 'x')", dialect="duckdb")) == "STRFTIME"
    assert called(parse_one("VAR_POP(a)", dialect="duckdb")) == "VAR_POP"
    # not by what DuckDB needs to say it
    assert called(parse_one("INITCAP(a)", dialect="duckdb")) == "INITCAP"
    assert called(parse_one("{'a': 1}", dialect="duckdb")) == "{'a': 1}"


def test_a_piece_is_shown_as_sql_and_cut():
    assert written(parse_one("a  [ 1 ]", dialect="duckdb")) == "a[1]"
    assert written(exp.Lock()) == "LOCK"
    assert written(exp.Literal.string("x" * 100)) == "'" + "x" * 59 + "..."


def test_a_refusal_by_name():
    error = refuse("The statement DROP", NOT_A_QUERY)
    assert error.problem == "The statement DROP is not a question about the data."
    assert error.remedy == "Only SELECT is answered; the data is never changed."


def test_a_node_with_only_allowed_parts_passes():
    require_only(exp.Sum(this=exp.column("a")), "this")
    require_only(exp.select("1"), "expressions")


@pytest.mark.parametrize(
    ("node", "word"),
    [
        (exp.select("1").distinct(), "DISTINCT"),
        (exp.select("1").from_("t").join("u"), "join"),
        (exp.select("1").with_("x", as_="SELECT 1"), "WITH"),
        (exp.select("1").limit(5), "LIMIT in a sub-query"),
        (exp.Table(this=exp.to_identifier("t"), db=exp.to_identifier("d")), "d in d.t is not"),
        (
            exp.Fetch(direction="FIRST", count=exp.Literal.number(3)),
            "FIRST in FETCH FIRST 3 ROWS ONLY is not",
        ),
        (exp.Between(this=exp.column("a"), symmetric=True), "SYMMETRIC"),
    ],
)
def test_a_node_with_another_part_is_refused_by_that_part(node, word):
    with pytest.raises(UnsupportedSql, match=word) as refusal:
        require_only(node, "this", "expressions", "from_")
    assert refusal.value.remedy


def test_many_parts_are_counted():
    require_few(200, "columns")
    with pytest.raises(UnsupportedSql, match="1,001 columns in one SELECT") as refusal:
        require_few(1001, "columns")
    assert refusal.value.allowed == "at most 200"


# how the parser calls the kinds of nodes that have no rule of their own
KINDS = {
    type(node).__name__ for node in NODES if type(node).__name__ != type(node).__name__.upper()
} - {"Nothing"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT COUNT(*) FROM events LIMIT 5%", "PERCENT"),
        ("SELECT COUNT(*) FROM events ORDER BY ALL", "ALL"),
        ("SELECT COUNT(*) FROM events FETCH FIRST 3 ROWS WITH TIES", "with ties"),
        ("SELECT COUNT(*) FROM events FOR UPDATE", "LOCK"),
        ("SELECT COUNT(*) INTO x FROM events", "INTO x"),
        ("SELECT COUNT(age[1]) FROM events", "age[1]"),
        ("SELECT COUNT(day AT TIME ZONE 'UTC') FROM events", "day AT TIME ZONE 'UTC'"),
        ("SELECT COUNT(*) FROM any_value(2)", "ANY_VALUE(2)"),
        ("SELECT COUNT(age, amount) FROM events", "amount in COUNT(age, amount)"),
        ("SELECT COUNT(*) FROM a.pg_catalog.events", "pg_catalog in a.pg_catalog.events"),
        ("SELECT LIST(age) FROM events", "(ARRAY_AGG)"),
        ("SELECT COUNT(VAR_POP(age)) FROM events", "The aggregate VAR_POP"),
        ("SELECT VAR_POP(region) FROM events", "VAR_POP of 'region', which is"),
        (
            "SELECT AVG(n) FROM (SELECT user_id, ARG_MAX(age, day) AS n FROM events GROUP BY user_id, region)",
            "ARG_MAX of the rows of one",
        ),
        ("SELECT COUNT(*) FROM events GROUP BY 1e400", "GROUP BY 1e400."),
        ("SELECT COUNT(*) FROM events ORDER BY 1e400", "ORDER BY 1e400."),
        ("CHECKPOINT", "The statement CHECKPOINT"),
        ("TRUNCATE a", "The statement TRUNCATE"),
    ],
)
def test_a_refusal_is_in_the_words_of_sql(ask, text, says):
    with pytest.raises(UnsupportedSql) as refusal:
        ask(text)
    assert says in refusal.value.problem
    assert KINDS.isdisjoint(re.findall(r"\w+", refusal.value.problem.replace("The ", "")))

# SPDX-License-Identifier: Apache-2.0
"""A refusal names what was written, why, and what to write instead."""

import contextlib
import inspect

import pytest
from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql.reject import _RULES, NOT_A_QUERY, refuse, reject, require_few, require_only


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
        own = [problem for made, problem, remedy in said if issubclass(made, kind) and remedy == instead]
        assert any(why in problem for problem in own), kind


def test_nothing_is_refused_too():
    assert reject(None).problem == "Nothing is not part of the language of private questions."


def test_a_function_is_called_by_its_name():
    assert "The function f1" in reject(exp.Anonymous(this="f1")).problem
    assert "(ABS)" in reject(exp.Abs()).problem
    assert "(MODE)" in reject(exp.Mode()).problem
    assert len(reject(exp.Anonymous(this="f" * 1000)).problem) < 200


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
        (exp.Table(this=exp.to_identifier("t"), db=exp.to_identifier("d")), "DB"),
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

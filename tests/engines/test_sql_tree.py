# SPDX-License-Identifier: Apache-2.0
"""The tree is values: what is equal is equal, and nothing below an expression is missed."""

from dataclasses import FrozenInstanceError

import pytest

from sfumato.engines import sql_tree as sql

A, B, C = sql.columns("abc")


def test_a_node_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        A.name = "b"
    assert hash(sql.Binary("+", A, B)) == hash(sql.Binary("+", A, B))


def test_nodes_of_other_classes_are_not_equal():
    assert sql.Paren(A) != sql.Not(A)
    assert sql.Constant(1) != sql.Constant("1")


@pytest.mark.parametrize(("join", "word"), [(sql.conjunction, "AND"), (sql.disjunction, "OR")])
def test_tests_are_joined(join, word):
    assert join([]) is None
    assert join([A]) is A
    assert join(iter([A, B, C])) == sql.Logic(word, (A, B, C))


def test_a_chain_binds_from_the_left():
    assert sql.total([A, B, C], "-") == sql.Binary("-", sql.Binary("-", A, B), C)
    assert sql.total([A]) is A


def test_every_operand_is_inside():
    case = sql.Case(((sql.IsNull(A), B),), sql.Call("least", (C, sql.number(7))))
    found = [*sql.inside(case)]
    assert found[0] is case
    assert {A, B, C, sql.Constant(7)} <= {*found}
    places = {part: place for place, part in enumerate(found)}
    assert places[sql.IsNull(A)] < places[A]
    # also what stands in an aggregate's filter and in a window
    window = sql.Window(sql.Aggregate("sum", (A,), where=B), (C,), (sql.Ordered(sql.NULL),))
    assert {A, B, C, sql.NULL} <= {*sql.inside(window)}


def test_a_deep_expression_is_walked():
    deep = A
    for _ in range(5_000):
        deep = sql.Not(deep)
    assert sum(1 for _ in sql.inside(deep)) == 5_001

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


def test_operators_bind_as_in_python_and_an_integer_is_its_constant():
    minus = sql.Binary("-", sql.Binary("-", A, B), sql.Binary("*", C, sql.Constant(2)))
    assert minus == A - B - C * 2
    assert (A // 3 <= 4) == sql.Binary("<=", sql.Binary("//", A, sql.Constant(3)), sql.Constant(4))
    for built, sign in ((A + 1, "+"), (A % 1, "%"), (A & 1, "&"), (A >> 1, ">>"), (A / B, "/")):
        assert built.sign == sign
    for built, sign in ((A < 1, "<"), (A > 1, ">"), (A >= 1, ">="), (A.equals(1), "=")):
        assert built == sql.Binary(sign, A, sql.Constant(1))
    assert A.same(B) == sql.Binary("IS NOT DISTINCT FROM", A, B)


def test_names_and_calls_are_short_forms():
    assert A.named("b") == A.named(B) == sql.As(A, B)
    assert (A.is_null, A.is_present) == (sql.IsNull(A), sql.IsNull(A, negated=True))
    assert sql.call("least", A, 3) == sql.Call("least", (A, sql.Constant(3)))
    assert sql.aggregate("count") == sql.Aggregate("count", (sql.Star(),))
    assert sql.aggregate("sum", A) == sql.Aggregate("sum", (A,))
    assert sql.number(3) == sql.Typed(sql.Constant(3), sql.SqlType.BIGINT)


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

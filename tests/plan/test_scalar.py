# SPDX-License-Identifier: Apache-2.0
"""Expressions have one meaning: total, three-valued, exact. DuckDB is the oracle of the logic."""

from fractions import Fraction
from itertools import product

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.emit import _test
from sfumato.metadata.column import Column
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Field,
    IsNull,
    Key,
    Member,
    Not,
    Operation,
    Or,
    compares,
    evaluate,
    leaves,
)

NAMES = ("x", "y")
FIELDS = tuple(Field(Column(name, sf.Integer(-3, 3))) for name in NAMES)
NUMBERS = st.one_of(st.sampled_from(FIELDS), st.integers(-3, 3).map(Constant))
TESTS = st.recursive(
    st.one_of(
        st.builds(Compare, st.sampled_from(Comparison), NUMBERS, NUMBERS),
        st.builds(IsNull, NUMBERS),
        st.builds(Member, NUMBERS, st.lists(st.integers(-3, 3), max_size=3).map(lambda v: tuple(sorted(set(v))))),
        st.booleans().map(Constant),
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner), st.builds(And, st.tuples(inner, inner)), st.builds(Or, st.tuples(inner, inner, inner))
    ),
    max_leaves=6,
)
LEAVES = st.one_of(
    st.sampled_from([*FIELDS, Key(0), Estimate(1)]),
    st.one_of(st.none(), st.integers(-2, 2), st.booleans(), st.fractions(-2, 2)).map(Constant),
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(IsNull, inner),
        st.builds(And, st.tuples(inner, inner)),
        st.builds(Or, st.tuples(inner, inner)),
        st.builds(Compare, st.sampled_from(Comparison), inner, inner),
        st.builds(Arithmetic, st.sampled_from(Operation), inner, inner),
        st.builds(Member, inner, st.just((0, 1))),
    ),
    max_leaves=8,
)


@given(ANYTHING, st.one_of(st.none(), st.integers(-2, 2), st.fractions()))
def test_evaluation_is_total(expression, value):
    found = evaluate(expression, lambda leaf: value)
    assert found is None or isinstance(found, bool | int | Fraction)


@given(TESTS, st.one_of(st.none(), st.integers(-3, 3)), st.one_of(st.none(), st.integers(-3, 3)))
def test_null_spreads_as_in_sql(expression, x, y):
    row = dict(zip(NAMES, (x, y), strict=True))
    cells = ", ".join(f'{"NULL" if value is None else value}::BIGINT AS "c_{name}"' for name, value in row.items())
    oracle = CONNECTION.execute(f"SELECT {_test(expression)} FROM (SELECT {cells})").fetchone()
    assert evaluate(expression, lambda leaf: row[leaf.column.name]) == oracle[0]


CONNECTION = duckdb.connect()
TRUTHS = (True, False, None)


@pytest.mark.parametrize(("one", "other"), list(product(TRUTHS, TRUTHS)))
def test_and_is_the_least_and_or_the_greatest_of_false_unknown_true(one, other):
    rank = {False: 0, None: 1, True: 2}
    pair = (Constant(one), Constant(other))
    assert evaluate(And(pair), lookup_nothing) is min(one, other, key=rank.get)
    assert evaluate(Or(pair), lookup_nothing) is max(one, other, key=rank.get)


def lookup_nothing(leaf):
    raise AssertionError("there is no leaf")


@given(st.fractions(), st.fractions(), st.sampled_from(Operation))
def test_arithmetic_is_exact_and_division_by_zero_is_null(one, other, op):
    expected = {
        Operation.ADD: lambda: one + other,
        Operation.SUBTRACT: lambda: one - other,
        Operation.MULTIPLY: lambda: one * other,
        Operation.DIVIDE: lambda: one / other if other else None,
    }[op]()
    assert evaluate(Arithmetic(op, Constant(one), Constant(other)), lookup_nothing) == expected


def test_whole_numbers_divide_exactly():
    assert evaluate(Arithmetic(Operation.DIVIDE, Constant(1), Constant(3)), lookup_nothing) == Fraction(1, 3)


@pytest.mark.parametrize("op", Operation)
def test_arithmetic_on_texts_is_null(op):
    assert evaluate(Arithmetic(op, Constant("a"), Constant(1)), lookup_nothing) is None


@given(st.integers(), st.integers())
def test_the_six_comparisons_are_their_signs(one, other):
    truths = [compares(op, one, other) for op in Comparison]
    assert truths == [one == other, one != other, one < other, one <= other, one > other, one >= other]
    assert [op.value for op in Comparison] == ["=", "<>", "<", "<=", ">", ">="]


def test_leaves_are_found_in_order_with_repeats():
    x, y = FIELDS
    inner = And((Compare(Comparison.LT, x, y), Not(Or((IsNull(y), Member(x, (1,)), Constant(True))))))
    assert leaves(inner) == [x, y, y, x]
    assert leaves(Arithmetic(Operation.ADD, Key(0), Estimate(1))) == [Key(0), Estimate(1)]

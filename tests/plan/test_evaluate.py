# SPDX-License-Identifier: Apache-2.0
"""Expressions have one meaning: total, three-valued, exact. SQLite and DuckDB are the oracles."""

from fractions import Fraction
from itertools import product

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.plan import evaluate as meaning
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, date_part, date_trunc, day, evaluate
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Key,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Substring,
    Trim,
)
from tests.contracts.effort import examples
from tests.plan.expressions import NAME, NUMBERS, ROWS, TESTS, TEXTS, X, reader, sqlite_value

LEAVES = st.one_of(
    st.sampled_from([Field(X), Field(NAME), Key(0), Estimate(1)]),
    st.one_of(
        st.none(), st.integers(-2, 2), st.booleans(), st.fractions(-2, 2), st.sampled_from("ab")
    ).map(Constant),
)


def every_node(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds(Not, inner),
        st.builds(IsNull, inner),
        st.builds(And, pair),
        st.builds(Or, pair),
        st.builds(Compare, st.sampled_from(Comparison), inner, inner),
        st.builds(Arithmetic, st.sampled_from(Operation), inner, inner),
        st.builds(Member, inner, st.just((0, 1))),
        st.builds(Like, inner, st.sampled_from(["%", "a_"])),
        st.builds(ChangeCase, inner, st.booleans()),
        st.builds(Substring, inner, st.integers(1, 2), st.integers(0, 2)),
        st.builds(Trim, inner, st.booleans(), st.booleans()),
        st.builds(Case, st.tuples(pair), inner),
        st.builds(Coalesce, pair),
        st.builds(Extreme, st.booleans(), pair),
        st.builds(Quotient, inner, inner),
        st.builds(FloorDivide, inner, st.integers(1, 3)),
        st.builds(Lookup, inner, st.integers(-1, 1), st.just((1, None))),
        st.builds(DatePart, st.sampled_from(Part), inner),
        st.builds(DateTrunc, st.sampled_from(Part), inner),
    )


@given(
    st.recursive(LEAVES, every_node, max_leaves=8),
    st.one_of(st.none(), st.integers(), st.fractions(), st.text(max_size=2), st.booleans()),
)
def test_evaluation_is_total(expression, value):
    found = evaluate(expression, lambda leaf: value)
    assert found is None or isinstance(found, bool | int | Fraction | str)


def test_what_is_no_expression_has_no_meaning():
    with pytest.raises(TypeError, match="int has no meaning"):
        evaluate(3, reader({}))


@settings(max_examples=examples(4), deadline=None)
@given(st.one_of(NUMBERS, TESTS, TEXTS), ROWS)
def test_null_spreads_as_in_sql(expression, row):
    assert differs(expression, row) is None


def differs(expression, row):
    ours, theirs = evaluate(expression, reader(row)), sqlite_value(expression, row)
    return None if (ours is None) == (theirs is None) and ours == theirs else (ours, theirs)


def null_is_false(values, *, decisive):
    return decisive if decisive in values else not decisive


def least_of_known(expression, inner):
    if isinstance(expression, Extreme):
        known = [value for each in expression.operands if (value := inner(each)) is not None]
        return (max if expression.greatest else min)(known) if known else None
    return honest_strict(expression, inner)


def floored(expression, inner):
    if isinstance(expression, Quotient):
        left, right = inner(expression.left), inner(expression.right)
        return left // right if left is not None and right else None
    return honest_strict(expression, inner)


honest_strict = meaning._strict
NULLS = dict.fromkeys(("x", "y", "share", "kind", "yes", "day", "name"))
MUTANTS = {
    "unknown AND true is true": ("_connect", null_is_false, And((Constant(None), Constant(True)))),
    "the least of what is known": (
        "_strict",
        least_of_known,
        Extreme(False, (Constant(1), Constant(None))),
    ),
    "a quotient rounded down": ("_strict", floored, Quotient(Constant(-3), Constant(2))),
    "zero divided by zero": (
        "_truncated",
        lambda left, right: 0,
        Quotient(Constant(0), Constant(0)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_another_meaning_is_noticed(name, monkeypatch):
    function, broken, expression = MUTANTS[name]
    assert differs(expression, NULLS) is None
    monkeypatch.setattr(meaning, function, broken)
    assert differs(expression, NULLS) is not None


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
    assert evaluate(
        Arithmetic(Operation.DIVIDE, Constant(1), Constant(3)), lookup_nothing
    ) == Fraction(1, 3)


@pytest.mark.parametrize("op", Operation)
def test_arithmetic_on_texts_is_null(op):
    assert evaluate(Arithmetic(op, Constant("a"), Constant(1)), lookup_nothing) is None


@given(st.fractions(), st.integers(1, 9))
def test_released_numbers_are_rounded_down_to_whole_parts(number, divisor):
    found = evaluate(FloorDivide(Constant(number), divisor), lookup_nothing)
    assert found <= number / divisor < found + 1


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%", "a", True),
        ("a%", "ba", False),
        ("_", "", False),
        ("_", "空", True),
        ("%.%", "a.b", True),
        ("%.%", "ab", False),
        ("a%z", "a\nz", True),
        ("[a]", "a", False),
        ("%", "", True),
    ],
)
def test_a_pattern_has_two_signs_and_no_other(pattern, text, matches):
    assert evaluate(Like(Constant(text), pattern), lookup_nothing) is matches


# the days around every turn of a year that is special to somebody, and both ends of the calendar
DAYS = [
    *range(-800, 800),
    *range(FIRST_DAY, FIRST_DAY + 400),
    *range(LAST_DAY - 400, LAST_DAY + 1),
    *range(10_950, 11_400),
    *range(-25_600, -25_150),
]


@pytest.mark.parametrize("part", Part)
def test_the_parts_of_every_day_are_those_of_the_engine(part):
    expected = calendar(f"date_part('{part.value}', d)")
    assert [date_part(part, code) for code in DAYS] == expected


@pytest.mark.parametrize("part", [Part.YEAR, Part.QUARTER, Part.MONTH, Part.WEEK, Part.DAY])
def test_the_first_days_are_those_of_the_engine(part):
    expected = calendar(f"date_trunc('{part.value}', d)::DATE - DATE '1970-01-01'")
    assert [date_trunc(part, code) for code in DAYS] == expected


def calendar(read):
    days = f"SELECT DATE '1970-01-01' + code::INTEGER AS d FROM unnest({DAYS}) AS days(code)"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        return [value for (value,) in connection.execute(f"SELECT {read} FROM ({days})").fetchall()]


def test_the_calendar_ends_where_it_is_said_to():
    assert (str(day(FIRST_DAY)), str(day(LAST_DAY))) == ("0001-01-01", "9999-12-31")
    for code, known in (
        (FIRST_DAY, True),
        (FIRST_DAY - 1, False),
        (LAST_DAY, True),
        (LAST_DAY + 1, False),
    ):
        for node in (DatePart, DateTrunc):
            assert (evaluate(node(Part.YEAR, Constant(code)), lookup_nothing) is not None) is known

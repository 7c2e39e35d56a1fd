# SPDX-License-Identifier: Apache-2.0
"""What stands above the noise reads keys and released numbers, and never a row."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import Refused, UnsupportedSql
from sfumato.plan.aggregate import CountRows
from sfumato.plan.evaluate import evaluate
from sfumato.plan.output import Order
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Field,
    IsNull,
    Key,
    Like,
    Member,
    Not,
    Operation,
    Or,
    leaves,
)
from sfumato.sql.aggregates import HIGHEST, LOWEST

ADD, SUBTRACT, MULTIPLY, DIVIDE = Operation
GT, LT, GE, LE, EQ = Comparison.GT, Comparison.LT, Comparison.GE, Comparison.LE, Comparison.EQ
N, TWO = Estimate(0), Constant(Fraction(2))


def item(ask, text):
    return ask(f"SELECT {text} FROM events GROUP BY region, age").output.items[0].expression


def having(ask, text):
    return ask(
        f"SELECT COUNT(*) AS n, region AS r FROM events GROUP BY region, age, smoker HAVING {text}"
    ).output.having


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("COUNT(*) + 2", Arithmetic(ADD, N, TWO)),
        ("2 - COUNT(*)", Arithmetic(SUBTRACT, TWO, N)),
        ("(COUNT(*) * 2)", Arithmetic(MULTIPLY, N, TWO)),
        ("SUM(amount) / COUNT(*)", Arithmetic(DIVIDE, N, Estimate(1))),
        ("-COUNT(*)", Arithmetic(SUBTRACT, Constant(0), N)),
        (
            "100 * AVG(smoker) / 2",
            Arithmetic(DIVIDE, Arithmetic(MULTIPLY, Constant(Fraction(100)), N), TWO),
        ),
    ],
)
def test_arithmetic_on_noisy_results_is_what_is_written(ask, text, expression):
    assert item(ask, text) == expression


def test_the_items_are_keys_estimates_and_constants_under_their_names(ask):
    items = ask(
        "SELECT age, COUNT(*), region AS r, 'x' AS label, 2 FROM events GROUP BY region, age"
    ).output.items
    assert [each.name for each in items] == ["age", "COUNT(*)", "r", "label", "2"]
    assert [each.expression for each in items] == [Key(1), N, Key(0), Constant("x"), TWO]


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("COUNT(*) > 2", Compare(GT, N, TWO)),
        ("n > 2", Compare(GT, N, TWO)),
        ("2 < n", Compare(LT, TWO, N)),
        ("n BETWEEN 2 AND COUNT(age)", And((Compare(GE, N, TWO), Compare(LE, N, Estimate(1))))),
        ("n IS NOT NULL", Not(IsNull(N))),
        ("n > 2 OR NOT n < 2", Or((Compare(GT, N, TWO), Not(Compare(LT, N, TWO))))),
        ("TRUE", Constant(True)),
        ("region = 'R02'", Member(Key(0), (1,))),
        ("'R02' <> region", Not(Member(Key(0), (1,)))),
        ("region IN ('R03', 'R01') AND n > 2", And((Member(Key(0), (0, 2)), Compare(GT, N, TWO)))),
        ("r = 'R02'", Member(Key(0), (1,))),
        ("region IS NULL", IsNull(Key(0))),
        ("age >= 12.5", Compare(GE, Key(1), Constant(Fraction(25, 2)))),
        (
            "age BETWEEN 12 AND 13",
            And((Compare(GE, Key(1), Constant(12)), Compare(LE, Key(1), Constant(13)))),
        ),
        (
            "age IN (12, 13)",
            Or((Compare(EQ, Key(1), Constant(12)), Compare(EQ, Key(1), Constant(13)))),
        ),
        ("smoker", Member(Key(2), (1,))),
        ("smoker = FALSE", Member(Key(2), (0,))),
        ("n IN (2)", Compare(EQ, N, TWO)),
        ("n + 2 > n", Compare(GT, Arithmetic(ADD, N, TWO), N)),
    ],
)
def test_having_tests_released_numbers_and_keys(ask, text, test):
    assert having(ask, text) == test


def test_having_tests_the_least_and_the_largest_by_their_quantiles(ask):
    asked = ask(
        "SELECT region, COUNT(*) FROM events GROUP BY region HAVING MAX(amount) > 2 AND MIN(amount) < 1"
    )
    released, extremes = asked.raw.aggregates
    assert (released, extremes.levels) == (CountRows(), (LOWEST, HIGHEST))
    one = Constant(Fraction(1))
    assert asked.output.having == And(
        (Compare(GT, Estimate(1, place=1), TWO), Compare(LT, Estimate(1, place=0), one))
    )
    assert [note.split(" is the value")[0] for note in asked.notes] == [
        "MAX(amount)",
        "MIN(amount)",
    ]
    with pytest.raises(Refused, match="user_id names single persons"):
        ask("SELECT COUNT(*) FROM events HAVING MAX(user_id) > 'p5'")


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("n", [Order(N)]),
        ("1 DESC", [Order(N, descending=True)]),
        ("COUNT(*) ASC, r", [Order(N), Order(Key(0))]),
        ("region DESC NULLS FIRST", [Order(Key(0), descending=True, nulls_first=True)]),
        ("SUM(age) / n", [Order(Arithmetic(DIVIDE, Estimate(1), N))]),
        ("2.0", [Order(Key(0))]),
    ],
)
def test_an_order_is_a_place_an_alias_or_an_expression(ask, text, orders):
    asked = ask(f"SELECT COUNT(*) AS n, region AS r FROM events GROUP BY region ORDER BY {text}")
    assert list(asked.output.order) == orders


def test_limit_and_offset_are_whole_numbers(ask):
    assert ask("SELECT COUNT(*) FROM events LIMIT 0").output.limit == 0
    output = ask("SELECT COUNT(*) FROM events LIMIT 3 OFFSET 2").output
    assert (output.limit, output.offset) == (3, 2)
    for clause in (
        "LIMIT 1.5",
        "LIMIT -1",
        "LIMIT 'x'",
        "LIMIT 10%",
        "OFFSET -1",
        "LIMIT COUNT(*)",
        "LIMIT 1e10",
    ):
        with pytest.raises(UnsupportedSql) as refusal:
            ask(f"SELECT COUNT(*) FROM events {clause}")
        assert refusal.value.remedy


@pytest.mark.parametrize(
    "select",
    [
        "amount", "region", "COUNT(*) + age", "region + 1", "'a' + COUNT(*)", "COUNT(*) + TRUE", "-region", "NULL", "*",
        "COUNT(*) % 2", "COUNT(*) // 2", "COUNT(*) ^ 2", "SQRT(COUNT(*))", "CASE WHEN COUNT(*) > 1 THEN 1 ELSE 'a' END", "user_id",
        "(SELECT 1)", "COUNT(*) OVER ()", "[COUNT(*)]", "CASE WHEN amount > 1 THEN 1 END", "ROUND(COUNT(*), age)",
        "LEAST(COUNT(*), day)",
        "MEDIAN(day) + 1", "COALESCE(COUNT(*), 'a')", "COUNT(*)::VARCHAR", "MEDIAN(day) > 1",
    ],
)  # fmt: skip
def test_an_item_out_of_the_language_is_refused(ask, select):
    for text in (
        f"SELECT COUNT(*), {select} FROM events",
        f"SELECT COUNT(*) FROM events ORDER BY {select}",
    ):
        with pytest.raises(Refused) as refusal:
            ask(text)
        assert refusal.value.remedy or refusal.value.allowed


@pytest.mark.parametrize(
    "test",
    [
        "amount > 3",
        "age > 12",
        "COUNT(*)",
        "COUNT(*) LIKE '1'",
        "region",
        "region < 'R02'",
        "region = 'R9'",
        "user_id = 'p'",
    ],
)
def test_a_having_out_of_the_language_is_refused(ask, test):
    with pytest.raises(Refused) as refusal:
        ask(f"SELECT COUNT(*) FROM events GROUP BY region HAVING {test}")
    assert refusal.value.remedy or refusal.value.allowed


KEYED = "SELECT {} FROM events GROUP BY region, day, smoker, product, MONTH(day), age"


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("day", Key(1)),
        ("day > DATE '1970-01-03'", Compare(GT, Key(1), Constant(2))),
        ("'1970-01-03' < day", Compare(LT, Constant(2), Key(1))),
        ("product = 'it''s'", Member(Key(3), ("it's",))),
        ("product LIKE 'a%'", Like(Key(3), "a%")),
        ("product NOT LIKE 'a%'", Not(Like(Key(3), "a%"))),
        ("MONTH(day)", Key(4)),
        ("month(day) + 2", Arithmetic(ADD, Key(4), TWO)),
        ("age * 2", Arithmetic(MULTIPLY, Key(5), TWO)),
        ("age * -1", Arithmetic(MULTIPLY, Key(5), Constant(Fraction(-1)))),
        ("smoker", Key(2)),
        (
            "CASE WHEN smoker THEN 'yes' ELSE 'no' END",
            Case(((Member(Key(2), (1,)), Constant("yes")),), Constant("no")),
        ),
        ("CASE region WHEN 'R02' THEN 2 END", Case(((Member(Key(0), (1,)), TWO),), Constant(None))),
        ("smoker IS TRUE", And((Not(IsNull(Member(Key(2), (1,)))), Member(Key(2), (1,))))),
    ],
)
def test_keys_are_read_as_what_they_are(ask, text, expression):
    assert ask(KEYED.format(f"{text}, COUNT(*)")).output.items[0].expression == expression


def test_a_number_that_is_a_key_is_its_code_times_its_step(ask):
    items = ask("SELECT amount, amount + 1, COUNT(*) FROM events GROUP BY amount").output.items
    in_units = Arithmetic(MULTIPLY, Key(0), Constant(Fraction(1, 2)))
    assert [each.expression for each in items[:2]] == [
        Key(0),
        Arithmetic(ADD, in_units, Constant(1)),
    ]


def test_a_product_of_a_key_is_no_key(ask):
    asked = ask("SELECT amount * 2, COUNT(*) FROM events GROUP BY amount ORDER BY amount * -2")
    in_units = Arithmetic(MULTIPLY, Key(0), Constant(Fraction(1, 2)))
    assert asked.output.items[0].expression == Arithmetic(MULTIPLY, in_units, TWO)
    (order,) = asked.output.order
    assert order.expression != Key(0)


def test_a_date_that_was_found_privately_compares_with_dates(ask):
    having = ask("SELECT MEDIAN(day) FROM events HAVING MEDIAN(day) > '1970-01-03'").output.having
    assert having == Compare(GT, N, Constant(2))


ROUNDING = {"ROUND({})": 0, "ROUND({}, 1)": 1, "ROUND({}, -1)": -1, "CAST({} AS INTEGER)": 0}


@settings(deadline=None)
@given(st.sampled_from(sorted(ROUNDING)), st.fractions(-40, 40, max_denominator=40))
def test_rounding_is_half_away_from_zero(ask, text, released):
    expression = ask(f"SELECT {text.format('SUM(age)')} FROM events").output.items[0].expression
    unit = Fraction(10) ** -ROUNDING[text]
    whole = math.floor(abs(released) / unit + Fraction(1, 2)) * unit
    assert evaluate(expression, lambda leaf: released) == (whole if released >= 0 else -whole)
    assert evaluate(expression, lambda leaf: None) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ABS(SUM(age))", Fraction(7, 2)), ("FLOOR(SUM(age))", -4), ("CEIL(SUM(age))", -3), ("-SUM(age)", Fraction(7, 2)),
        ("LEAST(SUM(age), 1, -9)", -9), ("GREATEST(SUM(age), 1)", 1), ("COALESCE(SUM(age), 0)", Fraction(-7, 2)),
        ("NULLIF(SUM(age), -3.5)", None), ("COALESCE(NULLIF(SUM(age), -3.5), 5)", 5), ("SUM(age) / 0", None), ("SUM(age) < 0", True),
        ("IF(SUM(age) < 0, 0, SUM(age))", 0), ("CASE WHEN SUM(age) > 0 THEN 'more' ELSE 'less' END", "less"),
        ("SUM(age) IS NULL", False),
        ("SUM(age)::DOUBLE", Fraction(-7, 2)), ("SUM(age) BETWEEN -4 AND 0 AND NOT SUM(age) > 0", True),
    ],
)  # fmt: skip
def test_a_function_of_a_released_number_has_its_value(ask, text, value):
    expression = ask(f"SELECT {text} FROM events").output.items[0].expression
    assert evaluate(expression, lambda leaf: Fraction(-7, 2)) == value


def test_an_alias_of_a_key_means_nothing_else(ask):
    with pytest.raises(UnsupportedSql, match="also the name of a group key"):
        ask("SELECT COUNT(*) AS region FROM events GROUP BY region")
    assert ask("SELECT region AS region, COUNT(*) FROM events GROUP BY region").output.items[
        0
    ].expression == Key(0)


NUMBERS = st.recursive(
    st.sampled_from(["COUNT(*)", "SUM(age)", "AVG(smoker)", "2", "0.5", "0"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
        | inner.map("(-{})".format)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(NUMBERS, st.lists(st.fractions(-3, 3), min_size=3, max_size=3))
def test_arithmetic_has_the_value_of_exact_arithmetic(ask, text, released):
    asked = ask(f"SELECT {text}, COUNT(*), SUM(age), AVG(smoker) FROM events")
    places = dict(zip(("COUNT(*)", "SUM(age)", "AVG(smoker)"), asked.output.items[1:], strict=True))
    names = {name: released[each.expression.index] for name, each in places.items()}
    expression = asked.output.items[0].expression
    assert not [leaf for leaf in leaves(expression) if isinstance(leaf, Field)]
    assert evaluate(expression, lambda leaf: released[leaf.index]) == by_python(text, names)


def by_python(text, names):
    """The same by Python's own grammar, on Fractions."""
    text = re.sub(r"[0-9.]+", r"F('\g<0>')", text)
    for name, letter in zip(names, "abc", strict=True):
        text = text.replace(name, letter)
    try:
        return eval(text, {"F": Fraction, **dict(zip("abc", names.values(), strict=True))})
    except ZeroDivisionError:
        return None


def test_a_test_that_is_a_key_is_that_key_in_having(ask):
    key = "SELECT COUNT(*) FROM events GROUP BY age > 30 HAVING {}"
    assert ask(key.format("age > 30")).output.having == Member(Key(0), (1,))
    assert ask(key.format("NOT age > 30")).output.having == Not(Member(Key(0), (1,)))
    with pytest.raises(UnsupportedSql, match="outside GROUP BY"):
        ask(key.format("age > 31"))

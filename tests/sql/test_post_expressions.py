# SPDX-License-Identifier: Apache-2.0
"""Expressions over released numbers: kinds are kept apart, and nothing reads a row."""

from fractions import Fraction

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.errors import Refused
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Estimate
from sfumato.sql import post_expressions
from sfumato.sql.post_expressions import Finished
from sfumato.sql.typed import Day, Label, Number, Truth, Words, truth_of

LEAVES = {
    "n": Number(Estimate(0), Fraction(1)),
    "day": Day(Estimate(1)),
    "label": Label(Estimate(2), ("a", "b")),
    "word": Words(Estimate(3)),
    "flag": truth_of(Estimate(4)),
}
ROW = (Fraction(-7, 2), 3, 1, "it's", 1)


def leaf(node):
    return LEAVES.get(node.name) if isinstance(node, exp.Column) else None


def value(text, row=ROW):
    (node,) = sqlglot.parse_one(f"SELECT {text}", read="duckdb").expressions
    typed = Finished(leaf).value(node)
    scalar = typed.test if isinstance(typed, Truth) else typed.expression
    return evaluate(scalar, lambda each: row[each.index])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("n > -4 AND NOT n > 0", True), ("n IN (1, -3.5)", True), ("n NOT BETWEEN -4 AND -3", False), ("n IS NULL OR flag", True),
        ("day = DATE '1970-01-04'", True), ("day BETWEEN '1970-01-01' AND '1970-01-03'", False),
        ("day IN ('1970-01-04', '1970-01-05')", True),
        ("label = 'b'", True), ("label IN ('a')", False), ("label <> 'a'", True), ("word = 'it''s'", True), ("word LIKE 'it%'", True),
        ("word IN ('x')", False), ("flag", True), ("flag = FALSE", False), ("NOT flag", False),
        ("(n < 0) IS NOT TRUE", False), ("n = 1.5", False),
        ("CASE WHEN n < 0 THEN 1 ELSE 2 END", 1), ("CASE label WHEN 'b' THEN 'two' END", "two"), ("IF(flag, 'yes', NULL)", "yes"),
        ("CASE WHEN n > 0 THEN NULL ELSE n / 2 END", Fraction(-7, 4)), ("1.5 < 2", True), ("'a' = 'a'", True), ("TRUE", True),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(text, found):
    assert value(text) == found


@given(st.one_of(st.none(), st.fractions(-9, 9, max_denominator=9)))
def test_a_missing_number_stays_missing(released):
    row = (released, *ROW[1:])
    for text, of in (
        ("n + 1", lambda v: v + 1),
        ("-n", lambda v: -v),
        ("ABS(n)", abs),
        ("n < 2", lambda v: v < 2),
        ("n = n", lambda v: True),
    ):
        assert value(text, row) == (None if released is None else of(released))
    assert value("COALESCE(n, 5)", row) == (5 if released is None else released)


@pytest.mark.parametrize(
    "text",
    [
        "n = 'a'", "day = 3", "label = 'c'", "label < 'b'", "word > 'a'", "flag > FALSE", "flag + 1", "word + 1",
        "n LIKE '1'", "label LIKE 'a%'",
        "n AND flag", "NOT n", "CASE WHEN n THEN 1 END", "CASE WHEN flag THEN 1 ELSE 'x' END",
        "CASE WHEN flag THEN label END", "other", "n = NULL",
        "CASE WHEN flag THEN NULL END", "SQRT(n)", "n % 2", "word || 'x'", "EXTRACT(year FROM day)", "day + 1",
        "NOW()", "n IN ()", "n IS 3", "n = day",
        "CAST(n AS VARCHAR)", "DATE 'x'", "f(n)", "(SELECT 1)", "[n]", "label = word",
    ],
)  # fmt: skip
def test_what_is_not_of_one_kind_or_not_known_is_refused(text):
    with pytest.raises(Refused) as refusal:
        value(text)
    assert refusal.value.remedy or refusal.value.allowed


def test_a_comparison_in_the_wrong_direction_is_noticed(monkeypatch):
    assert value("n > 2", (Fraction(3), *ROW[1:])) is True
    monkeypatch.setitem(post_expressions.COMPARISONS, exp.GT, post_expressions.Comparison.LT)
    assert value("n > 2", (Fraction(3), *ROW[1:])) is False

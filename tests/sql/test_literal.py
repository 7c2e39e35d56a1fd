# SPDX-License-Identifier: Apache-2.0
"""Constants are read exactly, or are no constants."""

from decimal import Decimal
from fractions import Fraction

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql.literal import answered, literal, whole


def read(text):
    return literal(sqlglot.parse_one(f"SELECT {text}", read="duckdb").expressions[0])


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_a_number_is_the_decimal_that_is_written(number):
    assert read(f"{number:f}") == Fraction(number)
    assert read(f"(({number:f}))") == Fraction(number)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1e3", Fraction(1000)),
        ("- (-2)", Fraction(2)),
        ("9007199254740993", Fraction(9007199254740993)),
        ("1e-400", Fraction(Decimal("1e-400"))),
        ("TRUE", True),
        ("false", False),
        ("'it''s'", "it's"),
        ("'5'", "5"),
    ],
)
def test_a_constant_is_what_it_says(text, value):
    found = read(text)
    assert found == value
    assert type(found) is type(value)


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",))))
def test_a_text_survives_its_quotes(text):
    quoted = text.replace("'", "''")
    assert read(f"'{quoted}'") == text


@pytest.mark.parametrize(
    "text", ["age", "1 + 1", "NULL", "-'5'", "-TRUE", "COUNT(*)", "DATE '2019-01-01'", "x.y", "?"]
)
def test_anything_else_is_no_constant(text):
    assert read(text) is None


def test_an_answer_is_no_literal():
    node = sqlglot.parse_one("SELECT (SELECT COUNT(*) FROM t)", read="duckdb").expressions[0]
    assert answered(node) is None
    node.set("this", exp.Literal.number(5))
    assert answered(node) == exp.Literal.number(5)
    assert literal(node) is None
    assert answered(exp.Literal.number(5)) is None and answered(None) is None


@pytest.mark.parametrize("text", ["1.5", "-1", "11", "'3'", "TRUE", "age"])
def test_a_whole_number_in_its_range_is_asked_for(text):
    node = sqlglot.parse_one(f"SELECT {text}", read="duckdb").expressions[0]
    with pytest.raises(UnsupportedSql, match="A size that is not a whole number from 0 to 10"):
        whole(node, "A size", 0, 10)
    assert whole(exp.Literal.number(10), "A size", 0, 10) == 10


@pytest.mark.parametrize("text", ["1e401", "1e999999999", "9" * 500])
def test_a_number_that_would_fill_the_memory_is_refused(text):
    with pytest.raises(UnsupportedSql, match="A number in the statement"):
        read(text)

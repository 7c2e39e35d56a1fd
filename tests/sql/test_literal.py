# SPDX-License-Identifier: Apache-2.0
"""Constants are read exactly, or are no constants."""

from decimal import Decimal
from fractions import Fraction

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import UnsupportedSql
from sfumato.sql.literal import literal


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
        ("DATE '2019-12-31'", "2019-12-31"),
        ("'2019-12-31'::DATE", "2019-12-31"),
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
    "text", ["age", "1 + 1", "NULL", "-'5'", "-TRUE", "COUNT(*)", "TIMESTAMP '2019-01-01'", "x.y", "?"]
)
def test_anything_else_is_no_constant(text):
    assert read(text) is None


@pytest.mark.parametrize(
    "text", ["DATE '2019-13-01'", "DATE '2019-02-29'", "DATE 'now'", "CAST(5 AS DATE)", "day::DATE"]
)
def test_a_date_that_is_none_is_refused(text):
    with pytest.raises(UnsupportedSql, match="DATE 'YYYY-MM-DD'") as refusal:
        read(text)
    assert refusal.value.remedy == "DATE '2019-12-31'"


@pytest.mark.parametrize("text", ["1e401", "1e999999999", "9" * 500])
def test_a_number_that_would_fill_the_memory_is_refused(text):
    with pytest.raises(UnsupportedSql, match="A number in the statement"):
        read(text)

# SPDX-License-Identifier: Apache-2.0
"""Functions of declared texts are tables over the declaration; patterns cannot run away."""

import re
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Category, Column
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Constant, Field, Lookup, Member
from sfumato.sql import labels
from sfumato.sql.labels import (
    joined,
    like,
    lower_case,
    mapped,
    matching,
    measured,
    regex,
    substring,
    to_number,
    upper_case,
)
from sfumato.sql.typed import Label, text
from tests.contracts.effort import examples

WORDS = ("ab", "Ab", "b c", "12")
C = Label(Field(Column("c", Category(*WORDS))), WORDS)


def values(result):
    """The text of the result for each declared value, and for NULL."""
    codes = [
        evaluate(result.expression, lambda leaf, code=code: code)
        for code in (*range(len(WORDS)), None)
    ]
    return [None if code is None else result.labels[code] for code in codes]


@pytest.mark.parametrize(
    "function",
    [str.upper, str.lower, lambda label: label[:1], lambda label: "x", lambda label: label],
)
def test_a_mapped_text_is_the_function_of_the_text(function):
    assert values(mapped(C, function)) == [*(function(word) for word in WORDS), None]
    assert mapped(text("Ab"), function) == text(function("Ab"))


def test_texts_that_become_one_share_a_code():
    result = mapped(C, str.lower)
    assert result.labels == ("ab", "b c", "12")
    assert result.expression == Lookup(C.expression, 0, (0, 0, 1, 2))


def test_texts_are_joined_with_constants():
    assert values(joined([text("<"), C, text(">"), text("!")])) == [
        "<ab>!",
        "<Ab>!",
        "<b c>!",
        "<12>!",
        None,
    ]
    assert joined([text("a"), text("b")]) == text("ab")


def test_several_columns_are_joined_by_their_combinations():
    both = joined([C, text("-"), C])
    assert len(both.labels) == 16
    assert values(both) == ["ab-ab", "Ab-Ab", "b c-b c", "12-12", None]
    # equal texts are one label: "a" || "aa" is "aa" || "a"
    short = Label(Field(Column("a", Category("a", "aa"))), ("a", "aa"))
    assert joined([short, short]).labels == ("aa", "aaa", "aaaa")
    many = Label(Field(Column("m", Category(*map(str, range(101))))), tuple(map(str, range(101))))
    with pytest.raises(UnsupportedSql, match="10,000 combinations"):
        joined([many, many])


def test_a_measure_is_a_number_or_null():
    result = measured(C, to_number)
    assert [evaluate(result.expression, lambda leaf, code=code: code) for code in range(4)] == [
        None,
        None,
        None,
        12,
    ]
    halves = measured(C, lambda label: Fraction(len(label), 2))
    assert halves.step == Fraction(1, 2) and halves.expression.table == (2, 2, 3, 2)
    assert measured(text("abc"), len).expression == Constant(3)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("12", 12),
        (" -3.50 ", Fraction(-7, 2)),
        ("+0", 0),
        ("1e3", None),
        ("", None),
        ("1 2", None),
        ("\u0661", None),
        ("nan", None),
    ],
)
def test_a_text_is_a_number_if_it_is_written_as_one(label, value):
    assert to_number(label) == value


def test_matching_codes_are_those_of_the_texts():
    assert matching(C, str.islower).test == Member(C.expression, (0, 2))


ALPHABET = st.text("ab_%.", max_size=8)


@settings(max_examples=examples(4))
@given(ALPHABET, ALPHABET)
def test_like_is_the_pattern_of_sql(label, pattern):
    reference = "".join({"%": ".*", "_": "."}.get(each, re.escape(each)) for each in pattern)
    assert like(pattern)(label) is (re.fullmatch(reference, label, re.DOTALL) is not None)


def test_ilike_ignores_case():
    assert like("AB%", ignore_case=True)("abc") and not like("AB%")("abc")


def test_like_does_not_backtrack():
    # a backtracking matcher would try about 10^20 ways
    assert not like("%a" * 60 + "b")("a" * 100)


@pytest.mark.parametrize(
    ("pattern", "label", "found"),
    [
        ("^R0", "R01", True), ("^R0", "xR0", False), ("0\\d$", "R01", True), ("[a-c]+x", "zabcx", True), ("a|b$", "xb", True),
        ("R.1", "R01", True), ("a{2}", "aa", True), ("a{3}", "aa", False), ("é", "café", True), ("a\\.b", "axb", False),
    ],
)  # fmt: skip
def test_a_simple_expression_is_searched(pattern, label, found):
    assert regex(pattern, whole=False)(label) is found


def test_a_whole_match_is_of_the_whole_text():
    assert regex("a|bc", whole=True)("bc") and not regex("a|bc", whole=True)("abc")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|b)*",
        "a*a*a*b",
        "a?a?a?aaa",
        "(?=a)",
        "\\1",
        "[",
        "a**",
        "a{1,9}",
        "x" * 201,
        "*a",
        "a\\",
    ],
)
def test_an_expression_that_may_run_away_or_fail_is_refused(pattern):
    with pytest.raises(UnsupportedSql) as refusal:
        regex(pattern, whole=False)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    ("start", "length", "cut"),
    [
        (1, 2, "ab"),
        (2, None, "bcd"),
        (0, 2, "a"),
        (-2, 1, "c"),
        (-9, 7, "ab"),
        (9, 1, ""),
        (2, 0, ""),
    ],
)
def test_a_substring_is_counted_from_one(start, length, cut):
    assert substring(start, length)("abcd") == cut


def test_a_table_off_by_one_is_noticed(monkeypatch):
    monkeypatch.setattr(
        labels, "Lookup", lambda operand, first, table: Lookup(operand, first + 1, table)
    )
    assert values(mapped(C, str.lower)) != [*(word.lower() for word in WORDS), None]


def test_capital_and_small_letters_are_those_of_the_engine():
    """Of every character, and of words in which Python looks at more than one letter."""
    letters = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    words = [*letters, "straße", "İstanbul", "ΟΔΟΣ", "ﬁn", "ŉ", "ᾳ", "ASCII"]
    table = pa.table({"w": words})
    with duckdb.connect() as engine:
        engine.register("words", table)
        rows = engine.execute("SELECT w, upper(w), lower(w) FROM words").fetchall()
    assert len(rows) == len(words)
    assert [row for row in rows if row[1:] != (upper_case(row[0]), lower_case(row[0]))] == []


@pytest.mark.parametrize(
    ("label", "pattern", "expected"),
    [
        ("İx", "ix", True),
        ("straße", "STRAẞE", True),
        ("straße", "STRASSE", False),
        ("ΟΔΟΣ", "οδος", False),
        ("ΟΔΟΣ", "οδοσ", True),
    ],
)
def test_ilike_compares_the_small_letters_of_the_engine(label, pattern, expected):
    assert duckdb.execute("SELECT ? ILIKE ?", [label, pattern]).fetchone() == (expected,)
    assert like(pattern, ignore_case=True)(label) is expected

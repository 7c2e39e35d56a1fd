# SPDX-License-Identifier: Apache-2.0
"""An expression of the emitted SQL means on Spark what it means on DuckDB.

What is not listed means nothing.
"""

import pytest

from sfumato.engines import spark_expression, sql_tree
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.spark_expression import Scope
from sfumato.engines.spark_kind import Kind, Typed
from sfumato.engines.value_codes import WHOLE_PATTERN
from tests.contracts.spark import on_spark

WHOLE = [-(2**62), -9, -8, -1, 0, 1, 2, 9, 2**31, 2**62, None]
REAL = [
            "-1e308", "-2.5", "-1.5", "-0.5", "-0.0", "0.0", "0.49999999999999994", "0.5", "1.5", "2.5",
            "4503599627370497.5", "9.3e18", "1e308", "NULL",
        ]  # fmt: skip
NUMERALS = ["'0'", "'01'", "'-7'", "'-0'", "'+1'", f"'{2**63 - 1}'", f"'{2**63}'", "'-9223372036854775808'", "'٣'",
            "'1_0'", "'1\n'", "'1e3'", "' 1'", "''", "NULL"]  # fmt: skip
TEXTS = [
    "'1'",
    "' 2.5 '",
    "'-1e400'",
    "'abc'",
    "''",
    "'1970-01-02'",
    "'0001-01-01'",
    "'2023-02-29'",
    "NULL",
]
ROUNDER = "6755399441055744.0::DOUBLE"

OF_WHOLE = [
    "x::HUGEINT", "TRY_CAST(x AS BIGINT)", "TRY_CAST(x::HUGEINT * 4 AS BIGINT)", "TRY_CAST(x AS INTEGER)",
    "CAST(x AS VARCHAR)", "TRY_CAST(x AS DOUBLE)", "x // 3", "x // (-3)", "x // nullif(x, 0)", "x::HUGEINT // 3",
    "x::HUGEINT // (-3)", "(x::HUGEINT * 1048576) // nullif(x, 0)",
    "(x::HUGEINT + 9223372036854775808::HUGEINT) // 7::HUGEINT - 3", "x % 7", "x::HUGEINT % 7",
    "(x // 2) + 1 - 2 * 3", "x = 0", "x <> 0", "x < 1", "x <= 1::HUGEINT", "x > TRY_CAST(x AS DOUBLE)", "x >= 0",
    "x IS NOT DISTINCT FROM NULL", "x IS NULL", "x IS NOT NULL", "NOT (x > 0)", "x BETWEEN -1 AND 9", "x IN (0, 9)",
    "x NOT IN (0, 1)", "x > 0 AND x < 9 AND NULL", "x > 0 OR x < -7 OR NULL", "coalesce(x, 0)", "nullif(x, 1)",
    "greatest(x, 1, NULL)", "least(x, 0)", "CASE WHEN x > 0 THEN 1 WHEN x IS NULL THEN NULL ELSE x END",
    "CASE WHEN x > 0 THEN x::HUGEINT ELSE 1 END", "CASE WHEN FALSE THEN NULL ELSE x END",
    "sqrt(TRY_CAST(1099511627776 AS DOUBLE))", "TRY_CAST(floor(sqrt(TRY_CAST(x % 9 + 8 AS DOUBLE))) AS HUGEINT)",
    "TRUE", "NULL", "'a'", "0.5::DOUBLE", "x & 4194303", "(x >> 0) & 4194303", "(x >> 44) & 4194303", "x >> 63",
]  # fmt: skip
OF_REAL = [
    "x + 1", "x / 0.25::DOUBLE", "x = 0", "x <= -8", "x * 2", "nullif(x, 'nan'::DOUBLE)",
    f"TRY_CAST((x + {ROUNDER}) - {ROUNDER} AS BIGINT)",
    "CASE WHEN x > -9e15 AND x < 9e15 THEN TRY_CAST(floor(x) AS BIGINT) END",
    "CASE WHEN x > -9e15 AND x < 9e15 THEN (x - floor(x)) > 0.5 END",
    "CASE WHEN x > -9e15 AND x < 9e15 THEN (x - floor(x)) = 0.5 END", "greatest(x, 0.5)",
    "x IS NOT DISTINCT FROM 0.5",
]  # fmt: skip
OF_TEXT = [
    "TRY_CAST(x AS DOUBLE)",
    "TRY_CAST(x AS DATE)",
    "CAST(x AS VARCHAR)",
    "x = 'abc'",
    "x < 'b'",
    "x IN ('1', '')",
    "coalesce(x, 'N')",
    "TRY_CAST(x AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "TRY_CAST(TRY_CAST(x AS DATE) AS VARCHAR)",
    "nullif(x, 'abc')",
    "TRY_CAST('0x' || substr(md5(x), 1, 8) AS BIGINT)",
    "TRY_CAST('0x' || substr(md5(x), 9, 15) AS BIGINT)",
]
OF_NUMERALS = [f"CASE WHEN regexp_full_match(x, '{WHOLE_PATTERN}') THEN TRY_CAST(x AS BIGINT) END"]  # fmt: skip


def values(kind, cells):
    listed = ", ".join(
        f"({place}::BIGINT, {'NULL' if each is None else each}::{kind})"
        for place, each in enumerate(cells)
    )
    return f"(VALUES {listed}) AS t(place, x)"


def odd(both):
    """The expressions that differ between the engines."""
    found = both.odd(OF_WHOLE, values("BIGINT", WHOLE)) + both.odd(OF_REAL, values("DOUBLE", REAL))
    found += both.odd(OF_NUMERALS, values("VARCHAR", NUMERALS))
    return found + both.odd(OF_TEXT, values("VARCHAR", TEXTS))


def test_an_expression_means_what_it_means_on_duckdb(both):
    assert odd(both) == []


def test_a_long_operand_of_a_division_is_written_once(both):
    long = " + ".join(f"x::HUGEINT * {each}" for each in range(1, 60))
    assert len(long) > 500
    table = values("BIGINT", [-(2**40), -1, 0, 5, None])
    assert both.odd([f"({long}) // 7", f"({long}) // nullif(x, 0)"], table) == []


MUTANTS = {
    "//": lambda node, write: Typed(
        f"CAST({write(node.left).sql} / {write(node.right).sql} AS BIGINT)", Kind.BIGINT
    ),
    "IS NOT DISTINCT FROM": lambda node, write: Typed(
        f"({write(node.left).sql} = {write(node.right).sql})", Kind.BOOLEAN
    ),
    "floor": lambda node, write: Typed(
        f"CAST(CAST({write(node.operands[0]).sql} AS BIGINT) AS DOUBLE)", Kind.DOUBLE
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_expression_is_noticed(both, monkeypatch, name):
    honest = spark_expression._RULES
    kind = sql_tree.Call if name == "floor" else sql_tree.Binary

    def wrong(node, write):
        known = node.name if name == "floor" else node.sign
        return (MUTANTS[name] if known == name else honest_rule)(node, write)

    honest_rule = honest[kind]
    monkeypatch.setitem(honest, kind, wrong)
    try:
        found = odd(both)
    except Exception:
        found = [name]  # it fails on a row
    assert found


UNLISTED = [
    "1 | 2", "x & 0.5", "x & 'a'", "x >> x", "x >> 64", "x << 1",
    "TRY_CAST('0x' || substr('ff', 1, 16) AS BIGINT)", "TRY_CAST('0x' || substr('ff', 0, 8) AS BIGINT)",
    "CASE WHEN regexp_full_match('1', '0|-?[1-9][0-9]{0,18}') THEN TRY_CAST('2' AS BIGINT) END",
    "1 ^ 2", "CAST(x AS TINYINT)", "CAST('a' || 'b' AS DOUBLE)", "CAST(0.5 AS BIGINT)", "TRY_CAST(0.5 AS BIGINT)",
    "TRY_CAST('a' AS BIGINT)", "TRY_CAST(x AS DATE)", "x / 2", "0.5 // 2", "0.5 % 2", "x + 'a'", "x = 'a'",
    "x IN ('a')", "coalesce(x, 'a')", "CASE WHEN x THEN 1 END", "NOT x", "x AND TRUE", "floor(x)", "sqrt(x)", "y", "t.y",
    "other.x", "DATE '1970-01-01' + x", "floor(0.5, 1)", "x::USMALLINT",
]  # fmt: skip


@pytest.mark.parametrize("expression", UNLISTED)
def test_what_is_not_listed_has_no_meaning_on_spark(expression):
    with pytest.raises(TypeError):
        on_spark(f"SELECT {expression} AS z FROM (VALUES (1::BIGINT)) AS t(x)")


def classes():
    """Every class of expression in the tree."""
    return [
        kind
        for kind in vars(sql_tree).values()
        if isinstance(kind, type)
        and issubclass(kind, sql_tree.Expression)
        and kind is not sql_tree.Expression
    ]


def test_every_class_is_printed_or_refused_alone():
    # these stand in a SELECT, in a window or in a sum, and are printed there; Spark reads no lists
    elsewhere = {sql_tree.Star, sql_tree.As, sql_tree.Ordered, sql_tree.Each}
    assert {*classes()} - {*spark_expression._RULES} == elsewhere


def test_a_column_of_two_tables_needs_its_table():
    scope = Scope({"l": {"x": Kind.BIGINT}, "r": {"x": Kind.VARCHAR}}, False)
    assert scope(sql_tree.Column("x", "r")).kind is Kind.VARCHAR
    with pytest.raises(TypeError, match="2 columns"):
        scope(sql_tree.Column("x"))


def test_an_expression_may_be_deeper_than_the_stack_of_python():
    deep = sql_tree.Column("x")
    for _ in range(5_000):
        deep = sql_tree.Paren(sql_tree.Binary("-", deep, sql_tree.Constant(1)))
    scope = Scope({"t": {"x": Kind.BIGINT}}, False)
    assert scope(deep).sql.count("-") == 5_000
    assert printed(deep).count("-") == 5_000

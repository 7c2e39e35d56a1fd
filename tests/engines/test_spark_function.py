# SPDX-License-Identifier: Apache-2.0
"""A function of the emitted SQL means on Spark what it means on DuckDB.

One that is not listed means nothing.
"""

import pytest

from sfumato.engines import spark_expression, spark_function, sql_tree
from sfumato.engines.duckdb_printer import text
from sfumato.engines.spark_kind import Kind, Typed
from sfumato.engines.value_codes import DATE_PATTERN, NUMBER_PATTERN
from sfumato.metadata.date_format import date_pattern
from tests.contracts.spark import on_spark

SOME_FORMATS = {
    "%d/%m/%Y": r"\3-\2-\1",
    "%m/%d/%Y": r"\3-\1-\2",
    "%m.%d.%Y": r"\3-\1-\2",
    "%Y-%m-%d": r"\1-\2-\3",
    "%Y%m%d": r"\1-\2-\3",
}
WORDS = [
             "", "a", "A", "ab", "a\nb", "a\\b", "a%", "空b", "e\u0301", "👩‍👧", " 1 ", "1.50", "1.", ".5e3", "+1E-2",
             "1e", "12\n", "2024-02-29", "2024-2-9", "0000-01-01", "0001-01-01", "99999-01-01", "1.0", "1.00", "10",
             "1.0\n", "٣", "31/12/2024", "1/2/2024\n", "x1/2/20245", "12.31.2024", "12x31x2024", "20240229",
             "$1/2/2024", None,
         ]  # fmt: skip
NUMBERS = [-(2**62), -8, -7, -1, 0, 1, 2, 6, 7, 2**62, None]
DAYS = [-719162, -719156, -141427, -1, 0, 58, 59, 60, 364, 789, 11016, 19782, 2932896, None]


def values(kind, cells):
    """Numbered cells as a table of one column x."""
    written = [
        "NULL" if each is None else text(each) if isinstance(each, str) else str(each)
        for each in cells
    ]
    listed = ", ".join(f"({place}::BIGINT, {each}::{kind})" for place, each in enumerate(written))
    return f"(VALUES {listed}) AS t(place, x)"


OF_TEXTS = [
    "length(x)",
    "md5('key' || '|' || coalesce(x, 'N') || '|' || 'é')",
    "md5(x)",
    "x || ':'",
    f"regexp_full_match(x, {text(NUMBER_PATTERN)})",
    f"regexp_full_match(x, {text(DATE_PATTERN)})",
    "regexp_replace(x, '\\.0+$', '')",
    *(f"regexp_full_match(x, {text(date_pattern(form))})" for form in SOME_FORMATS),
    *(
        f"regexp_replace(x, {text(date_pattern(form))}, '{order}')"
        for form, order in SOME_FORMATS.items()
    ),
    *(
        f"x LIKE {text(pattern)}"
        for pattern in ("%", "_", "a%", "%b", "a\\%", "%\\%", "_%_", "__", "空_", "[a]")
    ),
    "translate(x, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')",
    "translate(x, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')",
    "trim(x, ' ')",
    "ltrim(x, ' ')",
    "rtrim(x, ' ')",
    "TRY(COALESCE(x, 'a'))",
    "substr(x, 1, 1)",
    "substr(x, 2, 1073741824)",
    "TRY(x)",
    "TRY(CASE WHEN x NOT IN ('a', '') THEN x END)",
]
OF_NUMBERS = [
    "TRY(x)",
    "TRY(coalesce(x, 7))",
    "TRY(CASE WHEN x > 0 THEN x ELSE NULL END)",
    "([5, NULL, 7]::BIGINT[])[greatest(least(x, 9::BIGINT), 1::BIGINT)]",
    "list_sort([x, 0, NULL]::BIGINT[], 'ASC', 'NULLS FIRST')[1]",
    "list_sort([x, 0]::BIGINT[], 'DESC', 'NULLS FIRST')[1]",
    "list_filter([x], lambda x: x <> 0)[1]",
    "row_number() OVER (PARTITION BY x > 0 ORDER BY x DESC NULLS FIRST)",
    "row_number() OVER (PARTITION BY x > 0 ORDER BY x % 2 NULLS LAST, x ASC NULLS FIRST)",
    "dense_rank() OVER (PARTITION BY x IS NULL ORDER BY x % 3 NULLS FIRST)",
    "rank() OVER (PARTITION BY x IS NULL ORDER BY x % 3 NULLS FIRST)",
    "lag(x, 2) OVER (PARTITION BY x > 0 ORDER BY x NULLS LAST)",
    "lead(x, 1) OVER (PARTITION BY x > 0 ORDER BY x NULLS LAST)",
    "count(*) OVER (PARTITION BY x > 0)",
    "sum(x // 8) OVER (PARTITION BY x > 0)",
]
DAY = "(DATE '1970-01-01' + TRY_CAST(x AS INTEGER))"
OF_DAYS = [
    *(
        f"date_part('{part}', {DAY})"
        for part in ("year", "quarter", "month", "week", "day", "isodow")
    ),
    *(
        f"date_diff('day', DATE '1970-01-01', date_trunc('{part}', {DAY}))"
        for part in ("year", "quarter", "month", "week")
    ),
    DAY,
]
AGGREGATES = [
    "count(*)", "count(x)", "count(DISTINCT x)", "sum(x // 8)", "min(x)", "max(x)", "min_by(x, CAST(x AS VARCHAR))",
    "count(*) FILTER (WHERE x > 0)", "sum(x // 8) FILTER (WHERE x > 0)", "sum((x - x + 4611686018427387904) * 1)",
    "sum((x - x - 4611686018427387904) * 2)", "sum((x // 8) * 3) FILTER (WHERE x < 0)", "sum(x * 1) FILTER (WHERE x > x)",
    "sum(x * 0 - 1)",
]  # fmt: skip


def odd(both):
    """The functions that differ between the engines."""
    found = both.odd(OF_TEXTS, values("VARCHAR", WORDS)) + both.odd(
        OF_NUMBERS, values("BIGINT", NUMBERS)
    )
    found += both.odd(OF_DAYS, values("BIGINT", DAYS))
    for narrow in (False, True):
        one, other = both.rows(
            f"SELECT {', '.join(AGGREGATES)} FROM {values('BIGINT', NUMBERS)}", narrow=narrow
        )
        found += [] if one == other else AGGREGATES
    return found


def test_a_function_means_what_it_means_on_duckdb(both):
    assert odd(both) == []


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        (
            sql_tree.Like,
            lambda node, write: Typed(f"({write(node.value).sql} LIKE '%')", Kind.BOOLEAN),
        ),
        pytest.param(
            "md5",
            lambda node, write: Typed(
                f"md5(CAST(upper({write(node.operands[0]).sql}) AS BINARY))", Kind.VARCHAR
            ),
            marks=pytest.mark.long,
        ),
        (
            sql_tree.Element,
            lambda node, write: Typed(f"get({write(node.list).sql}, 0)", Kind.BIGINT),
        ),
    ],
)
def test_a_mutant_function_is_noticed(both, monkeypatch, name, mutant):
    rules = spark_function.CALLS if isinstance(name, str) else spark_expression._RULES
    monkeypatch.setitem(rules, name, mutant)
    assert odd(both)


UNLISTED = [
    "upper('a')", "random()", "substr('a', 0, 2)", "translate('a', 'ab', 'cd')", "hash('a')", "regexp_full_match('a', 'a+')",
    "regexp_replace('a', 'b', 'c')",
    f"regexp_replace('a', {text(date_pattern('%d/%m/%Y'))}, 'c')",
    "avg(1)", "median(1)", "max_by(1, 2)", "date_part('epoch', DATE '1970-01-01')",
    "date_trunc('decade', DATE '1970-01-01')", "date_diff('month', DATE '1970-01-01', DATE '1970-01-01')",
    "lag(x, x) OVER (PARTITION BY x)", "TRY(1 + 1)", "now()", "sha256('a')", "length(1)", "md5(1)",
    "1 || 'a'", "list_sum([1])", "any_value(1)", "sum('a')", "sum(DISTINCT 1)", "min(1, 2)", "strlen('a')", "lower('a')",
    "sum(x) FILTER (WHERE 1)", "abs(1)", "row_number() OVER (ORDER BY 1)", "(['a'])[1]", "([1]::TINYINT[])[1]",
]  # fmt: skip


@pytest.mark.parametrize("expression", UNLISTED)
def test_a_function_that_is_not_listed_has_no_meaning(expression):
    with pytest.raises(TypeError):
        on_spark(f"SELECT {expression} AS y FROM (VALUES (1::BIGINT)) AS t(x)")

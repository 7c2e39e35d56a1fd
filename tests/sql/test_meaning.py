# SPDX-License-Identifier: Apache-2.0
"""An expression means what DuckDB says of the same text, on every row: the plan's codes decoded."""

import datetime
import itertools
from fractions import Fraction

import duckdb
import pytest

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.sql import understand

COLUMNS = {
    "i": sf.Integer(-4, 4),
    "j": sf.Integer(1, 3),
    "r": sf.Real(-2, 3, step="0.25"),
    "d": sf.Date("2023-12-25", "2024-03-05"),
    "e": sf.Date("2023-11-01", "2024-02-29"),
    "c": sf.Category("ab", "Abc", "b c", "12"),
    "b": sf.Boolean(),
}
DATA = Dataset("meaning", {"t": sf.Table("t.csv", columns=COLUMNS)})
DAY = datetime.date
VALUES = {
    "i": [-4, -3, -1, 0, 1, 3, 4, None],
    "r": [-2.0, -1.25, -0.5, 0.0, 0.25, 0.5, 1.5, 3.0, None],
    "j": [1, 2, 3, None],
    "d": [
        DAY(2023, 12, 25),
        DAY(2023, 12, 31),
        DAY(2024, 1, 1),
        DAY(2024, 2, 29),
        DAY(2024, 3, 5),
        None,
    ],
    "e": [DAY(2023, 11, 1), DAY(2024, 1, 7), DAY(2024, 2, 29), None],
    "c": ["ab", "Abc", "b c", "12", None],
    "b": [True, False, None],
}


def rows():
    """Each pair of numbers, and the other columns going round beside them at different speeds."""
    others = [itertools.cycle(VALUES[name]) for name in ("j", "d", "e", "c", "b")]
    for i, r in itertools.product(VALUES["i"], VALUES["r"]):
        yield dict(zip("irjdecb", (i, r, *(next(each) for each in others)), strict=True))


ROWS = list(rows())


@pytest.fixture(scope="module")
def engine():
    """The same rows in DuckDB."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (i INTEGER, r DOUBLE, j INTEGER, d DATE, e DATE, c VARCHAR, b BOOLEAN)"
    )
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", [list(row.values()) for row in ROWS]
    )
    return connection


def code(name, value):
    kind = COLUMNS[name]
    if value is None:
        return None
    if isinstance(value, DAY):
        return (value - DAY(1970, 1, 1)).days
    if isinstance(value, str):
        return kind.values.index(value)
    return int(Fraction(value) / kind.step)


def meant(text):
    """What the plan makes of an expression, row by row."""
    (aggregate,) = understand(f"SELECT COUNT({text}) FROM t", DATA).raw.aggregates
    kind = aggregate.value.type
    for row in ROWS:
        found = evaluate(
            aggregate.value.expression,
            lambda leaf, row=row: code(leaf.column.name, row[leaf.column.name]),
        )
        assert found is None or kind.lower_code <= found <= kind.upper_code
        yield (
            None
            if found is None
            else Fraction(found) * kind.step
            if isinstance(kind, sf.Integer | sf.Real)
            else kind.decode(found)
        )


def plain(value):
    if isinstance(value, datetime.datetime):
        return value.date()
    return value


EXACT = [
    "i + r", "i - r", "r - 2", "3 - i", "i * 2", "r * i", "r * r", "i * i * i", "-r", "-(-i)", "i + 0.5", "r * 0.5", "r / 2", "i / -4",
    "ABS(r)", "ABS(i - j)", "SIGN(r)", "FLOOR(r)", "CEIL(r)", "CEILING(i)", "ROUND(r)", "ROUND(r, 1)",
    "ROUND(r * 5, 0)", "ROUND(i * 13, -1)",
    "i // 3", "i // -2", "(i - 4) // NULLIF(j, 0)",
    "TRUNC(r)", "MOD(i, 3)", "i % 2", "r % 1", "i ** 2", "POWER(r, 3)", "COALESCE(i, j)", "IFNULL(r, 0.75)",
    "COALESCE(i, r, 1)", "NULLIF(i, j)",
    "NULLIF(r, 0)", "CASE WHEN i > 0 THEN r ELSE j END", "CASE WHEN r < 0 THEN 1 WHEN r < 1 THEN 2 END",
    "CASE i WHEN 1 THEN 10 WHEN 3 THEN 0.5 END",
    "IF(b, i, -i)", "CASE WHEN b THEN 'yes' ELSE 'no' END", "CASE WHEN i = 1 THEN c WHEN i = 3 THEN 'three' END",
    "CASE WHEN i > 0 THEN NULL ELSE j END", "TRY_CAST(i AS DOUBLE)", "CAST(i AS BIGINT)", "CAST(b AS INTEGER)",
    "TRY_CAST(c AS INTEGER)",
    "d + 3", "d - 3", "3 + d", "d - e", "d - DATE '2024-01-01'", "DATE '2024-03-01' - d", "d + INTERVAL 3 DAY",
    "d - INTERVAL '2 weeks'", "d + i",
    "YEAR(d)", "QUARTER(d)", "MONTH(d)", "WEEK(d)", "WEEKOFYEAR(d)", "DAY(d)", "DAYOFMONTH(d)", "DAYOFWEEK(d)",
    "ISODOW(d)", "DAYOFYEAR(d)",
    "EXTRACT(year FROM d)", "EXTRACT(dow FROM d)", "EXTRACT(doy FROM d)", "EXTRACT(week FROM d)", "DATE_PART('month', d)",
    "DATE_TRUNC('month', d)", "DATE_TRUNC('week', d)", "DATE_TRUNC('year', d)", "DATE_TRUNC('quarter', d)", "DATE_TRUNC('day', d)",
    "DATE_DIFF('day', e, d)", "DATE_DIFF('week', e, d)", "DATE_DIFF('month', e, d)", "DATE_DIFF('quarter', e, d)",
    "DATE_DIFF('year', e, d)",
    "DATEDIFF('day', DATE '2024-01-01', d)", "COALESCE(d, e)", "CASE WHEN b THEN d ELSE e END",
    "CASE WHEN b THEN d ELSE DATE '2024-01-01' END",
    "UPPER(c)", "LOWER(c)", "TRIM(c)", "SUBSTR(c, 1, 2)", "SUBSTRING(c, 2)", "SUBSTRING(c, -2, 1)",
    "SUBSTRING(c FROM 2 FOR 1)", "LEFT(c, 1)",
    "RIGHT(c, 2)", "c || 'x'", "'x' || c || 'y'", "REPLACE(c, 'b', 'Z')", "REVERSE(c)", "LENGTH(c)", "LENGTH(c) + i",
    "COALESCE(c, 'none')",
    "i > r", "i = j", "i <> j", "r <= 0.3", "d > e", "d = e", "d >= '2024-01-01'", "c = 'ab'", "c <> 'ab'", "b = TRUE", "b <> (i > 0)",
    "i IN (1, 3)", "i NOT IN (1, j)", "i BETWEEN j AND 3", "r NOT BETWEEN 0 AND 1", "c IN ('ab', 'b c')",
    "c LIKE 'a%'", "c NOT LIKE '%b%'",
    "c LIKE '_b_'", "c ILIKE 'a%'", "c LIKE '%b%c%'", "regexp_matches(c, '^[aA]b')", "regexp_matches(c, '\\d|^b')",
    "regexp_full_match(c, 'ab')",
    "starts_with(c, 'ab')", "contains(c, 'b')", "i IS NULL", "b IS TRUE", "b IS NOT FALSE", "(i > 0) IS NOT TRUE", "NOT b AND i > 0",
    "b OR r > 0 OR i = 1", "(i > 0) = b", "i + j > r * 2", "LENGTH(c) = 3", "UPPER(c) = 'AB'", "WIDTH_BUCKET(r, -1, 2, 6)", "i > -r",
    "SUBSTR(c, 1, 1) = SUBSTR(c, 1, 1)", "CASE WHEN c = 'ab' THEN 'ab' ELSE 'x' END = c", "DATE '2024-01-31' + INTERVAL 1 MONTH > d",
    "STRFTIME(d, '%Y-%m')", "STRFTIME(d, '%a %A %b %B %d %j %y %G-%V %%')", "STRFTIME(DATE_TRUNC('month', d), 'in %Y%m')",
    "LAST_DAY(d)",
    "DAYNAME(d)", "MONTHNAME(d)", "CAST(d AS VARCHAR)", "i::TEXT", "b::VARCHAR", "c::VARCHAR || '!'", "c || '-' || i", "c || d || c",
    "d - INTERVAL 48 HOUR",
    "EXTRACT(year FROM AGE(d, DATE '2020-02-29'))", "EXTRACT(year FROM AGE(DATE '2020-02-29', d))",
    "EXTRACT(years FROM AGE(DATE '2029-12-28', d))", "DATE_PART('year', AGE(d, e + 60))",
    "i IS DISTINCT FROM j", "i IS NOT DISTINCT FROM j", "r IS DISTINCT FROM NULL", "c IS NOT DISTINCT FROM 'ab'",
    "(i, j) IN ((1, 1), (3, 2))", "(i, c) NOT IN ((1, 'ab'), (j, 'b c'))", "i = ANY(ARRAY[1, 3])", "i <> ALL(ARRAY[1, 3])",
    "CAST(d AS TIMESTAMP) > TIMESTAMP '2024-01-01 12:00:00'",
    "d < TIMESTAMP '2024-01-01 12:00:00'", "d = TIMESTAMP '2024-01-01 00:00:00'",
    "CAST(r AS DECIMAL(5, 1))", "r::NUMERIC", "MAKE_DATE(2024, 1, 1) <= d", "d >= STRPTIME('01/02/2024', '%d/%m/%Y')",
    "COALESCE(b, i > 0)", "(CASE WHEN b THEN i END) IS NULL", "1 + 2 * i", "d < CURRENT_DATE",
]  # fmt: skip
# DuckDB has no WIDTH_BUCKET; its AND of the clauses of the standard says the same
INSTEAD = {
    # its rows are structs, whose NULLs are equal
    "(i, j) IN ((1, 1), (3, 2))": "(i = 1 AND j = 1) OR (i = 3 AND j = 2)",
    "(i, c) NOT IN ((1, 'ab'), (j, 'b c'))": "NOT ((i = 1 AND c = 'ab') OR (i = j AND c = 'b c'))",
    "WIDTH_BUCKET(r, -1, 2, 6)": "CASE WHEN r < -1 THEN 0 WHEN r >= 2 THEN 7 ELSE FLOOR((r + 1) * 2) + 1 END + 0 * r",
}


def said(engine, text):
    found = engine.execute(f"SELECT {INSTEAD.get(text, text)} FROM t").fetchall()
    return [plain(value) for (value,) in found]


def same(one, other):
    if isinstance(one, Fraction):
        return other is not None and abs(one - Fraction(other)) < Fraction(1, 10**9)
    return one is other if one is None or other is None else one == other


@pytest.mark.parametrize("text", EXACT)
def test_an_expression_means_what_the_engine_says(engine, text):
    pairs = list(zip(meant(text), said(engine, text), strict=True))
    assert all(same(one, other) for one, other in pairs), [
        pair for pair in pairs if not same(*pair)
    ][:5]
    assert len({other for _, other in pairs}) > 1


@pytest.mark.parametrize(
    "text",
    [
        "i / j",
        "r / (j + 1)",
        "1 / (i - 10)",
        "i / NULLIF(r, 0)",
        "(i * r) / (d - DATE '2020-01-01')",
    ],
)
def test_a_quotient_is_off_by_less_than_its_step(engine, text):
    (aggregate,) = understand(f"SELECT AVG({text}) FROM t", DATA).raw.aggregates
    for one, other in zip(meant(text), said(engine, text), strict=True):
        assert (one is None) is (other is None)
        # truncated toward zero: never beyond the exact value, which DuckDB gives as a float
        short = Fraction(0) if one is None else abs(Fraction(other)) - abs(one) + Fraction(1, 10**9)
        assert 0 <= short <= aggregate.value.rounding + Fraction(2, 10**9)
        assert aggregate.value.rounding <= Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("LEAST(i, r)", "i IS NOT NULL AND r IS NOT NULL"),
        ("GREATEST(d, e)", "d IS NOT NULL AND e IS NOT NULL"),
    ],
)
def test_least_and_greatest_are_null_where_one_is(engine, text, where):
    told = engine.execute(f"SELECT CASE WHEN {where} THEN {text} END FROM t").fetchall()
    pairs = list(zip(meant(text), [plain(value) for (value,) in told], strict=True))
    assert all(same(one, other) for one, other in pairs)


def test_a_cast_to_integer_rounds_as_round_does():
    assert list(meant("CAST(r AS INTEGER)")) == list(meant("ROUND(r)"))


def test_a_function_that_means_something_else_is_noticed(engine, monkeypatch):
    from sfumato.sql import arithmetic

    monkeypatch.setattr(
        arithmetic, "floored", lambda expression, ratio, shift=Fraction(0): expression
    )
    pairs = list(zip(meant("ROUND(r, 1)"), said(engine, "ROUND(r, 1)"), strict=True))
    assert not all(same(one, other) for one, other in pairs)

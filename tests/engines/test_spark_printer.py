# SPDX-License-Identifier: Apache-2.0
"""A statement of the emitted SQL gives on Spark what it gives on DuckDB.

One of another form gives nothing.
"""

import re

import pytest

from sfumato.engines import spark_function, spark_printer
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.linear_aggregates import clipped, fits, sums
from sfumato.engines.spark_kind import Kind
from sfumato.engines.spark_printer import Rows
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Column, Integer
from sfumato.plan.aggregate import Mean, Variance
from sfumato.plan.value import Value
from tests.contracts.spark import on_spark

T = "(VALUES (1::BIGINT, 'a'), (2::BIGINT, 'b'), (2::BIGINT, NULL), (NULL::BIGINT, 'a')) AS t(x, \"c_Y\")"
U = "(VALUES (2::BIGINT, TRUE), (3::BIGINT, FALSE), (NULL::BIGINT, NULL::BOOLEAN)) AS u(x, z)"
STATEMENTS = [
    f"SELECT * FROM {T}", f'SELECT t.x, t."c_Y" AS "say ""hi""" FROM {T} WHERE "c_Y" IS NOT NULL',
    f"SELECT 1 FROM {T}", f'SELECT * EXCLUDE (x) FROM {T}', f"SELECT count(*), count(x), sum(x) FROM {T}",
    f'SELECT "c_Y", count(*) AS n FROM {T} GROUP BY "c_Y"',
    f"SELECT x // 2, min(x) FROM (SELECT x, x // 2 AS h FROM {T}) GROUP BY x // 2",
    f"SELECT l.*, r.z FROM (SELECT * FROM {T}) AS l JOIN (SELECT * FROM {U}) AS r ON l.x = r.x",
    f"SELECT l.* EXCLUDE (x), r.x FROM (SELECT * FROM {T}) AS l LEFT JOIN (SELECT * FROM {U}) AS r ON l.x = r.x",
    f"SELECT l.x FROM (SELECT * FROM {T}) AS l JOIN (SELECT * FROM {U}) AS r ON l.x IS NOT DISTINCT FROM r.x AND r.z IS NULL",
    f"SELECT l.* FROM (SELECT * FROM {T}) AS l SEMI JOIN (SELECT * FROM {U}) AS r ON l.x = r.x",
    f"SELECT l.* FROM (SELECT * FROM {T}) AS l ANTI JOIN (SELECT * FROM {U}) AS r ON l.x = r.x",
    f'SELECT * FROM {T} QUALIFY row_number() OVER (PARTITION BY x ORDER BY "c_Y" NULLS FIRST) = 1',
    f'SELECT * FROM {T} WHERE x IS NOT NULL QUALIFY dense_rank() OVER (PARTITION BY "c_Y" IS NULL ORDER BY x NULLS FIRST) <= 1',
    f"(SELECT x FROM {T}) UNION ALL (SELECT x FROM {U}) UNION ALL (SELECT 7::BIGINT AS x FROM {U})",
    f"SELECT * FROM ((SELECT x, NULL AS z FROM {T}) UNION ALL (SELECT x, z FROM {U}))",
    f"WITH c AS MATERIALIZED (SELECT x, count(*) AS n FROM {T} GROUP BY x) SELECT l.x, l.n FROM c AS l JOIN c AS r ON l.x = r.x",
    f"SELECT t.x, d.code FROM {T} LEFT JOIN (VALUES ('a', 5::BIGINT), ('z', 6::BIGINT)) AS d(text, code) ON t.\"c_Y\" = d.text",
]  # fmt: skip


def odd(both, statements=STATEMENTS):
    """The statements whose rows differ between the engines."""
    differing = []
    for statement in statements:
        one, other = both.rows(statement)
        differing += [] if one == other else [statement]
    return differing


@pytest.mark.parametrize("part", range(4))
def test_a_statement_gives_what_it_gives_on_duckdb(both, part):
    assert odd(both, STATEMENTS[part::4]) == []


def test_a_mutant_statement_is_noticed(both, monkeypatch):
    def all_kept(select, source, scope):
        (columns,) = scope.relations.values()
        return Rows(f"SELECT * FROM {source}", columns)

    monkeypatch.setattr(spark_printer, "_qualified", all_kept)
    assert len(odd(both)) == 2


OTHER = [
    "SELECT t.x FROM {t} RIGHT JOIN {u} ON t.x = u.x", "SELECT t.x FROM {t} FULL JOIN {u} ON t.x = u.x",
    "SELECT t.x FROM {t} CROSS JOIN {u}", "SELECT t.x FROM {t} JOIN (SELECT * FROM {u}) AS t ON TRUE",
    "SELECT x AS a, x AS a FROM {t}", "SELECT x FROM {t} QUALIFY row_number() OVER (PARTITION BY x) = 1",
    "SELECT * FROM {t} QUALIFY row_number() OVER () = 1", "SELECT * FROM {t} QUALIFY x = 1",
    "SELECT * FROM {t} QUALIFY row_number() OVER (PARTITION BY x) > 1",
    "SELECT * FROM {t} GROUP BY x QUALIFY row_number() OVER (PARTITION BY x) = 1",
    "WITH a AS (SELECT x FROM {t}), b AS (SELECT x FROM {t}) SELECT x FROM a", "SELECT x FROM {t} WHERE x",
    "SELECT x FROM nosuch", "SELECT unnest([x]) AS y FROM {t}", "SELECT t.x FROM {t} JOIN {u} ON t.x",
    "(SELECT x FROM {t}) UNION ALL (SELECT * FROM {t})", "(SELECT x FROM {t}) UNION ALL (SELECT z FROM {u})",
    "SELECT t.x FROM {t} LEFT JOIN (SELECT unnest([1]::TINYINT[]) AS y) AS d ON t.x = d.y",
]  # fmt: skip


@pytest.mark.parametrize("sql", OTHER)
def test_a_statement_of_another_form_has_no_meaning(sql):
    with pytest.raises((TypeError, ValueError)):
        on_spark(sql.format(t=T, u=U))


def test_a_table_stands_where_it_is_named(both):
    table = Rows("(SELECT 3L AS `x`)", {"x": Kind.BIGINT})
    assert both.on_spark('SELECT t.x, x + 1 FROM "Say ""hi""" AS t', {'"Say ""hi"""': table}) == [
        (3, 4)
    ]


def test_sums_are_narrow_where_they_can_be(both):
    sql = f"SELECT sum(x) FROM {T}"
    assert "sum(`x`)" in on_spark(sql, narrow=True)
    assert "DECIMAL" in on_spark(sql, narrow=False).partition("sum(")[2]
    for narrow in (False, True):
        assert both.rows(sql, narrow=narrow) == ([("5",)], [("5",)])


def test_rows_are_gathered_by_unit_where_that_is_asked(both):
    rows = f'SELECT x AS unit, "c_Y" AS k0 FROM {T}'
    sql = f"SELECT unit, k0, count(*) AS n FROM ({rows}) WHERE unit > 0 GROUP BY unit, k0"
    expected, _ = both.rows(sql)
    assert on_spark(sql, narrow=True).count("REPARTITION") == 0
    gathered = on_spark(sql, narrow=True, gathered=True)
    assert gathered.count("FROM (SELECT /*+ REPARTITION(`unit`) */ * FROM (SELECT") == 1
    assert sorted(map(repr, both.on_spark(sql, {}, gathered=True))) == sorted(
        f"({unit}, {key}, {n})" for unit, key, n in expected
    )
    (plan,) = both.session.sql(f"EXPLAIN {gathered}").collect()[0]
    assert "hashpartitioning(unit" in plan
    assert plan.count("Exchange") == 1
    for other in ("unit", "k0, unit", "k0"):
        assert "REPARTITION" not in on_spark(
            f"SELECT count(*) AS n FROM ({rows}) GROUP BY {other}", narrow=True, gathered=True
        )


# --- the largest declarations, over as many rows as there can be ---------------------------

ROWS, FINE, LIMIT = 2**36, 2**20, 2**31
WIDEST = Value.of(Column("x", Integer(-MAX_CODE, MAX_CODE)))
POSITIVE = Value.of(Column("x", Integer(0, MAX_CODE)))


def closed(text):
    """What stands in the first brackets, with them."""
    depth = 0
    for place, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if not depth:
            return text[: place + 1]
    raise AssertionError("brackets that do not close")


def of_every_row_alike(both, sql, code):
    """A sum over 2^36 rows of one code: each sum of Spark's is that of one row times the rows, in
    its type.
    """
    text = on_spark(f"SELECT {sql} AS s FROM (VALUES ({code}::BIGINT)) AS t(v0)")
    added = list(
        dict.fromkeys(closed(text[each.end() :]) for each in re.finditer(r"\bsum(?=\()", text))
    )
    source = text[text.index(" FROM (SELECT * FROM (VALUES") :]
    row = both.session.sql(f"SELECT {', '.join(f'sum{each}' for each in added)}{source}")
    for each, field, cell in zip(added, row.schema, row.collect()[0], strict=True):
        kind, total = field.dataType.simpleString(), int(cell) * ROWS
        assert abs(total) < {"bigint": 2**63, "decimal(38,0)": 10**38}[kind], (
            "a sum that wraps, or has no value"
        )
        text = text.replace(f"sum{each}", f"CAST('{total}' AS {kind})")
    return int(both.session.sql(text).collect()[0][0])


@pytest.mark.parametrize("code", [2**62, -(2**62), MAX_CODE, -MAX_CODE, 1, -1, 2**44 - 1])
def test_a_sum_of_as_many_rows_as_there_can_be_is_exact_on_spark(both, code):
    assert of_every_row_alike(both, "sum(v0)", code) == ROWS * code


@pytest.mark.parametrize("read", [WIDEST, POSITIVE])
def test_sums_of_the_finest_variance_are_exact_on_spark(both, read):
    variance = Variance(read)
    assert variance.levels >= 2**26 - 1 and not fits(variance, LIMIT)
    total, square = (
        printed(added)
        for name, added in sums(variance, {read.expression: "v0"}).items()
        if name[0] in "tq"
    )
    for code in (read.numeric.lower_code, read.numeric.upper_code, 12345):
        level = (code - read.numeric.lower_code) // variance.coarse
        assert of_every_row_alike(both, total, code) == ROWS * level
        assert of_every_row_alike(both, square, code) == ROWS * level**2


def moments(aggregate, level, count):
    """The integers of rows that are all on one level, cut to the limit, by definition."""
    top = aggregate.levels
    return [
        each * count * LIMIT // count
        for each in (level**2, 2 * level * (top - level), (top - level) ** 2)
    ]


def test_what_is_made_of_the_largest_sums_is_exact_on_spark(both):
    variance, mean = Variance(WIDEST), Mean(WIDEST)
    names, top = {WIDEST.expression: "v0"}, variance.levels
    once, square = (name for name in sums(variance, names) if name[0] in "tq")
    total = next(name for name in sums(mean, names) if name[0] == "s")
    weighed = [
        f"sum(({printed(each)})::HUGEINT * weight)"
        for each in clipped(variance, names, LIMIT) + clipped(mean, names, LIMIT)
    ]
    for level in (0, 1, top // 2, top):
        code = level * variance.coarse - MAX_CODE
        sums_of = ", ".join(f"{ROWS * each}::HUGEINT" for each in (level, level**2, code))
        source = f"(VALUES ({ROWS}::BIGINT, {FINE}::BIGINT, {sums_of})) AS t(m_v0, weight, {once}, {square}, {total})"
        duckdb, spark = both.rows(f"SELECT {', '.join(weighed)} FROM {source}")
        wanted = [
            *moments(variance, level, ROWS),
            LIMIT * (code + MAX_CODE),
            LIMIT * (MAX_CODE - code),
        ]
        assert duckdb == spark == [tuple(str(each * FINE) for each in wanted)]


def test_a_sum_in_one_part_is_noticed(both, monkeypatch):
    # as if every sum were narrow: 2^36 squares of levels do not fit 64 bits
    monkeypatch.setattr(
        spark_function,
        "_added",
        lambda node, write, after: f"CAST(sum({write(node).sql}) AS DECIMAL(38,0))",
    )
    with pytest.raises(AssertionError, match="wraps"):
        of_every_row_alike(both, "sum(v0 * v0)", 2**26)

# SPDX-License-Identifier: Apache-2.0
"""Which columns of an outer statement are computed from which cells, and what noise chose."""

from fractions import Fraction

import duckdb
import pytest
from sqlglot import parse_one

from sfumato.sql.outer import text_of_outer
from sfumato.sql.outer_forms import ANY_OR_NULL, NO_ROW, Computed, FixedNumber, Kind, Leaf, cell_of
from sfumato.sql.trace import ROW, Inner, traced

ANSWERS = {
    "answer 0": Inner(("g", "n", "x"), (False, True, True), chosen=False),
    "answer 1": Inner(("h", "n"), (False, True), chosen=False),
    "answer 2": Inner(("g", "n"), (False, True), chosen=True),
}
ROWS = {
    "answer 0": [("a", 10, 1), ("b", 20, 2), ("c", 30, 3)],
    "answer 1": [("a", 7), ("b", 8)],
    "answer 2": [("a", 1)],
}


def trace(text):
    """The columns of a statement, whose tables are ``a0``, ``a1`` and ``a2``."""
    for place in range(3):
        text = text.replace(f"a{place}", f'"answer {place}"')
    return traced(parse_one(text, dialect="duckdb"), ANSWERS)


def form(text, place=0):
    found = trace(text)
    assert found is not None
    return found.columns[place].form


def is_chosen(text, place=0):
    """Whether a column that is a cell is one that noise chose."""
    leaf = form(text, place)
    assert isinstance(leaf, Leaf) and leaf.kind is Kind.CELL
    return leaf.chosen


def run(text):
    """The rows of a traced statement in DuckDB, hidden columns and all."""
    found = trace(text)
    with duckdb.connect() as connection:
        for name, inner in ANSWERS.items():
            columns = ", ".join([*inner.columns, f'"{ROW}"'])
            rows = ", ".join(str((*row, place)) for place, row in enumerate(ROWS[name]))
            connection.execute(
                f'CREATE TABLE "{name}" AS SELECT * FROM (VALUES {rows}) AS t({columns})'
            )
        return found, connection.execute(text_of_outer(found.query)).fetchall()


def test_a_cell_is_passed_through_sub_queries_joins_and_unions():
    text = (
        "SELECT t.n FROM (SELECT g, n FROM a0 UNION ALL SELECT h, n FROM a1) AS t "
        "LEFT JOIN a1 AS o ON o.h = t.g ORDER BY t.n"
    )
    found, rows = run(text)
    (known,) = found.columns
    assert known.noisy and known.form.kind is Kind.CELL and not known.form.chosen
    codes = [cell_of(row[known.form.hidden[0]]) for row in rows]
    # 7 and 8 are rows of answer 1, the others of answer 0; both counts are the second column
    assert codes == [(1, 1, 0), (1, 1, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]


def test_a_sum_has_the_codes_of_its_cells():
    found, rows = run("SELECT SUM(n) AS s, AVG(n) OVER () AS m FROM a0 GROUP BY g, n, x ORDER BY g")
    assert found.columns[1].form is None
    found, rows = run("SELECT SUM(n) AS s FROM a0")
    (known,) = found.columns
    assert known.form.kind is Kind.SUM
    total, count, different, least, largest = (rows[0][place] for place in known.form.hidden)
    assert (total, count, different) == (60, 3, 3)
    assert cell_of(least) == (0, 1, 0) and cell_of(largest) == (0, 1, 2)


def test_a_sum_over_a_join_may_have_a_cell_twice():
    found, rows = run("SELECT SUM(a0.n) AS s FROM a0, a1")
    _, count, different, _, _ = (rows[0][place] for place in found.columns[0].form.hidden)
    assert (count, different) == (6, 3)


def test_windows_pass_cells_and_sum_them():
    found, rows = run(
        "SELECT n - LAG(n) OVER (ORDER BY g) AS d, AVG(n) OVER (ORDER BY g) AS m FROM a0"
    )
    difference, mean = (known.form for known in found.columns)
    assert difference.operation == "-"
    one, other = (leaf.hidden[0] for leaf in difference.parts)
    assert rows[0][other] is None and cell_of(rows[1][other])[2] == cell_of(rows[1][one])[2] - 1
    assert mean.kind is Kind.MEAN
    assert [row[mean.hidden[1]] for row in rows] == [1, 2, 3]


def test_arithmetic_is_kept():
    found = form("SELECT ROUND(100 * n / (SELECT SUM(n) FROM a0), 1) FROM a0")
    assert isinstance(found, Computed) and found.operation == "round"
    quotient, step = found.parts
    assert step == FixedNumber(Fraction(1, 10)) and quotient.operation == "/"
    assert quotient.parts[1].kind is Kind.SUM
    cases = form("SELECT CASE WHEN g = 'a' THEN n ELSE x END FROM a0")
    assert cases.operation == "any" and len(cases.parts) == 2
    assert form("SELECT COALESCE(n, 0) FROM a0").operation == "first"
    lagged = form("SELECT LAG(n, 1, 0) OVER (ORDER BY g) FROM a0")
    assert lagged.operation == "lagged"
    _, rows = run("SELECT LAG(n, 1, 0) OVER (ORDER BY g) FROM a0 ORDER BY g")
    assert rows[0][lagged.parts[0].hidden[0]] == NO_ROW
    assert form("SELECT n * LENGTH(g) FROM a0").parts[1].kind is Kind.PUBLIC


@pytest.mark.parametrize("text", ["NULLIF(n, 5)", "CASE WHEN n > 5 THEN n END"])
def test_a_number_that_noise_may_make_null_is_not_the_cell(text):
    assert form(f"SELECT {text} FROM a0").operation == ANY_OR_NULL
    instead = form(f"SELECT COALESCE({text}, 7) FROM a0")
    assert instead.operation == "first" and instead.parts[0].operation == ANY_OR_NULL
    assert form(f"SELECT 1 + {text} FROM a0").parts[1].operation == ANY_OR_NULL


@pytest.mark.parametrize(
    "text",
    [
        "SELECT GREATEST(NULLIF(n, 5), 7) FROM a0",
        "SELECT LEAST(100, 1 + CASE WHEN n > 5 THEN n END) FROM a0",
        "SELECT SUM(t.m) FROM (SELECT NULLIF(n, 10) AS m FROM a0) AS t",
        "SELECT RANK() OVER (ORDER BY n) FROM a0",
        "SELECT MAX(n) FROM a0",
        "SELECT DISTINCT n FROM a0",
        "SELECT n FROM a0 UNION SELECT n FROM a1",
        "SELECT LN(n) FROM a0",
        "SELECT SUM(DISTINCT n) FROM a0",
        "SELECT SUM(n + 1) FROM a0",
        "SELECT SUM(n) FROM a0 WHERE n > 3",
        "SELECT SUM(n) OVER (ORDER BY n) FROM a0",
        "SELECT SUM(n) FROM a2",
        "SELECT SUM(t.n) FROM (SELECT n FROM a0 ORDER BY n LIMIT 2) AS t",
        "SELECT n FROM a0 GROUP BY n",
        "SELECT SUM(a) FROM (SELECT SUM(n) AS a FROM a0 GROUP BY g) AS t",
    ],
)
def test_what_has_no_interval(text):
    found = trace(text)
    assert found is None or (found.columns[0].form is None and found.columns[0].noisy)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM a0 WHERE n > 3",
        "SELECT n FROM a0 WHERE x > 3",
        "SELECT n FROM a0 ORDER BY n DESC LIMIT 1",
        "SELECT n FROM a0 ORDER BY x + 1 LIMIT 1",
        "SELECT n FROM a0 LIMIT 1",
        "SELECT n FROM a0 QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1",
        "SELECT LAG(n) OVER (ORDER BY n) FROM a0",
        "SELECT FIRST_VALUE(n) OVER (PARTITION BY x ORDER BY g) FROM a0",
        "SELECT a0.n FROM a0 JOIN a1 ON a0.n > a1.n",
        "SELECT n FROM a0 WHERE g IN (SELECT h FROM a1 ORDER BY n LIMIT 1)",
        "SELECT n FROM a0 WHERE EXISTS (SELECT 1 FROM a1 WHERE a1.n > a0.n)",
        "SELECT n FROM a0 WHERE n > (SELECT AVG(n) FROM a0)",
        "SELECT n FROM a2",
        "SELECT t.n FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY n) AS r FROM a0) AS t WHERE t.r = 1",
        "SELECT n FROM a0 UNION ALL SELECT n FROM a2",
        "SELECT n FROM a0 UNION ALL SELECT n FROM a1 ORDER BY n LIMIT 1",
    ],
)
def test_rows_that_noise_chooses_are_known(text):
    assert is_chosen(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM a0 WHERE g > 'a'",
        "SELECT n FROM a0 ORDER BY n",
        "SELECT n FROM a0 ORDER BY g LIMIT 1",
        "SELECT a0.n FROM a0 JOIN a1 ON g = h",
        "SELECT LEAD(n) OVER (PARTITION BY LENGTH(g) ORDER BY g) FROM a0",
        "SELECT n FROM a0 WHERE g IN (SELECT h FROM a1)",
    ],
)
def test_rows_that_noise_does_not_choose_are_not(text):
    assert not is_chosen(text)


def test_a_count_of_rows_is_public_unless_noise_chose_them():
    assert not trace("SELECT COUNT(*) FROM a0").columns[0].noisy
    assert trace("SELECT COUNT(*) FROM a0 WHERE n > 1").columns[0].noisy
    assert trace("SELECT COUNT(*) FROM a2").columns[0].noisy
    assert trace("SELECT ROW_NUMBER() OVER (ORDER BY n) FROM a0").columns[0].noisy


def test_star_shows_no_hidden_column():
    assert len(trace("SELECT * FROM a0").columns) == 3
    assert len(trace("SELECT * FROM (SELECT a0.*, h FROM a0 JOIN a1 ON g = h)").columns) == 4


def test_what_the_parser_leaves_open_is_not_traced():
    # two columns of one name, and LIMIT after brackets
    assert trace("SELECT * FROM (SELECT * FROM a0 JOIN a1 ON g = h)") is None
    assert trace("(SELECT n FROM a0 UNION ALL SELECT n FROM a1) ORDER BY n LIMIT 1") is None


def test_nested_sub_queries_are_traced_once():
    """Not once more for each level above them."""
    text = "SELECT n FROM a0"
    for _ in range(18):
        text = f"SELECT n FROM a0 WHERE n > (SELECT MAX(n) FROM ({text}))"
    assert trace(text) is not None

# SPDX-License-Identifier: Apache-2.0
"""What is an inner question, what is left of the statement, and what is refused."""

import pytest
from sqlglot import exp

from sfumato.errors import MissingDeclaration, UnknownName, UnsupportedSql
from sfumato.sql.split import MOST_INNER, name_of, split
from tests.contracts.corpus import DATASET, TODAY

BY_REGION = "SELECT region, COUNT(*) AS n FROM events GROUP BY region"


def parts(text, parameters=None):
    """The texts of the inner questions, and that of the outer statement."""
    found = split(text, DATASET, TODAY, parameters)
    return [inner.text for inner in found.inner], found.outer.sql("duckdb")


def test_a_sub_query_that_is_a_question_is_an_inner_one():
    inner, outer = parts(f"SELECT MAX(n) AS m FROM ({BY_REGION}) AS t")
    assert inner == [BY_REGION]
    assert outer == 'SELECT MAX(n) AS m FROM (SELECT * FROM "answer 0") AS t'


def test_a_name_of_with_is_a_sub_query_and_equal_questions_are_one():
    inner, outer = parts(
        f"WITH t AS ({BY_REGION}), s AS (SELECT n FROM t) SELECT * FROM t JOIN s ON t.n = s.n"
    )
    assert inner == [BY_REGION]
    assert outer.count('"answer 0"') == 2


def test_arms_of_a_union_are_inner_questions():
    inner, outer = parts(f"{BY_REGION} UNION ALL SELECT 'all' AS r, COUNT(*) AS n FROM events")
    assert len(inner) == 2
    assert outer == 'SELECT * FROM "answer 0" UNION ALL SELECT * FROM "answer 1"'


def test_a_select_with_windows_is_cut_at_its_own_level():
    inner, outer = parts(
        "SELECT e.region, SUM(COUNT(*)) OVER (ORDER BY region) AS total, AVG(amount) AS a "
        "FROM events AS e GROUP BY 1 HAVING COUNT(*) > 10 QUALIFY RANK() OVER (ORDER BY a) = 1 "
        "ORDER BY total LIMIT 2"
    )
    assert inner == [
        "SELECT e.region AS k0, AVG(amount) AS v0, COUNT(*) AS v1 FROM events AS e GROUP BY e.region"
    ]
    assert outer == (
        'SELECT k0 AS "region", SUM(v1) OVER (ORDER BY k0) AS "total", v0 AS "a" '
        'FROM "answer 0" WHERE v1 > 10 QUALIFY RANK() OVER (ORDER BY a) = 1 '
        "ORDER BY total LIMIT 2"
    )


def test_another_outer_text_has_the_same_inner_question():
    first, _ = parts("SELECT region, LN(COUNT(*)), AVG(amount) FROM events GROUP BY region")
    second, _ = parts(
        "SELECT AVG(amount), RANK() OVER (ORDER BY COUNT(*)) FROM events GROUP BY region"
    )
    assert first == second


def test_keys_by_name_position_and_all_are_the_same():
    texts = [
        f"SELECT day AS d, RANK() OVER (ORDER BY COUNT(*)) FROM events GROUP BY {keys}"
        for keys in ("day", "1", "d", "ALL")
    ]
    assert len({str(parts(text)) for text in texts}) == 1


def test_a_question_is_not_split():
    assert split(BY_REGION, DATASET, TODAY) is None
    assert split("SELECT COUNT(*) FROM events", DATASET, TODAY) is None


def test_what_has_no_question_in_it_is_not_split():
    for text in (
        "SELECT * FROM events",
        "SELECT region FROM events UNION SELECT product FROM events",
        "SELECT SUM(amount) OVER (ORDER BY day) FROM events",
        "SELECT user_id, COUNT(*), RANK() OVER () FROM events GROUP BY user_id",
    ):
        assert split(text, DATASET, TODAY) is None


def test_rows_of_persons_beside_an_answer_are_refused():
    with pytest.raises(UnsupportedSql):
        split(f"SELECT * FROM ({BY_REGION}) JOIN events USING (region)", DATASET, TODAY)
    with pytest.raises(UnsupportedSql):
        split(f"SELECT * FROM ({BY_REGION}) WHERE n > (SELECT amount FROM events)", DATASET, TODAY)


def test_the_reason_is_that_of_the_part():
    with pytest.raises(MissingDeclaration):
        split(
            "SELECT LAG(s) OVER (ORDER BY s) FROM (SELECT SUM(quantity) AS s FROM orders)",
            DATASET,
            TODAY,
        )


def test_the_outer_statement_names_no_table_but_the_answers_and_public_tables():
    """Nor by its own name: a statement cannot call an answer."""
    with pytest.raises(UnknownName):
        split(f'SELECT * FROM "answer 0", ({BY_REGION})', DATASET, TODAY)
    with pytest.raises(UnknownName):
        split(f'SELECT * FROM "Answer 0", ({BY_REGION})', DATASET, TODAY)
    found = split(f"SELECT MAX(n) FROM ({BY_REGION})", DATASET, TODAY)
    assert {table.name for table in found.outer.find_all(exp.Table)} == {name_of(0)}


def test_a_shadowed_name_is_the_inner_one():
    inner, _ = parts(f"WITH events AS ({BY_REGION}) SELECT MAX(n) FROM events")
    assert inner == [BY_REGION]


def test_parameters_and_the_date_are_constants():
    found = split(
        "SELECT MAX(n) FROM (SELECT region, COUNT(*) AS n FROM events "
        "WHERE amount > $1 AND day < CURRENT_DATE GROUP BY region)",
        DATASET,
        TODAY,
        [7],
    )
    assert "amount > 7 AND day < CAST('2024-06-01' AS DATE)" in found.inner[0].text
    assert found.notes == ("CURRENT_DATE is 2024-06-01 here.",)


def test_too_many_inner_questions_are_refused():
    many = " UNION ALL ".join(
        f"SELECT COUNT(*) FROM events WHERE amount > {place}" for place in range(MOST_INNER + 1)
    )
    with pytest.raises(UnsupportedSql, match="More than 16"):
        split(many, DATASET, TODAY)


def test_recursion_is_not_split():
    text = f"WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x FROM r) SELECT * FROM r, ({BY_REGION})"
    assert split(text, DATASET, TODAY) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM events USING SAMPLE 10%",
        "SELECT COUNT(*) INTO x FROM events",
        "SELECT region, COUNT(*) FROM events",
        "SELECT COUNT(*) FROM events QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) = 1",
        "SELECT COUNT(*) FROM events WINDOW w AS (PARTITION BY region)",
        "SELECT COUNT(*) FROM events ORDER BY amount",
        "SELECT foo.region, COUNT(*), RANK() OVER () FROM events GROUP BY region",
        "SELECT region, MAX(amount) OVER (PARTITION BY region), COUNT(*) FROM events GROUP BY region",
    ],
)
def test_what_a_cut_would_lose_is_not_cut(text):
    assert split(text, DATASET, TODAY) is None


def test_keys_count_with_and_without_their_table():
    for key, item in (("e.region", "region"), ("region", "e.region"), ("e.region", "e.region")):
        _, outer = parts(
            f"SELECT {item}, RANK() OVER (ORDER BY COUNT(*)) FROM events AS e GROUP BY {key}"
        )
        assert outer.startswith('SELECT k0 AS "region"')


def doubled(levels):
    """A statement whose WITH repeats a question 2^levels times."""
    names = "".join(f", a{n + 1} AS (SELECT p.n FROM a{n} AS p, a{n})" for n in range(levels))
    return f"WITH a0 AS (SELECT COUNT(*) AS n FROM events){names} SELECT * FROM a{levels}"


def test_names_that_repeat_a_query_are_split_once_and_bounded():
    assert parts(doubled(5))[0] == ["SELECT COUNT(*) AS n FROM events"]
    for levels in (8, 12, 20):
        assert split(doubled(levels), DATASET, TODAY) is None


def test_a_public_table_has_its_declared_name_in_the_outer_statement():
    counts = "(SELECT region, COUNT(*) AS n FROM events GROUP BY region)"
    text = f"SELECT n FROM {counts} AS t JOIN public.PRODUCTS ON products.category = t.region, products AS d"
    parts = split(text, DATASET, TODAY)
    assert parts.public == ("products",) and len(parts.inner) == 1
    assert {table.name for table in parts.outer.find_all(exp.Table)} == {"answer 0", "products"}
    # a name of WITH comes first, and without an answer there is no outer statement
    hidden = split(
        f"WITH products AS (SELECT 1 AS one) SELECT n, one FROM {counts}, products", DATASET, TODAY
    )
    assert hidden.public == ()
    assert (
        split("SELECT category, RANK() OVER (ORDER BY category) AS r FROM products", DATASET, TODAY)
        is None
    )

# SPDX-License-Identifier: Apache-2.0
"""Statements that once raised an error that is not ours, cost something and gave nothing, or never
ended.
"""

from fractions import Fraction

import pytest

from sfumato.errors import Refused, UnsupportedSql
from sfumato.sql import understand
from tests.attacks import shop
from tests.contracts.corpus import DATASET


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with shop.connected(tmp_path_factory.mktemp("shop"), shop.data()) as opened:
        yield opened


def chain(step: str, length: int) -> str:
    """A WITH of which each name reads the one before."""
    names = ", ".join(f"t{n} AS ({step.format(before=f't{n - 1}', n=n)})" for n in range(1, length))
    return f"WITH t0 AS (SELECT * FROM events), {names} SELECT COUNT(*) FROM t{length - 1}"


REFUSED = [
    # arguments that are not there
    "SELECT WIDTH_BUCKET(amount, 0, , 20) AS b, COUNT(*) FROM events GROUP BY b",
    "SELECT WIDTH_BUCKET(amount, 0, 500, ) AS b, COUNT(*) FROM events GROUP BY b",
    "SELECT WIDTH_BUCKET(amount) AS b, COUNT(*) FROM events GROUP BY b",
    "SELECT COUNT(*) FROM events WHERE region IN AND ('R01', 'R02')",
    "SELECT COUNT(*) FROM events WHERE user_id IN ORDER BY ALL (SELECT user_id FROM users)",
    # a constant that no column could hold, where only rows are ordered by it
    (
        "WITH x AS (SELECT user_id, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY 9223372036854775808) AS rn"
        " FROM events) SELECT AVG(amount) FROM x WHERE rn = 1"
    ),
    # a divisor that is always zero
    "SELECT AVG(amount / NULLIF(LEAST(amount, 0), 0)) FROM events",
    # names of WITH that use each other again and again, or far too deeply
    chain("SELECT * FROM {before}", 300),
    chain("SELECT user_id, LEAST(amount + 1, 500) AS amount FROM {before}", 250),
    # expressions without a lattice: a rule of the question, not of a declaration
    "SELECT SUM(amount * 1e300 * 1e20) FROM events",
    # more than any plan needs
    "SELECT COUNT(*) FROM (SELECT user_id, region, amount > 1 AS a, amount > 2 AS b, amount > 3 AS c, amount > 4 AS d,"
    " amount > 5 AS e FROM events) AS t"
    " GROUP BY " + ", ".join(["CUBE(region, a, b, c, d, e)"] * 4),
]


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_it_is_refused_and_free(session, text):
    before = session.budget.to_json()
    with pytest.raises(UnsupportedSql):
        session.query(text, epsilon="0.01")
    assert session.budget.to_json() == before


INNER = [
    # a number of a sub-query stands for a value, never for a place
    ("SELECT region, SUM(amount) FROM events GROUP BY (SELECT COUNT(*) FROM events)", {}),
    # what the outer question lacks is known before the inner one is asked
    ("SELECT product, COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events WHERE amount > 1) GROUP BY product", {}),
    ("SELECT COUNT(*) FROM events_unbounded WHERE amount > (SELECT MEDIAN(amount) FROM events)", {}),
    # an answer that has no row, or is no number
    ("SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events HAVING COUNT(*) > 1000000)", {}),
    ("SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events WHERE amount > 2 LIMIT 0)", {}),
    ("SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events WHERE amount > 3 OFFSET 1)", {}),
    ("SELECT COUNT(*) FROM events WHERE amount > (SELECT COUNT(*) > 3 FROM events)", {}),
    # more than is left
    ("SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events WHERE amount > 4)", {"epsilon": 10**6}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "price"), INNER)
def test_an_inner_question_is_not_charged_for_an_outer_one_that_is_refused(session, text, price):
    session.query("SELECT COUNT(*) FROM events", epsilon="0.001")
    before = session.budget.to_json()
    with pytest.raises(Refused):
        session.query(text, **{"epsilon": "0.01", **price})
    assert session.budget.to_json() == before


def test_a_delta_goes_to_the_question_that_spends_it(session):
    text = "SELECT product, COUNT(*) AS n FROM events WHERE amount > (SELECT AVG(amount) FROM events) GROUP BY product"
    answer = session.query(text, epsilon=1, delta="1e-9")
    assert Fraction(answer.cost.delta) > 0
    assert len(answer.notes) == 1


@pytest.mark.parametrize(
    "divisor", ["(SELECT COUNT(*) FROM users)", "NULLIF((SELECT COUNT(*) FROM users), 0)"]
)
def test_a_preview_refuses_what_the_question_will(session, divisor):
    """Not what the noisy answer of the sub-query happens to be decides it."""
    text = f"SELECT SUM(1 / {divisor}) FROM events"
    ends = []
    for ask in (session.preview, session.query):
        try:
            ask(text, epsilon=100)
        except UnsupportedSql as refused:
            ends.append(str(refused))
        else:
            ends.append("")
    assert ends[0] == ends[1]
    assert "NULLIF" not in divisor or not ends[0]


@pytest.mark.parametrize(
    "text",
    ["QUANTILE_CONT(amount, 1)", "QUANTILE_DISC(amount, 0)", "QUANTILE_CONT(amount, 0.00000001)"],
)
def test_a_quantile_at_the_end_is_answered_or_refused_with_a_way_on(session, text):
    try:
        answer = session.query(f"SELECT {text} FROM events", epsilon="0.1")
    except UnsupportedSql as refused:
        assert refused.remedy
    else:
        assert answer.notes


def test_a_text_made_of_noisy_numbers_becomes_a_table(session):
    answer = session.query(
        "SELECT region, CASE WHEN COUNT(*) > 0 THEN 'yes' END AS a FROM events GROUP BY region",
        epsilon=1,
    )
    assert answer.columns[1]["type"] == "text"
    assert set(answer.to_arrow().column("a").to_pylist()) <= {"yes", None}


def test_a_number_of_a_question_inside_the_sub_query_that_it_is_asked_beside_ends(session):
    inner = "(SELECT AVG(amount) FROM events)"
    per_user = f"SELECT user_id, MIN({inner}) AS d FROM events GROUP BY user_id"
    answer = session.query(
        f"WITH a AS ({per_user}) SELECT COUNT(*), COUNT({inner}) FROM a WHERE d > 3", epsilon=1
    )
    assert len(answer.notes) == 1


def test_a_long_chain_of_names_is_not_deep():
    assert (
        understand(chain("SELECT * FROM {before} WHERE amount > {n}", 30), DATASET).table
        == "events"
    )

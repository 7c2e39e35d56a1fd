# SPDX-License-Identifier: Apache-2.0
"""Each statement that a refusal offers is answered; a statement that is not answered is no offer."""

from fractions import Fraction

import duckdb
import pytest

from sfumato.errors import Refused, WrongUse
from sfumato.query import instead as module
from sfumato.sql.lower import tree
from tests.attacks import shop
from tests.contracts.corpus import statements

PRICE = {"epsilon": 1000, "delta": "1e-8"}
REFUSED = [each for each in statements() if each.verdict == "refused"]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with shop.connected(tmp_path_factory.mktemp("instead"), shop.data()) as opened:
        yield opened


def refusal(session, text, **price):
    with pytest.raises(Refused) as raised:
        session.preview(text, **price)
    return raised.value


def test_every_offer_to_a_refused_statement_of_the_corpus_is_answered(session):
    offers = 0
    for each in REFUSED:
        if each.facts.get("scalar"):
            continue
        for price in ({"epsilon": 1000}, PRICE):
            try:
                session.preview(each.text, **price)
            except Refused as refused:
                if refused.instead is not None:
                    offers += 1
                    session.query(refused.instead, **price)
            except WrongUse:
                # it has no use for delta
                continue
    assert offers >= 7


@pytest.mark.parametrize(
    ("text", "offer"),
    [
        ("SELECT * FROM events", "SELECT COUNT(*) AS n FROM events"),
        (
            "SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id",
            (
                "SELECT AVG(n) AS n FROM (SELECT user_id, COUNT(*) AS n FROM events "
                "GROUP BY user_id) AS person"
            ),
        ),
        (
            (
                "SELECT COUNT(DISTINCT a.user_id) AS n FROM events a JOIN orders b "
                "ON a.user_id = b.user_id WHERE a.region = 'R01' AND b.price > 5"
            ),
            (
                "SELECT COUNT(DISTINCT a.user_id) AS n FROM events AS a WHERE a.region = 'R01' "
                "AND a.user_id IN (SELECT b.user_id FROM orders AS b WHERE b.price > 5)"
            ),
        ),
        ("SELECT SUM(amout) AS x FROM events", "SELECT SUM(amount) AS x FROM events"),
        ("SELECT CORR(amount, amount) FROM events", None),
        ("SELECT AVG(x) FROM (SELECT user_id, LIST(amount) AS x FROM events GROUP BY 1)", None),
    ],
)
def test_the_offer_gives_what_was_wanted(session, text, offer):
    assert refusal(session, text, epsilon=1000).instead == offer


def test_the_offer_counts_what_the_refused_join_counts(session):
    """Of 12 users, worked out from the rows: those with an event in R01 and an order above 40."""
    data = shop.data()
    first = {row["user_id"] for row in data["events"] if row["region"] == "R01"}
    second = {row["user_id"] for row in data["orders"] if float(row["price"]) > 40}
    text = (
        "SELECT COUNT(DISTINCT a.user_id) AS n FROM events a JOIN orders b "
        "ON a.user_id = b.user_id WHERE a.region = 'R01' AND b.price > 40"
    )
    offer = refusal(session, text, epsilon=1000).instead
    assert session.query(offer, epsilon=1000)["n"] == [len(first & second)]


def test_the_mean_of_gaps_needs_no_offer(session):
    """Worked out by DuckDB from the raw rows, with the same window."""
    gap = "day - LAG(day) OVER (PARTITION BY user_id ORDER BY day)"
    text = f"SELECT AVG(g) AS m FROM (SELECT {gap} AS g FROM {{}}) AS t"
    raw = "(SELECT user_id, day::DATE AS day FROM events)"
    with duckdb.connect() as plain:
        plain.register("events", shop.arrow("events", shop.data()["events"]))
        (wanted,) = plain.execute(text.format(raw)).fetchone()
    answer = session.query(text.format("events"), epsilon=100_000)
    assert answer["m"] == [pytest.approx(wanted, rel=0.01)]


def test_functions_of_texts_are_offered_over_the_released_texts(session):
    text = "SELECT RIGHT(product, 2) AS p, COUNT(*) AS n FROM events GROUP BY 1"
    assert refusal(session, text, epsilon=1000).instead is None
    answer = session.query(refusal(session, text, **PRICE).instead, **PRICE)
    assert sorted(answer["p"]) == ["ap", "ea", "ot", "up"]


def test_parameters_stay_in_the_offer(session):
    text = "SELECT * FROM events WHERE amount > $1"
    offer = refusal(session, text, epsilon=1000, parameters=[5]).instead
    assert offer == "SELECT COUNT(*) AS n FROM events WHERE amount > $1"
    session.query(offer, epsilon=1000, parameters=[5])


def test_an_offer_costs_nothing(session):
    before = Fraction(session.budget.spent)
    refusal(session, "SELECT * FROM events", epsilon=1)
    with pytest.raises(Refused) as raised:
        session.query("SELECT * FROM events", epsilon=1)
    assert raised.value.instead and Fraction(session.budget.spent) == before


def test_a_proposal_that_cannot_be_planned_is_no_offer(session, monkeypatch):
    proposal = "SELECT CORR(amount, amount) FROM events"
    monkeypatch.setattr(module, "proposals", lambda *_: [module.tree(proposal)])
    assert refusal(session, "SELECT * FROM events", epsilon=1).instead is None
    monkeypatch.setattr(module, "_can_be_planned", lambda *_: True)
    assert refusal(session, "SELECT * FROM events", epsilon=1).instead == proposal


def test_the_reason_of_a_sub_query_per_person_is_that_of_the_whole(session):
    for text, reason in (
        ("SELECT AVG(x) FROM (SELECT user_id, LIST(amount) AS x FROM events GROUP BY 1)", "ARRAY_AGG of one"),
        (
            "SELECT COUNT(*) FROM (SELECT SUM(amount) OVER (PARTITION BY user_id ORDER BY day) AS r FROM events)",
            "within one unit is not computed",
        ),
        ("SELECT MAX(n) - 1 FROM (SELECT region, SUM(amuont) AS n FROM events GROUP BY 1)", "amuont"),
    ):  # fmt: skip
        assert reason in str(refusal(session, text, epsilon=1))


def test_a_refusal_plans_few_proposals(session, monkeypatch):
    tried = []
    wrong = tree("SELECT * FROM events")
    monkeypatch.setattr(module, "proposals", lambda *_: (wrong.copy() for _ in range(1_000)))
    monkeypatch.setattr(module, "_can_be_planned", lambda *rest: tried.append(rest))
    assert refusal(session, "SELECT * FROM events", epsilon=1).instead is None
    assert len(tried) == 8

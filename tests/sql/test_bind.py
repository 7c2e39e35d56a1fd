# SPDX-License-Identifier: Apache-2.0
"""Parameters are constants of the tree: the same plan as the constant, whatever the value says."""

import datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.errors import InvalidNumber, Refused, UnsupportedSql, WrongUse
from sfumato.plan.scalar import Member
from sfumato.sql import bind, scalar_queries
from sfumato.sql.parse import parse

COUNT = "SELECT COUNT(*) FROM events WHERE "
DAY = datetime.date(2024, 2, 1)


@pytest.mark.parametrize(
    ("test", "parameters", "same"),
    [
        ("age > $1", [12], "age > 12"),
        ("age > ? AND amount < ?", [12, 1.5], "age > 12 AND amount < 1.5"),
        ("amount < ? AND age > $1", [12], "amount < 12 AND age > 12"),
        ("age > :low", {"low": -12}, "age > -12"),
        ("age > $LOW", {"low": Decimal("12.50")}, "age > 12.5"),
        ("amount = $1", [0.1], "amount = 0.1"),
        ("amount = $1", [Fraction(1, 3)], "amount = 1.0 / 3"),
        ("region = $1", ["R02"], "region = 'R02'"),
        ("smoker = $1", [True], "smoker = TRUE"),
        ("day > $1", [DAY], "day > DATE '2024-02-01'"),
        ("age IN ($1, $2, $1)", [12, 13], "age IN (12, 13)"),
    ],
)
def test_a_parameter_means_what_its_constant_means(ask, where, test, parameters, same):
    assert ask(COUNT + test, parameters=parameters).raw.relation.predicate == where(same)


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_a_text_stays_a_text(ask, text):
    assert ask(COUNT + "product = ?", parameters=[text]).raw.relation.predicate == Member(
        ask(COUNT + "product = 'x'").raw.relation.predicate.operand, (text,)
    )


@pytest.mark.parametrize(
    "value", ["1 OR TRUE", "'; DROP TABLE events; --", "$1", "region", "(SELECT 1)", "amount"]
)
def test_a_value_cannot_change_what_a_statement_means(ask, value):
    with pytest.raises(Refused):
        ask(COUNT + "age > $1", parameters=[value])
    with pytest.raises(Refused):
        ask("SELECT COUNT(*) FROM events LIMIT $1", parameters=[value])


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x", datetime.time(10), 1j])
def test_a_value_of_another_kind_is_refused(ask, value):
    with pytest.raises(InvalidNumber, match="parameter 1") as refusal:
        ask(COUNT + "age > $1", parameters=[value])
    assert "IS NULL" in refusal.value.allowed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), 10**500])
def test_a_number_that_is_none_is_refused(ask, value):
    with pytest.raises(InvalidNumber):
        ask(COUNT + "age > $1", parameters=[value])


def test_a_missing_a_spare_and_a_shapeless_parameter_are_refused(ask):
    with pytest.raises(UnsupportedSql, match=r"\$2 has no value") as refusal:
        ask(COUNT + "age > $1 OR age < $2", parameters=[1])
    assert refusal.value.allowed == "$1" and "parameters=[" in refusal.value.remedy
    with pytest.raises(UnsupportedSql, match=r"\$who has no value"):
        ask(COUNT + "age > :who")
    with pytest.raises(WrongUse, match=r"does not use: \$2"):
        ask(COUNT + "age > $1", parameters=[1, 2])


@pytest.mark.parametrize("given", ["1", 1, 1.5, iter([1]), {1}])
def test_parameters_are_a_list_or_a_mapping(ask, given):
    with pytest.raises(WrongUse, match="parameters= that is one "):
        ask(COUNT + "age > $1", parameters=given)


def test_today_is_a_constant_and_said_so(ask, where):
    asked = ask(COUNT + "day > CURRENT_DATE - 7 OR day = TODAY()", today=DAY)
    assert asked.raw.relation.predicate == where(
        "day > DATE '2024-01-25' OR day = DATE '2024-02-01'"
    )
    assert asked.notes == ("CURRENT_DATE is 2024-02-01 here.",)
    assert ask(
        COUNT + "day > CURRENT_DATE - INTERVAL 1 MONTH", today=DAY
    ).raw.relation.predicate == where("day > '2024-01-01'")
    assert ask(COUNT + "day > '2024-01-01'", today=DAY).notes == ()


@pytest.mark.parametrize(
    "clock",
    ["NOW()", "CURRENT_TIMESTAMP", "get_current_timestamp()", "LOCALTIMESTAMP"],
)
def test_now_is_the_first_moment_of_today(ask, where, clock):
    asked = ask(COUNT + f"day > {clock} - INTERVAL '48 hours'", today=DAY)
    assert asked.raw.relation.predicate == where("day > DATE '2024-01-30'")
    (note,) = asked.notes
    assert note.startswith("NOW() is the first moment of 2024-02-01 here, in the time zone of")
    both = ask(COUNT + f"day > {clock} OR day = CURRENT_DATE", today=DAY)
    assert len(both.notes) == 2


def test_a_list_of_values_is_a_parameter_of_in(ask, where):
    wanted = where("age IN (11, 12)")
    for text in ("age = ANY($1)", "age IN ($1)", "age IN ($1, 12)", "age = ANY(ARRAY[11, 12])"):
        given = None if "ARRAY" in text else [[11, 12]] if "12" not in text else [(11,)]
        assert ask(COUNT + text, parameters=given).raw.relation.predicate == wanted
    with pytest.raises(InvalidNumber):
        ask(COUNT + "age > $1", parameters=[[11]])


@pytest.mark.parametrize("clock", ["CURRENT_TIME", "LOCALTIME"])
def test_the_time_of_day_is_refused(ask, clock):
    with pytest.raises(UnsupportedSql, match="time of day") as refusal:
        ask(COUNT + f"day > {clock}")
    assert "CURRENT_DATE" in refusal.value.remedy


SCALAR = COUNT + "amount > (SELECT AVG(amount) FROM events) + 1"


def test_an_inner_answer_is_asked_for_once_and_inlined(ask, where):
    asked = []

    def scalar(query):
        asked.append(query.sql(dialect="duckdb"))
        return Fraction(7, 2)

    assert ask(SCALAR, scalars=scalar).raw.relation.predicate == where("amount > 4.5")
    assert asked == ["SELECT AVG(amount) FROM events"]
    mapping = {"SELECT AVG(amount) FROM events": Fraction(7, 2)}
    assert ask(SCALAR, scalars=mapping).raw == ask(SCALAR, scalars=lambda query: Fraction(7, 2)).raw


def test_without_an_answer_the_inner_question_is_named(ask):
    for scalars in (None, {}):
        with pytest.raises(UnsupportedSql, match="private question of its own") as refusal:
            ask(SCALAR, scalars=scalars)
        assert "session.query('SELECT AVG(amount) FROM events'" in refusal.value.remedy


def test_an_inner_answer_can_be_a_date_or_stand_above_the_noise(ask, where):
    asked = ask(COUNT + "day > (SELECT MEDIAN(day) FROM events)", scalars=lambda query: DAY)
    assert asked.raw.relation.predicate == where("day > DATE '2024-02-01'")
    above = ask(
        "SELECT COUNT(*) / (SELECT COUNT(*) FROM users) FROM events",
        scalars=lambda query: Fraction(-2),
    )
    assert above.raw.aggregates == ask("SELECT COUNT(*) FROM events").raw.aggregates


def test_inner_questions_are_found_with_the_names_that_they_use():
    text = (
        "WITH x AS (SELECT * FROM events) SELECT COUNT(*) FROM x WHERE amount > (SELECT AVG(amount) FROM x) "
        "AND user_id IN (SELECT user_id FROM users) AND EXISTS (SELECT 1 FROM users) HAVING COUNT(*) > (SELECT COUNT(*) FROM users)"
    )
    found = [each.sql(dialect="duckdb") for each in scalar_queries(parse(text))]
    assert found == [
        "WITH x AS (SELECT * FROM events) SELECT AVG(amount) FROM x",
        "SELECT COUNT(*) FROM users",
    ]
    assert scalar_queries(parse("SELECT COUNT(*) FROM (SELECT COUNT(*) FROM events)")) == []


CHAIN = (
    "WITH a AS (SELECT user_id, amount - (SELECT AVG(amount) FROM events) AS x FROM events), "
    "b AS (SELECT user_id, x - (SELECT MAX(x) FROM a) AS x FROM a) "
    "SELECT SUM(x) FROM b WHERE x > (SELECT MIN(x) FROM b)"
)


def test_each_inner_question_is_asked_once_and_those_that_others_need_first(ask):
    asked = []

    def scalar(query):
        asked.append(query.sql(dialect="duckdb"))
        assert scalar_queries(query) == []
        return Fraction(len(asked))

    assert ask(CHAIN, scalars=scalar).raw.aggregates
    a = "a AS (SELECT user_id, amount - (1) AS x FROM events)"
    assert asked == [
        "SELECT AVG(amount) FROM events",
        f"WITH {a} SELECT MAX(x) FROM a",
        f"WITH {a}, b AS (SELECT user_id, x - (2) AS x FROM a) SELECT MIN(x) FROM b",
    ]
    texts = [query.sql(dialect="duckdb") for query in scalar_queries(parse(CHAIN))]
    by_text = {text: Fraction(place) for place, text in enumerate(texts, 1)}
    answers = iter(by_text.values())
    assert ask(CHAIN, scalars=by_text).raw == ask(CHAIN, scalars=lambda query: next(answers)).raw


def test_an_inner_question_in_a_with_is_not_asked_of_itself(ask):
    text = (
        "WITH first_buy AS (SELECT user_id, MIN((SELECT AVG(amount) FROM events)) AS d FROM events GROUP BY user_id) "
        "SELECT COUNT(d), COUNT((SELECT AVG(d) FROM first_buy)) FROM first_buy"
    )
    assert [len(scalar_queries(query)) for query in scalar_queries(parse(text))] == [0, 1]
    assert ask(text, scalars=lambda query: Fraction(1)).raw.aggregates


def test_an_inner_question_sees_every_with_around_it_and_its_own(ask):
    text = (
        "WITH x AS (SELECT * FROM events), unused AS (SELECT * FROM users) SELECT COUNT(*) FROM (WITH y AS (SELECT * FROM x) "
        "SELECT * FROM y WHERE amount > (WITH z AS (SELECT * FROM y) SELECT AVG(amount) FROM z))"
    )
    (query,) = scalar_queries(parse(text))
    assert query.sql(dialect="duckdb") == (
        "WITH x AS (SELECT * FROM events), y AS (SELECT * FROM x), z AS (SELECT * FROM y) SELECT AVG(amount) FROM z"
    )
    assert (
        ask(query.sql(dialect="duckdb")).raw.aggregates
        == ask("SELECT AVG(amount) FROM events").raw.aggregates
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, SUM(amount) FROM events GROUP BY (SELECT COUNT(*) FROM events)",
        "SELECT region, COUNT(*) FROM events GROUP BY region, (SELECT COUNT(*) FROM events)",
        "SELECT region, COUNT(*) FROM events GROUP BY region ORDER BY (SELECT COUNT(*) FROM users)",
        "SELECT region, COUNT(*) FROM events GROUP BY region ORDER BY (SELECT COUNT(*) FROM users) + 1",
        "SELECT COUNT(*) FROM events LIMIT (SELECT COUNT(*) FROM users)",
        "SELECT COUNT(*) FROM events OFFSET (SELECT COUNT(*) FROM users)",
        "SELECT ROUND(COUNT(*), (SELECT COUNT(*) FROM users)) FROM events",
        "SELECT QUANTILE_CONT(amount, (SELECT AVG(smoker) FROM events)) FROM events",
        "SELECT SUM(amount ** (SELECT COUNT(*) FROM users)) FROM events",
        "SELECT SUM(amount % (SELECT COUNT(*) FROM users)) FROM events",
        "SELECT SUM(amount / (SELECT COUNT(*) FROM users)) FROM events",
        "SELECT SUM(amount / ((SELECT COUNT(*) FROM users) + 1)) FROM events",
        "SELECT SUM(WIDTH_BUCKET(amount, 0, 200, (SELECT COUNT(*) FROM users))) FROM events",
        "SELECT SUM(WIDTH_BUCKET(amount, 0, (SELECT MAX(amount) FROM events), 9)) FROM events",
        "SELECT COUNT(*) FROM events WHERE day + (SELECT COUNT(*) FROM users) > '2024-03-03'",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY (SELECT AVG(age) FROM users)) FROM events)",
        "SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events HAVING COUNT(*) > 1000)",
        "SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events LIMIT 0)",
        "SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events OFFSET 1)",
        "SELECT COUNT(*) FROM events WHERE amount > (SELECT DISTINCT AVG(amount) FROM events)",
    ],
)
def test_an_answer_is_a_value_and_never_a_place(ask, text):
    # whatever is answered, the statement is refused in the same words: so it is before anything is
    # charged
    words = set()
    for answer in (1, 2, 0, -3, Fraction(5, 2)):
        with pytest.raises(UnsupportedSql) as refusal:
            ask(text, scalars=lambda query, answer=answer: Fraction(answer))
        words.add((refusal.value.problem, refusal.value.remedy))
    assert len(words) == 1


def test_an_answer_is_used_wherever_a_value_can_stand(ask):
    for text in (
        "SELECT SUM(amount / NULLIF((SELECT COUNT(*) FROM users), 0)) FROM events",
        "SELECT COUNT(*) FROM events WHERE day > (SELECT MEDIAN(day) FROM events) - 7",
        "SELECT region, COUNT(*) - (SELECT COUNT(*) FROM users) AS d FROM events GROUP BY region ORDER BY d",
        "SELECT amount > (SELECT AVG(amount) FROM events) AS above, COUNT(*) FROM events GROUP BY above",
    ):
        answer = DAY if "MEDIAN" in text else Fraction(-3)
        written = "DATE '2024-02-01'" if "MEDIAN" in text else "(-3)"
        start, end = (
            text.index("(SELECT"),
            text.index(")", text.index("FROM", text.index("(SELECT"))) + 1,
        )
        asked, typed = (
            ask(text, scalars=lambda query, answer=answer: answer),
            ask(text[:start] + written + text[end:]),
        )
        assert (asked.raw, asked.output) == (typed.raw, typed.output)


def test_many_inner_questions_are_refused(ask):
    with pytest.raises(UnsupportedSql, match="201 sub-queries in place of numbers"):
        ask(
            COUNT + " AND ".join(["amount > (SELECT AVG(amount) FROM events)"] * 201),
            scalars=lambda query: Fraction(1),
        )


def test_a_correlated_one_is_refused(ask):
    with pytest.raises(UnsupportedSql, match="reads the row outside"):
        ask(
            "SELECT COUNT(*) FROM events e WHERE amount > (SELECT AVG(x.amount) FROM events x WHERE x.day = e.day)"
        )


def test_a_parameter_pasted_as_text_is_noticed(ask, monkeypatch):
    monkeypatch.setattr(
        bind, "constant", lambda name, value: exp.maybe_parse(str(value), dialect="duckdb")
    )
    assert ask(COUNT + "age > $1", parameters=["amount"]).raw.aggregates

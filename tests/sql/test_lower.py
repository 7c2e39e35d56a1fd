# SPDX-License-Identifier: Apache-2.0
"""Statements become the plans worked out by hand; the rest is refused with a way out."""

import datetime
import inspect
import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialect

from sfumato import errors
from sfumato.errors import Refused, SqlSyntaxError, UnknownName, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountRows, Mean, Sum
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Filter, Scan
from sfumato.plan.scalar import (
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Field,
    Key,
    Operation,
)
from sfumato.plan.show import canonical
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import lower, understand
from tests.contracts import corpus
from tests.contracts.effort import examples
from tests.sql.conftest import EVENTS

CORPUS = Path(__file__).parent / "corpus"
C = {name: Column(name, kind) for name, kind in EVENTS.items()}
V = {name: Value.of(column) for name, column in C.items()}
SCAN = Scan("events", "", tuple(C.values()), Owner(("user_id",)))
REGION = GroupKey(V["region"], (0, 1, 2), missing=True)


def refusals():
    text = (CORPUS / "refused.sql").read_text(encoding="utf-8")
    for name, kind, word, statement in re.findall(
        r"^-- (.+?) \| (.+?) \| (.+)\n((?:(?!-- ).+\n)+)", text, re.MULTILINE
    ):
        yield pytest.param(kind, word, statement.strip(), id=name)


@pytest.mark.parametrize(("kind", "word", "statement"), list(refusals()))
def test_what_is_not_allowed_is_refused(ask, kind, word, statement):
    with pytest.raises(getattr(errors, kind)) as refusal:
        ask(statement)
    assert word in refusal.value.problem
    assert refusal.value.remedy or refusal.value.allowed
    assert refusal.value.exit_code == 1


def test_the_corpus_is_read_whole():
    text = (CORPUS / "refused.sql").read_text(encoding="utf-8")
    assert len(list(refusals())) == text.count("\n-- ") >= 250


def test_a_clause_let_through_is_noticed(ask, monkeypatch):
    monkeypatch.setattr(lower, "require_only", lambda node, *allowed: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"), pytest.raises(Refused):
        ask(
            "SELECT COUNT(*) FROM events QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) = 1"
        )


def test_a_statement_becomes_the_plan_worked_out_by_hand(ask):
    text = """
        SELECT e.region AS r, COUNT(*) AS n, SUM(amount) / COUNT(*) AS mean FROM events e WHERE e.age >= 15
        GROUP BY region, "SMOKER" HAVING COUNT(*) > 100 ORDER BY n DESC, 1 NULLS FIRST LIMIT 3 OFFSET 1;
    """
    asked = ask(text)
    test = Compare(Comparison.GE, Field(C["age"]), Constant(15))
    raw = Raw(
        Filter(SCAN, test), (REGION, GroupKey(V["smoker"], (0, 1))), (CountRows(), Sum(V["amount"]))
    )
    items = (
        Item("r", Key(0)),
        Item("n", Estimate(0)),
        Item("mean", Arithmetic(Operation.DIVIDE, Estimate(1), Estimate(0))),
    )
    having = Compare(Comparison.GT, Estimate(0), Constant(Fraction(100)))
    order = (Order(Estimate(0), descending=True), Order(Key(0), nulls_first=True))
    assert (asked.text, asked.table, asked.raw) == (text, "events", raw)
    assert asked.output == Output(items, having, order, 3, 1)


def test_an_aggregate_that_is_asked_twice_is_released_once(ask):
    asked = ask(
        "SELECT AVG(age), COUNT(*), AVG(age) + 1 FROM events HAVING AVG(age) > 3 ORDER BY COUNT(*)"
    )
    assert asked.raw.aggregates == (Mean(V["age"]), CountRows())


@pytest.mark.parametrize(
    "group",
    ["region", "1", "r", "REGION", "events.region", '"region"', "region, region", "1, r", "1.0"],
)
def test_a_group_is_a_column_a_place_or_an_alias(ask, group):
    assert ask(f"SELECT region AS r, COUNT(*) FROM events GROUP BY {group}").raw.keys == (REGION,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("region IN ('R01', 'R02')", "region IN ('R02', 'R01', 'R02')"),
        ("age IN (11, 12)", "age IN (12.0, 11)"),
        ("age > 12", "12 < age"),
        ("age BETWEEN 11 AND 12", "age >= 11 AND age <= 12"),
        ("NOT age = 11", "age <> 11"),
        ("age <> 11", "age != 11"),
        ("age >= 11.5", "AGE >= 12"),
        ("smoker", "smoker = TRUE"),
        ("day = '2024-02-01'", "day = DATE '2024-02-01'"),
        ("amount = 1", "((amount) = (1.0))"),
        ("age NOT IN (11)", "NOT age IN (11)"),
        ("amount IS NOT NULL", "NOT amount IS NULL"),
    ],
)
def test_equivalent_spellings_give_equal_plans(where, one, other):
    assert where(one) == where(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM events", "select count(*) from EVENTS as e;"),
        ("SELECT SUM(amount) FROM events", "SELECT SUM(e.amount) FROM events AS e"),
        ("SELECT SUM(amount * 2) FROM events", "SELECT SUM(2 * amount) FROM events"),
        ("SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY 1)",
         "WITH p AS (SELECT user_id AS u, COUNT(*) AS many FROM events AS e GROUP BY u) SELECT AVG(q.many) FROM p AS q"),
        ("SELECT k, AVG(n) FROM (SELECT user_id, LOWER(region) AS k, SUM(amount) AS n FROM events GROUP BY user_id, k) GROUP BY k",
         "SELECT l, AVG(m) FROM (SELECT user_id, lower(e.region) AS l, sum(e.amount) AS m FROM events e GROUP BY 1, 2) GROUP BY l"),
        ("SELECT AVG(a) FROM (SELECT user_id, amount AS a FROM events UNION ALL SELECT user_id, age FROM events)",
         "SELECT AVG(b) FROM (SELECT user_id, amount AS b FROM events UNION ALL SELECT user_id, age FROM events)"),
        ("SELECT COUNT(*) FROM events e JOIN users u ON e.user_id = u.user_id",
         "SELECT COUNT(*) FROM events JOIN users USING (user_id)"),
        ("SELECT COUNT(*) FROM events WHERE user_id IN (SELECT user_id FROM users)",
         "SELECT COUNT(*) FROM events x WHERE EXISTS (SELECT 1 FROM users y WHERE y.user_id = x.user_id)"),
    ],
)  # fmt: skip
def test_the_same_question_otherwise_written_is_the_same_plan(ask, one, other):
    first, second = ask(one).raw, ask(other).raw
    assert first == second
    assert canonical(first) == canonical(second)


def test_a_tree_is_understood_as_its_text(ask, shop):
    text = "SELECT region, AVG(amount) AS m FROM events WHERE age > 12 GROUP BY region ORDER BY m"
    by_text, by_tree = ask(text), understand(sqlglot.parse_one(text, read="duckdb"), shop)
    assert (by_text.raw, by_text.output, by_text.text) == (
        by_tree.raw,
        by_tree.output,
        by_tree.text,
    )


def test_a_tree_stays_as_it_was_built(shop):
    tree = sqlglot.parse_one(
        "SELECT COUNT(*) FROM events WHERE age = $1 AND day < CURRENT_DATE", read="duckdb"
    )
    before = tree.sql()
    understand(tree, shop, parameters=[12])
    assert tree.sql() == before


def test_the_table_of_a_question_is_the_one_whose_rows_are_counted(ask):
    for text, table in (
        ("SELECT COUNT(*) FROM events", "events"),
        ("SELECT COUNT(*) FROM users u JOIN events e ON u.user_id = e.user_id", "events"),
        ("SELECT COUNT(*) FROM products p JOIN events e ON p.product = e.product", "events"),
        (
            "SELECT COUNT(*) FROM (SELECT user_id FROM users UNION ALL SELECT user_id FROM events)",
            "users",
        ),
    ):
        assert ask(text).table == table


def test_a_stand_in_is_of_the_kind_of_the_answer(ask):
    for text in ("COUNT(*)", "AVG(age) / 2", "CASE WHEN COUNT(*) > 3 THEN 1 END", "MEDIAN(age)"):
        assert lower.stand_in(ask(f"SELECT {text} FROM events")) == 1
    assert lower.stand_in(ask("SELECT MAX(day) FROM events")) == datetime.date(2024, 1, 1)
    for text in (
        "COUNT(*) > 3",
        "NOT COUNT(*) > 3",
        "COUNT(*) IS NULL",
        "CASE WHEN COUNT(*) > 3 THEN 'many' END",
    ):
        with pytest.raises(UnsupportedSql, match="a test or a text"):
            lower.stand_in(ask(f"SELECT {text} FROM events"))


def test_columns_of_the_answer_have_different_names(ask):
    names = [
        item.name for item in ask("SELECT COUNT(*), COUNT(*), COUNT(*) FROM events").output.items
    ]
    assert names == ["COUNT(*)", "COUNT(*)_2", "COUNT(*)_3"]
    taken = ask("SELECT COUNT(*) AS a, COUNT(*) AS a, COUNT(*) AS a_2 FROM events").output.items
    assert len({item.name for item in taken}) == 3


def test_unknown_names_list_what_exists(ask):
    for text, exists in (
        ("SELECT COUNT(*) FROM nosuch", "events, users, orders, events_unbounded, products, days"),
        ("SELECT SUM(wage) FROM events", ", ".join(EVENTS)),
        ("SELECT COUNT(*) FROM events WHERE region = 'R9'", "R01, R02, R03"),
        ("SELECT COUNT(*)", "events, users, orders, events_unbounded, products, days"),
    ):
        with pytest.raises(UnknownName) as refusal:
            ask(text)
        assert refusal.value.allowed == exists


WORDS = (CORPUS / "words.txt").read_text(encoding="utf-8").split()
CLAUSES = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
STATEMENTS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.builds(
        "SELECT {} FROM events WHERE {} GROUP BY {} HAVING {} ORDER BY {}".format, *[CLAUSES] * 5
    ),
    st.builds("SELECT COUNT(*), {} FROM events WHERE age {}".format, CLAUSES, CLAUSES),
    st.builds("SELECT region, COUNT(*) FROM events GROUP BY region HAVING {}".format, CLAUSES),
    st.builds(
        "SELECT COUNT(*) FROM (SELECT user_id, {} FROM events GROUP BY user_id) AS u {}".format,
        CLAUSES,
        CLAUSES,
    ),
    st.builds(
        "SELECT COUNT(*) FROM events JOIN users u ON {} WHERE user_id IN (SELECT {})".format,
        CLAUSES,
        CLAUSES,
    ),
    st.builds(
        "SELECT SUM({}), COUNT({}) FROM events GROUP BY {}".format, CLAUSES, CLAUSES, CLAUSES
    ),
    st.text(max_size=30),
)


@settings(deadline=None, max_examples=examples(4))
@given(STATEMENTS)
def test_no_text_raises_anything_but_our_errors(ask, text):
    try:
        asked = ask(text)
    except Refused as error:
        assert error.problem
        return
    assert asked.raw.aggregates


TOKENS = {
    text: [
        text[each.start : each.end + 1] for each in Dialect.get_or_raise("duckdb").tokenize(text)
    ]
    for text in [each.text for each in corpus.statements()]
}
EDITS = st.lists(
    st.tuples(
        st.integers(0, 60), st.sampled_from([None, *WORDS, "(SELECT AVG(amount) FROM events)"])
    ),
    max_size=3,
)


def edited(tokens, edits):
    """A statement in which words are replaced, or left out."""
    found = list(tokens)
    for place, word in edits:
        found[place % len(found)] = word
    return " ".join(each for each in found if each is not None)


@settings(deadline=None, max_examples=examples(4))
@given(st.sampled_from(list(TOKENS.values())), EDITS)
def test_no_slip_in_a_statement_raises_anything_but_our_errors(tokens, edits):
    try:
        asked = understand(edited(tokens, edits), corpus.DATASET, scalars=lambda query: Fraction(1))
    except Refused as error:
        assert error.problem and (error.remedy or error.allowed)
        return
    assert asked.raw.aggregates


SHADES = "ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY age) AS n"
DEEP = {
    "names": "WITH t0 AS (SELECT * FROM events)"
    + "".join(f", t{n + 1} AS (SELECT * FROM t{n})" for n in range(300))
    + " SELECT COUNT(*) FROM t300",
    "names of units": "WITH t0 AS (SELECT * FROM events)"
    + "".join(
        f", t{n + 1} AS (SELECT user_id, age FROM events WHERE user_id IN (SELECT user_id FROM t{n}))"
        for n in range(40)
    )
    + " SELECT COUNT(*) FROM t40",
    "computed names": "WITH t0 AS (SELECT user_id, amount FROM events)"
    + "".join(
        f", t{n + 1} AS (SELECT user_id, FLOOR(FLOOR(amount / 3 + {n}) / 7 + 1) * 90 AS amount FROM t{n})"
        for n in range(30)
    )
    + " SELECT SUM(amount) FROM t30",
    "windows": f"SELECT COUNT(*) FROM (SELECT user_id{''.join(f', {SHADES}{n}' for n in range(101))} FROM events)",
    "columns": f"SELECT {', '.join(['region'] * 201)}, COUNT(*) FROM events GROUP BY region",
    "aggregates": f"SELECT {' + '.join(['COUNT(*)'] * 100)}, {' + '.join(['COUNT(*)'] * 101)} FROM events",
    "summaries": f"SELECT COUNT(*) FROM (SELECT user_id{''.join(f', SUM(age + {n})' for n in range(201))} FROM events GROUP BY 1)",
    "keys": f"SELECT COUNT(*) FROM events GROUP BY {', '.join(f'age > {n}' for n in range(201))}",
    "orders": f"SELECT region, COUNT(*) FROM events GROUP BY region ORDER BY {', '.join(['region'] * 201)}",
    "brackets": "(" * 5_000,
    "not": "SELECT COUNT(*) FROM events WHERE " + "NOT " * 5_000 + "smoker",
    "minus": "SELECT " + "- " * 5_000 + "1",
    "plus": "SELECT COUNT(*)" + " + COUNT(*)" * 3_000 + " FROM events",
    "nested": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 60 + "events" + ")" * 60,
    "absolute": "SELECT SUM(" + "ABS(" * 60 + "age" + ")" * 60 + ") FROM events",
    "doubled": "WITH a0 AS (SELECT user_id, age AS x FROM events)"
    + "".join(f", a{n + 1} AS (SELECT user_id, x + x AS x FROM a{n})" for n in range(40))
    + " SELECT SUM(x) FROM a40",
    "twice": "WITH a0 AS (SELECT user_id FROM events GROUP BY user_id)"
    + "".join(
        f", a{n + 1} AS (SELECT p.user_id FROM a{n} p JOIN a{n} q ON p.user_id = q.user_id)"
        for n in range(40)
    )
    + " SELECT COUNT(*) FROM a40",
    "long": "x" * 40_001,
}


@pytest.mark.parametrize("name", DEEP)
def test_too_deep_or_too_long_a_text_is_refused(ask, name):
    with pytest.raises(Refused):
        ask(DEEP[name])


ALMOST = {
    "names": "WITH t0 AS (SELECT * FROM events)"
    + "".join(f", t{n + 1} AS (SELECT * FROM t{n})" for n in range(35))
    + " SELECT COUNT(*) FROM t35",
    "names of units": "WITH t0 AS (SELECT * FROM events)"
    + "".join(
        f", t{n + 1} AS (SELECT user_id, age FROM events WHERE user_id IN (SELECT user_id FROM t{n}))"
        for n in range(15)
    )
    + " SELECT COUNT(*) FROM t15",
    "computed names": "WITH t0 AS (SELECT user_id, amount FROM events)"
    + "".join(
        f", t{n + 1} AS (SELECT user_id, FLOOR(amount / 3 + {n}) * 2.5 AS amount FROM t{n})"
        for n in range(20)
    )
    + " SELECT SUM(amount) FROM t20",
    "functions": f"SELECT SUM({'LEAST(' * 110}amount{', 1)' * 110}) FROM events",
    "windows": f"SELECT COUNT(*) FROM (SELECT user_id{''.join(f', {SHADES}{n}' for n in range(95))} FROM events)",
}


@pytest.mark.parametrize("name", ALMOST)
def test_what_is_almost_too_deep_leaves_room_on_the_stack(ask, shop, name):
    depth = len(inspect.stack(0))
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 600)
    try:
        canonical(compile_plan(ask(ALMOST[name]).raw, shop, Norm.L1))
    finally:
        sys.setrecursionlimit(usual)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT COUNT(*\nFROM events", 2, 4),
        ("SELECT COUNT(*)\nFROM events\nWHERE age >", 3, 11),
        ("SELEC 1", 1, 7),
    ],
)
def test_a_syntax_error_shows_its_line_and_column(ask, text, line, column):
    with pytest.raises(SqlSyntaxError, match=f"line {line}, column {column}") as refusal:
        ask(text)
    assert (refusal.value.line, refusal.value.column) == (line, column)
    assert "SELECT" in refusal.value.remedy


def test_a_list_of_texts_is_what_enough_units_have(ask):
    listed = ask("SELECT DISTINCT product AS p FROM events WHERE age > 12 ORDER BY p LIMIT 3")
    counted = ask(
        "SELECT product AS p, COUNT(DISTINCT user_id) AS n FROM events WHERE age > 12 "
        "GROUP BY product ORDER BY p LIMIT 3"
    )
    assert listed.raw == counted.raw and listed.output.limit == 3
    assert [item.name for item in listed.output.items] == ["p"]
    assert "their noisy number passes a threshold" in listed.notes[0]
    both = ask("SELECT DISTINCT product, region FROM events")
    assert [key.codes is None for key in both.raw.keys] == [True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT DISTINCT region FROM events", "declared list is free"),
        ("SELECT DISTINCT user_id FROM events", "GROUP BY the unit makes"),
        ("SELECT DISTINCT * FROM events", "DISTINCT"),
        ("SELECT DISTINCT age + 1 FROM events", "DISTINCT"),
        ("SELECT DISTINCT COUNT(*) FROM events", "DISTINCT"),
        ("SELECT DISTINCT ON (region) product FROM events", "DISTINCT"),
    ],
)
def test_another_list_is_refused(ask, text, says):
    with pytest.raises(Refused, match=says):
        ask(text)

# SPDX-License-Identifier: Apache-2.0
"""What WHERE leaves of a key: never less than the rows that pass can have, and as little where the
text says it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.metadata.column import Column, Date, Integer, Text
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import Filter, PublicJoin, Ranked, Scan, Semi, Union, UnitJoin, first
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    Field,
    IsNull,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
)
from sfumato.sql import where_ranges
from sfumato.sql.key_domain import image, may_be_missing
from sfumato.sql.where_ranges import about, holding, left, narrowed, never_null
from tests.contracts.effort import examples

X, Y = Field(Column("x", Integer(-2, 4))), Field(Column("y", Integer(0, 2, missing="N")))
TIMES = Arithmetic(Operation.MULTIPLY, X, Constant(2))
KEYS = [
    X, Y, TIMES, Arithmetic(Operation.ADD, X, Y), Coalesce((Y, Constant(7))), Lookup(Y, 0, (5, None, 6)),
    Case(((Compare(Comparison.GT, X, Constant(0)), Y),), Constant(None)),
]  # fmt: skip
CODES = st.integers(-4, 9)
LEAVES = st.one_of(
    st.builds(Compare, st.sampled_from(Comparison), st.sampled_from(KEYS), CODES.map(Constant)),
    st.builds(Compare, st.sampled_from(Comparison), CODES.map(Constant), st.sampled_from(KEYS)),
    st.builds(Compare, st.sampled_from(Comparison), st.just(X), st.just(Y)),
    st.builds(
        Member,
        st.sampled_from(KEYS),
        st.sets(CODES, max_size=4).map(lambda codes: tuple(sorted(codes))),
    ),
    st.builds(IsNull, st.sampled_from(KEYS)),
)
TESTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=4,
)
ROWS = [{"x": x, "y": y} for x in (*range(-2, 5), None) for y in (0, 1, 2, None)]


def reached(key, tests):
    """What the rows that pass give."""
    found = set()
    for row in ROWS:

        def lookup(leaf, row=row):
            return row[leaf.column.name]

        if all(evaluate(each, lookup) is True for each in tests):
            found.add(evaluate(key, lookup))
    return found


def lost(key, tests):
    """What rows that pass give, and the restricted groups lack."""
    known = about(key, tests)
    groups = set(image.__wrapped__(key, known))
    if may_be_missing(key, frozenset({X.column, Y.column}), known):
        groups.add(None)
    return reached(key, tests) - groups


@settings(max_examples=examples(4), deadline=None)
@given(st.sampled_from(KEYS), st.lists(TESTS, max_size=3).map(tuple))
def test_no_group_that_a_row_can_give_is_left_out(key, tests):
    assert lost(key, tests) == set()


@pytest.mark.parametrize(
    ("key", "tests"),
    [
        (X, (Member(X, (0, 3, 8)),)),
        (X, (Compare(Comparison.GE, X, Constant(1)), Compare(Comparison.LT, X, Constant(3)))),
        (X, (Compare(Comparison.LT, Constant(1), X),)),
        (X, (Not(Member(X, (0, 3))), Compare(Comparison.NE, X, Constant(1)))),
        (X, (Or((Compare(Comparison.EQ, X, Constant(4)), Member(X, (-1,)))),)),
        (Y, (Or((IsNull(Y), Member(Y, (1,)))),)),
        (Y, (Not(IsNull(Y)),)),
        (Y, (IsNull(Y),)),
        (TIMES, (Compare(Comparison.GT, TIMES, Constant(3)),)),
        (TIMES, (Compare(Comparison.GT, X, Constant(3)),)),
        (Arithmetic(Operation.ADD, X, Y), (Member(X, (0, 4)), Not(IsNull(Y)))),
        (Coalesce((Y, Constant(7))), (Not(IsNull(Y)),)),
    ],
)
def test_the_groups_are_those_that_rows_can_give(key, tests):
    known = about(key, tests)
    groups = set(image(key, known)) | (
        {None} if may_be_missing(key, frozenset({X.column}), known) else set()
    )
    assert groups == reached(key, tests)


def test_a_test_that_reads_more_says_nothing():
    beside = Compare(Comparison.EQ, X, Y)
    assert about(X, (beside, Member(X, (1,)))) == (Member(X, (1,)),)
    assert left(X, (Or((beside, Member(X, (1,)))),), range(-2, 5)) == range(-2, 5)
    assert not never_null(X, (Or((beside, Member(X, (1,)))),))
    assert about(Constant(1), (Member(X, (1,)),)) == ()


def test_a_range_narrows_without_trying_its_codes():
    wide = Field(Column("w", Integer(0, 2**40)))
    tests = (
        Compare(Comparison.GT, wide, Constant(10)),
        Compare(Comparison.GE, Constant(13), wide),
        Not(Member(wide, (12,))),
    )
    assert narrowed(wide, tests, (0, 2**40)) == (11, 13)
    assert image(wide, tests) == (11, 13)
    assert narrowed(wide, (Member(wide, (5, 9)), Member(wide, (4, 10))), (0, 9)) is None
    assert narrowed(wide, (Compare(Comparison.EQ, wide, Constant(-1)),), (0, 9)) is None
    assert narrowed(wide, (), None) is None


SCAN, TEST, OTHER = Scan("t", columns=(X.column, Y.column)), Member(X, (1,)), Not(IsNull(Y))
SINGLE = first(Scan("u"), (), (), "n")
RANK = SINGLE.predicate


@pytest.mark.parametrize(
    ("relation", "tests"),
    [
        (SCAN, []),
        (Filter(SCAN, And((TEST, And((OTHER, TEST))))), [TEST, OTHER, TEST]),
        (Filter(Semi(Filter(SCAN, TEST), Filter(SCAN, RANK)), OTHER), [OTHER, TEST]),
        (PublicJoin(Filter(SCAN, TEST), Scan("p"), X, X.column, outer=True), [TEST]),
        (Ranked(Filter(SCAN, TEST), (), (), Column("n", Integer(1, 2))), [TEST]),
        (UnitJoin(Filter(SCAN, TEST), SINGLE), [TEST, RANK]),
        (UnitJoin(Filter(SCAN, TEST), SINGLE, outer=True), [TEST]),
        (Union((Filter(SCAN, TEST),), ((X,),), (Column("u", Integer(-2, 4)),)), []),
    ],
)
def test_a_test_holds_above_what_keeps_the_columns(relation, tests):
    assert list(holding(relation)) == tests


WHERE = "SELECT {key}, COUNT(*) FROM events WHERE {where} GROUP BY 1"


@pytest.mark.parametrize(
    ("key", "where", "codes", "missing"),
    [
        ("region", "region IN ('R01', 'R03')", (0, 2), False),
        ("region", "region <> 'R02'", (0, 2), False),
        ("region", "region = 'R02' OR region IS NULL", (1,), True),
        ("region", "region = 'R02' OR age > 12", (0, 1, 2), True),
        ("region", "region IS NOT NULL AND age > 12", (0, 1, 2), False),
        ("UPPER(region)", "UPPER(region) = 'R02'", (1,), False),
        ("UPPER(region)", "region = 'R02'", (1,), False),
        ("age", "age BETWEEN 12 AND 14 AND smoker", (12, 13, 14), False),
        ("age % 3", "age < 12", (1, 2), False),
        ("MONTH(day)", "day >= '2024-11-15'", (11, 12), False),
        ("smoker", "smoker", (1,), False),
        ("amount > 3", "region = 'R01'", (0, 1), False),
    ],
)
def test_where_on_the_key_leaves_the_groups_that_it_names(ask, key, where, codes, missing):
    (found,) = ask(WHERE.format(key=key, where=where)).raw.keys
    assert (found.codes, found.missing) == (codes, missing)


def test_the_months_of_a_range_of_days(ask):
    (key,) = ask(
        WHERE.format(
            key="DATE_TRUNC('month', day)", where="day BETWEEN '2024-02-10' AND '2024-04-01'"
        )
    ).raw.keys
    kind = Date("2024-01-01", "2024-12-31")
    assert [str(kind.decode(code)) for code in key.codes] == [
        "2024-02-01",
        "2024-03-01",
        "2024-04-01",
    ]


JOINED = "SELECT age_band, COUNT(*) FROM events e {} u ON e.user_id = u.user_id"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (JOINED.format("JOIN users") + " AND age_band = 'a' GROUP BY 1", 1),
        (JOINED.format("JOIN (SELECT * FROM users WHERE age_band = 'a')") + " GROUP BY 1", 1),
        (JOINED.format("LEFT JOIN (SELECT * FROM users WHERE age_band = 'a')") + " GROUP BY 1", 3),
        (JOINED.format("LEFT JOIN users") + " WHERE age_band = 'a' GROUP BY 1", 1),
        (JOINED.format("LEFT JOIN users") + " WHERE region = 'R01' GROUP BY 1", 3),
        (
            "SELECT region, COUNT(*) FROM (SELECT * FROM events WHERE region = 'R01') GROUP BY region",
            1,
        ),
        (
            "SELECT kind, COUNT(*) FROM events LEFT JOIN products USING (product) WHERE kind = 'x' GROUP BY 1",
            1,
        ),
        (
            "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY 1) WHERE n < 4 GROUP BY n",
            3,
        ),
    ],
)
def test_tests_below_joins_and_sub_queries_count(ask, text, size):
    assert ask(text).raw.keys[0].size == size


def test_an_open_key_stays_open(ask):
    (key,) = ask(WHERE.format(key="product", where="product IN ('a', 'b')")).raw.keys
    assert key.codes is None and isinstance(key.value.type, Text)


WRONG = {
    "or": ("_true_codes", lambda test, expression, codes: frozenset({0})),
    "null": ("_true_of_null", lambda test, expression: False),
    "bound": ("_bound", lambda test, expression: (Comparison.EQ, 0)),
}
CAUGHT = [
    (key, (test,))
    for key in KEYS
    for test in (
        Compare(Comparison.GT, key, Constant(1)),
        Or((IsNull(key), Member(key, (1, 2)))),
        Compare(Comparison.GT, X, Y),
    )
]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_caught(name, monkeypatch):
    assert not any(lost(key, tests) for key, tests in CAUGHT)
    monkeypatch.setattr(where_ranges, *WRONG[name])
    assert any(lost(key, tests) for key, tests in CAUGHT)

# SPDX-License-Identifier: Apache-2.0
"""SQL over private answers: what it gives, what it costs, how it fails, what it cannot reach."""

import statistics
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import pytest

from sfumato.engines import scratch as scratches
from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    InvalidSource,
    KeyUsed,
    MissingDeclaration,
    OuterFailed,
    Refused,
    UnsupportedSql,
    WrongUse,
)
from sfumato.query import outer as module
from sfumato.query.statements import Statements
from tests.attacks import shop

BY_REGION = "SELECT region, COUNT(*) AS n FROM events GROUP BY region"
SHARES = f"SELECT region, n, n * 100.0 / SUM(n) OVER () AS share FROM ({BY_REGION})"
MONTHS = (
    "WITH t AS (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM events GROUP BY 1) "
    "SELECT m, n, n - LAG(n) OVER (ORDER BY m) AS more, SUM(n) OVER (ORDER BY m) AS so_far FROM t"
)


@pytest.fixture
def session(tmp_path):
    with shop.connected(tmp_path, shop.data()) as opened:
        yield opened


def spent(session):
    return Fraction(session.budget.spent)


def test_it_is_computed_from_the_private_answer(session):
    answer = session.query(MONTHS, epsilon=1)
    (inner,) = answer.inner
    assert [row["n"] for row in answer] == inner["n"]
    totals = [sum(inner["n"][: place + 1]) for place in range(12)]
    assert answer["so_far"] == pytest.approx(totals)
    assert answer["more"][0] is None
    assert answer["more"][1] == pytest.approx(inner["n"][1] - inner["n"][0])
    first, *rest = answer.error()
    assert first["more"] == {"low": None, "high": None, "half_width": None}
    assert all(row["more"]["low"] < row["more"]["high"] for row in rest)
    assert first["m"] == "2024-01-01"


def test_one_question_has_no_inner_answer_and_stays_as_it_was(session):
    answer = session.query(BY_REGION, epsilon=1)
    assert answer.inner == ()
    again = session.query(f"SELECT MAX(n) AS m FROM ({BY_REGION})", epsilon=1)
    assert again.inner[0].bytes == answer.bytes


def test_another_outer_text_over_the_same_answers_is_free(session):
    first = session.query(SHARES, epsilon=1)
    before = spent(session)
    second = session.query(f"SELECT MAX(n) - MIN(n) AS gap FROM ({BY_REGION})", epsilon=1)
    assert spent(session) == before and second.recalled and not first.recalled
    assert session.query(SHARES, epsilon=1).bytes == first.bytes


def test_the_cost_is_shared_equally_among_all_that_is_asked(session):
    text = (
        f"SELECT 'all' AS region, COUNT(*) AS n FROM events WHERE amount > "
        f"(SELECT AVG(amount) FROM events) UNION ALL {BY_REGION}"
    )
    before = spent(session)
    answer = session.query(text, epsilon="0.3")
    assert spent(session) == before + Fraction("0.3")
    assert [inner.cost.epsilon for inner in answer.inner] == ["0.1", "0.1"]
    assert answer.cost.epsilon == "0.2"


def test_delta_goes_to_the_questions_that_spend_it(session):
    opened = "SELECT product, COUNT(DISTINCT user_id) AS n FROM events GROUP BY product"
    text = f"SELECT COUNT(*) AS k FROM ({opened}) UNION ALL SELECT n FROM ({BY_REGION})"
    answer = session.query(text, epsilon=100, delta="1e-8")
    deltas = [Fraction(inner.cost.delta) for inner in answer.inner]
    assert 0 < deltas[0] <= Fraction(1, 10**8) and deltas[1] == 0
    twice = (
        f"SELECT n FROM ({opened}) UNION ALL SELECT n FROM "
        "(SELECT product, COUNT(*) AS n FROM events GROUP BY product)"
    )
    both = session.query(twice, epsilon=100, delta="1e-8")
    assert sum(Fraction(inner.cost.delta) for inner in both.inner) <= Fraction(1, 10**8)


def test_a_delta_given_to_each_is_noticed(session, monkeypatch):
    true = module._shares

    def given_to_each(price, inner):
        shares = zip(true(price, inner), inner, strict=True)
        return [
            replace(share, delta=price.delta) if part.is_open else share for share, part in shares
        ]

    monkeypatch.setattr(module, "_shares", given_to_each)
    opened = "SELECT product, COUNT(*) AS n FROM {} GROUP BY product"
    text = f"SELECT n FROM ({opened.format('events')}) UNION ALL SELECT n FROM ({opened.format('orders')})"
    text = text.replace("orders", "events WHERE amount > 3")
    answer = session.query(text, epsilon=1, delta="1e-8")
    assert sum(Fraction(inner.cost.delta) for inner in answer.inner) > Fraction(1, 10**8)


def test_all_inner_questions_are_charged_or_none(session):
    text = f"SELECT n FROM ({BY_REGION}) UNION ALL SELECT n FROM (SELECT COUNT(*) AS n FROM users)"
    session.query("SELECT COUNT(*) FROM users", epsilon=1)
    before = session.budget.to_json()
    with pytest.raises(BudgetExceeded):
        session.query(text, epsilon=10**6)
    assert session.budget.to_json() == before
    # the second one fails in its plan
    with pytest.raises(MissingDeclaration):
        session.query(
            f"SELECT n FROM ({BY_REGION}) UNION ALL SELECT COUNT(*) FROM events GROUP BY product",
            epsilon=1,
        )
    assert session.budget.to_json() == before


def test_one_charge_of_two_is_noticed(session, monkeypatch):
    text = f"SELECT n FROM ({BY_REGION}) UNION ALL SELECT n FROM (SELECT COUNT(*) AS n FROM users)"
    true = Statements.answer_all
    monkeypatch.setattr(
        Statements,
        "answer_all",
        lambda self, questions, patience: [
            *true(self, questions[:1], patience),
            *true(self, questions[:1], patience),
        ],
    )
    before = spent(session)
    session.query(text, epsilon=1)
    assert spent(session) - before < 1


def test_a_wanted_error_needs_a_single_question(session):
    assert session.query(SHARES, error=50, max_epsilon=5).error()[0]["n"]["half_width"] <= 50
    with pytest.raises(WrongUse):
        session.query(
            f"SELECT n FROM ({BY_REGION}) UNION ALL SELECT COUNT(*) FROM users",
            error=50,
            max_epsilon=5,
        )


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT nothing FROM ({BY_REGION})",
        f"SELECT n + region FROM ({BY_REGION})",
        f"SELECT UNKNOWN_FUNCTION(n) FROM ({BY_REGION})",
        f"SELECT n, RANDOM() FROM ({BY_REGION})",
        f"SELECT * FROM ({BY_REGION}), range(10)",
        f"SELECT [n] FROM ({BY_REGION})",
        f"SELECT n FROM ({BY_REGION}) WHERE region > 3",
        f"SELECT n FROM ({BY_REGION}) UNION ALL SELECT n, n FROM ({BY_REGION})",
    ],
)
def test_what_cannot_be_bound_is_refused_free(session, text):
    before = session.budget.to_json()
    for ask in (session.query, session.preview):
        with pytest.raises(Refused):
            ask(text, epsilon=1)
    assert session.budget.to_json() == before


DAYS = "SELECT day, COUNT(*) AS n FROM events GROUP BY day"
FAILING = [
    (f"SELECT CAST(region AS INT) AS x FROM ({BY_REGION})", "Could not convert"),
    (f"SELECT a.n FROM ({DAYS}) AS a, ({DAYS}) AS b", "more than 100,000 rows"),
    ("SELECT CAST(n AS TINYINT) AS x FROM (SELECT SUM(amount) * 100000 AS n FROM events)", "Conversion"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "cause"), FAILING)
def test_an_outer_statement_that_fails_is_never_refunded(session, text, cause):
    before = spent(session)
    with pytest.raises(OuterFailed, match=cause) as failed:
        session.query(text, epsilon=1)
    assert spent(session) == before + 1
    (charge,) = failed.value.charges
    assert session.stored(charge).body
    with pytest.raises(OuterFailed):
        session.query(text, epsilon=1)
    assert spent(session) == before + 1


def test_limits_end_what_takes_too_long(session, monkeypatch):
    monkeypatch.setattr(scratches, "SECONDS", 0.2)
    with pytest.raises(OuterFailed, match="seconds"):
        session.query(
            f"SELECT SUM(SIN(a.n * b.n * c.n * d.n)) AS s FROM ({DAYS}) a, ({DAYS}) b, ({DAYS}) c, ({DAYS}) d",
            epsilon=1,
        )
    assert len(session.query(f"SELECT MAX(n) FROM ({DAYS})", epsilon=1)) == 1


def test_a_key_is_bound_to_the_whole_statement(session):
    first = session.query(SHARES, epsilon=1, key="k")
    before = session.budget.to_json()
    assert session.query(SHARES, epsilon=1, key="k").bytes == first.bytes
    others = [
        SHARES.replace("100.0", "10.0"),
        SHARES.replace("events", "events WHERE amount > 3"),
        BY_REGION,
    ]
    for other, price in (*((text, 1) for text in others), (SHARES, 2)):
        with pytest.raises(KeyUsed):
            session.query(other, epsilon=price, key="k")
    assert session.budget.to_json() == before
    # a failed statement is bound too
    with pytest.raises(OuterFailed):
        session.query(FAILING[0][0], epsilon=1, key="failed")
    with pytest.raises(KeyUsed):
        session.query(SHARES, epsilon=1, key="failed")
    # and a key of one question is no key of several
    session.query(BY_REGION, epsilon=1, key="one")
    with pytest.raises(KeyUsed):
        session.query(SHARES, epsilon=1, key="one")


def test_a_key_of_the_inner_questions_alone_is_noticed(session, monkeypatch):
    true = module.Outer._request
    monkeypatch.setattr(
        module.Outer, "_request", lambda self, *rest: true(replace(self, form="[]"), *rest)
    )
    session.query(SHARES, epsilon=1, key="k")
    session.query(SHARES.replace("100.0", "10.0"), epsilon=1, key="k")


KINDS = f"SELECT p.category, t.n FROM ({BY_REGION}) AS t JOIN products AS p ON TRUE"


def test_public_tables_are_read_beside_the_answers(session):
    answer = session.query(f"{KINDS} ORDER BY t.region, p.category", epsilon=1)
    (inner,) = answer.inner
    kinds = ["books", "food", "toys"]
    assert answer["category"] == [kind for _ in inner for kind in kinds]
    assert answer["n"] == pytest.approx([row["n"] for row in inner for _ in kinds])
    half = inner.error()[0]["n"]["half_width"]
    assert all(row["n"]["half_width"] == pytest.approx(half) for row in answer.error())
    assert "products is public, and was read as it is now." in answer.notes
    assert session.preview(KINDS, epsilon=1).columns == (
        ("category", "text"),
        ("n", answer.columns[1]["type"]),
    )
    # a cell that is there more than once is in no sum
    added = session.query(f"SELECT SUM(n) AS s FROM ({KINDS})", epsilon=1)
    assert added.error() == [{"s": {"low": None, "high": None, "half_width": None}}]
    most = f"SELECT region FROM ({BY_REGION}) WHERE n > (SELECT COUNT(*) FROM main.PRODUCTS)"
    assert set(session.query(most, epsilon=1)["region"]) <= set(inner["region"])


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT n FROM ({BY_REGION}), users",
        f"SELECT n FROM ({BY_REGION}), information_schema.products",
        f"SELECT n, p.price FROM ({BY_REGION}), products AS p",
        "SELECT p.*, SUM(1) OVER () AS s FROM products AS p",
    ],
)
def test_no_other_table_is_read_beside_them(session, text):
    before = session.budget.to_json()
    with pytest.raises(Refused):
        session.query(text, epsilon=1)
    assert session.budget.to_json() == before


def test_a_public_table_that_cannot_be_read_costs_nothing(session, monkeypatch):
    before = session.budget.to_json()
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    with pytest.raises(InvalidSource, match="more than 2 rows"):
        session.query(KINDS, epsilon=1)
    assert session.budget.to_json() == before


PRIVATE = [
    "events",
    "EVENTS",
    '"events"',
    "main.events",
    "memory.main.events",
    "answer_0",
    '"answer 0"',
    "pg_class",
]


@pytest.mark.parametrize("name", PRIVATE)
def test_no_private_table_is_reached_beside_an_answer(session, name):
    events = [1, 2, 3]
    before = session.budget.to_json()
    for text in (
        f"SELECT * FROM {name}, ({BY_REGION})",
        f"SELECT (SELECT amount FROM {name} LIMIT 1) FROM ({BY_REGION})",
        f"SELECT n FROM ({BY_REGION}) WHERE EXISTS (SELECT 1 FROM {name})",
        f"WITH t AS ({BY_REGION}), s AS (SELECT * FROM {name}) SELECT * FROM s, t",
    ):
        with pytest.raises(Refused):
            session.query(text, epsilon=1)
    assert session.budget.to_json() == before and events


def private_rows(session):
    """What the scratch gives of a private table, asked past the language."""
    try:
        name = session._engine._sources["events"].sql
        return session._scratch.values(f"SELECT COUNT(*) FROM {name}", {})
    except scratches.Stopped:
        return None


def test_the_scratch_holds_no_private_table(session):
    session.query(SHARES, epsilon=1)
    assert private_rows(session) is None
    assert session._scratch.values("SELECT table_name FROM information_schema.tables", {}) == [[]]


def test_a_scratch_on_the_connection_of_the_data_is_noticed(session, monkeypatch):
    (lane,) = session._engine._lanes.all
    monkeypatch.setattr(
        session._scratch, "_opened", lambda: SimpleNamespace(cursor=lambda: lane.connection)
    )
    assert private_rows(session)


def test_chosen_rows_are_wider(session):
    alone = session.query(SHARES, epsilon=1).error()[0]["n"]["half_width"]
    top = session.query(f"SELECT region, n FROM ({BY_REGION}) ORDER BY n DESC LIMIT 1", epsilon=1)
    assert top.error()[0]["n"]["half_width"] > alone
    assert any("Released numbers chose rows" in note for note in top.notes)


def test_a_statement_that_cannot_be_traced_has_no_intervals(session):
    text = f"SELECT * FROM (SELECT * FROM ({BY_REGION}) AS a JOIN ({BY_REGION}) AS b ON a.region = b.region)"
    answer = session.query(text, epsilon=1)
    assert [column["name"] for column in answer.columns] == ["region", "n", "region_1", "n_1"]
    assert answer.error()[0]["n"] == {"low": None, "high": None, "half_width": None}
    assert answer["n"] == answer["n_1"]


def test_other_confidences_and_formats(session):
    answer = session.query(SHARES, epsilon=1)
    narrow = answer.error("0.5")[0]["n"]["half_width"]
    assert (
        narrow < answer.error()[0]["n"]["half_width"] < answer.error("0.999")[0]["n"]["half_width"]
    )
    assert statistics.fsum(answer["share"]) == pytest.approx(100)
    assert answer.to_arrow(intervals=True).column_names[:3] == ["region", "n", "n_low"]
    assert "share" in answer.to_csv() and "n" in repr(answer) and answer.explain()
    with pytest.raises(WrongUse):
        answer.consistent()
    assert answer.plot("n").svg


def test_refusals_of_one_question_are_what_they_were(session):
    with pytest.raises(UnsupportedSql, match="would show rows or values of single persons"):
        session.query("SELECT * FROM events", epsilon=1)
    with pytest.raises(UnsupportedSql, match="of persons' rows is not computed"):
        session.query("SELECT SUM(amount) OVER (ORDER BY day) FROM events", epsilon=1)


TOP = "SELECT region FROM events GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2"


def test_the_largest_groups_are_a_filter_of_another_question(session):
    text = f"SELECT region, AVG(amount) AS a FROM events WHERE region IN ({TOP}) GROUP BY region"
    before = spent(session)
    answer = session.query(text, epsilon=1)
    assert spent(session) == before + 1 and answer.cost.epsilon == "0.5"
    top = session.query(TOP, epsilon="0.5")
    # every declared group is shown, one that is not in the list with noise alone
    assert top.recalled and set(answer["region"]) >= set(top["region"]) - {None}
    assert any(", ".join(map(str, top["region"])) in note for note in answer.notes)
    assert session.query(text, epsilon=1).recalled


BY_PRODUCT = "SELECT product, COUNT(*) FROM events WHERE region IN ({}) GROUP BY product"
OF_UNITS = "SELECT user_id FROM events GROUP BY user_id ORDER BY COUNT(*) LIMIT 1"


def test_a_filter_is_planned_before_it_is_charged(session):
    before = session.budget.to_json()
    with pytest.raises(MissingDeclaration):
        session.query(BY_PRODUCT.format(TOP), epsilon=1)
    with pytest.raises(Refused):
        session.query(f"SELECT COUNT(*) FROM events WHERE user_id IN ({OF_UNITS})", epsilon=1)
    assert session.budget.to_json() == before


def test_the_parts_of_a_split_question_are_filtered_too(session):
    filtered = f"SELECT region, COUNT(*) AS n FROM events WHERE region IN ({TOP}) GROUP BY region"
    before = spent(session)
    answer = session.query(
        f"SELECT region, RANK() OVER (ORDER BY n) AS r FROM ({filtered})", epsilon=1
    )
    assert spent(session) == before + 1
    assert answer.inner[0].cost.epsilon == "0.5"
    # a group of missing values is in no list
    assert 1 <= len(answer) <= 2


def test_what_only_the_whole_can_say_is_said_by_the_whole(session):
    for text, words in (
        ("SELECT COUNT(*) FROM events HAVING COUNT(*) > 'a'", "compared with 'a'"),
        ("SELECT region, COUNT(*) FROM events", "outside GROUP BY"),
        ("SELECT COUNT(*) FROM events ORDER BY 2", "ORDER BY 2"),
    ):
        with pytest.raises(UnsupportedSql, match=words):
            session.query(text, epsilon=1)


def test_a_running_sum_of_many_cells_ends(session):
    """Each count of cells has a bound of its own; those of many are rounded up together."""
    text = f"SELECT day, SUM(n) OVER (ORDER BY day) AS s FROM ({DAYS})"
    errors = session.query(text, epsilon=1).error()
    widths = [row["s"]["half_width"] for row in errors]
    assert len(widths) == 366 and all(width > 0 for width in widths)
    assert all(one <= other * 1.0001 for one, other in pairwise(widths))


def test_an_account_that_is_frozen_is_not_given_what_it_asked_before(session):
    session.query(SHARES, epsilon=1)
    session._ledger.freeze("shop", reason="a test")
    with pytest.raises(AccountFrozen):
        session.query(SHARES, epsilon=1)

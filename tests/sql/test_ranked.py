# SPDX-License-Identifier: Apache-2.0
"""Windows over the rows of one unit; windows across units are refused."""

import pytest

import sfumato as sf
from sfumato.errors import Refused
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import Ranked, Sort, Windowed, WindowFunction, is_single
from sfumato.plan.scalar import Arithmetic, Constant, Field, Lookup, Member, Operation
from sfumato.sql import ranked, understand
from tests.sql.conftest import EVENTS

F = {name: Field(Column(name, kind)) for name, kind in EVENTS.items()}


def window(ask, over, more=""):
    text = f"SELECT COUNT(*) FROM (SELECT user_id, age, ROW_NUMBER() OVER ({over}) AS rn FROM events) AS x {more}"
    return ask(text).raw.relation


@pytest.mark.parametrize(
    ("order", "sorts"),
    [
        ("", ()),
        ("ORDER BY day", (Sort(F["day"]),)),
        (
            "ORDER BY day DESC, product, amount",
            (Sort(F["day"], descending=True), Sort(F["product"]), Sort(F["amount"])),
        ),
        (
            "ORDER BY age + 1 DESC NULLS LAST",
            (Sort(Arithmetic(Operation.ADD, F["age"], Constant(1)), descending=True),),
        ),
        ("ORDER BY region", (Sort(F["region"]),)),
    ],
)
def test_rows_are_numbered_in_an_order_that_all_columns_make_whole(ask, order, sorts):
    found = window(ask, f"PARTITION BY user_id {order}")
    assert isinstance(found, Ranked)
    assert found.order == sorts
    assert found.ties == tuple(F.values())


def test_texts_are_ordered_by_the_alphabet():
    kind = sf.Category("b", "a")
    data = Dataset(
        "d", {"t": sf.Table("t.csv", unit=sf.Unit("who", max_rows=1), columns={"c": kind})}
    )
    raw = understand(
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY who ORDER BY c) AS rn FROM t) WHERE rn = 1",
        data,
    ).raw
    assert raw.relation.source.order == (Sort(Lookup(Field(Column("c", kind)), 0, (1, 0))),)


def test_the_first_row_makes_a_table_of_one_row_a_unit(ask):
    assert is_single(window(ask, "PARTITION BY user_id ORDER BY day", "WHERE rn = 1"))
    assert is_single(
        window(ask, "PARTITION BY user_id ORDER BY day", "WHERE age > 12 AND x.rn = 1")
    )
    assert not is_single(window(ask, "PARTITION BY user_id ORDER BY day", "WHERE rn <= 2"))
    first = "(SELECT user_id, day, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS rn FROM events) WHERE rn = 1"
    joined = f"SELECT COUNT(*) FROM events e JOIN (SELECT * FROM {first}) AS f ON f.user_id = e.user_id WHERE e.day > f.day"
    assert ask(joined).raw.aggregates


def test_two_windows_are_two_numbers(ask):
    text = "SELECT user_id, {0} AS a, {0} AS b FROM events".format(
        "ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day)"
    )
    found = ask(f"SELECT COUNT(*) FROM ({text}) WHERE a = b").raw.relation.source
    assert isinstance(found.source, Ranked) and found.column != found.source.column


def test_a_unit_of_two_columns_is_partitioned_by_both(ask):
    text = "SELECT COUNT(*) FROM (SELECT steps, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY steps) AS rn FROM days) WHERE rn = 1"
    assert is_single(ask(text.format("day, who")).raw.relation)
    with pytest.raises(Refused, match="ROW_NUMBER OVER"):
        ask(text.format("who"))


@pytest.mark.parametrize(
    "select",
    [
        "ROW_NUMBER() OVER (ORDER BY day)", "ROW_NUMBER() OVER (PARTITION BY region ORDER BY day)",
        "LAG(amount) OVER (ORDER BY user_id, day)", "1 + COUNT(*) OVER ()",
    ],
)  # fmt: skip
def test_a_window_across_units_is_refused_with_the_one_that_is_allowed(ask, select):
    with pytest.raises(Refused, match="reaches across units") as refusal:
        ask(f"SELECT COUNT(*) FROM (SELECT user_id, {select} AS w FROM events)")
    assert "FIRST_VALUE OVER (PARTITION BY user_id" in refusal.value.remedy


@pytest.mark.parametrize(
    ("select", "function", "by"),
    [
        ("ROW_NUMBER() OVER (PARTITION BY user_id, region ORDER BY day)", "ROW_NUMBER", (F["region"],)),
        ("RANK() OVER (PARTITION BY user_id ORDER BY day)", "RANK", ()),
        ("DENSE_RANK() OVER (PARTITION BY product, user_id ORDER BY day)", "DENSE_RANK", (F["product"],)),
        ("LAG(amount) OVER (PARTITION BY user_id ORDER BY day)", "LAG", ()),
        ("LEAD(region, 2) OVER (PARTITION BY user_id ORDER BY day)", "LEAD", ()),
    ],
)  # fmt: skip
def test_a_window_of_one_units_rows(ask, select, function, by):
    text = f"SELECT COUNT(*) FROM (SELECT user_id, {select} AS w FROM events) WHERE w IS NOT NULL"
    found = ask(text).raw.relation.source
    assert isinstance(found, Windowed) and found.function is WindowFunction[function]
    assert (found.by, found.order, found.ties) == (by, (Sort(F["day"]),), tuple(F.values()))
    looked_up = {"LAG": ("amount", 1), "LEAD": ("region", 2)}.get(function)
    if looked_up is not None:
        assert (found.value.expression, found.offset) == (F[looked_up[0]], looked_up[1])
        assert found.column.type == EVENTS[looked_up[0]]


def test_a_text_is_looked_up_as_it_is(ask):
    text = "SELECT COUNT(*) FROM (SELECT LAG(product) OVER (PARTITION BY user_id ORDER BY day) AS w FROM events) WHERE w = 'a'"
    found = ask(text).raw.relation
    assert found.source.column.type == sf.Text()
    assert found.predicate == Member(Field(found.source.column), ("a",))


def test_a_default_is_told_from_a_missing_value_by_a_code_of_its_own(ask):
    text = "SELECT {}(w) FROM (SELECT LAG({}, 1, {}) OVER (PARTITION BY user_id ORDER BY day) AS w FROM events)"
    raw = ask(text.format("AVG", "age", "200")).raw
    low = EVENTS["age"].lower_code
    assert raw.relation.column.type == sf.Integer(low - 1, EVENTS["age"].upper_code)
    (mean,) = raw.aggregates
    assert (mean.value.type.lower_code, mean.value.type.upper_code) == (low, 200)
    value = mean.value.expression

    def looked_up(code):
        return evaluate(value, lambda leaf: code)

    assert [looked_up(code) for code in (None, low - 1, low, low + 1)] == [200, None, low, low + 1]
    # a default of NULL is none
    same = [
        text.format("AVG", "age", "NULL"),
        text.format("AVG", "age", "NULL").replace(", 1, NULL", ""),
    ]
    assert ask(same[0]).raw == ask(same[1]).raw


def test_the_first_of_a_part_is_not_the_only_row_of_its_unit(ask):
    text = "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user_id, region ORDER BY day) AS rn FROM events) WHERE rn = 1"
    assert not is_single(ask(text).raw.relation)


def test_what_is_looked_up_can_be_missing_as_a_group(ask):
    text = "SELECT w, COUNT(*) FROM (SELECT LAG(region) OVER (PARTITION BY user_id ORDER BY day) AS w FROM events) GROUP BY w"
    (key,) = ask(text).raw.keys
    assert key.missing and key.value.type == EVENTS["region"]


LAST = (
    "SELECT user_id, day, age, LAG(age) OVER (PARTITION BY user_id ORDER BY day) AS w FROM events"
)
FIRST = f"SELECT user_id, w FROM ({LAST}) QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) = 1"


@pytest.mark.parametrize(
    ("select", "missing"),
    [
        (f"w FROM (SELECT user_id, w FROM ({LAST}) UNION ALL SELECT user_id, age FROM events)", True),
        (f"w FROM (SELECT user_id, w, COUNT(*) AS n FROM ({LAST}) GROUP BY user_id, w)", True),
        (f"n FROM (SELECT user_id, w, COUNT(*) AS n FROM ({LAST}) GROUP BY user_id, w) WHERE n < 9", False),
        (f"w FROM (SELECT user_id, ANY_VALUE(w) AS w FROM ({LAST}) GROUP BY user_id)", True),
        (f"w FROM (SELECT user_id, w FROM ({LAST}) WHERE w <> 12 UNION ALL SELECT user_id, age FROM events)", False),
        (f"f.w FROM events JOIN ({FIRST}) AS f ON f.user_id = events.user_id", True),
        (f"w IS NULL FROM ({LAST})", False),
    ],
)  # fmt: skip
def test_nothing_that_was_looked_up_is_lost_on_the_way_to_a_key(ask, select, missing):
    (key,) = ask(f"SELECT COUNT(*), {select} GROUP BY 2").raw.keys
    assert key.missing is missing


def test_numbers_go_one_beyond_the_declared_rows_of_a_unit():
    data = Dataset(
        "d",
        {
            "t": sf.Table(
                "t.csv",
                unit=sf.Unit("who", max_rows_total=4),
                columns={"x": sf.Integer(0, 3), "c": sf.Category("a", "b")},
            )
        },
    )
    text = "SELECT AVG(r) FROM (SELECT RANK() OVER (PARTITION BY who, c ORDER BY x) AS r FROM t)"
    assert understand(text, data).raw.relation.column.type == sf.Integer(1, 5)


@pytest.mark.parametrize(
    ("over", "columns"),
    [
        ("QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) = 1", "user_id, age"),
        ("QUALIFY rn = 1", "user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS rn"),
    ],
)
def test_qualify_of_a_units_rows_is_a_test_above_the_window(ask, over, columns):
    found = ask(f"SELECT COUNT(*) FROM (SELECT {columns} FROM events {over})").raw.relation
    assert is_single(found)


def test_a_name_in_qualify_is_a_column_before_it_is_one_of_select(ask):
    # as in DuckDB, and as in WHERE
    text = "SELECT COUNT(*) FROM (SELECT user_id, LEAST(age, 50) AS age FROM events {} age > 60)"
    qualified, filtered = (ask(text.format(clause)).raw for clause in ("QUALIFY", "WHERE"))
    assert qualified == filtered


@pytest.mark.parametrize(
    ("select", "words"),
    [
        (
            "LAG(product, 1, 'x') OVER (PARTITION BY user_id ORDER BY day)",
            "Text column with a default",
        ),
        (
            "LAG(amount, 1, 'x') OVER (PARTITION BY user_id ORDER BY day)",
            "values of different kinds",
        ),
        ("LAG(amount, 0) OVER (PARTITION BY user_id ORDER BY day)", "a number of rows"),
        ("LAG(amount) OVER (PARTITION BY user_id)", "LAG without an order"),
        ("RANK() OVER (PARTITION BY user_id)", "rank without an order"),
        ("LAG(user_id) OVER (PARTITION BY user_id ORDER BY day)", "names single persons"),
    ],
)
def test_a_window_that_is_not_computed_says_why(ask, select, words):
    with pytest.raises(Refused, match=words):
        ask(f"SELECT COUNT(*) FROM (SELECT user_id, {select} AS w FROM events)")


@pytest.mark.parametrize(
    "select",
    [
        "SUM(amount) OVER (PARTITION BY user_id, region)",
        "SUM(amount) OVER (PARTITION BY user_id ORDER BY day)",
        "FIRST_VALUE(amount) OVER (PARTITION BY user_id)",
        "NTILE(2) OVER (PARTITION BY user_id ORDER BY day)",
    ],
)
def test_another_window_within_a_unit_is_not_said_to_reach_across_units(ask, select):
    with pytest.raises(Refused, match="within one unit is not computed") as refusal:
        ask(f"SELECT COUNT(*) FROM (SELECT user_id, {select} AS w FROM events)")
    assert "across" not in str(refusal.value)


@pytest.mark.parametrize(
    "over",
    [
        "PARTITION BY user_id ORDER BY day NULLS FIRST",
        "PARTITION BY user_id ORDER BY day ROWS UNBOUNDED PRECEDING",
        "PARTITION BY user_id ORDER BY user_id",
    ],
)
def test_a_frame_or_nulls_first_is_refused(ask, over):
    with pytest.raises(Refused) as refusal:
        window(ask, over)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, RANK() OVER (ORDER BY amount) FROM events", "SELECT SUM(amount) OVER (ORDER BY day) FROM events",
        "SELECT AVG(amount - AVG(amount) OVER (PARTITION BY region)) FROM events", "SELECT COUNT(*) OVER () FROM events",
        "SELECT COUNT(*) FROM events WHERE ROW_NUMBER() OVER (PARTITION BY user_id) = 1",
    ],
)  # fmt: skip
def test_a_window_outside_a_sub_query_is_refused(ask, text):
    with pytest.raises(Refused, match="window function") as refusal:
        ask(text)
    assert "sub-query" in refusal.value.remedy


def test_an_order_that_ties_leave_open_is_noticed(ask, monkeypatch):
    monkeypatch.setattr(ranked, "fields", lambda relation: ())
    assert window(ask, "PARTITION BY user_id ORDER BY day").ties == ()

# SPDX-License-Identifier: Apache-2.0
"""Sub-queries of one row a unit: their columns, ranges and names."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, Refused
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import UNLIMITED, Computed, Filter, PerUnit, Summary
from sfumato.plan.scalar import Case, Constant, Field, Lookup
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import Value
from sfumato.sql import per_unit, understand
from tests.sql.conftest import EVENTS

V = {name: Value.of(Column(name, kind)) for name, kind in EVENTS.items()}


def columns(ask, select, table="events"):
    """The computed columns of a sub-query by the unit.

    The limit of a unit is 10 rows in each of 5 groups.
    """
    (relation,) = [
        ask(
            f"SELECT COUNT(*) FROM (SELECT user_id, {select} FROM {table} GROUP BY user_id) AS per"
        ).raw.relation
    ]
    assert isinstance(relation, PerUnit) and not relation.keys
    return relation.columns


@pytest.mark.parametrize(
    ("select", "summary", "value", "kind"),
    [
        ("COUNT(*)", Summary.COUNT, None, Integer(1, 50)),
        ("COUNT(1)", Summary.COUNT, None, Integer(1, 50)),
        ("COUNT(user_id)", Summary.COUNT, None, Integer(1, 50)),
        ("COUNT(age)", Summary.COUNT_VALUES, V["age"], Integer(0, 50)),
        ("COUNT(DISTINCT product)", Summary.COUNT_DISTINCT, V["product"], Integer(0, 50)),
        ("COUNT(DISTINCT region)", Summary.COUNT_DISTINCT, V["region"], Integer(0, 3)),
        ("SUM(age)", Summary.SUM, V["age"], Integer(10, 1000)),
        ("SUM(amount)", Summary.SUM, V["amount"], Real(0, 10_000, step="0.5")),
        ("MIN(day)", Summary.MINIMUM, V["day"], EVENTS["day"]),
        ("MAX(amount)", Summary.MAXIMUM, V["amount"], EVENTS["amount"]),
        ("ANY_VALUE(age)", Summary.MINIMUM, V["age"], EVENTS["age"]),
        ("BOOL_OR(smoker)", Summary.MAXIMUM, V["smoker"], Boolean()),
        ("BOOL_AND(smoker)", Summary.MINIMUM, V["smoker"], Boolean()),
        ("MAX(region)", Summary.MAXIMUM, V["region"], EVENTS["region"]),
    ],
)
def test_a_summary_has_the_range_of_its_rows(ask, select, summary, value, kind):
    (found,) = columns(ask, select)
    assert (found.summary, found.value, found.column.type) == (summary, value, kind)


@pytest.mark.parametrize(
    ("select", "kind"),
    [
        ("SUM(age - 15)", Integer(-250, 250)), ("SUM(-age)", Integer(-1000, -10)), ("SUM(age - 25)", Integer(-750, -5)),
        ("COUNT(*) FILTER (WHERE smoker)", Integer(0, 50)), ("COUNT_IF(smoker)", Integer(0, 50)), ("SUM(smoker)", Integer(0, 50)),
        ("COUNT(age) FILTER (WHERE smoker)", Integer(0, 50)), ("MIN(age * 2)", Real(20, 40, step=2)),
    ],
)  # fmt: skip
def test_a_summary_of_an_expression_has_its_range(ask, select, kind):
    assert columns(ask, select)[0].column.type == kind


def test_without_a_limit_a_count_is_any_number(ask):
    found = columns(ask, "COUNT(*), SUM(amount)", "events_unbounded")
    assert [each.column.type for each in found] == [
        Integer(1, UNLIMITED),
        Integer(0, 200 * UNLIMITED),
    ]
    assert columns(ask, "COUNT(*)", "users")[0].column.type == Integer(1, 2)


def test_a_sum_is_cut_to_what_codes_can_hold():
    data = Dataset(
        "d",
        {"t": sf.Table("t.csv", unit=sf.Unit("who"), columns={"x": sf.Integer(-(2**40), 2**40)})},
    )
    raw = understand("SELECT COUNT(*) FROM (SELECT who, SUM(x) FROM t GROUP BY who)", data).raw
    assert raw.relation.columns[0].column.type == Integer(-MAX_CODE, MAX_CODE)


def test_the_mean_of_a_unit_lies_where_its_values_lie(ask):
    relation = ask(
        "SELECT AVG(m) FROM (SELECT user_id, AVG(age) AS m FROM events GROUP BY user_id)"
    ).raw
    assert [each.summary for each in relation.relation.columns] == [Summary.MEAN]
    kind = relation.aggregates[0].value.type
    assert (kind.lower_code * kind.step, kind.upper_code * kind.step) == (10, 20)
    assert (
        kind.step < Fraction(1, 10**12) and relation.aggregates[0].value.rounding == kind.step / 2
    )


@pytest.mark.parametrize("text", ["SUM(age) / COUNT(age)", "(SUM(age)) / NULLIF(COUNT(age), 0)"])
def test_a_sum_over_its_count_is_a_mean(ask, text):
    assert [each.summary for each in columns(ask, text)] == [Summary.MEAN]


@pytest.mark.parametrize(
    "text",
    [
        "SUM(age) / COUNT(*)",
        "SUM(age) / NULLIF(COUNT(DISTINCT age), 0)",
        "SUM(age) / NULLIF(COUNT(day), 0)",
    ],
)
def test_a_sum_over_another_count_is_none(ask, text):
    assert Summary.MEAN not in [each.summary for each in columns(ask, text)]


def test_texts_are_compared_by_the_alphabet():
    data = Dataset(
        "d",
        {
            "t": sf.Table(
                "t.csv", unit=sf.Unit("who", max_rows=1), columns={"c": sf.Category("b", "a", "c")}
            )
        },
    )
    raw = understand(
        "SELECT x, COUNT(*) FROM (SELECT who, MIN(c) AS x FROM t GROUP BY who) GROUP BY x", data
    ).raw
    (found,) = raw.relation.columns
    assert found.value.type == Category("a", "b", "c") and found.value.expression == Lookup(
        Field(Column("c", sf.Category("b", "a", "c"))), 0, (1, 0, 2)
    )


def test_the_same_summary_twice_is_one_column(ask):
    assert (
        len(
            columns(
                ask,
                "SUM(age), AVG(age), COUNT(age) AS n, SUM(age) + 1 AS more, 2 * AVG(age) AS twice",
            )
        )
        == 3
    )


def test_keys_beside_the_unit_are_columns(ask):
    raw = ask(
        "SELECT m, SUM(n) FROM (SELECT user_id, MONTH(day) AS m, COUNT(*) AS n FROM events GROUP BY 1, 2) GROUP BY m"
    ).raw
    ((column, value),) = raw.relation.keys
    assert column.type == Integer(1, 12) and value.type == Integer(1, 12)
    assert raw.keys[0].value.expression == Field(column)


def test_distinct_is_one_row_for_each(ask):
    assert ask("SELECT COUNT(*) FROM (SELECT DISTINCT user_id FROM events)").raw.relation.keys == ()
    (key,) = ask(
        "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, product FROM events)"
    ).raw.relation.keys
    assert key[1] == V["product"]


def test_having_tests_the_rows_of_units(ask):
    found = ask(
        "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id HAVING n > 2 AND SUM(age) > 30)"
    ).raw.relation
    assert isinstance(found, Filter) and isinstance(found.source, PerUnit)
    assert [each.summary for each in found.source.columns] == [Summary.COUNT, Summary.SUM]


def test_a_filter_is_null_elsewhere(ask):
    (found,) = columns(ask, "MAX(age) FILTER (WHERE smoker)")
    assert isinstance(found, Computed) and isinstance(found.value.expression, Case)
    assert found.value.expression.otherwise == Constant(None)


def test_a_group_of_units_can_be_grouped_again(ask):
    inner = "SELECT user_id, region, MAX(day) AS last FROM events GROUP BY user_id, region"
    found = ask(
        f"SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n, MIN(last) AS x FROM ({inner}) GROUP BY user_id)"
    ).raw.relation
    assert isinstance(found.source, PerUnit) and found.columns[1].column.type == Date(
        "2024-01-01", "2024-12-31"
    )


def test_a_unit_of_two_columns_is_grouped_by_both(ask):
    found = ask(
        "SELECT AVG(LEAST(s, 9)) FROM (SELECT who, day, SUM(steps) AS s FROM days GROUP BY day, who) WHERE s < 3"
    )
    assert not found.raw.relation.source.keys
    with pytest.raises(Refused, match="aggregates over units"):
        ask("SELECT COUNT(*) FROM (SELECT who, SUM(steps) AS s FROM days GROUP BY day)")


@pytest.mark.parametrize(
    ("inner", "word"),
    [
        ("SELECT region, COUNT(*) AS n FROM events GROUP BY region", "aggregates over units"),
        ("SELECT COUNT(*) AS n FROM events", "aggregates over units"),
        ("SELECT DISTINCT region FROM events", "aggregates over units"),
        ("SELECT quantity, COUNT(*) FROM orders GROUP BY quantity", "aggregates over units"),
        ("SELECT user_id, amount FROM events GROUP BY user_id", "outside GROUP BY in a sub-query"),
        (
            "SELECT user_id, MEDIAN(amount) FROM events GROUP BY user_id",
            "MEDIAN of one unit's rows",
        ),
        (
            "SELECT user_id, STRING_AGG(product, ',') FROM events GROUP BY user_id",
            "of one unit's rows",
        ),
        ("SELECT user_id, MAX(product) FROM events GROUP BY user_id", "without declared values"),
        (
            "SELECT user_id, COUNT(DISTINCT age, day) FROM events GROUP BY user_id",
            "several columns",
        ),
        ("SELECT DISTINCT user_id, COUNT(*) FROM events", "DISTINCT"),
        (
            "SELECT DISTINCT ON (user_id) user_id, age FROM events",
            r"\(user_id\) in DISTINCT ON \(user_id\)",
        ),
        ("SELECT user_id, SUM(product) FROM events GROUP BY user_id", "declared bounds"),
        (
            "SELECT user_id, COUNT(*) AS n, SUM(age) AS n FROM events GROUP BY user_id",
            "two columns 'n'",
        ),
        ("SELECT user_id FROM events GROUP BY ROLLUP(user_id)", "aggregates over units"),
    ],
)
def test_another_sub_query_is_refused(ask, inner, word):
    with pytest.raises(Refused, match=word) as refusal:
        ask(f"SELECT COUNT(*) FROM ({inner}) AS x")
    assert refusal.value.remedy


def test_any_number_of_rows_is_no_group(ask):
    with pytest.raises(MissingDeclaration, match="GROUP BY a key that may have") as refusal:
        ask(
            "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM events_unbounded GROUP BY user_id) GROUP BY n"
        )
    assert "LEAST(column, 20)" in refusal.value.remedy
    raw = ask(
        "SELECT LEAST(n, 20), COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM events_unbounded GROUP BY 1) GROUP BY 1"
    ).raw
    assert raw.keys[0].codes == tuple(range(1, 21))


def test_a_range_that_forgets_the_number_of_rows_is_noticed(ask, monkeypatch):
    honest = columns(ask, "SUM(age)")[0].column.type
    monkeypatch.setattr(
        per_unit.Summaries,
        "_sum",
        lambda self, operand, node, test: self._extreme(operand, node, test, Summary.SUM),
    )
    assert columns(ask, "SUM(age)")[0].column.type != honest


def test_group_by_all_of_a_sub_query_is_its_columns_without_aggregates(ask):
    inner = "SELECT user_id, COUNT(*) AS n FROM events GROUP BY "
    asked, written = (
        ask(f"SELECT AVG(n) AS a FROM ({inner}{by}) AS t") for by in ("ALL", "user_id")
    )
    assert asked.raw == written.raw


def test_distinct_persons_with_a_test_are_counted(ask):
    for text in ("CASE WHEN age > 13 THEN user_id END", "IF(age > 13, user_id, NULL)"):
        (counted,) = ask(f"SELECT COUNT(DISTINCT {text}) FROM events").raw.aggregates
        (by_filter,) = ask(
            "SELECT COUNT(DISTINCT user_id) FILTER (WHERE age > 13) FROM events"
        ).raw.aggregates
        assert isinstance(counted, CountUnitsWhere) and counted == by_filter

# SPDX-License-Identifier: Apache-2.0
"""Aggregates become parts; those of one value share a release where its integers hold them."""

from fractions import Fraction

import pytest
from sqlglot import exp

from sfumato.errors import MissingDeclaration, Refused
from sfumato.metadata.column import Column, Integer
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.scalar import Case, Compare, Comparison, Constant, Estimate, Field
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import Value
from sfumato.sql import aggregates, understand
from tests.sql.conftest import EVENTS

V = {name: Value.of(Column(name, kind)) for name, kind in EVENTS.items()}
DEAR = Compare(Comparison.GT, Field(Column("amount", EVENTS["amount"])), Constant(20))
ALLOWED = {
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.ApproxDistinct, exp.Median, exp.Min, exp.Max, exp.Quantile, exp.PercentileCont,
    exp.PercentileDisc, exp.ApproxQuantile, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "aggregate"),
    [
        ("COUNT(*)", CountRows()),
        ("COUNT(1)", CountRows()),
        ("COUNT('x')", CountRows()),
        ("COUNT(user_id)", CountRows()),
        ("COUNT(age)", CountValues(V["age"])),
        ("COUNT(product)", CountValues(V["product"])),
        ("COUNT(DISTINCT user_id)", CountUnits()),
        ('COUNT(DISTINCT "USER_ID")', CountUnits()),
        ("APPROX_COUNT_DISTINCT(user_id)", CountUnits()),
        ("COUNT(DISTINCT product)", CountDistinct(V["product"])),
        ("APPROX_COUNT_DISTINCT(region)", CountDistinct(V["region"])),
        ("SUM(amount)", Sum(V["amount"])),
        ("SUM(smoker)", Sum(V["smoker"])),
        ("AVG(events.smoker)", Mean(V["smoker"])),
        ("VARIANCE(age)", Variance(V["age"])),
        ("STDDEV_POP(age)", Variance(V["age"])),
        ("MEDIAN(day)", Quantiles(V["day"], (Fraction(1, 2),))),
        ("QUANTILE_CONT(age, 0.25)", Quantiles(V["age"], (Fraction(1, 4),))),
        (
            "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age DESC)",
            Quantiles(V["age"], (Fraction(3, 4),)),
        ),
        ("MIN(age)", Quantiles(V["age"], (Fraction(1, 200),))),
        ("MAX(age)", Quantiles(V["age"], (Fraction(199, 200),))),
        ("QUANTILE_CONT(age, 0)", Quantiles(V["age"], (Fraction(1, 200),))),
        ("QUANTILE_DISC(age, 1)", Quantiles(V["age"], (Fraction(199, 200),))),
        (
            "PERCENTILE_CONT(1) WITHIN GROUP (ORDER BY age DESC)",
            Quantiles(V["age"], (Fraction(1, 200),)),
        ),
        ("QUANTILE_CONT(age, 0.000001)", Quantiles(V["age"], (Fraction(1, 10**6),))),
    ],
)
def test_each_aggregate_is_one_part(ask, text, aggregate):
    assert ask(f"SELECT {text} FROM events").raw.aggregates == (aggregate,)


@pytest.mark.parametrize(
    ("text", "parts", "reads"),
    [
        ("SUM(age), COUNT(age)", [Sum, CountValues], [(0, "VALUE"), (1, "VALUE")]),
        ("SUM(age), AVG(age), COUNT(age)", [Mean], [(0, "SUM"), (0, "VALUE"), (0, "COUNT")]),
        (
            "STDDEV(age), AVG(age), SUM(age), COUNT(age), VAR_POP(age)",
            [Variance],
            [(0, "DEVIATION_OF_SAMPLE"), (0, "MEAN"), (0, "SUM"), (0, "COUNT"), (0, "VARIANCE")],
        ),
        (
            "VAR_SAMP(age), STDDEV_POP(age)",
            [Variance],
            [(0, "VARIANCE_OF_SAMPLE"), (0, "DEVIATION")],
        ),
        ("SUM(amount), AVG(age)", [Sum, Mean], [(0, "VALUE"), (1, "VALUE")]),
        (
            "COUNT(*), AVG(age), COUNT(*)",
            [CountRows, Mean],
            [(0, "VALUE"), (1, "VALUE"), (0, "VALUE")],
        ),
        ("AVG(age + 0), SUM(age)", [Mean], [(0, "VALUE"), (0, "SUM")]),
        ("AVG(age * 2), SUM(2 * events.age)", [Mean], [(0, "VALUE"), (0, "SUM")]),
    ],
)
def test_what_measures_the_same_thing_shares_a_release(ask, text, parts, reads):
    asked = ask(f"SELECT {text} FROM events")
    assert [type(each) for each in asked.raw.aggregates] == parts
    assert [item.expression for item in asked.output.items] == [
        Estimate(index, Statistic[statistic]) for index, statistic in reads
    ]


def test_the_quantiles_of_a_value_share_their_leaves(ask):
    asked = ask(
        "SELECT MAX(age), MEDIAN(age), QUANTILE(age, 0.5), MIN(age), MEDIAN(amount) FROM events"
    )
    levels = (Fraction(1, 200), Fraction(1, 2), Fraction(199, 200))
    assert asked.raw.aggregates == (
        Quantiles(V["age"], levels),
        Quantiles(V["amount"], (Fraction(1, 2),)),
    )
    places = [(item.expression.index, item.expression.place) for item in asked.output.items]
    assert places == [(0, 2), (0, 1), (0, 1), (0, 0), (1, 0)]
    assert len(asked.notes) == 2 and "0.5%" in asked.notes[0]


def test_a_share_that_is_not_taken_is_noticed(ask, monkeypatch):
    text = "SELECT SUM(age), AVG(age), COUNT(age) FROM events"
    assert len(ask(text).raw.aggregates) == 1
    monkeypatch.setattr(aggregates, "_release", lambda value, statistic, others: Sum(value))
    assert ask(text).raw.aggregates != (Mean(V["age"]),)


def test_a_filter_is_a_value_that_is_null_elsewhere(ask):
    raw = ask(
        "SELECT SUM(age) FILTER (WHERE amount > 10), COUNT(*) FILTER (WHERE amount > 10) FROM events"
    ).raw
    total, count = raw.aggregates
    assert total.value.expression == Case(
        ((DEAR, Field(Column("age", EVENTS["age"]))),), Constant(None)
    )
    assert count == CountValues(
        Value(count.value.name, Integer(0, 1), Case(((DEAR, Constant(1)),), Constant(None)))
    )


def test_a_computed_value_has_the_range_of_its_expression(ask):
    (sum_,) = ask("SELECT SUM(age * amount - 1) FROM events").raw.aggregates
    assert (
        sum_.value.type.lower_code * sum_.value.step,
        sum_.value.type.upper_code * sum_.value.step,
    ) == (-1, 3999)


@pytest.mark.parametrize(
    "kind",
    [kind for kind in exp.ALL_FUNCTIONS if issubclass(kind, exp.AggFunc) and kind not in ALLOWED],
    ids=lambda kind: kind.__name__,
)
def test_every_other_aggregate_is_refused(shop, kind):
    with pytest.raises(Refused) as refusal:
        understand(exp.select(kind(this=exp.column("amount"))).from_("events"), shop)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(*, age)", "COUNT(age, amount)", "COUNT(NULL)", "COUNT(DISTINCT *)", "COUNT(DISTINCT user_id, age)", "SUM(*)", "SUM()",
        "COUNT(DISTINCT age + user_id)", "AVG(DISTINCT age)", "SUM(age, amount)", "AVG(age) OVER ()",
        "AVG(AVG(age))", "COUNT(COUNT(*))",
        "SUM(user_id)", "QUANTILE(age)", "MEDIAN(smoker)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, day)", "VARIANCE(day)",
    ],
)  # fmt: skip
def test_an_aggregate_takes_one_value_that_it_can_measure(ask, text):
    with pytest.raises(Refused) as refusal:
        ask(f"SELECT {text} FROM events")
    assert refusal.value.remedy


def test_what_is_missing_is_asked_for_with_its_declaration(ask):
    for name in ("AVG", "MEDIAN", "STDDEV"):
        with pytest.raises(MissingDeclaration) as refusal:
            ask(f"SELECT {name}(product) FROM events")
        assert "sf.Real(lower, upper)" in refusal.value.allowed
        assert "'product': sf.Real(lower, upper)" in refusal.value.remedy


def test_a_sum_of_any_number_of_rows_asks_for_a_limit(ask):
    inner = "(SELECT user_id, SUM(amount) AS total, COUNT(*) AS n FROM events_unbounded GROUP BY user_id) AS per"
    with pytest.raises(MissingDeclaration, match="AVG of total has no bound") as refusal:
        ask(f"SELECT AVG(total) FROM {inner}")
    assert "AVG(LEAST(total, 100))" in refusal.value.remedy
    assert (
        ask(f"SELECT AVG(LEAST(total, 100)) FROM {inner}").raw.aggregates[0].value.type.upper_code
        == 100
    )
    assert ask(f"SELECT COUNT(*) FROM {inner} WHERE n > 3").raw.aggregates == (CountRows(),)


def test_two_columns_that_name_the_unit_are_counted_together(ask):
    assert ask("SELECT COUNT(DISTINCT (who, day)) FROM days").raw.aggregates == (CountUnits(),)
    assert ask("SELECT COUNT(DISTINCT day) FROM days").raw.aggregates[0].value.name == "day"

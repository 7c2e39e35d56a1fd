# SPDX-License-Identifier: Apache-2.0
"""Dates on codes are dates of Python's calendar: by property over centuries."""

import datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Date
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Constant, Field
from sfumato.plan.value_range import span
from sfumato.sql import dates
from sfumato.sql.dates import (
    as_day,
    difference,
    interval,
    last_of_month,
    literal_day,
    part_of,
    shifted,
    trunc,
)
from sfumato.sql.typed import Day, Interval, Number, known, number, text

WIDE = Date("1600-01-01", "2400-12-31")
D, E = (Day(Field(Column(name, WIDE))) for name in "de")
DAYS = st.dates(datetime.date(1600, 1, 1), datetime.date(2400, 12, 31))


def code(day):
    return (day - datetime.date(1970, 1, 1)).days


def at(result, day, other=None):
    row = {"d": code(day), "e": None if other is None else code(other)}
    found = evaluate(result.expression, lambda leaf: row[leaf.column.name])
    low, high = span(result.expression)
    assert found is None or low <= found <= high
    return found


PARTS = {
    "year": lambda d: d.year, "QUARTER": lambda d: (d.month - 1) // 3 + 1, "month": lambda d: d.month, "day": lambda d: d.day,
    "week": lambda d: d.isocalendar().week, "isodow": lambda d: d.isoweekday(), "dow": lambda d: d.isoweekday() % 7,
    "doy": lambda d: d.timetuple().tm_yday, "DayOfMonth": lambda d: d.day, "WeekOfYear": lambda d: d.isocalendar().week,
}  # fmt: skip


@settings(deadline=None)
@given(DAYS, st.sampled_from(sorted(PARTS)))
def test_a_part_is_that_of_the_calendar(day, name):
    assert at(part_of(name, D), day) == PARTS[name](day)
    assert known(part_of(name, Day(Constant(code(day))))) in (PARTS[name](day), None)


@settings(deadline=None)
@given(DAYS, DAYS)
def test_differences_count_days_weeks_and_boundaries(one, other):
    days = (other - one).days
    months = 12 * (other.year - one.year) + other.month - one.month
    assert at(difference("day", D, E), one, other) == days
    assert at(difference("week", D, E), one, other) == int(days / 7)
    assert at(difference("months", D, E), one, other) == months
    assert at(difference("quarter", D, E), one, other) == (
        other.year * 4 + (other.month - 1) // 3
    ) - (one.year * 4 + (one.month - 1) // 3)
    assert at(difference("year", D, E), one, other) == other.year - one.year


@settings(deadline=None)
@given(DAYS, st.integers(-30_000, 30_000))
def test_days_are_added_and_taken_away(day, count):
    assert at(shifted(D, number(count), 1), day) == code(day) + count
    assert at(shifted(D, Interval(count, 0), -1), day) == code(day) - count


@given(DAYS)
def test_the_last_of_a_month_is_before_the_first_of_the_next(day):
    last = datetime.date(1970, 1, 1) + datetime.timedelta(days=at(last_of_month(D), day))
    assert (last.year, last.month) == (day.year, day.month)
    assert (last + datetime.timedelta(days=1)).day == 1


@given(DAYS, st.sampled_from(["year", "quarter", "month", "week", "day"]))
def test_a_truncation_begins_the_period(day, name):
    begins = at(trunc(name, D), day)
    parts = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}
    assert 0 <= code(day) - begins < parts[name]
    first = datetime.date(1970, 1, 1) + datetime.timedelta(days=begins)
    if name == "week":
        assert first.isoweekday() == 1
    elif name != "day":
        assert first.day == 1 and (
            name == "month" or first.month in (1, *([4, 7, 10] if name == "quarter" else []))
        )


@pytest.mark.parametrize(
    ("day", "months", "reached"),
    [
        ("2024-01-31", 1, "2024-02-29"),
        ("2024-02-29", 12, "2025-02-28"),
        ("2024-12-15", -12, "2023-12-15"),
        ("2024-01-10", -1, "2023-12-10"),
        ("9999-11-30", 1, "9999-12-30"),
    ],
)
def test_months_are_added_to_constants_alone(day, months, reached):
    assert known(shifted(literal_day(day), Interval(0, months), 1)) == reached
    with pytest.raises(UnsupportedSql, match="not all of one length") as refusal:
        shifted(D, Interval(0, months), 1)
    assert "DATE_TRUNC" in refusal.value.remedy


def test_no_day_leaves_the_calendar():
    for length in (number(10**7), Interval(-(10**6), 0)):
        with pytest.raises(UnsupportedSql, match="beyond the years 1 to 9999"):
            shifted(D, length, 1)
    for day, months in (("0001-01-31", -1), ("9999-12-01", 1)):
        with pytest.raises(UnsupportedSql, match="beyond the years"):
            shifted(literal_day(day), Interval(0, months), 1)


@pytest.mark.parametrize(
    ("amount", "unit", "length"),
    [
        (3, "DAY", (3, 0)),
        (-2, "weeks", (-14, 0)),
        (1, "Month", (0, 1)),
        (2, "QUARTERS", (0, 6)),
        (10, "YEARS", (0, 120)),
    ],
)
def test_an_interval_is_whole_days_or_months(amount, unit, length):
    assert interval(Fraction(amount), unit) == Interval(*length)


@pytest.mark.parametrize(
    ("amount", "unit"), [(1, "CENTURY"), (Fraction(1, 2), "DAY"), (10**7, "DAY"), (1, "")]
)
def test_another_interval_is_refused(amount, unit):
    with pytest.raises(UnsupportedSql, match="INTERVAL"):
        interval(Fraction(amount), unit)


def test_a_text_is_a_day_if_it_is_written_as_one():
    assert as_day(text("2019-12-31")) == literal_day("2019-12-31")
    assert as_day(text("now")) is None and as_day(number(3)) is None
    for written in ("2019-13-01", "2019-02-29", "now", ""):
        with pytest.raises(UnsupportedSql, match="DATE 'YYYY-MM-DD'"):
            literal_day(written)


@pytest.mark.parametrize("name", ["hour", "epoch", "", "century"])
def test_an_unknown_part_lists_the_known_ones(name):
    for refused in (
        lambda: part_of(name, D),
        lambda: trunc(name, D),
        lambda: difference(name, D, E),
    ):
        with pytest.raises(UnsupportedSql) as refusal:
            refused()
        assert "week" in refusal.value.allowed.lower()


def test_a_day_off_by_one_is_noticed(monkeypatch):
    monkeypatch.setattr(dates, "plus", lambda expression, amount: expression)
    assert at(shifted(D, number(1), 1), datetime.date(2000, 1, 1)) != code(
        datetime.date(2000, 1, 2)
    )


def test_a_number_of_days_must_be_whole():
    with pytest.raises(UnsupportedSql, match="not whole"):
        shifted(D, Number(Field(Column("d", WIDE)), Fraction(1, 2)), 1)

# SPDX-License-Identifier: Apache-2.0
"""Parts, dates and differences of timestamps are those of ``zoneinfo``, at every change of clocks."""

import datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import UnsupportedSql
from sfumato.metadata import Column, Timestamp
from sfumato.metadata.zones import DAY
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import Comparison
from sfumato.plan.value_range import span
from sfumato.sql import timestamps
from sfumato.sql.compare import compare
from sfumato.sql.timestamps import (
    added,
    as_instant,
    difference,
    instants,
    local_day,
    part_of,
    trunc,
    written,
)
from sfumato.sql.typed import Day, Instant, Interval, number, read, text
from tests.contracts.effort import examples
from tests.contracts.zones import FIRST, LAST, NAIVE, ZONES, around, shown

SECOND = datetime.timedelta(seconds=1)
HOUR = 3600


def column(zone, step=1, name="t"):
    return Column(
        name, Timestamp("1970-01-01 00:00Z", "2037-12-31 23:59:59Z", zone=zone, step=step)
    )


def at(expression, code, other=None):
    return evaluate(expression, lambda leaf: other if leaf.column.name == "u" else code)


def agree(zone, step=1, every=1):
    """Every part of every moment around a change of clocks, by ``datetime`` of ``zoneinfo``."""
    moment = read(column(zone, step))
    hour, minute, second = (
        part_of(name, moment).expression for name in ("hour", "MINUTE", "Second")
    )
    day = local_day(moment).expression
    hours, minutes = trunc("hour", moment), trunc("minute", moment)
    month, week = trunc("month", moment), trunc("WEEK", moment)
    assert {type(hours), type(minutes)} == {Instant} and {type(month), type(week)} == {Day}
    assert span(hour) == (0, 23)
    first, last = (shown(zone, each // step * step) for each in (FIRST, LAST - 1))
    low, high = (each.toordinal() - NAIVE.toordinal() for each in (first, last))
    assert span(day)[0] in (low, low - 1) and span(day)[1] in (high, high + 1)
    for each in around(zone)[::every]:
        code = each // step
        clock = shown(zone, code * step)
        assert at(hour, code) == clock.hour
        assert at(minute, code) == clock.minute
        assert at(second, code) == clock.second
        date = clock.date().toordinal() - NAIVE.toordinal()
        assert at(day, code) == date
        local = (clock - NAIVE) // SECOND
        assert at(hours.expression, code) * hours.step == local - local % HOUR
        assert at(minutes.expression, code) * minutes.step == local - local % 60
        assert at(month.expression, code) == date - clock.day + 1
        assert at(week.expression, code) == date - clock.weekday()


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_follow_the_offsets_of_the_zone(zone):
    agree(zone, every=5)


@pytest.mark.parametrize(
    ("zone", "step"),
    [
        ("Europe/London", 60),
        ("Europe/London", 1200),
        ("Europe/London", 3600),
        ("Australia/Lord_Howe", 60),
        ("Australia/Lord_Howe", 1800),
        ("Asia/Kathmandu", 60),
        ("Asia/Kathmandu", 900),
        ("UTC", 7000),
        ("UTC", 86_400),
    ],
)
def test_a_step_moves_no_part_of_what_is_on_it(zone, step):
    agree(zone, step, every=7)


def without_changes(zone, low, high):
    return ((low, 0),)


def test_a_zone_without_its_changes_is_noticed(monkeypatch):
    monkeypatch.setattr(timestamps, "changes", without_changes)
    with pytest.raises(AssertionError):
        agree("Europe/London")


def test_null_has_no_part():
    moment = read(column("Europe/London"))
    for expression in (
        part_of("hour", moment).expression,
        local_day(moment).expression,
        trunc("hour", moment).expression,
        trunc("year", moment).expression,
        added(moment, Interval(0, 0, 5), 1).expression,
    ):
        assert at(expression, None) is None


@given(
    st.sampled_from(ZONES),
    st.integers(FIRST + 2 * DAY, LAST - 2 * DAY),
    st.integers(FIRST + 2 * DAY, LAST - 2 * DAY),
)
def test_differences_are_elapsed_seconds_and_dates(zone, one, other):
    start = read(column(zone))
    end = read(Column("u", Timestamp("1970-01-01", "2038-01-01", zone="Asia/Tokyo", step=60)))
    code = other // 60
    elapsed = code * 60 - one
    found = added(end, start, -1)
    assert at(found.expression, one, code) * found.step == elapsed
    assert at(difference("seconds", start, end).expression, one, code) == elapsed
    for name, size in (("minute", 60), ("hour", HOUR)):
        wanted = abs(elapsed) // size * (1 if elapsed > 0 else -1)
        assert at(difference(name, start, end).expression, one, code) == wanted
    days = (shown("Asia/Tokyo", code * 60).date() - shown(zone, one).date()).days
    assert at(difference("day", start, end).expression, one, code) == days


@settings(deadline=None, max_examples=examples(0.5))
@given(st.sampled_from(ZONES), st.integers(FIRST + DAY, LAST - DAY), st.integers(-(10**6), 10**6))
def test_an_interval_moves_a_moment_by_its_seconds(zone, second, seconds):
    moment = read(column(zone, step=60))
    code = second // 60
    for sign in (1, -1):
        later = added(moment, Interval(0, 0, seconds), sign)
        assert at(later.expression, code) * later.step == code * 60 + sign * seconds
        hour = part_of("hour", later).expression
        assert at(hour, code) == shown(zone, code * 60 + sign * seconds).hour
    assert added(Interval(0, 0, seconds), moment, 1) == added(moment, Interval(0, 0, seconds), 1)


def test_a_day_is_added_where_every_day_has_24_hours():
    for zone in ("UTC", "Asia/Kolkata"):
        moment = read(column(zone))
        assert added(moment, Interval(-2, 0), 1) == added(moment, Interval(0, 0, 2 * DAY), -1)
    with pytest.raises(UnsupportedSql, match="not all of one length") as refusal:
        added(read(column("Europe/London")), Interval(1, 0), 1)
    assert "24 HOUR" in refusal.value.remedy
    with pytest.raises(UnsupportedSql, match="not all of one length"):
        added(read(column("UTC")), Interval(0, 1), 1)


COMPARED = [
    ("2020-06-01 12:00:00", "2020-06-01 11:00:00"),
    ("2020-06-01 12:00:00Z", "2020-06-01 12:00:00"),
    ("2020-06-01T12:00+05:30", "2020-06-01 06:30:00"),
    ("2020-10-25 01:30:00", "2020-10-25 00:30:00"),
    ("2020-06-01", "2020-05-31 23:00:00"),
]


@pytest.mark.parametrize(("constant", "utc"), COMPARED)
@pytest.mark.parametrize("step", [1, 60, 3600])
def test_a_constant_is_compared_as_the_moment_that_it_is(constant, utc, step):
    second = (datetime.datetime.fromisoformat(utc) - NAIVE) // SECOND
    moment = read(column("Europe/London", step))
    for op in Comparison:
        test = compare(op, moment, written(constant))
        mirrored = compare(op, text(constant), moment)
        for code in range(second // step - 2, second // step + 3):
            exact = code * step
            truths = {
                "=": exact == second,
                "<>": exact != second,
                "<": exact < second,
                "<=": exact <= second,
                ">": exact > second,
                ">=": exact >= second,
            }
            assert evaluate(test, lambda leaf, code=code: code) is truths[op.value]
            mirror = op.value.translate(str.maketrans("<>", "><")) if op.value != "<>" else "<>"
            assert evaluate(mirrored, lambda leaf, code=code: code) is truths[mirror]


@pytest.mark.parametrize("constant", ["2020-03-29 01:00:00", "2020-03-29 01:59:59.5"])
def test_a_constant_that_clocks_leave_out_is_refused(constant):
    with pytest.raises(UnsupportedSql, match="leave out"):
        as_instant(text(constant), "Europe/London")


@pytest.mark.parametrize(
    "constant",
    ["yesterday", "2020-02-30", "2020-02-30 10:00", "01/02/2020", "2020-01-01 25:00", ""],
)
def test_a_constant_that_is_no_timestamp_is_refused(constant):
    with pytest.raises(UnsupportedSql, match="not written"):
        written(constant)
    with pytest.raises(UnsupportedSql, match="not written"):
        as_instant(text(constant), "UTC")


def test_a_constant_far_away_is_refused():
    for constant in ("1799-12-31 23:59:59", "9999-12-31 00:00", "0001-01-01 00:00:00Z"):
        with pytest.raises(UnsupportedSql, match="1800 to 2299"):
            as_instant(text(constant), "Europe/London")
    # a date may be the answer of a sub-query: no date is refused
    for date in (
        "0001-01-01",
        "1799-12-31",
        "1800-01-01",
        "2299-12-31",
        "2300-01-01",
        "9999-12-31",
    ):
        found = as_instant(text(date), "Asia/Tokyo").expression.value
        midnight = (datetime.date.fromisoformat(date).toordinal() - NAIVE.toordinal()) * DAY
        assert abs(found - midnight) < DAY


def test_no_moment_leaves_the_years_of_its_zone():
    moment = read(Column("t", Timestamp("1801-01-01", "2298-12-31", zone="Europe/London")))
    for seconds in (10**9, -(10**9)):
        with pytest.raises(UnsupportedSql, match="1800 to 2299"):
            added(moment, Interval(0, 0, seconds), 1)


def test_a_day_that_begins_late_begins_at_the_change():
    # on 2018-11-04 clocks of Sao Paulo went from 23:59:59 to 01:00
    found = as_instant(text("2018-11-04"), "America/Sao_Paulo")
    assert str(shown("America/Sao_Paulo", found.expression.value)) == "2018-11-04 01:00:00"


def test_local_times_and_moments_do_not_meet():
    moment = read(column("Europe/London"))
    hour = trunc("hour", moment)
    with pytest.raises(UnsupportedSql, match="local time"):
        compare(Comparison.LT, hour, moment)
    with pytest.raises(UnsupportedSql, match="local time"):
        added(moment, hour, -1)
    with pytest.raises(UnsupportedSql, match="local time"):
        part_of("epoch", hour)
    with pytest.raises(UnsupportedSql, match="local time"):
        as_instant(text("2020-01-01 10:00Z"), "")
    test = compare(Comparison.EQ, hour, text("2020-06-01 12:00:00"))
    second = (datetime.datetime(2020, 6, 1, 11, 59, 59) - NAIVE) // SECOND  # noqa: DTZ001
    assert evaluate(test, lambda leaf: second) is True
    assert evaluate(test, lambda leaf: second + 1) is False


def test_the_seconds_since_1970_are_the_code():
    epoch = part_of("epoch", read(column("Europe/London", step=60)))
    assert epoch.step == Fraction(60) and at(epoch.expression, 7) == 7
    assert part_of("year", read(column("UTC"))) is None


def test_values_beside_timestamps_are_constants_or_timestamps():
    london, tokyo = read(column("Europe/London")), read(column("Asia/Tokyo", name="u"))
    found = instants([text("2020-06-01 12:00"), london, tokyo])
    assert [each.zone for each in found] == ["Europe/London", "Europe/London", "Asia/Tokyo"]
    assert instants([london, number(3)]) is None and instants([text("2020-06-01")]) is None
    with pytest.raises(UnsupportedSql, match="something else than an INTERVAL"):
        added(london, number(3), 1)
    with pytest.raises(UnsupportedSql, match="something else than an INTERVAL"):
        added(Interval(0, 0, 5), london, -1)

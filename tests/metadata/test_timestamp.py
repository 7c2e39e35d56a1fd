# SPDX-License-Identifier: Apache-2.0
"""A timestamp is a moment of its zone, rounded down to its step, between its bounds."""

import datetime
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.metadata import Timestamp
from sfumato.metadata.timestamp import local_time, parsed_moment
from tests.contracts.zones import FIRST, LAST, NAIVE, ZONES, first_shown, offset, shown

SECOND = datetime.timedelta(seconds=1)


@cache
def whole(zone: str) -> Timestamp:
    """Every moment of a zone; its table of offsets takes a tenth of a second."""
    return Timestamp("1970-01-02", "2037-12-30", zone=zone)


@given(st.sampled_from(ZONES), st.integers(FIRST + 200_000, LAST - 400_000))
def test_a_value_without_an_offset_is_local_time_of_the_zone(zone, second):
    kind = whole(zone)
    clock = shown(zone, second)
    local = (clock - NAIVE) // SECOND
    assert kind.code_of_text(str(clock)) == first_shown(zone, local)
    assert kind.code_of_local(*local_time(clock)) == first_shown(zone, local)
    known = clock.replace(tzinfo=datetime.timezone(SECOND * offset(zone, second)))
    assert kind.code_of_local(*local_time(known)) == second
    assert kind.decode(second) == known
    if offset(zone, second) % 60 == 0:
        assert kind.code_of_text(str(known)) == kind.code_of_text(known.isoformat()) == second


@given(st.integers(1, 86_400), st.integers(-(10**9), 10**9), st.integers(86_400, 10**9))
def test_moments_are_rounded_down_to_the_step_and_clipped_to_the_bounds(step, low, length):
    lower, upper = NAIVE + low * SECOND, NAIVE + (low + length + step) * SECOND
    kind = Timestamp(lower, upper, step=step)
    assert (kind.lower_code, kind.upper_code) == (low // step, (low + length + step) // step)
    for second in (low - 5, low, low + length // 2, low + length + step, low + length + 2 * step):
        code = kind.code_of_local(second, 0)
        assert code == min(max(second // step, kind.lower_code), kind.upper_code)
        assert kind.code_of_text(str(NAIVE + second * SECOND)) == code


@given(st.sampled_from(ZONES), st.integers(FIRST, LAST - 9), st.integers(2, 10**8))
def test_a_declaration_shows_how_it_is_written(zone, second, length):
    lower = (NAIVE + second * SECOND).replace(tzinfo=datetime.UTC)
    for step in (1, 2):
        kind = Timestamp(lower, lower + length * 2 * SECOND, zone=zone, step=step, missing="N")
        assert eval(repr(kind)) == kind


WRITTEN = {
    "1970-01-01 00:00": (0, None),
    "1970-01-01T00:00Z": (0, 0),
    "1969-12-31 23:59:59.999999999": (-1, None),
    "1970-01-02 01:02:03+05:30": (90_123, 19_800),
    "1970-01-02 01:02:03.5-0330": (90_123, -12_600),
    "1970-01-02T01:02+01": (90_120, 3600),
    "0001-01-01 00:00:00": (-62_135_596_800, None),
    "1970-01-02": (86_400, None),
}
UNWRITTEN = (
    "1970-1-1",
    "1970-02-30",
    "1970-01-01Z",
    "1970-01-01 ",
    "1970-01-01T",
    "1970-1-1 00:00",
    "1970-02-30 00:00",
    "0000-01-01 00:00",
    "10000-01-01 00:00",
    "1970-01-01 24:00",
    "1970-01-01 23:60",
    "1970-01-01 23:59:60",
    "1970-01-01 23",
    "1970-01-01 23:59:5",
    "1970-01-01 23:59:59.",
    "1970-01-01 23:59:59.1234567890",
    "1970-01-01 23:59+24:00",
    "1970-01-01 23:59+1:00",
    "1970-01-01 23:59 Z",
    "1970-01-01 23:59z",
    "1970-01-01  23:59",
    " 1970-01-01 23:59",
    "1970-01-01 23:59\n",
    "01/02/1970 10:00",
    "1970-01-01 10:00 PM",
    "1970-01-01t10:00",
    "١٩٧٠-01-01 10:00",
    "",
    "now",
    "0",
)


@pytest.mark.parametrize("text", WRITTEN)
def test_a_string_is_read_as_iso_8601(text):
    assert parsed_moment(text) == WRITTEN[text]


@pytest.mark.parametrize("text", UNWRITTEN)
def test_any_other_string_is_missing(text):
    assert parsed_moment(text) is None
    assert whole("UTC").code_of_text(text) is None


def test_an_hour_that_happens_twice_is_the_first_and_one_left_out_is_missing():
    london = whole("Europe/London")
    for text, utc in (
        ("2020-10-25 01:30", "2020-10-25 00:30Z"),
        ("2020-10-25 02:00", "2020-10-25 02:00Z"),
        ("2020-03-29 00:59:59", "2020-03-29 00:59:59Z"),
        ("2020-03-29 02:00", "2020-03-29 01:00Z"),
    ):
        assert london.code_of_text(text) == london.code_of_text(utc)
    assert london.code_of_text("2020-03-29 01:00") is None
    assert london.code_of_text("2020-03-29 01:59:59") is None


def test_a_date_is_its_first_second_below_and_its_last_above():
    day = datetime.date(2020, 3, 29)
    kind = Timestamp(day, "2020-03-29", zone="Europe/London")
    assert kind == Timestamp("2020-03-29 00:00", "2020-03-29 23:59:59", zone="Europe/London")
    assert kind.size == 23 * 3600
    assert repr(kind) == (
        "Timestamp('2020-03-29 00:00:00', '2020-03-29 23:59:59', zone='Europe/London')"
    )


def test_local_time_in_no_zone_has_no_offset():
    kind = Timestamp.of_codes(-1, 3, step=3600, zone="")
    assert str(kind.decode(-1)) == "1969-12-31 23:00:00" and kind.step == Fraction(3600)
    assert kind.changes == ((-3600, 0),)


@pytest.mark.parametrize(
    "bounds",
    [
        ("2020-01-02", "2020-01-01"),
        ("2020-01-01 00:00", "2020-01-01 00:00"),
        ("now", "2020-01-01"),
        ("1799-12-31", "2020-01-01"),
        ("2020-01-01", "2300-01-01"),
        ("0001-01-01", "9999-12-31"),
        (0, 1),
        (None, None),
        ("2020-03-29 01:30", "2020-12-31"),
        (datetime.time(), datetime.time()),
        (float("nan"), 1e400),
    ],
    ids=repr,
)
def test_bounds_that_are_no_moments_in_order_are_refused(bounds):
    with pytest.raises(InvalidDeclaration, match="Timestamp"):
        Timestamp(*bounds, zone="Europe/London")


@pytest.mark.parametrize("step", [0, -1, "0.5", 86_401, 1.5])
def test_a_step_that_is_no_number_of_seconds_is_refused(step):
    with pytest.raises(InvalidDeclaration, match="step"):
        Timestamp("2020-01-01", "2020-12-31", step=step)


@pytest.mark.parametrize("step", [float("nan"), "wide", True])
def test_a_step_that_is_no_number_is_refused(step):
    with pytest.raises(InvalidNumber, match="step"):
        Timestamp("2020-01-01", "2020-12-31", step=step)


@pytest.mark.parametrize(
    ("zone", "step", "fitting"),
    [
        ("America/New_York", 86400, 3600),
        ("Asia/Shanghai", 86400, 28800),
        ("Asia/Kolkata", 3600, 1800),
        ("UTC", 86400, None),
        ("Asia/Kolkata", 900, None),
        ("America/New_York", 3600, None),
    ],
)
def test_a_step_must_begin_at_the_midnight_of_its_zone(zone, step, fitting):
    ends = "2020-01-01", "2020-12-31"
    if fitting is not None:
        with pytest.raises(InvalidDeclaration, match=rf"step={fitting}, ") as refusal:
            Timestamp(*ends, zone=zone, step=step)
        assert zone in str(refusal.value)
    kind = Timestamp(*ends, zone=zone, step=fitting or step)
    code = kind.code_of_text("2020-07-01")
    assert code is not None
    assert kind.decode(code).isoformat().startswith("2020-07-01T00:00:00")


def test_a_step_of_a_minute_may_be_shifted_by_the_seconds_of_an_old_zone():
    # the clocks of Amsterdam were 19 minutes and 32 seconds from UTC
    assert Timestamp("1930-01-01", "1930-12-31", zone="Europe/Amsterdam", step=60).step == 60


def test_bounds_on_one_step_and_unknown_zones_are_refused():
    with pytest.raises(InvalidDeclaration, match="on one step"):
        Timestamp("2020-01-01 00:00", "2020-01-01 00:59", step=3600)
    with pytest.raises(InvalidDeclaration, match="no time zone"):
        Timestamp("2020-01-01", "2020-12-31", zone="Europe/Atlantis")
    with pytest.raises(InvalidDeclaration, match="no time zone"):
        Timestamp("2020-01-01", "2020-12-31", zone="")

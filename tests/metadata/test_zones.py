# SPDX-License-Identifier: Apache-2.0
"""The table of a zone says what ``zoneinfo`` says, at every change of clocks from 1970 to 2037."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.metadata import zones
from sfumato.metadata.zones import (
    changes,
    first_second,
    local_periods,
    offset_at,
    second_in,
    second_of,
)
from tests.contracts.zones import FIRST, LAST, ZONES, around, first_shown, offset, shown, turns


def table(zone):
    return changes(zone, FIRST, LAST)


@pytest.mark.parametrize("zone", ZONES)
def test_the_table_has_every_change_of_clocks(zone):
    assert tuple(start for start, _ in table(zone)[1:]) == turns(zone)
    assert table(zone)[0] == (FIRST, offset(zone, FIRST))
    for second in around(zone)[::3]:
        assert offset_at(table(zone), second) == offset(zone, second)


@pytest.mark.parametrize("zone", ZONES)
def test_a_local_time_is_the_first_moment_at_which_clocks_show_it(zone):
    assert list(local_periods(table(zone))) == sorted(local_periods(table(zone)))
    seen = set()
    for second in around(zone)[1:-1]:
        local = second + offset(zone, second)
        wanted = first_shown(zone, local)
        seen.add((wanted == second, wanted is None))
        assert second_of(table(zone), local) == wanted
        # what clocks leave out lies just before what they show after it
        earlier = first_shown(zone, local - 3600)
        assert second_of(table(zone), local - 3600) == earlier
        seen.add((False, earlier is None))
    if len(table(zone)) > 20:
        assert seen == {(True, False), (False, False), (False, True)}


def test_the_second_showing_taken_for_the_first_is_noticed(monkeypatch):
    def later(periods):
        first, before = periods[0]
        found = [(first + before, before)]
        for start, after in periods[1:]:
            found.append((start + min(before, after), after))
            before = after
        return tuple(found)

    monkeypatch.setattr(zones, "local_periods", later)
    with pytest.raises(AssertionError):
        test_a_local_time_is_the_first_moment_at_which_clocks_show_it("Europe/London")


@given(st.sampled_from(ZONES), st.integers(FIRST, LAST - 1), st.integers(0, 10**9))
def test_a_table_of_a_shorter_time_says_the_same(zone, second, length):
    short = changes(zone, second, second + length % (50 * zones.DAY))
    assert offset_at(short, second) == offset(zone, second)
    last = second + length % (50 * zones.DAY)
    assert offset_at(short, last) == offset(zone, last)


@given(st.sampled_from(ZONES), st.integers(FIRST, LAST - 1))
def test_a_local_time_alone_is_found_without_the_table(zone, second):
    local = second + offset(zone, second)
    assert second_in(zone, local, None) == first_shown(zone, local)
    assert second_in(zone, local, offset(zone, second)) == second


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia"])
def test_a_day_whose_midnight_is_left_out_begins_at_the_change(zone):
    for turn in turns(zone):
        before, after = offset(zone, turn - 1), offset(zone, turn)
        midnight = (turn + before + zones.DAY - 1) // zones.DAY * zones.DAY
        if midnight < turn + after:
            assert first_second(zone, midnight) == turn
            assert shown(zone, turn).date() > shown(zone, turn - 1).date()
        noon = midnight + 43_200
        # of a day that is left out the whole day
        assert first_second(zone, noon) == (first_shown(zone, noon) or turn)


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Base",
        "",
        "../etc/passwd",
        "/etc/passwd",
        "Europe",
        "Europe/London ",
        None,
        5,
        b"UTC",
        "a\0b",
    ],
)
def test_a_zone_that_is_none_is_refused(name):
    with pytest.raises(InvalidDeclaration, match="no time zone") as refusal:
        changes(name, 0, 10)
    assert "Europe/London" in refusal.value.allowed

# SPDX-License-Identifier: Apache-2.0
"""Moments around every change of clocks from 1970 to 2037, and what ``zoneinfo`` says of them."""

import datetime
from functools import cache
from zoneinfo import ZoneInfo

# half an hour, two changes around Ramadan, negative summer time, a day left out, at midnight
ZONES = (
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Pacific/Apia",
    "Pacific/Chatham",
    "America/Noronha",
    "UTC",
)
FIRST, LAST = 0, 2_145_916_800
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NAIVE = EPOCH.replace(tzinfo=None)


def offset(zone: str, second: int) -> int:
    """The offset from UTC at a second, by ``zoneinfo``."""
    moment = datetime.datetime.fromtimestamp(second, ZoneInfo(zone))
    return round(moment.utcoffset().total_seconds())


def shown(zone: str, second: int) -> datetime.datetime:
    """What clocks show at a second, by ``zoneinfo``."""
    moment = EPOCH + datetime.timedelta(seconds=second)
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def first_shown(zone: str, local: int) -> int | None:
    """The second at which clocks first show a local time, by ``zoneinfo``; None if never."""
    clock = NAIVE + datetime.timedelta(seconds=local)
    for fold in (0, 1):
        moment = clock.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(datetime.UTC)
        second = round((moment - EPOCH).total_seconds())
        if shown(zone, second) == clock:
            return second
    return None


@cache
def turns(zone: str) -> tuple[int, ...]:
    """Every second from 1970 to 2037 at which the offset changes, found in steps of six hours."""
    found = []
    before = offset(zone, FIRST)
    for low in range(FIRST, LAST, 21_600):
        high = low + 21_600
        after = offset(zone, high)
        if after != before:
            while high - low > 1:
                middle = (low + high) // 2
                if offset(zone, middle) == before:
                    low = middle
                else:
                    high = middle
            found.append(high)
        before = after
    return tuple(found)


@cache
def around(zone: str) -> tuple[int, ...]:
    """Seconds before, at and after every change, and some between: also local times around them."""
    seconds = {FIRST, LAST - 1, *range(FIRST, LAST, 40_000_003)}
    for turn in turns(zone):
        for shift in (-7200, -3601, -1801, -1800, -1, 0, 1, 1799, 1800, 3599, 3600, 7200):
            seconds.add(turn + shift)
    return tuple(sorted(second for second in seconds if FIRST <= second < LAST))

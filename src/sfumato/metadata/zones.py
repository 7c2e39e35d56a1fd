# SPDX-License-Identifier: Apache-2.0
"""The offset of a time zone from UTC, as a table of constants. Proof: zones.proof.md.

Offsets are taken from Python's ``zoneinfo`` when a column is declared. An engine gets them as
constants and never uses time zone data of its own, so every engine computes the same integers.
"""

import datetime
import zoneinfo
from bisect import bisect_right
from functools import lru_cache
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, shown

# Ascending: from each second (since 1970-01-01T00:00:00Z) on, the offset in seconds.
Changes: TypeAlias = tuple[tuple[int, int], ...]
# Ascending: from each second of local time on, the offset; None: this local time never happens.
Periods: TypeAlias = tuple[tuple[int, int | None], ...]

DAY = 86_400
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@lru_cache(maxsize=256)
def changes(zone: str, low: int, high: int) -> Changes:
    """Returns the UTC offsets of a time zone between the times ``low`` and ``high``, which are in
    seconds since 1970 (UTC).

    Each entry has the second from which an offset holds; the first one is at ``low``. An offset
    that lasts for less than a day may be left out.

    Raises:
        InvalidDeclaration: there is no such zone.

    >>> changes("Europe/London", 1_584_000_000, 1_586_000_000)
    ((1584000000, 0), (1585443600, 3600))
    """
    info = _zone(zone)
    changes = [(low, _offset(info, low))]
    for start in range(low, high, DAY):
        end = min(start + DAY, high)
        offset = _offset(info, end)
        if offset != changes[-1][1]:
            changes.append((_change(info, start, end), offset))
    return tuple(changes)


def _change(
    zone: zoneinfo.ZoneInfo,
    start: int,
    end: int,
) -> int:
    """Returns the first second from which on the offset at ``end`` holds."""
    offset = _offset(zone, end)
    while end - start > 1:
        middle = (start + end) // 2
        if _offset(zone, middle) == offset:
            end = middle
        else:
            start = middle
    return end


def _offset(zone: zoneinfo.ZoneInfo, second: int) -> int:
    moment = _START + datetime.timedelta(seconds=second)
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None, "a zone has an offset at every moment"
    return round(offset.total_seconds())


def _zone(name: object) -> zoneinfo.ZoneInfo:
    """Looks a zone up by its name."""
    zone = None
    if isinstance(name, str) and name:
        try:
            zone = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            zone = None
    if zone is None:
        raise InvalidDeclaration(
            f"zone={shown(name)}, which is no time zone of this machine.",
            allowed="a name of the IANA list: 'UTC', 'Europe/London', 'Asia/Kolkata'",
            remedy="If no name but UTC is known: pip install tzdata.",
        )
    return zone


def offset_at(table: Changes, second: int) -> int:
    """Returns the offset from UTC at a second; before the first entry, that of the first entry.

    >>> offset_at(((0, 0), (10, 3600)), 9), offset_at(((0, 0), (10, 3600)), 10)
    (0, 3600)
    """
    place = bisect_right(table, second, key=_start_of) - 1
    return table[max(place, 0)][1]


def _start_of(entry: tuple[int, int | None]) -> int:
    return entry[0]


@lru_cache(maxsize=256)
def local_periods(table: Changes) -> Periods:
    """Returns the UTC offset in force at each local time of a zone, as a list of (start, offset);
    the offset is None where clocks are set forward, so that no clock shows the time.

    Where clocks are set back, a local time happens twice, and has the offset of the first.

    Guarantees:
        a local time is the first moment at which clocks show it

    >>> local_periods(((0, 0), (10_000, 3600), (90_000, 0)))
    ((0, 0), (10000, None), (13600, 3600), (93600, 0))
    """
    first, offset = table[0]
    periods: list[tuple[int, int | None]] = [(first + offset, offset)]
    for start, later in table[1:]:
        periods.append((start + offset, None if later > offset else later))
        if later > offset:
            periods.append((start + later, later))
        offset = later
    return tuple(periods)


def second_of(table: Changes, local: int) -> int | None:
    """Returns the second since 1970 (UTC) at which clocks first show a local time; None if they
    skip it.

    >>> second_of(((0, 0), (10_000, 3600)), 9_999), second_of(((0, 0), (10_000, 3600)), 10_001)
    (9999, None)
    """
    periods = local_periods(table)
    place = bisect_right(periods, local, key=_start_of) - 1
    offset = periods[max(place, 0)][1]
    return None if offset is None else local - offset


def second_in(
    zone: str,
    local: int,
    offset: int | None,
) -> int | None:
    """Returns the second since 1970 (UTC) of a local time in a zone.

    ``offset`` is its distance from UTC; without it, the first second at which clocks show the time.

    Raises:
        InvalidDeclaration: there is no such zone.

    >>> second_in("Asia/Kolkata", 19_800, None), second_in("Asia/Kolkata", 19_800, 0)
    (0, 19800)
    """
    around = changes(zone, local - 2 * DAY, local + 2 * DAY)
    return second_of(around, local) if offset is None else local - offset


def first_second(zone: str, local: int) -> int:
    """Returns the first second (UTC, since 1970) at which clocks of a zone show a local time or a
    later one.

    >>> first_second("America/Sao_Paulo", 1_541_289_600) - 1_541_289_600
    10800
    """
    periods = local_periods(changes(zone, local - 2 * DAY, local + 2 * DAY))
    place = max(bisect_right(periods, local, key=_start_of) - 1, 0)
    offset = periods[place][1]
    if offset is not None:
        return local - offset
    start, later = periods[place + 1]
    assert later is not None, "one change of clocks at a time"
    return start - later

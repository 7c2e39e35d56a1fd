# SPDX-License-Identifier: Apache-2.0
"""SQL trees that read timestamps: stored values as seconds, zones by their tables of offsets.

``value_sql`` uses it for columns of type ``Timestamp``. No value can make a statement fail, and no
engine uses time zone data of its own. Proof: moment_sql.proof.md.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from sfumato.engines import sql_tree as sql
from sfumato.metadata.moment_format import has_seconds, moment_order, moment_pattern
from sfumato.metadata.timestamp import MOMENT_PATTERN, Timestamp
from sfumato.metadata.zones import DAY, Periods, local_periods

_FIRST_DAY, _LAST_DAY = sql.Day("0001-01-01"), sql.Day("9999-12-31")
_ZERO_DAY = sql.Day("1970-01-01")
# Twice the seconds of a moment beyond the years 1 to 9999, to either side.
_FAR = 2**42

# The result of one period of local time: the seconds of the value, as clocks of the zone show them.
_Result: TypeAlias = Callable[[sql.Expression], sql.Expression]
_Branch: TypeAlias = tuple[sql.Expression, sql.Expression]


def moment_reading(
    raw: sql.Expression,
    family: str,
    *,
    physical: str = "",
    form: str | None = None,
) -> sql.Expression:
    """Returns the SQL that reads a stored timestamp as one integer: 2 s for local time, 2 s + 1 for
    UTC.

    Here s is the number of seconds since 1970, rounded down; a value without an offset is local
    time, and a date its midnight. ``physical``: the stored type, of which dates and nanoseconds are
    read otherwise; ``form``: the declared format of strings.

    Guarantees:
        no timestamp can make a reading fail
    """
    if family == "text" and form is not None:
        return _of_format(raw, form)
    if family == "text":
        return _of_text(raw)
    known = int(family == "instant")
    day = sql.TryCast(raw, sql.SqlType.DATE)
    # infinity has a day, but no seconds
    far = (
        (day > _LAST_DAY, sql.Constant(_FAR + known)),
        (day < _FIRST_DAY, sql.Constant(known - _FAR)),
    )
    if physical.upper() == "DATE":
        return sql.Opaque(sql.Case(far, _days(day) * (2 * DAY)))
    if physical.upper().endswith("_NS"):
        # a cast to microseconds would round up
        parts, size = sql.call("epoch_ns", raw), 10**9
    else:
        kind = sql.SqlType.TIMESTAMPTZ if known else sql.SqlType.TIMESTAMP
        parts, size = sql.call("epoch_us", sql.TryCast(raw, kind)), 10**6
    is_before = parts % size < 0
    missed = sql.Case(((is_before, sql.Constant(1)),), sql.Constant(0))
    seconds = sql.Paren(parts // size - missed)
    return sql.Opaque(sql.Case(far, seconds * 2 + known))


def _days(day: sql.Expression) -> sql.Expression:
    """Returns the days since 1970 of a date."""
    return sql.call("date_diff", sql.Constant("day"), _ZERO_DAY, day)


def _of_text(raw: sql.Expression) -> sql.Expression:
    """Reads an ISO string, by the places of its parts."""
    days = _days(sql.TryCast(_piece(raw, 1, 10), sql.SqlType.DATE))
    is_date = _piece(raw, 11, 1).equals(sql.Constant(""))
    has_seconds = _piece(raw, 17, 1).equals(sql.Constant(":"))
    seconds = sql.Case(((has_seconds, _number(_piece(raw, 18, 2))),), sql.Constant(0))
    hours = _number(_piece(raw, 12, 2))
    minutes = _number(_piece(raw, 15, 2))
    local = sql.Paren(days * DAY + hours * 3600 + minutes * 60 + seconds)
    is_match = sql.call("regexp_full_match", raw, sql.Constant(MOMENT_PATTERN))
    is_unread = sql.Not(sql.Paren(is_match))
    branches: list[_Branch] = [
        (is_unread, sql.Typed(sql.NULL, sql.SqlType.BIGINT)),
        (is_date, days * (2 * DAY)),
    ]
    branches += _in_utc(raw, local * 2 + 1)
    return sql.Opaque(sql.Case(tuple(branches), local * 2))


def _of_format(raw: sql.Expression, form: str) -> sql.Expression:
    """Reads a string of a declared format: local time, with its clock at the end or none."""
    pattern = sql.Constant(moment_pattern(form))
    order = sql.Constant(moment_order(form))
    day = sql.TryCast(sql.call("regexp_replace", raw, pattern, order), sql.SqlType.DATE)
    midnight = _days(day) * (2 * DAY)
    clock = "HH:MM:SS" if has_seconds(form) else "HH:MM"
    hours = _number(_piece(raw, -len(clock), 2))
    minutes = _number(_piece(raw, 3 - len(clock), 2))
    past = hours * 3600 + minutes * 60
    if has_seconds(form):
        past = past + _number(_piece(raw, -2, 2))
    is_match = sql.call("regexp_full_match", raw, pattern)
    has_clock = _piece(raw, -3, 1).equals(sql.Constant(":"))
    local = sql.Case(((has_clock, midnight + sql.Paren(past) * 2),), midnight)
    return sql.Opaque(sql.Case(((is_match, local),)))


def _in_utc(raw: sql.Expression, local: sql.Expression) -> Iterator[_Branch]:
    """Yields the reading of a string with an offset, by the place of its sign from the end."""
    yield _piece(raw, -1, 1).equals(sql.Constant("Z")), local
    for form in ("+01:00", "+0100", "+01"):
        for sign, factor in (("+", -2), ("-", 2)):
            offset = _number(_piece(raw, 1 - len(form), 2)) * 3600
            if len(form) > len("+01"):
                offset = offset + _number(_piece(raw, -2, 2)) * 60
            is_signed = _piece(raw, -len(form), 1).equals(sql.Constant(sign))
            yield is_signed, local + sql.Paren(offset) * factor


def _piece(
    raw: sql.Expression,
    start: int,
    length: int,
) -> sql.Expression:
    """Returns some characters of a string; a negative start counts from its end."""
    return sql.call("substr", raw, start, length)


def _number(digits: sql.Expression) -> sql.Expression:
    """Returns the number that two digits spell."""
    number = sql.call("floor", sql.TryCast(digits, sql.SqlType.DOUBLE))
    return sql.TryCast(number, sql.SqlType.BIGINT)


def moment_code(kind: Timestamp, value: sql.Expression) -> sql.Expression:
    """Returns the SQL of a timestamp's code from its ``moment_reading``; NULL for a missing value,
    or a local time that clocks skip.

    Guarantees:
        the engine gives the moments of the reference
    """
    step = int(kind.step)
    low = kind.lower_code * step
    high = kind.upper_code * step + step - 1

    def code(second: sql.Expression) -> sql.Expression:
        above = sql.call("greatest", second, sql.number(low))
        clipped = sql.call("least", above, sql.number(high))
        if step == 1:
            return clipped
        return sql.Paren(clipped - low) // step + kind.lower_code

    return _by_period(kind, value, code)


def seconds(kind: Timestamp, value: sql.Expression) -> sql.Expression:
    """Returns the SQL of the seconds since 1970 (UTC) from a ``moment_reading``, not clipped to the
    declared bounds.
    """
    return _by_period(kind, value, lambda second: second)


def _by_period(
    kind: Timestamp,
    value: sql.Expression,
    result: _Result,
) -> sql.Expression:
    """Returns a result of the second of a reading, by the period of local time that it is in."""
    seconds = sql.Paren(value >> 1)
    is_known = sql.Paren(value & 1).equals(1)
    branches: list[_Branch] = [(is_known, result(seconds))]
    periods = local_periods(kind.changes)
    if len(periods) == 1:
        branches.append((value.is_present, result(seconds - (periods[0][1] or 0))))
        return sql.Case(tuple(branches))
    table = _Buckets.of(periods)
    place = table.place(seconds)
    branches += [
        (seconds < _entry(table.ends, place), result(seconds - _entry(table.before, place))),
        (seconds < _entry(table.starts, place), sql.Typed(sql.NULL, sql.SqlType.BIGINT)),
        (value.is_present, result(seconds - _entry(table.after, place))),
    ]
    return sql.Case(tuple(branches))


def _entry(entries: Sequence[int], place: sql.Expression) -> sql.Expression:
    """Returns the entry of a table at a place, which counts from 1."""
    listed = sql.ListOf(tuple(map(sql.Constant, entries)), sql.SqlType.BIGINT)
    return sql.Element(listed, place)


@dataclass(frozen=True, slots=True)
class _Buckets:
    """Local time in buckets of equal length, in each of which the offset changes at most once.

    In a bucket the offset is ``before`` up to the second ``ends``, and ``after`` from the second
    ``starts`` on; between these the local time never happens.
    """

    first: int
    width: int
    ends: tuple[int, ...]
    starts: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, periods: Periods) -> "_Buckets":
        """Returns the buckets of a table; the first and the last period have no end."""
        changing = [start for start, offset in periods[1:] if offset is not None]
        width = min((late - early for early, late in pairwise(changing)), default=DAY) // 2
        first = periods[1][0] - width
        count = (periods[-1][0] - first) // width + 2
        rows = [_bucket(periods, first + place * width, width) for place in range(count)]
        ends, starts, before, after = zip(*rows, strict=True)
        return cls(first, width, ends, starts, before, after)

    def place(self, second: sql.Expression) -> sql.Expression:
        """Returns the place of a second's bucket, from 1; the last one for what comes later."""
        last = self.first + len(self.ends) * self.width - 1
        above = sql.call("greatest", second, sql.number(self.first))
        inside = sql.Paren(sql.call("least", above, sql.number(last)) - self.first)
        return inside // self.width + 1


def _bucket(
    periods: Periods,
    start: int,
    width: int,
) -> tuple[int, int, int, int]:
    """Returns the end of the offset before, the start of that after, and the two offsets."""
    starts = [each for each, _ in periods]
    place = max(bisect_right(starts, start) - 1, 0)
    last = max(bisect_right(starts, start + width - 1) - 1, 0)
    inside = [offset for _, offset in periods[place : last + 1] if offset is not None]
    assert len(inside) <= 2, "one change of clocks at most"
    end = start + width
    ends = starts[place + 1] if last > place else end
    begins = starts[last] if last > place else end
    if periods[place][1] is None:
        ends = start
    if periods[last][1] is None:
        begins = end
    # an offset that is NULL is not in the table: GREATEST would skip it
    return ends, begins, inside[0] if inside else 0, inside[-1] if inside else 0

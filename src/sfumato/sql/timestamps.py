# SPDX-License-Identifier: Apache-2.0
"""Timestamp functions of row expressions: local dates, parts, truncation, differences, shifts.

The offsets of a zone become constants of the plan, so no engine needs time zone data.
Proof: timestamps.proof.md.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, date_code
from sfumato.metadata.timestamp import FIRST_SECOND, LAST_SECOND, parsed_moment
from sfumato.metadata.zones import DAY, Changes, changes, first_second, offset_at, second_in
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    FloorDivide,
    Lookup,
    Operation,
    Scalar,
)
from sfumato.plan.value_range import span
from sfumato.sql import dates
from sfumato.sql.arithmetic import truncated
from sfumato.sql.lattice import floored, plus, times
from sfumato.sql.typed import Day, Instant, Interval, Label, Number, Typed, known, read

# The seconds of each unit, and how many of them the next longer unit has.
_PARTS = {"HOUR": (3600, 24), "MINUTE": (60, 60), "SECOND": (1, 60)}
_UNWRITTEN = "A TIMESTAMP that is not written 'YYYY-MM-DD HH:MM:SS', with an offset or without."
_LEAVE_OUT = "Add or subtract less, or name a nearer time."


def local_day(moment: Instant) -> Day:
    """Returns CAST(moment AS DATE): the local date."""
    return Day(_floor_units(*_local_time(moment), DAY))


def midnight(moment: Day) -> Instant:
    """Returns CAST(date AS TIMESTAMP): the first moment of the date, as a local time without a
    zone.
    """
    return Instant(moment.expression, DAY, "")


def part_of(name: str, moment: Instant) -> Number | None:
    """Returns EXTRACT(name FROM moment) of HOUR, MINUTE, SECOND or EPOCH; None for other names."""
    unit = name.upper()
    if unit == "EPOCH":
        if not moment.zone:
            raise UnsupportedSql("EPOCH of a local time.", remedy="EXTRACT(EPOCH FROM column)")
        return Number(moment.expression, Fraction(moment.step))
    if unit not in _PARTS:
        return None
    size, count = _PARTS[unit]
    whole = _floor_units(*_local_time(moment), size)
    over = times(FloorDivide(whole, count), count)
    rest = Arithmetic(Operation.SUBTRACT, whole, over)
    # the table changes no value; it tells ``span`` that the rest is small
    return Number(Lookup(rest, 0, tuple(range(count))), Fraction(1))


def trunc(name: str, moment: Instant) -> Instant | Day:
    """Returns DATE_TRUNC: local time without a zone to the hour, minute or second, else a date."""
    unit = name.upper()
    if unit not in _PARTS:
        return dates.trunc(name, local_day(moment))
    size, _ = _PARTS[unit]
    expression, step = _local_time(moment)
    if step % size == 0:
        return Instant(expression, step, "")
    return Instant(_floor_units(expression, step, size), size, "")


def difference(name: str, start: Instant, end: Instant) -> Number:
    """Returns DATE_DIFF: whole seconds, minutes or hours between two moments, else of dates."""
    unit = name.upper().rstrip("S")
    if unit not in _PARTS:
        return dates.difference(name, local_day(start), local_day(end))
    size, _ = _PARTS[unit]
    elapsed = _elapsed(start, end)
    if size == 1:
        return elapsed
    return truncated(Number(elapsed.expression, elapsed.step / size))


def added(left: Typed, right: Typed, sign: int) -> Typed:
    """Returns the seconds from one moment to another, or a moment plus an interval."""
    if isinstance(left, Instant) and sign < 0:
        start = as_instant(right, left.zone)
        if start is not None:
            return _elapsed(start, left)
    if isinstance(right, Instant) and sign < 0:
        end = as_instant(left, right.zone)
        if end is not None:
            return _elapsed(right, end)
    if isinstance(left, Instant) and isinstance(right, Interval):
        return _shift_moment(left, right, sign)
    if isinstance(right, Instant) and isinstance(left, Interval) and sign > 0:
        return _shift_moment(right, left, sign)
    raise UnsupportedSql(
        "A timestamp plus or minus something else than an INTERVAL or a timestamp.",
        remedy="column + INTERVAL 30 MINUTE, or column - TIMESTAMP '...' (in seconds)",
    )


def _elapsed(start: Instant, end: Instant) -> Number:
    step, (first, last) = aligned([start, end])
    return Number(Arithmetic(Operation.SUBTRACT, last, first), Fraction(step))


def _shift_moment(
    moment: Instant,
    length: Interval,
    sign: int,
) -> Instant:
    """Returns a moment some seconds later or earlier."""
    seconds = length.seconds
    if length.months or (length.days and len(_offset_table(moment)) > 1):
        raise UnsupportedSql(
            "Days, months or years added to a timestamp: they are not all of one length.",
            remedy="Add hours, column + INTERVAL 24 HOUR, or days to its date: "
            "CAST(column AS DATE) + INTERVAL 1 DAY.",
        )
    seconds = sign * (seconds + length.days * DAY)
    step = gcd(moment.step, abs(seconds)) if seconds else moment.step
    scaled = times(moment.expression, moment.step // step)
    later = Instant(plus(scaled, seconds // step), step, moment.zone)
    _offset_table(later)
    return later


def as_instant(typed: Typed, zone: str) -> Instant | None:
    """Returns a SQL value as a timestamp: a timestamp, or a constant string or date; None for
    others.

    ``zone`` is the time zone of a constant without an offset; a date alone is its first second.

    Raises:
        UnsupportedSql: a constant that is no timestamp, or a local time that never happens.
    """
    if isinstance(typed, Instant):
        return typed
    constant = known(typed)
    if not isinstance(constant, str) or not isinstance(typed, Day | Label):
        return None
    day = date_code(constant)
    second = _of_text(constant, zone) if day is None else _of_day(day, zone)
    return Instant(Constant(second), 1, zone)


def _of_day(day: int, zone: str) -> int:
    """Returns the first second of a date; beyond the years 1800 to 2299 without its offset.

    It is defined for every date: a date may be the answer of a sub-query.
    """
    local = day * DAY
    if zone and FIRST_SECOND <= local < LAST_SECOND:
        return first_second(zone, local)
    return local


def _of_text(text: str, zone: str) -> int:
    """Returns the second of an ISO string."""
    parsed = parsed_moment(text)
    if parsed is None:
        raise UnsupportedSql(_UNWRITTEN, remedy="TIMESTAMP '2019-12-31 18:30:00'")
    local, offset = parsed
    if not FIRST_SECOND <= local < LAST_SECOND:
        raise UnsupportedSql("A TIMESTAMP outside of the years 1800 to 2299.", remedy=_LEAVE_OUT)
    if zone:
        return _happening(zone, local, offset)
    if offset is not None:
        raise _two_kinds()
    return local


def instants(values: Sequence[Typed]) -> list[Instant] | None:
    """Returns values as timestamps; None if none is a timestamp, or one cannot be.

    A constant without an offset has the time zone of the first timestamp.
    """
    zone = next((value.zone for value in values if isinstance(value, Instant)), None)
    if zone is None:
        return None
    read = [as_instant(value, zone) for value in values]
    moments = [moment for moment in read if moment is not None]
    return moments if len(moments) == len(values) else None


def chosen(moments: Sequence[Instant]) -> tuple[Callable[[Scalar], Typed], list[Scalar]]:
    """Brings timestamps to one step; returns their codes, and a function back from a code.

    Timestamps of several zones are shown in the first of these zones.
    """
    step, codes = aligned(moments)
    return lambda scalar: Instant(scalar, step, moments[0].zone), codes


def _happening(
    zone: str,
    local: int,
    offset: int | None,
) -> int:
    """Returns the second of a local time that clocks of a zone show."""
    second = second_in(zone, local, offset)
    if second is None:
        raise UnsupportedSql(
            f"A local time that clocks of {zone} leave out.",
            remedy="Write another one, or its offset: TIMESTAMP '2019-03-31 01:30:00+00:00'",
        )
    return second


def written(text: str) -> Label:
    """Returns the constant TIMESTAMP '...' as a string, until its time zone is known."""
    if date_code(text) is None and parsed_moment(text) is None:
        raise UnsupportedSql(_UNWRITTEN, remedy="TIMESTAMP '2019-12-31 18:30:00'")
    return Label(Constant(0), (text,))


def aligned(parts: Sequence[Instant]) -> tuple[int, list[Scalar]]:
    """Returns the common step, in seconds, of some timestamps, and their integer codes in it.

    Raises:
        UnsupportedSql: local times beside moments.
    """
    if len({bool(part.zone) for part in parts}) > 1:
        raise _two_kinds()
    step = gcd(*(part.step for part in parts))
    return step, [times(part.expression, part.step // step) for part in parts]


def _two_kinds() -> UnsupportedSql:
    """Returns the refusal of a local time beside a moment: one is in a zone, the other in none."""
    return UnsupportedSql(
        "A local time (DATE_TRUNC to hours or less) beside a moment of a time zone.",
        remedy="DATE_TRUNC both, or take the column itself.",
    )


def _offset_table(moment: Instant) -> Changes:
    """Returns the offsets of a timestamp's zone over all its codes."""
    low, high = span(moment.expression) or (0, 0)
    first = low * moment.step
    last = high * moment.step + moment.step
    if first < FIRST_SECOND - 2 * DAY or last > LAST_SECOND + 2 * DAY:
        raise UnsupportedSql(
            "A timestamp that may lie outside of the years 1800 to 2299.", remedy=_LEAVE_OUT
        )
    if moment.zone:
        return changes(moment.zone, first, last)
    return ((first, 0),)


def local_range(
    expression: Scalar,
    column: Column,
    codes: range,
) -> tuple[int, int] | None:
    """Returns the range of a column's local date, hour, minute or second for a range of its codes.

    Returns None if the expression is none of these. Between two changes of the offset local time
    rises with the code, so its extremes are at the ends of the range and beside the changes.
    """
    moment = read(column)
    if not isinstance(moment, Instant) or not codes:
        return None
    sizes = {local_day(moment).expression: DAY}
    for unit in _PARTS:
        shown = trunc(unit, moment)
        if isinstance(shown, Instant):
            sizes[shown.expression] = shown.step
    size = sizes.get(expression)
    if size is None:
        return None
    seconds = [codes[0] * moment.step, codes[-1] * moment.step]
    table = _offset_table(moment)
    for start, _ in table[1:]:
        code = -(-start // moment.step)
        if codes[0] < code <= codes[-1]:
            seconds += [(code - 1) * moment.step, code * moment.step]
    units = [(second + offset_at(table, second)) // size for second in seconds]
    return min(units), max(units)


def _local_time(moment: Instant) -> tuple[Scalar, int]:
    """Returns the code of the local time, and its step in seconds.

    Guarantees:
        local times follow the offsets of the zone
    """
    table = _offset_table(moment)
    step = gcd(moment.step, *(offset for _, offset in table))
    scaled = times(moment.expression, moment.step // step)
    if len(table) == 1:
        return plus(scaled, table[0][1] // step), step
    offset = _offset(moment, table, step)
    return Arithmetic(Operation.ADD, scaled, offset), step


def _offset(
    moment: Instant,
    table: Changes,
    step: int,
) -> Scalar:
    """Returns the offset from UTC in steps, NULL where the timestamp is.

    The codes are divided into buckets, in each of which the offset changes at most once.
    """
    low, high = span(moment.expression) or (0, 0)
    starts = [-(-start // moment.step) for start, _ in table]
    width = min((late - early for early, late in pairwise(starts[1:])), default=high - low + 1)
    first, last = low // width, high // width
    before, turns, after = [], [], []
    for place in range(first, last + 1):
        earlier = max(bisect_right(starts, place * width) - 1, 0)
        later = max(bisect_right(starts, place * width + width - 1) - 1, 0)
        before.append(table[earlier][1] // step)
        turns.append(starts[later] if later > earlier else place * width + width)
        after.append(table[later][1] // step)
    bucket = FloorDivide(moment.expression, width)
    is_before = Compare(Comparison.LT, moment.expression, Lookup(bucket, first, tuple(turns)))
    chosen = (is_before, Lookup(bucket, first, tuple(before)))
    return Case((chosen,), Lookup(bucket, first, tuple(after)))


def _floor_units(
    expression: Scalar,
    step: int,
    size: int,
) -> Scalar:
    """Returns the whole number of units of ``size`` seconds in a code of ``step`` seconds."""
    return floored(expression, Fraction(step, size))

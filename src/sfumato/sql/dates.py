# SPDX-License-Identifier: Apache-2.0
"""Date functions of row expressions: parts, truncation, differences, shifts."""

import calendar
import datetime
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import EPOCH, date_code
from sfumato.metadata.zones import DAY
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, date_part, date_trunc, day
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Lookup,
    Not,
    Operation,
    Part,
    Scalar,
)
from sfumato.plan.value_range import span
from sfumato.sql.arithmetic import truncated
from sfumato.sql.lattice import clipped, plus, times
from sfumato.sql.typed import Day, Interval, Number, Typed, known

PARTS: Mapping[str, Part] = {
    "YEAR": Part.YEAR,
    "QUARTER": Part.QUARTER,
    "MONTH": Part.MONTH,
    "WEEK": Part.WEEK,
    "WEEKOFYEAR": Part.WEEK,
    "DAY": Part.DAY,
    "DAYOFMONTH": Part.DAY,
    "ISODOW": Part.WEEKDAY,
    "DAYOFWEEKISO": Part.WEEKDAY,
}
_TRUNCATED = (Part.YEAR, Part.QUARTER, Part.MONTH, Part.WEEK, Part.DAY)
# The length of each period, in days, months and seconds.
_LENGTHS = {
    "SECOND": Interval(0, 0, 1),
    "MINUTE": Interval(0, 0, 60),
    "HOUR": Interval(0, 0, 3600),
    "DAY": Interval(1, 0),
    "WEEK": Interval(7, 0),
    "MONTH": Interval(0, 1),
    "QUARTER": Interval(0, 3),
    "YEAR": Interval(0, 12),
}
# The code of each ISO weekday (Monday is 1) where Sunday is 0 and Saturday 6.
_FROM_SUNDAY = (1, 2, 3, 4, 5, 6, 0)


def literal_day(text: str) -> Day:
    """Returns the constant date of an ISO string."""
    code = date_code(text)
    if code is None:
        raise UnsupportedSql(
            "A DATE that is not written DATE 'YYYY-MM-DD'.", remedy="DATE '2019-12-31'"
        )
    return Day(Constant(code))


def as_day(typed: Typed) -> Day | None:
    """Returns a SQL value as a date: a date, or a constant ISO string; None for any other value."""
    if isinstance(typed, Day):
        return typed
    constant = known(typed)
    if not isinstance(constant, str):
        return None
    code = date_code(constant)
    if code is None:
        return None
    return Day(Constant(code))


def part_of(name: str, moment: Day) -> Number:
    """Returns EXTRACT(name FROM moment)."""
    upper = name.upper()
    if upper in ("DOW", "DAYOFWEEK"):
        return _whole_number(Lookup(_part(Part.WEEKDAY, moment.expression), 1, _FROM_SUNDAY))
    if upper in ("DOY", "DAYOFYEAR"):
        since = _subtract_codes(moment.expression, _trunc(Part.YEAR, moment.expression))
        return _whole_number(clipped(plus(since, 1), 1, 366))
    if upper not in PARTS:
        raise UnsupportedSql(
            f"The part {upper[:20]} of a date.",
            allowed="YEAR, QUARTER, MONTH, WEEK, DAY, ISODOW, DOW, DOY; "
            "of a timestamp also HOUR, MINUTE, SECOND, EPOCH",
        )
    return _whole_number(_part(PARTS[upper], moment.expression))


def trunc(name: str, moment: Day) -> Day:
    """Returns the first day of the year, quarter, month or ISO week of a date."""
    part = PARTS.get(name.upper())
    if part not in _TRUNCATED:
        raise UnsupportedSql(
            f"DATE_TRUNC to {name[:20]!r}.", allowed="'year', 'quarter', 'month', 'week', 'day'"
        )
    if part is Part.DAY:
        return moment
    return Day(_trunc(part, moment.expression))


def last_of_month(moment: Day) -> Day:
    """Returns the last day of a date's month."""
    # 32 days after the first of a month are in the next one
    later = shifted(trunc("month", moment), Interval(32, 0), 1)
    return shifted(trunc("month", later), Interval(1, 0), -1)


def difference(name: str, start: Day, end: Day) -> Number:
    """Returns DATE_DIFF: the number of days, whole weeks, or calendar periods between two dates.

    Months, quarters and years count how many of them begin after ``start`` and by ``end``.
    """
    period = name.upper().rstrip("S")
    start_code = start.expression
    end_code = end.expression
    if period == "DAY":
        return _whole_number(_subtract_codes(end_code, start_code))
    if period == "WEEK":
        return truncated(Number(_subtract_codes(end_code, start_code), Fraction(1, 7)))
    per_year = {"YEAR": 1, "QUARTER": 4, "MONTH": 12}.get(period)
    if per_year is None:
        raise UnsupportedSql(
            f"DATE_DIFF in {name[:20]!r}.", allowed="'day', 'week', 'month', 'quarter', 'year'"
        )
    return _whole_number(
        _subtract_codes(_count_periods(per_year, end_code), _count_periods(per_year, start_code))
    )


def shifted(moment: Day, length: Interval | Number, sign: int) -> Day:
    """Returns a date plus (``sign`` 1) or minus (-1) an interval or a number of days."""
    if isinstance(length, Number):
        if length.step.denominator != 1:
            raise UnsupportedSql(
                "A date plus a number that is not whole.", remedy="day + 7, or FLOOR the number."
            )
        days = times(length.expression, sign * int(length.step))
        return _in_calendar(_add_codes(moment.expression, days))
    whole_days, rest = divmod(length.seconds, DAY)
    length = replace(length, days=length.days + whole_days, seconds=rest)
    if length.seconds:
        raise UnsupportedSql(
            "An INTERVAL that is no whole number of days, added to a date.",
            remedy="day + INTERVAL 7 DAY",
        )
    if length.months == 0:
        return _in_calendar(_add_codes(moment.expression, Constant(sign * length.days)))
    if not isinstance(moment.expression, Constant) or not isinstance(moment.expression.value, int):
        raise UnsupportedSql(
            "Months or years added to a column: they are not all of one length.",
            remedy="Add days, day + INTERVAL 30 DAY, or compare DATE_TRUNC('month', day).",
        )
    code = _months_later(moment.expression.value, sign * length.months)
    return _in_calendar(Constant(code + sign * length.days))


def whole_years(later: Day, earlier: Day) -> Number:
    """Returns the years of AGE(later, earlier): complete years, negative if it is the earlier."""

    def place_in_year(moment: Day) -> Scalar:
        month = times(_part(Part.MONTH, moment.expression), 100)
        return _add_codes(month, _part(Part.DAY, moment.expression))

    first, last = earlier.expression, later.expression
    years = _subtract_codes(_part(Part.YEAR, last), _part(Part.YEAR, first))
    before = Compare(Comparison.LT, place_in_year(later), place_in_year(earlier))
    after = Compare(Comparison.GT, place_in_year(later), place_in_year(earlier))
    is_negative = Compare(Comparison.LT, last, first)
    # the year that is not complete yet, on whichever side
    counted = Case(
        (
            (And((Not(is_negative), before)), plus(years, -1)),
            (And((is_negative, after)), plus(years, 1)),
        ),
        years,
    )
    return _whole_number(counted)


def interval(amount: Fraction, unit: str) -> Interval:
    """Returns INTERVAL amount unit."""
    name = unit.upper().rstrip("S")
    length = _LENGTHS.get(name)
    largest = 10**6
    if length is not None and length.seconds:
        largest *= DAY // length.seconds
    if length is None or amount.denominator != 1 or abs(amount) > largest:
        raise UnsupportedSql(
            "An INTERVAL that is no whole number of days, or of hours, minutes or seconds.",
            remedy="INTERVAL 7 DAY",
        )
    count = int(amount)
    return Interval(count * length.days, count * length.months, count * length.seconds)


def _in_calendar(expression: Scalar) -> Day:
    """Returns a date; refuses one that may lie outside the years 1 to 9999."""
    low, high = span(expression) or (0, 0)
    if low < FIRST_DAY or high > LAST_DAY:
        raise UnsupportedSql(
            "A date that may lie beyond the years 1 to 9999.", remedy="Add or subtract fewer days."
        )
    return Day(expression)


def _months_later(code: int, months: int) -> int:
    """Returns the code of the date some months after another one."""
    start = day(code)
    total = start.year * 12 + start.month - 1 + months
    if not 12 <= total < 12 * 10_000:
        raise UnsupportedSql(
            "A date that may lie beyond the years 1 to 9999.", remedy="Use a shorter INTERVAL."
        )
    year = total // 12
    month = total % 12 + 1
    last_day = calendar.monthrange(year, month)[1]
    reached = datetime.date(year, month, min(start.day, last_day))
    return (reached - EPOCH).days


def _count_periods(per_year: int, moment: Scalar) -> Scalar:
    """Returns the number of years, quarters or months since the year 0."""
    years = times(_part(Part.YEAR, moment), per_year)
    if per_year == 1:
        return years
    part = Part.QUARTER if per_year == 4 else Part.MONTH
    return _add_codes(years, _part(part, moment))


def _part(part: Part, moment: Scalar) -> Scalar:
    """Returns a part of a date, folded where the date is a constant."""
    if isinstance(moment, Constant) and isinstance(moment.value, int):
        return Constant(date_part(part, moment.value))
    return DatePart(part, moment)


def _trunc(part: Part, moment: Scalar) -> Scalar:
    """Returns the start of a date's period, folded where the date is a constant."""
    if isinstance(moment, Constant) and isinstance(moment.value, int):
        return Constant(date_trunc(part, moment.value))
    return DateTrunc(part, moment)


def _add_codes(left: Scalar, right: Scalar) -> Scalar:
    """Returns the sum of two date codes, folded if the second is a constant."""
    if isinstance(right, Constant) and isinstance(right.value, int):
        return plus(left, right.value)
    return Arithmetic(Operation.ADD, left, right)


def _subtract_codes(left: Scalar, right: Scalar) -> Scalar:
    """Returns the difference of two date codes, folded if the second is a constant."""
    if isinstance(right, Constant) and isinstance(right.value, int):
        return plus(left, -right.value)
    return Arithmetic(Operation.SUBTRACT, left, right)


def _whole_number(expression: Scalar) -> Number:
    """Returns a number with step 1."""
    return Number(expression, Fraction(1))

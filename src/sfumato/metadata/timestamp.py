# SPDX-License-Identifier: Apache-2.0
"""Timestamps: dates with times in a time zone, on a lattice of whole seconds.

Proof: zones.proof.md.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Self, TypeAlias

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number, decimal_text, to_fraction
from sfumato.metadata.coded import Coded, set_codes, shown_missing
from sfumato.metadata.moment_format import iso_moment, require_moment_format
from sfumato.metadata.zones import DAY, Changes, changes, offset_at, second_in, second_of

Bound: TypeAlias = str | datetime.datetime | datetime.date

_DATE = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_OFFSET = r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?"
# Strings that are read: ISO 8601, with or without seconds and an offset from UTC; or a date alone.
MOMENT_PATTERN = rf"{_DATE}([ T]{_CLOCK}{_OFFSET})?"

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)
# Bounds lie between the years 1800 and 2300, in seconds since 1970.
FIRST_SECOND, LAST_SECOND = -5_364_662_400, 10_413_792_000
# The offsets of two days before the lower bound decide which local times come before it.
_MARGIN = 2 * DAY
_MINUTE = 60
_ALLOWED = "two times, '2019-01-01 00:00:00', the lower one before the upper one, 1800 to 2299"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Timestamp(Coded):
    """Dates with times from ``lower`` to ``upper``, rounded down to a lattice of ``step`` seconds.

    A bound is an ISO string or a ``datetime``; without an offset from UTC it is local time of
    ``zone``, a name of the IANA list. A date alone is its first second as the lower bound, and its
    last one as the upper bound. ``format`` is how strings of the data are written: None for ISO
    8601 with an offset or without, or a format of ``moment_format``. A date alone is read as its
    midnight. A code is a number of steps since 1970-01-01T00:00:00Z.

    ``changes`` are the offsets of the zone, taken from ``zoneinfo`` when the column is declared.
    Only results of ``DATE_TRUNC`` have the zone "": they are local times without an offset.

    Guarantees:
        a value without an offset is local time of the zone

    Raises:
        InvalidDeclaration: bounds that are no times, or not in order, an unknown zone, or a step
            that is no whole number of seconds up to a day.

    >>> visits = Timestamp("2019-01-01", "2024-12-31", zone="Europe/London")
    >>> visits
    Timestamp('2019-01-01 00:00:00', '2024-12-31 23:59:59', zone='Europe/London')
    >>> print(visits.decode(visits.code_of_text("2024-07-01 12:00")))
    2024-07-01 12:00:00+01:00
    """

    zone: str
    changes: Changes
    format: str | None

    def __init__(
        self,
        lower: Bound,
        upper: Bound,
        *,
        zone: str = "UTC",
        step: Number = 1,
        format: str | None = None,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        spacing = to_fraction("step", step)
        if spacing.denominator != 1 or not 1 <= spacing <= DAY:
            raise InvalidDeclaration(
                f"A step of {shown(step)}.", allowed="a whole number of seconds, 1 to 86400"
            )
        low = moment_of(lower, zone, is_upper=False)
        high = moment_of(upper, zone, is_upper=True)
        if low is None or high is None or low >= high:
            raise InvalidDeclaration(
                f"Timestamp({shown(lower)}, {shown(upper)}).",
                allowed=_ALLOWED,
                remedy="A local time that clocks leave out is none: add its offset from UTC.",
            )
        size = int(spacing)
        if low // size == high // size:
            raise InvalidDeclaration(
                "A Timestamp whose bounds fall on one step.", remedy="Declare a smaller step=."
            )
        if format is not None:
            require_moment_format(format)
        _set(self, (low // size, high // size), size, zone, missing)
        fitting = gcd(size, *(offset for _, offset in self.changes))
        if size > _MINUTE and fitting < size:
            # steps begin in UTC: midnight would be shown as a time of the day before
            raise InvalidDeclaration(
                f"A step of {size} seconds, which do not begin at midnight in {zone}.",
                allowed=f"step={fitting}, or another divisor of it",
                remedy="Declare days as sf.Date; sf.Timestamp has moments.",
            )
        object.__setattr__(self, "format", format)

    @classmethod
    def of_codes(
        cls,
        lower_code: int,
        upper_code: int,
        *,
        step: int,
        zone: str,
        like: "Timestamp | None" = None,
    ) -> Self:
        """Returns the type with this range of codes; the zone may be "".

        ``like``: the format and the missing markers of strings are those of this type.

        >>> Timestamp.of_codes(0, 23, step=3600, zone="")
        Timestamp('1970-01-01 00:00:00', '1970-01-01 23:00:00', zone='', step=3600)
        """
        timestamp = cls.__new__(cls)
        missing = None if like is None else like.missing
        _set(timestamp, (lower_code, upper_code), step, zone, missing)
        if like is not None:
            object.__setattr__(timestamp, "format", like.format)
        return timestamp

    def __repr__(self) -> str:
        low, high = (self._written(code) for code in (self.lower_code, self.upper_code))
        step = "" if self.step == 1 else f", step={decimal_text(self.step)}"
        form = "" if self.format is None else f", format={self.format!r}"
        rest = f"{step}{form}{shown_missing(self.missing)}"
        return f"Timestamp({low!r}, {high!r}, zone={self.zone!r}{rest})"

    def _written(self, code: int) -> str:
        """Returns a moment as local time, in UTC if another moment has the same local time."""
        second = code * int(self.step)
        local = second + offset_at(self.changes, second)
        if second_of(self.changes, local) == second:
            return str(_EPOCH + datetime.timedelta(seconds=local))
        return f"{_EPOCH + datetime.timedelta(seconds=second)}Z"

    def decode(self, code: int) -> datetime.datetime:
        """Returns the date and time of a code, with its offset from UTC (none if the zone is "")."""
        second = code * int(self.step)
        offset = offset_at(self.changes, second)
        local = _EPOCH + datetime.timedelta(seconds=second + offset)
        if not self.zone:
            return local
        return local.replace(tzinfo=datetime.timezone(datetime.timedelta(seconds=offset)))

    def code_of_local(self, local: int, offset: int | None) -> int | None:
        """Returns the code of a local time; None if clocks skip that time.

        ``local`` is in seconds since 1970 in local time, ``offset`` its distance from UTC if it is
        stated.

        >>> Timestamp("1970-01-01", "1970-01-31", step=60).code_of_local(7_230, 3600)
        60
        """
        second = second_of(self.changes, local) if offset is None else local - offset
        if second is None:
            return None
        return min(max(second // int(self.step), self.lower_code), self.upper_code)

    def code_of_text(self, text: str) -> int | None:
        """Returns the code of a time written as a string; None if it is no time, or one that clocks
        skip.
        """
        written = text if self.format is None else iso_moment(self.format, text)
        parsed = None if written is None else parsed_moment(written)
        return None if parsed is None else self.code_of_local(*parsed)


def parsed_moment(text: str) -> tuple[int, int | None] | None:
    """Parses an ISO 8601 date and time: local seconds since 1970, and the offset from UTC in
    seconds.

    The offset is None if the string has none. Fractions of a second are dropped; a date alone is
    its midnight. Returns None for a string that is no date.

    >>> parsed_moment("1970-01-02T00:00:01.9+01:00"), parsed_moment("1970-01-01 00:01")
    ((86401, 3600), (60, None))
    >>> parsed_moment("1970-01-02")
    (86400, None)
    """
    if not re.fullmatch(MOMENT_PATTERN, text, re.ASCII):
        return None
    try:
        date = datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None
    days = (date - _EPOCH.date()).days
    if len(text) == len("1970-01-01"):
        return days * DAY, None
    minutes = 60 * int(text[11:13]) + int(text[14:16])
    seconds = int(text[17:19]) if text[16:17] == ":" else 0
    offset = text[16:].lstrip("0123456789:.")
    return days * DAY + 60 * minutes + seconds, _seconds(offset)


def _seconds(offset: str) -> int | None:
    """Returns an offset from UTC, written Z, +01, +0100 or +01:00; None if it is not written."""
    if not offset:
        return None
    digits = offset[1:].replace(":", "").ljust(4, "0")
    size = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -size if offset.startswith("-") else size


def local_time(moment: datetime.datetime) -> tuple[int, int | None]:
    """Returns a ``datetime`` as local seconds since 1970, and its offset from UTC (or None).

    >>> local_time(datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC))
    (3600, 0)
    """
    past = moment.replace(tzinfo=None) - _EPOCH
    offset = moment.utcoffset()
    known = None if offset is None else round(offset.total_seconds())
    return past.days * DAY + past.seconds, known


def moment_of(moment: object, zone: str, *, is_upper: bool) -> int | None:
    """Returns a date or time in seconds since 1970-01-01T00:00:00Z; None if it is neither.

    A date alone is its first second, or its last one as an upper bound.

    >>> moment_of("1970-01-02", "UTC", is_upper=False), moment_of("then", "UTC", is_upper=True)
    (86400, None)
    """
    if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
        moment = moment.isoformat()
    if isinstance(moment, str):
        if re.fullmatch(_DATE, moment, re.ASCII):
            moment += " 23:59:59" if is_upper else " 00:00:00"
        parsed = parsed_moment(moment)
    elif isinstance(moment, datetime.datetime):
        parsed = local_time(moment)
    else:
        parsed = None
    if parsed is None or not FIRST_SECOND <= parsed[0] < LAST_SECOND:
        return None
    return second_in(zone, *parsed)


def _set(
    target: Timestamp,
    codes: tuple[int, int],
    step: int,
    zone: str,
    missing: str | Sequence[str] | None,
) -> None:
    low, high = codes[0] * step, codes[1] * step + step
    table: Changes = ((low, 0),)
    if zone:
        table = changes(zone, low - _MARGIN, high)
    object.__setattr__(target, "zone", zone)
    object.__setattr__(target, "changes", table)
    object.__setattr__(target, "format", None)
    set_codes(target, *codes, Fraction(step), missing)

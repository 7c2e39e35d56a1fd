# SPDX-License-Identifier: Apache-2.0
"""The texts of ``sfumato check --data``: counts with percentages, and what to do about them."""

import json
from collections.abc import Sequence

from sfumato.engines.inspect_columns import ColumnFacts
from sfumato.engines.inspect_units import LimitFacts, UnitFacts
from sfumato.errors import unknown
from sfumato.exact.rational import decimal_text
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.unit import AUTO
from sfumato.show.render import text_table

NOTICE = (
    "NOT PRIVATE: exact counts of the data, for its owner's eyes only. They are stored nowhere."
)
LEGEND = """\
  read      the value is used by questions
  missing   empty, declared by missing=, or not written in the declared encoding=
  not read  there is a value, but not as declared: questions treat it as missing
  clipped   read, but outside of the declared range: questions use the bound instead"""

# How many declared values that never occur are named.
_NAMED = 10


def share(part: int, whole: int) -> str:
    """Returns ``part`` of ``whole`` as a percentage.

    It is rounded to "0.0%" only if ``part`` is 0, and to "100.0%" only if it equals ``whole``.

    >>> share(1, 8), share(1, 10_000), share(9_999, 10_000), share(8, 8)
    ('12.5%', '<0.1%', '>99.9%', '100.0%')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "<0.1%"
    if 99.9 < percent < 100:
        return ">99.9%"
    return f"{percent:.1f}%"


def counted(part: int, whole: int) -> str:
    """Returns a count with its percentage; "-" for 0.

    >>> counted(1_200, 4_800), counted(0, 9)
    ('25.0% (1,200)', '-')
    """
    if not part:
        return "-"
    return f"{share(part, whole)} ({part:,})"


def column_table(columns: Sequence[ColumnFacts]) -> str:
    """Returns a text table of a table's columns with their exact counts, one row for each."""
    body = []
    for facts in columns:
        counts = facts.read, facts.missing, facts.unread, facts.clipped
        body.append([facts.column.name, *(counted(count, facts.rows) for count in counts)])
    return text_table(["column", "read", "missing", "not read", "clipped"], body, len(body))


def column_notes(facts: ColumnFacts) -> list[str]:
    """Returns lines on a column's values that could not be read, clipped values, and unused
    declared values.
    """
    name, kind = facts.column.name, facts.column.type
    lines = []
    if facts.forms:
        forms = ", ".join(f"{json.dumps(form.shown)} ({form.count:,})" for form in facts.forms)
        lines.append(f"  {name}: not read are values like {forms}")
        lines.append(f"    {_expected(kind)}")
    if facts.clipped and not isinstance(kind, Text | Array):
        low, high = kind.decode(kind.lower_code), kind.decode(kind.upper_code)
        lines.append(f"  {name}: {facts.below:,} below {low}, {facts.above:,} above {high}")
    lines += _clip_lines(facts)
    if facts.rounded and isinstance(kind, Integer | Real | Array):
        lines.append(
            f"  {name}: {counted(facts.rounded, facts.rows)} of the rows are between two steps "
            f"of {decimal_text(kind.step)}, and are rounded"
        )
    if facts.never and facts.read:
        named = ", ".join(json.dumps(label, ensure_ascii=False) for label in facts.never[:_NAMED])
        more = len(facts.never) - _NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        lines.append(f"  {name}: declared, but in no row: {named}{rest}")
    return lines


def _clip_lines(facts: ColumnFacts) -> list[str]:
    """A line about the values beyond a clip that is declared as a number."""
    kind = facts.column.type
    if facts.beyond_clip is None or not isinstance(kind, Integer | Real):
        return []
    assert isinstance(kind.clip, tuple), "counted of a clip that is a number"
    low, high = map(kind.decode, kind.clip)
    beyond = f"{share(facts.beyond_clip, facts.rows)} ({facts.beyond_clip:,}) of the rows"
    sides = f"{facts.below_clip:,} below {low}, {facts.above_clip:,} above {high}"
    return [f"  {facts.column.name}: beyond its clip are {beyond}: {sides}"]


def _expected(kind: ColumnType) -> str:
    """How a value of a declared type is written in the data."""
    match kind:
        case Integer() | Real():
            return (
                "A number is written 1234, -12.5 or 1e3. Of a CSV, decimal= and thousands= declare "
                "other signs; elsewhere, convert the column, or make a view that does."
            )
        case Date():
            written = kind.format or "YYYY-MM-DD (format= declares another form)"
            return f"A date is written {written}, and must be a day of the calendar."
        case Timestamp():
            if kind.format is not None:
                return f"A time is written {kind.format}, as clocks of {kind.zone} show it."
            return (
                "A time is written YYYY-MM-DD HH:MM:SS, with an offset from UTC or without, or as a "
                "date alone, its midnight (format= declares another form)."
            )
        case Boolean():
            true, false = " or ".join(kind.true), " or ".join(kind.false)
            declare = "sf.Boolean(true=..., false=...) declares other spellings."
            return f"Declared are {true} for true, {false} for false. {declare}"
        case Category():
            return "A value is compared with the declared ones exactly, with its case and blanks."
        case Text():
            return "The value has no string."
        case Array():
            return f"An array is a flat list of {kind.length:,} numbers, none empty and none NaN."
        case _:
            raise unknown(kind)


def unit_lines(facts: UnitFacts) -> list[str]:
    """Returns lines on the number of units of a table, and on what their contribution limits cut
    off.
    """
    unit = facts.unit
    lines = [f"unit {unit.column}: {facts.units:,} units in {facts.used:,} rows"]
    if facts.unnamed:
        lines.append(
            f"  {counted(facts.unnamed, facts.rows)} of the rows have no {unit.column}: not used"
        )
    if facts.without_partner:
        lines.append(
            f"  {counted(facts.without_partner, facts.rows)} of the rows have a {unit.column} "
            f"without a partner in {unit.via}: not used"
        )
    for column, number in facts.respelled:
        lines.append(
            f"  {column}: the source calls {number:,} spellings equal to others (a collation); "
            "each is an id of its own here"
        )
    over = [limit for limit in facts.limits if limit.over]
    lines += [_limit_line(limit, facts.units) for limit in over]
    if facts.limits and not over:
        lines.append("  no unit is over a limit")
    limits = ("max_rows", unit.max_rows), ("max_groups", unit.max_groups)
    for name, limit in (*limits, ("max_rows_total", unit.max_rows_total)):
        if limit is AUTO:
            lines.append(f"  {name} is sf.AUTO: a question learns it, so nothing is counted")
    return lines


def _limit_line(limit: LimitFacts, units: int) -> str:
    """A line about the units that are over a limit."""
    where = f", GROUP BY {limit.by}" if limit.by else ""
    over = f"{counted(limit.over, units)} of the units are over it"
    lost = f"{counted(limit.lost, limit.out_of)} of the rows"
    if limit.of_groups:
        lost = f"{counted(limit.lost, limit.out_of)} of their groups"
    if not limit.lost:
        lost = "no row"
    return f"  {limit.limit}{where}: {over} and lose {lost}"

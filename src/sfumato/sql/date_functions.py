# SPDX-License-Identifier: Apache-2.0
"""The functions of dates and timestamps in row expressions; ``functions`` has them all."""

from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql import dates, formats, timestamps
from sfumato.sql.literal import literal
from sfumato.sql.reject import require_only
from sfumato.sql.row_expressions import Functions, Rows, as_date
from sfumato.sql.typed import Instant, Number, Typed


def _extract(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function EXTRACT."""
    return part_of(node.this.name, rows, node.expression)


def part_of(
    name: str,
    rows: Rows,
    node: exp.Expr,
) -> Number:
    """Returns EXTRACT(name FROM node) as a number: a part, such as MONTH, of a date or
    timestamp.
    """
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "AGE":
        return _years_of_age(name, rows, node)
    operand = rows.value(node)
    part = None
    if isinstance(operand, Instant):
        part = timestamps.part_of(name, operand)
    if part is None:
        part = dates.part_of(name, as_date(operand, node))
    return part


def _years_of_age(name: str, rows: Rows, node: exp.Expr) -> Number:
    """Returns EXTRACT(YEAR FROM AGE(later, earlier))."""
    if name.upper() not in ("YEAR", "YEARS") or len(node.expressions) != 2:
        raise UnsupportedSql(
            "AGE in other parts than years.",
            remedy="EXTRACT(YEAR FROM AGE(later, earlier)), or DATE_DIFF('month', earlier, later)",
        )
    later, earlier = (as_date(rows.value(part), part) for part in node.expressions)
    return dates.whole_years(later, earlier)


def _format(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions TO_CHAR and STRFTIME with a constant format."""
    require_only(node, "this", "format")
    operand, shape = node.this, node.args.get("format")
    if isinstance(node, exp.TimeToStr) and literal(shape) is None:
        # SQLite has the format first
        operand, shape = shape, operand
    pattern = literal(shape)
    if not isinstance(pattern, str):
        raise UnsupportedSql("A format that is not a constant.", remedy="STRFTIME(day, '%Y-%m')")
    if isinstance(node, exp.ToChar):
        pattern = formats.strftime_of(pattern)
    typed = rows.value(operand)
    moment = typed if isinstance(typed, Instant) else as_date(typed, operand)
    return formats.formatted(moment, pattern)


def _name_of_part(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions DAYNAME and MONTHNAME."""
    require_only(node, "this")
    moment = as_date(rows.value(node.this), node.this)
    return formats.day_name(moment) if isinstance(node, exp.Dayname) else formats.month_name(moment)


def _part(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers SQL functions that return a part of a date, such as YEAR and MONTH."""
    require_only(node, "this")
    return part_of(type(node).__name__, rows, node.this)


def _epoch(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function EPOCH."""
    require_only(node, "this")
    return part_of("EPOCH", rows, node.this)


def _trunc_date(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function DATE_TRUNC."""
    require_only(node, "this", "unit")
    unit = node.args["unit"].name
    operand = rows.value(node.this)
    if isinstance(operand, Instant):
        return timestamps.trunc(unit, operand)
    return dates.trunc(unit, as_date(operand, node.this))


def _last_day(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function LAST_DAY."""
    require_only(node, "this")
    return dates.last_of_month(as_date(rows.value(node.this), node.this))


def _difference(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function DATE_DIFF."""
    require_only(node, "this", "expression", "unit", "date_part_boundary")
    period = node.args.get("unit")
    name = "day" if period is None else period.name
    first = rows.value(node.expression)
    last = rows.value(node.this)
    moments = timestamps.instants([first, last])
    if moments is not None:
        return timestamps.difference(name, moments[0], moments[1])
    return dates.difference(name, as_date(first, node.expression), as_date(last, node.this))


def _interval(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers a constant INTERVAL; its amount may be written as a string."""
    amount = literal(node.this)
    if isinstance(amount, str):
        amount = literal(exp.Literal.number(amount))
    if not isinstance(amount, Fraction) or node.args.get("unit") is None:
        raise UnsupportedSql(
            "An INTERVAL that is not written as a number and a unit.", remedy="INTERVAL 7 DAY"
        )
    return dates.interval(amount, node.args["unit"].name)


DATE_FUNCTIONS: Functions = {
    exp.Extract: _extract,
    exp.Year: _part,
    exp.Quarter: _part,
    exp.Month: _part,
    exp.Week: _part,
    exp.WeekOfYear: _part,
    exp.Dayname: _name_of_part,
    exp.Monthname: _name_of_part,
    exp.ToChar: _format,
    exp.TimeToStr: _format,
    exp.Hour: _part,
    exp.Minute: _part,
    exp.Second: _part,
    exp.TimeToUnix: _epoch,
    exp.Day: _part,
    exp.DayOfMonth: _part,
    exp.DayOfWeek: _part,
    exp.DayOfWeekIso: _part,
    exp.DayOfYear: _part,
    exp.TimestampTrunc: _trunc_date,
    exp.DateTrunc: _trunc_date,
    exp.LastDay: _last_day,
    exp.DateDiff: _difference,
    exp.Interval: _interval,
}

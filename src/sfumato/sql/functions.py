# SPDX-License-Identifier: Apache-2.0
"""The functions of a row that are allowed, each with what it becomes; no other function is."""

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.plan.scalar import Like, Not
from sfumato.sql import arithmetic, dates, labels
from sfumato.sql.literal import is_answered, literal, whole
from sfumato.sql.reject import reject, require_only
from sfumato.sql.row_expressions import (
    Functions,
    Rows,
    as_date,
    as_label,
    as_number,
    coalesced,
    extreme,
    null_where_equal,
)
from sfumato.sql.typed import Day, Interval, Label, Number, Truth, Typed, Words, known, number

WHOLE = ("int", "bigint", "integer", "hugeint", "int128")
FLOATING = ("double", "float", "real")


def _add(rows: Rows, node: exp.Expr) -> Typed:
    sign = -1 if isinstance(node, exp.Sub) else 1
    one, other = rows.value(node.this), rows.value(node.expression)
    moment = dates.as_day(one) if isinstance(one, Day) or isinstance(other, Interval) else None
    later = dates.as_day(other) if isinstance(other, Day) or isinstance(one, Day) else None
    days = [
        each
        for typed, each in ((one, node.this), (other, node.expression))
        if isinstance(typed, Number)
    ]
    if (moment is not None or later is not None) and any(map(is_answered, days)):
        raise UnsupportedSql(
            "A date plus or minus the answer of a sub-query, which may be no whole number of days.",
            remedy="Compare with a date: day > (SELECT MEDIAN(day) FROM ...), or write the number of days.",
        )
    if moment is not None and later is not None and sign < 0:
        return dates.difference("day", later, moment)
    if moment is not None and isinstance(other, Interval | Number):
        return dates.shifted(moment, other, sign)
    if isinstance(other, Day) and isinstance(one, Interval | Number) and sign > 0:
        return dates.shifted(other, one, sign)
    first, second = as_number(one, node.this), as_number(other, node.expression)
    return arithmetic.add(first, second if sign > 0 else arithmetic.negate(second))


def _multiply(rows: Rows, node: exp.Expr) -> Typed:
    return arithmetic.multiply(rows.number(node.this), rows.number(node.expression))


def _divide(rows: Rows, node: exp.Expr) -> Typed:
    divisor = node.expression
    while isinstance(divisor, exp.Paren):
        divisor = divisor.this
    skips = isinstance(divisor, exp.Nullif) and literal(divisor.expression) == 0
    below = rows.number(divisor.this if skips else divisor)
    if not skips and known(below) is not None and is_answered(node.expression):
        raise arithmetic.may_be_zero()
    if skips:
        rows.tell_divisor(below, divisor.this)
    return arithmetic.divide(rows.number(node.this), below, skips_zero=skips)


def _modulo(rows: Rows, node: exp.Expr) -> Typed:
    if is_answered(node.expression):
        raise UnsupportedSql(
            "MOD by the answer of a sub-query, which may not be positive.", remedy="MOD(column, 7)"
        )
    return arithmetic.remainder(rows.number(node.this), rows.number(node.expression))


def _power(rows: Rows, node: exp.Expr) -> Typed:
    base, found = rows.number(node.this), number(1)
    for _ in range(whole(node.expression, "A power", 1, 4)):
        found = arithmetic.multiply(found, base)
    return found


def _round(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "decimals")
    places = node.args.get("decimals")
    return arithmetic.rounded(
        rows.number(node.this), 0 if places is None else whole(places, "ROUND to digits", -9, 9)
    )


def _of_number(function: Callable[[Number], Number]) -> Callable[[Rows, exp.Expr], Typed]:
    def lowered(rows: Rows, node: exp.Expr) -> Typed:
        require_only(node, "this")
        return function(rows.number(node.this))

    return lowered


def _bucket(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "min_value", "max_value", "num_buckets")
    bounds = [node.args.get(each) for each in ("min_value", "max_value")]
    low, high = (
        None if each is None or is_answered(each) else known(rows.value(each)) for each in bounds
    )
    if not isinstance(low, Fraction) or not isinstance(high, Fraction) or low >= high:
        raise UnsupportedSql(
            "WIDTH_BUCKET without constant bounds.", remedy="WIDTH_BUCKET(column, 0, 200, 20)"
        )
    count = whole(node.args.get("num_buckets"), "WIDTH_BUCKET: a number of buckets", 1, 99_998)
    return arithmetic.bucket(rows.number(node.this), low, high, count)


def _extreme(rows: Rows, node: exp.Expr) -> Typed:
    values = [rows.value(each) for each in (node.this, *node.expressions)]
    return extreme(values, greatest=isinstance(node, exp.Greatest))


def _coalesce(rows: Rows, node: exp.Expr) -> Typed:
    return coalesced([rows.value(each) for each in (node.this, *node.expressions)])


def _nullif(rows: Rows, node: exp.Expr) -> Typed:
    one, other = rows.comparable(node.this, node.expression)
    rows.tell(one, other)
    return null_where_equal(one, other)


def _cast(rows: Rows, node: exp.Expr) -> Typed:
    kind = _type_name(node.args["to"])
    operand = rows.value(node.this)
    if kind == "date":
        constant = known(operand)
        return (
            dates.literal_day(constant)
            if isinstance(constant, str)
            else as_date(operand, node.this)
        )
    if isinstance(operand, Label) and isinstance(node, exp.TryCast):
        operand = labels.measured(operand, labels.to_number)
    if isinstance(operand, Truth):
        operand = as_number(operand, node.this)
    if not isinstance(operand, Number):
        raise UnsupportedSql(
            f"A CAST of {node.this.sql(dialect='duckdb')[:60]} to {kind.upper()[:20]}: one row could make it fail.",
            remedy="Declare the column as sf.Integer or sf.Real; of a Category, TRY_CAST(column AS INTEGER).",
        )
    if kind in FLOATING:
        return operand
    if kind in WHOLE:
        return arithmetic.rounded(operand)
    raise UnsupportedSql(
        f"A CAST to {kind.upper()[:20]}.",
        allowed="INTEGER, BIGINT, DOUBLE",
        remedy="ROUND(column, 2)",
    )


def _type_name(to: exp.Expr) -> str:
    # to write out a tree is dear, and what a question casts to is a date most of all
    is_date = (
        isinstance(to, exp.DataType) and to.this is exp.DataType.Type.DATE and not to.expressions
    )
    return "date" if is_date else to.sql(dialect="duckdb").lower()


def _extract(rows: Rows, node: exp.Expr) -> Typed:
    return dates.part_of(node.this.name, rows.day(node.expression))


def _part(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this")
    return dates.part_of(type(node).__name__, rows.day(node.this))


def _trunc_date(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "unit")
    return dates.trunc(node.args["unit"].name, rows.day(node.this))


def _difference(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "expression", "unit", "date_part_boundary")
    unit = node.args.get("unit")
    return dates.difference(
        "day" if unit is None else unit.name, rows.day(node.expression), rows.day(node.this)
    )


def _interval(rows: Rows, node: exp.Expr) -> Typed:
    amount = literal(node.this)
    exact = literal(exp.Literal.number(amount)) if isinstance(amount, str) else amount
    if not isinstance(exact, Fraction) or node.args.get("unit") is None:
        raise UnsupportedSql(
            "An INTERVAL that is not written as a number and a unit.", remedy="INTERVAL 7 DAY"
        )
    return dates.interval(exact, node.args["unit"].name)


def _mapped(function: Callable[[str], str]) -> Callable[[Rows, exp.Expr], Typed]:
    def lowered(rows: Rows, node: exp.Expr) -> Typed:
        require_only(node, "this")
        return labels.mapped(rows.label(node.this), function)

    return lowered


def _trim(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "expression", "position")
    characters = _text(node.expression) if node.args.get("expression") else " "
    trims = {"LEADING": str.lstrip, "TRAILING": str.rstrip}
    trim = trims.get(str(node.args.get("position") or ""), str.strip)
    return labels.mapped(rows.label(node.this), lambda label: trim(label, characters))


def _substring(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "start", "length")
    length = node.args.get("length")
    size = None if length is None else whole(length, "SUBSTRING of a length", 0, 10_000)
    cut = labels.substring(
        whole(node.args.get("start"), "SUBSTRING from a place", -10_000, 10_000), size
    )
    return labels.mapped(rows.label(node.this), cut)


def _side(rows: Rows, node: exp.Expr) -> Typed:
    count = whole(node.expression, "LEFT or RIGHT: a number of characters", 0, 10_000)
    if isinstance(node, exp.Left):
        return labels.mapped(rows.label(node.this), lambda label: label[:count])
    return labels.mapped(rows.label(node.this), lambda label: label[max(len(label) - count, 0) :])


def _join(rows: Rows, node: exp.Expr) -> Typed:
    parts = node.flatten() if isinstance(node, exp.DPipe) else node.expressions
    return labels.joined([rows.label(each) for each in parts])


def _replace(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "expression", "replacement")
    old, new = _text(node.expression), _text(node.args.get("replacement"))
    return labels.mapped(
        rows.label(node.this), lambda label: label.replace(old, new) if old else label
    )


def _length(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this")
    return labels.measured(rows.label(node.this), len)


def _like(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "expression", "negate")
    operand, pattern = rows.value(node.this), _text(node.expression)
    ignore_case = isinstance(node, exp.ILike)
    if isinstance(operand, Words) and not ignore_case:
        found = Truth(Like(operand.expression, pattern))
    else:
        found = labels.matching(
            as_label(operand, node.this), labels.like(pattern, ignore_case=ignore_case)
        )
    return Truth(Not(found.test)) if node.args.get("negate") else found


def _regex(rows: Rows, node: exp.Expr) -> Typed:
    require_only(node, "this", "expression")
    test = labels.regex(_text(node.expression), whole=isinstance(node, exp.RegexpFullMatch))
    return labels.matching(rows.label(node.this), test)


def _contains(rows: Rows, node: exp.Expr) -> Typed:
    wanted = _text(node.expression)
    starts = isinstance(node, exp.StartsWith)
    test: Callable[[str], bool] = (
        (lambda label: label.startswith(wanted)) if starts else (lambda label: wanted in label)
    )
    return labels.matching(rows.label(node.this), test)


def _text(node: exp.Expr | None) -> str:
    value = literal(node)
    if not isinstance(value, str):
        raise UnsupportedSql(
            "A pattern or a text that is not a constant.", remedy="Write it: LIKE 'R0%'"
        )
    return value


def _unnamed(rows: Rows, node: exp.Expr) -> Typed:
    """Functions that the parser does not know by name."""
    parts = node.expressions
    if str(node.this).upper() in ("DATE_PART", "DATEPART") and len(parts) == 2:
        return dates.part_of(_text(parts[0]), rows.day(parts[1]))
    raise reject(node)


FUNCTIONS: Functions = {
    exp.Add: _add,
    exp.Sub: _add,
    exp.Mul: _multiply,
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Pow: _power,
    exp.Neg: _of_number(arithmetic.negate),
    exp.Abs: _of_number(arithmetic.absolute),
    exp.Sign: _of_number(arithmetic.sign),
    exp.Floor: _of_number(arithmetic.floor),
    exp.Ceil: _of_number(arithmetic.ceiling),
    exp.Trunc: _of_number(arithmetic.truncated),
    exp.Round: _round,
    exp.WidthBucket: _bucket,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Year: _part,
    exp.Quarter: _part,
    exp.Month: _part,
    exp.Week: _part,
    exp.WeekOfYear: _part,
    exp.Day: _part,
    exp.DayOfMonth: _part,
    exp.DayOfWeek: _part,
    exp.DayOfWeekIso: _part,
    exp.DayOfYear: _part,
    exp.TimestampTrunc: _trunc_date,
    exp.DateTrunc: _trunc_date,
    exp.DateDiff: _difference,
    exp.DateAdd: _add,
    exp.Interval: _interval,
    exp.Upper: _mapped(str.upper),
    exp.Lower: _mapped(str.lower),
    exp.Reverse: _mapped(lambda label: label[::-1]),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Left: _side,
    exp.Right: _side,
    exp.Concat: _join,
    exp.DPipe: _join,
    exp.Replace: _replace,
    exp.Length: _length,
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: _regex,
    exp.RegexpFullMatch: _regex,
    exp.StartsWith: _contains,
    exp.Contains: _contains,
    exp.Anonymous: _unnamed,
}

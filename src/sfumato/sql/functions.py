# SPDX-License-Identifier: Apache-2.0
"""The allowed functions and operators of row expressions, each with its lowering."""

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.plan.scalar import Not
from sfumato.sql import arithmetic, dates, formats, labels, lattice, texts, timestamps
from sfumato.sql.date_functions import DATE_FUNCTIONS, part_of
from sfumato.sql.dividing import divide, modulo, whole_quotient
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
from sfumato.sql.typed import (
    Day,
    Instant,
    Interval,
    Label,
    Number,
    Truth,
    Typed,
    Words,
    known,
    number,
)

_TRIMS = {"LEADING": str.lstrip, "TRAILING": str.rstrip}
WHOLE = ("int", "bigint", "integer", "hugeint", "int128")
FLOATING = ("double", "float", "real")
TIMES = ("timestamp", "timestamptz")


def _add(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the operators + and - on numbers, dates and intervals."""
    sign = -1 if isinstance(node, exp.Sub) else 1
    left = rows.value(node.this)
    right = rows.value(node.expression)
    if isinstance(left, Instant) or isinstance(right, Instant):
        return timestamps.added(left, right, sign)
    if isinstance(left, Day | Interval) or isinstance(right, Day | Interval):
        shifted = _add_to_date(node, left, right, sign)
        if shifted is not None:
            return shifted
        if isinstance(constant := known(left), str) and isinstance(right, Interval):
            timestamps.written(constant)
            raise UnsupportedSql(
                "An INTERVAL added to a constant timestamp.", remedy="Write the later time."
            )
    first = as_number(left, node.this)
    second = as_number(right, node.expression)
    if sign < 0:
        second = arithmetic.negate(second)
    return arithmetic.add(first, second)


def _add_to_date(
    node: exp.Expr,
    left: Typed,
    right: Typed,
    sign: int,
) -> Typed | None:
    """Lowers + and - with a date or an interval as an operand; None if the operands are numbers."""
    moment = later = None
    if isinstance(left, Day) or isinstance(right, Interval):
        moment = dates.as_day(left)
    if isinstance(left, Day) or isinstance(right, Day):
        later = dates.as_day(right)
    if moment is not None or later is not None:
        for typed, operand in ((left, node.this), (right, node.expression)):
            if isinstance(typed, Number) and is_answered(operand):
                raise UnsupportedSql(
                    "A date plus or minus the answer of a sub-query, "
                    "which may be no whole number of days.",
                    remedy="Compare with a date: day > (SELECT MEDIAN(day) FROM ...), "
                    "or write the number of days.",
                )
    if moment is not None and later is not None and sign < 0:
        return dates.difference("day", later, moment)
    if moment is not None and isinstance(right, Interval | Number):
        return dates.shifted(moment, right, sign)
    if isinstance(right, Day) and isinstance(left, Interval | Number) and sign > 0:
        return dates.shifted(right, left, sign)
    return None


def _multiply(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the operator *."""
    one = rows.number(node.this)
    other = rows.number(node.expression)
    return arithmetic.multiply(one, other)


def _power(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function POWER with a constant exponent from 1 to 4."""
    base = rows.number(node.this)
    power = number(1)
    for _ in range(whole(node.expression, "A power", 1, 4)):
        power = arithmetic.multiply(power, base)
    return power


def _round(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function ROUND."""
    require_only(node, "this", "decimals")
    places = node.args.get("decimals")
    operand = rows.number(node.this)
    if places is None:
        return arithmetic.rounded(operand)
    return arithmetic.rounded(operand, whole(places, "ROUND to digits", -9, 9))


def _of_number(function: Callable[[Number], Number]) -> Callable[[Rows, exp.Expr], Typed]:
    """Returns the lowering of a function of one number."""

    def lowered(rows: Rows, node: exp.Expr) -> Typed:
        require_only(node, "this")
        return function(rows.number(node.this))

    return lowered


def _bucket(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function WIDTH_BUCKET with constant bounds."""
    require_only(node, "this", "min_value", "max_value", "num_buckets")
    low = _bound(rows, node.args.get("min_value"))
    high = _bound(rows, node.args.get("max_value"))
    if not isinstance(low, Fraction) or not isinstance(high, Fraction) or low >= high:
        raise UnsupportedSql(
            "WIDTH_BUCKET without constant bounds.", remedy="WIDTH_BUCKET(column, 0, 200, 20)"
        )
    count = whole(node.args.get("num_buckets"), "WIDTH_BUCKET: a number of buckets", 1, 99_998)
    return arithmetic.bucket(rows.number(node.this), low, high, count)


def _bound(rows: Rows, node: exp.Expr | None) -> Fraction | str | bool | None:
    """Returns a constant of the statement; None for the answer of a scalar sub-query."""
    if node is None or is_answered(node):
        return None
    return known(rows.value(node))


def _values(rows: Rows, node: exp.Expr) -> list[Typed]:
    """Returns the arguments of a function of one or more values."""
    return [rows.value(operand) for operand in (node.this, *node.expressions)]


def _extreme(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions LEAST and GREATEST."""
    return extreme(_values(rows, node), greatest=isinstance(node, exp.Greatest))


def _coalesce(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function COALESCE."""
    return coalesced(_values(rows, node))


def _nullif(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function NULLIF."""
    one, other = rows.comparable(node.this, node.expression)
    rows.tell(one, other)
    return null_where_equal(one, other)


def _cast(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions CAST and TRY_CAST to a date or a number."""
    kind = _type_name(node.args["to"])
    operand = rows.value(node.this)
    if kind == "date":
        constant = known(operand)
        if isinstance(constant, str):
            return dates.literal_day(constant)
        return as_date(operand, node.this)
    if kind in TIMES and isinstance(operand, Instant):
        return operand
    if kind in TIMES and isinstance(constant := known(operand), str):
        return timestamps.written(constant)
    if kind == "timestamp" and isinstance(operand, Day):
        return timestamps.midnight(operand)
    if kind in ("text", "varchar"):
        return formats.as_text(operand)
    if isinstance(operand, Label) and isinstance(node, exp.TryCast):
        operand = labels.measured(operand, labels.to_number)
    if isinstance(operand, Truth):
        operand = as_number(operand, node.this)
    if isinstance(operand, Instant):
        raise UnsupportedSql(
            f"A CAST of a timestamp to {kind.upper()[:20]}.",
            allowed="DATE",
            remedy="HOUR(column), DATE_TRUNC('hour', column), EXTRACT(EPOCH FROM column)",
        )
    if not isinstance(operand, Number):
        shown = node.this.sql(dialect="duckdb")[:60]
        raise UnsupportedSql(
            f"A CAST of {shown} to {kind.upper()[:20]}: one row could make it fail.",
            remedy="Declare the column as sf.Integer or sf.Real; "
            "of a Category, TRY_CAST(column AS INTEGER).",
        )
    if kind in FLOATING:
        return operand
    if kind in WHOLE:
        return arithmetic.rounded(operand)
    digits = decimal_places(node.args["to"])
    if digits is not None and _fits_decimal(operand, node.args["to"], digits):
        return arithmetic.rounded(operand, digits)
    raise UnsupportedSql(
        f"A CAST to {kind.upper()[:20]}.",
        allowed="INTEGER, BIGINT, DOUBLE, VARCHAR, and DECIMAL(p, s) that every value fits into",
        remedy="ROUND(column, 2)",
    )


def decimal_places(to: exp.Expr) -> int | None:
    """Returns the scale s of a SQL type DECIMAL(p, s); None for another type."""
    if not isinstance(to, exp.DataType) or to.this is not exp.DataType.Type.DECIMAL:
        return None
    sizes = [literal(part.this) for part in to.expressions]
    digits = sizes[1] if len(sizes) > 1 else 0
    return int(digits) if isinstance(digits, Fraction) and digits <= 9 else None


def _fits_decimal(operand: Number, to: exp.Expr, digits: int) -> bool:
    """Whether no value of a number is too large for DECIMAL(p, s): SQL would fail at that row."""
    precision = literal(to.expressions[0].this) if to.expressions else Fraction(18)
    if not isinstance(precision, Fraction):
        return False
    largest = lattice.largest(operand.expression) * operand.step
    return largest + Fraction(1, 2) < Fraction(10) ** (int(precision) - digits)


def _type_name(to: exp.Expr) -> str:
    """Returns the name of a type in lower case."""
    # generating SQL is slow, and most casts are to a date
    is_plain = isinstance(to, exp.DataType) and not to.expressions
    if is_plain and to.this is exp.DataType.Type.DATE:
        return "date"
    return to.sql(dialect="duckdb").lower()


def _mapped(function: Callable[[str], str]) -> Callable[[Rows, exp.Expr], Typed]:
    """Returns the lowering of a function of one string."""

    def lowered(rows: Rows, node: exp.Expr) -> Typed:
        require_only(node, "this")
        return labels.mapped(rows.label(node.this), function)

    return lowered


def _in_case(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions UPPER and LOWER."""
    require_only(node, "this")
    operand = rows.value(node.this)
    is_upper = isinstance(node, exp.Upper)
    if isinstance(operand, Words):
        rows.note(texts.ASCII_NOTE)
        return texts.in_case(operand, upper=is_upper)
    function = labels.upper_case if is_upper else labels.lower_case
    return labels.mapped(as_label(operand, node.this), function)


def _trim(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function TRIM."""
    require_only(node, "this", "expression", "position")
    characters = " "
    if node.args.get("expression"):
        characters = _text(node.expression)
    position = str(node.args.get("position") or "")
    operand = rows.value(node.this)
    if isinstance(operand, Words) and characters == " ":
        return texts.trimmed(operand, position)
    trim = _TRIMS.get(position, str.strip)

    def trimmed(label: str) -> str:
        return trim(label, characters)

    return labels.mapped(as_label(operand, node.this), trimmed)


def _substring(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function SUBSTRING."""
    require_only(node, "this", "start", "length")
    length = node.args.get("length")
    size = None
    if length is not None:
        size = whole(length, "SUBSTRING of a length", 0, 10_000)
    operand = rows.value(node.this)
    first = 1 if isinstance(operand, Words) else -10_000
    start = whole(node.args.get("start"), "SUBSTRING from a place", first, 10_000)
    if isinstance(operand, Words):
        return texts.substring(operand, start, size)
    return labels.mapped(as_label(operand, node.this), labels.substring(start, size))


def _side(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions LEFT and RIGHT."""
    count = whole(node.expression, "LEFT or RIGHT: a number of characters", 0, 10_000)
    operand = rows.value(node.this)
    if isinstance(node, exp.Left) and isinstance(operand, Words):
        return texts.beginning(operand, count)
    label = as_label(operand, node.this)
    if isinstance(node, exp.Left):
        return labels.mapped(label, lambda label: label[:count])

    def right(label: str) -> str:
        return label[max(len(label) - count, 0) :]

    return labels.mapped(label, right)


def _join(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function CONCAT and the operator ||."""
    parts = list(node.flatten()) if isinstance(node, exp.DPipe) else node.expressions
    operands = [_as_words(rows.value(part)) for part in parts]
    strings = [as_label(operand, part) for operand, part in zip(operands, parts, strict=True)]
    return labels.joined(strings)


def _as_words(operand: Typed) -> Typed:
    """Returns an operand of || or CONCAT as a string if it is a number or a date."""
    return formats.as_text(operand) if isinstance(operand, Number | Day) else operand


def _replace(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function REPLACE; replacing an empty string changes nothing."""
    require_only(node, "this", "expression", "replacement")
    old = _text(node.expression)
    new = _text(node.args.get("replacement"))
    operand = rows.label(node.this)
    if not old:
        return labels.mapped(operand, lambda label: label)
    return labels.mapped(operand, lambda label: label.replace(old, new))


def _length(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL function LENGTH."""
    require_only(node, "this")
    return labels.measured(rows.label(node.this), len)


def _like(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the operators LIKE and ILIKE."""
    require_only(node, "this", "expression", "negate")
    operand = rows.value(node.this)
    pattern = _text(node.expression)
    ignore_case = isinstance(node, exp.ILike)
    if isinstance(operand, Words):
        if ignore_case:
            rows.note(texts.ASCII_NOTE)
        matches = texts.like(operand, pattern, ignore_case=ignore_case)
    else:
        label = as_label(operand, node.this)
        matches = labels.matching(label, labels.like(pattern, ignore_case=ignore_case))
    if node.args.get("negate"):
        return Truth(Not(matches.test))
    return matches


def _position(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions STRPOS and POSITION."""
    require_only(node, "this", "substr")
    wanted = _text(node.args.get("substr"))
    return labels.measured(rows.label(node.this), lambda label: label.find(wanted) + 1)


def _regex(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions REGEXP_MATCHES and REGEXP_FULL_MATCH."""
    require_only(node, "this", "expression")
    is_whole = isinstance(node, exp.RegexpFullMatch)
    test = labels.regex(_text(node.expression), whole=is_whole)
    return labels.matching(rows.label(node.this), test)


def _contains(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers the SQL functions STARTS_WITH, ENDS_WITH and CONTAINS."""
    wanted = _text(node.expression)
    operand = rows.value(node.this)
    if isinstance(operand, Words):
        if isinstance(node, exp.StartsWith):
            return texts.starts_with(operand, wanted)
        return texts.contains(operand, wanted, at_end=isinstance(node, exp.EndsWith))
    label = as_label(operand, node.this)
    if isinstance(node, exp.StartsWith):
        return labels.matching(label, lambda label: label.startswith(wanted))
    if isinstance(node, exp.EndsWith):
        return labels.matching(label, lambda label: label.endswith(wanted))
    return labels.matching(label, lambda label: wanted in label)


def _text(node: exp.Expr | None) -> str:
    """Returns a constant string of the statement."""
    value = literal(node)
    if not isinstance(value, str):
        raise UnsupportedSql(
            "A pattern or a text that is not a constant.", remedy="Write it: LIKE 'R0%'"
        )
    return value


def _unnamed(rows: Rows, node: exp.Expr) -> Typed:
    """Lowers SQL functions that the parser does not know: DATE_PART."""
    parts = node.expressions
    if str(node.this).upper() in ("DATE_PART", "DATEPART") and len(parts) == 2:
        return part_of(_text(parts[0]), rows, parts[1])
    raise reject(node)


FUNCTIONS: Functions = {
    exp.Add: _add,
    exp.Sub: _add,
    exp.Mul: _multiply,
    exp.Div: divide,
    exp.IntDiv: whole_quotient,
    exp.Mod: modulo,
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
    exp.DateAdd: _add,
    **DATE_FUNCTIONS,
    exp.Upper: _in_case,
    exp.Lower: _in_case,
    exp.Reverse: _mapped(lambda label: label[::-1]),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Left: _side,
    exp.Right: _side,
    exp.Concat: _join,
    exp.DPipe: _join,
    exp.Replace: _replace,
    exp.Length: _length,
    exp.StrPosition: _position,
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: _regex,
    exp.RegexpFullMatch: _regex,
    exp.StartsWith: _contains,
    exp.EndsWith: _contains,
    exp.Contains: _contains,
    exp.Anonymous: _unnamed,
}

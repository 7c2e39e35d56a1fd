# SPDX-License-Identifier: Apache-2.0
"""Other spellings of what the language has: FETCH FIRST, = ANY, TO_DATE of a constant, and more.

``parse`` rewrites a syntax tree once, before anything reads it; a statement without these
spellings stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql.formats import read_moment, strftime_of
from sfumato.sql.literal import literal

_DATE = exp.DataType.build("date")
_TIMESTAMP = exp.DataType.build("timestamp")


def respelled(statement: exp.Select) -> exp.Select:
    """Rewrites synonyms of supported SQL constructs in a statement to the standard form, in place.

    >>> from sqlglot import parse_one
    >>> respelled(parse_one("SELECT a FROM t FETCH FIRST 2 ROWS ONLY", dialect="duckdb")).sql()
    'SELECT a FROM t LIMIT 2'

    Raises:
        UnsupportedSql: FETCH with ties, or a constant date that does not have its format.
    """
    for node in list(statement.walk()):
        if isinstance(node, exp.Select):
            _plain_rows(node, statement)
        elif isinstance(node, exp.Exists) and isinstance(node.this, exp.Select):
            _any_row(node.this)
        rewrite = _REWRITES.get(type(node))
        other = None if rewrite is None else rewrite(node)
        if other is not None:
            node.replace(other)
    return statement


def _plain_rows(select: exp.Select, statement: exp.Select) -> None:
    """Rewrites FETCH FIRST and LIMIT ALL, and drops an ORDER BY that decides about nothing."""
    limit = select.args.get("limit")
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options and (options.args.get("percent") or options.args.get("with_ties")):
            raise UnsupportedSql("FETCH of a percentage, or with ties.", remedy="LIMIT 10")
        count = limit.args.get("count") or exp.Literal.number(1)
        select.set("limit", exp.Limit(expression=count))
    elif isinstance(limit, exp.Limit) and limit.expression.name.upper() == "ALL":
        select.set("limit", None)
    decides = select.args.get("limit") or select.args.get("offset") or select.args.get("distinct")
    if select is not statement and not decides:
        select.set("order", None)


def _any_row(select: exp.Select) -> None:
    """Drops the LIMIT of EXISTS (SELECT ... LIMIT 1)."""
    limit = select.args.get("limit")
    if isinstance(limit, exp.Limit) and literal(limit.expression) == 1:
        select.set("limit", None)
        if not select.args.get("offset"):
            select.set("order", None)


def _any_of(node: exp.Expr) -> exp.Expr | None:
    """Returns ``x IN (list)`` for ``x = ANY(list)``."""
    other = node.expression
    if not isinstance(other, exp.Any):
        return None
    return _membership(node.this, other.this)


def _none_of(node: exp.Expr) -> exp.Expr | None:
    """Returns ``NOT x IN (list)`` for ``x <> ALL(list)``."""
    other = node.expression
    if not isinstance(other, exp.Anonymous) or str(other.this).upper() != "ALL":
        return None
    inner = _membership(node.this, other.expressions[0] if other.expressions else None)
    return None if inner is None else exp.Not(this=inner)


def _membership(operand: exp.Expr, listed: exp.Expr | None) -> exp.Expr | None:
    while isinstance(listed, exp.Paren):
        listed = listed.this
    if isinstance(listed, exp.Array):
        return exp.In(this=operand, expressions=listed.expressions)
    if isinstance(listed, exp.Placeholder | exp.Parameter):
        return exp.In(this=operand, expressions=[listed])
    return None


def _row_in_list(node: exp.Expr) -> exp.Expr | None:
    """Returns ``a = 1 AND b = 2 OR ...`` for ``(a, b) IN ((1, 2), ...)``."""
    rows = node.expressions
    if not isinstance(node.this, exp.Tuple) or not rows:
        return None
    columns = node.this.expressions
    arms = []
    for row in rows:
        if not isinstance(row, exp.Tuple) or len(row.expressions) != len(columns):
            return None
        equal = [
            exp.EQ(this=column.copy(), expression=value)
            for column, value in zip(columns, row.expressions, strict=True)
        ]
        arms.append(exp.and_(*equal, copy=False))
    return exp.Paren(this=exp.or_(*arms, copy=False))


def _distinct_from(node: exp.Expr) -> exp.Expr:
    """Returns IS DISTINCT FROM, or its negation, by tests that are never NULL."""
    left, right = node.this, node.expression
    if isinstance(right, exp.Null):
        same: exp.Expr = exp.Is(this=left, expression=exp.Null())
    else:
        missing = [exp.Is(this=side.copy(), expression=exp.Null()) for side in (left, right)]
        known_sides = [exp.Not(this=test.copy()) for test in missing]
        equal = exp.and_(*known_sides, exp.EQ(this=left, expression=right), copy=False)
        same = exp.or_(exp.and_(*missing, copy=False), equal, copy=False)
    inner = exp.Paren(this=same)
    return exp.Not(this=inner) if isinstance(node, exp.NullSafeNEQ) else inner


def _date_call(node: exp.Expr) -> exp.Expr | None:
    """Returns CAST(x AS DATE) for DATE(x)."""
    if node.args.get("zone") or node.expressions or node.this is None:
        return None
    return exp.Cast(this=node.this, to=_DATE.copy())


def _date_of_parts(node: exp.Expr) -> exp.Expr | None:
    """Returns DATE '...' for MAKE_DATE of constants."""
    parts = [node.args.get(name) for name in ("year", "month", "day")]
    numbers = [literal(part) for part in parts]
    written = "-".join(str(number) for number in numbers)
    return _constant(written, "%Y-%m-%d", _DATE)


def _read_constant(node: exp.Expr) -> exp.Expr | None:
    """Returns a constant timestamp for TO_TIMESTAMP or STRPTIME of constants."""
    written = literal(node.this)
    pattern = literal(node.args.get("scale") or node.args.get("format"))
    if not isinstance(written, str):
        return None
    if isinstance(pattern, str):
        is_strptime = isinstance(node, exp.StrToTime)
        pattern = pattern if is_strptime else strftime_of(pattern)
        return _constant(written, pattern, _TIMESTAMP)
    return exp.Cast(this=exp.Literal.string(written), to=_TIMESTAMP.copy())


def _constant(written: str, pattern: str, kind: exp.DataType) -> exp.Expr:
    moment = read_moment(written, pattern)
    shown = moment.date().isoformat() if kind is _DATE else moment.isoformat(" ")
    return exp.Cast(this=exp.Literal.string(shown), to=kind.copy())


def _unnamed(node: exp.Expr) -> exp.Expr | None:
    """Returns the other spelling of a function that the parser does not know."""
    parts = node.expressions
    match str(node.this).upper(), len(parts):
        case "DATE_FORMAT", 2:
            return _in_format(parts[0], literal(parts[1]), of_mysql=True)
        case "FORMAT_DATE", 2:
            return _in_format(parts[1], literal(parts[0]), of_mysql=False)
        case "DATEPART", 2 if isinstance(parts[0], exp.Column):
            unit = parts[0].name
            if unit.lower() not in _PARTS:
                raise UnsupportedSql(
                    "DATEPART of another part, which databases count from different days.",
                    allowed=", ".join(_PARTS),
                    remedy="EXTRACT(ISODOW FROM day), EXTRACT(WEEK FROM day)",
                )
            named = exp.Literal.string(unit)
            return exp.Anonymous(this="DATE_PART", expressions=[named, parts[1]])
        case "DATEADD", 3 if isinstance(parts[0], exp.Column):
            return _later(parts[2], literal(parts[1]), parts[0].name)
        case "APPROX_PERCENTILE", 2:
            return exp.ApproxQuantile(this=parts[0], quantile=parts[1])
        case "ISNULL", 2:
            return exp.Coalesce(this=parts[0], expressions=[parts[1]])
        case "CURDATE", 0:
            return exp.CurrentDate()
        case "TO_DATE", 1 | 2:
            written = literal(parts[0])
            pattern = literal(parts[1]) if len(parts) == 2 else "YYYY-MM-DD"
            if isinstance(written, str) and isinstance(pattern, str):
                return _constant(written, strftime_of(pattern), _DATE)
        case "DATE_SUB", 2 if isinstance(parts[1], exp.Interval):
            return exp.Sub(this=parts[0], expression=parts[1])
        case "AGE", 1:
            return exp.Anonymous(this="AGE", expressions=[exp.CurrentDate(), parts[0]])
    return None


def _in_format(operand: exp.Expr, pattern: object, *, of_mysql: bool) -> exp.Expr | None:
    """Returns STRFTIME(x, format) for DATE_FORMAT of MySQL and FORMAT_DATE of BigQuery."""
    if not isinstance(pattern, str):
        return None
    if of_mysql:
        if "%" not in pattern:
            # a format of Java ('yyyy-MM'), which MySQL reads as a constant
            return None
        pattern = _OF_MYSQL.sub(lambda found: _MYSQL.get(found[0], found[0]), pattern)
    return exp.TimeToStr(this=operand, format=exp.Literal.string(pattern))


def _later(operand: exp.Expr, count: object, unit: str) -> exp.Expr | None:
    """Returns x + INTERVAL 'n' unit for DATEADD(unit, n, x)."""
    if not isinstance(count, Fraction) or count.denominator != 1:
        return None
    length = exp.Literal.string(str(abs(count)))
    interval = exp.Interval(this=length, unit=exp.var(unit.upper()))
    kind = exp.Add if count >= 0 else exp.Sub
    return exp.Paren(this=kind(this=operand, expression=interval))


def _with_separator(node: exp.Expr) -> exp.Expr | None:
    """Returns a || '-' || b for CONCAT_WS('-', a, b)."""
    separator, *parts = node.expressions
    if not parts:
        return None
    joined = parts[0]
    for part in parts[1:]:
        joined = exp.DPipe(this=joined, expression=separator.copy())
        joined = exp.DPipe(this=joined, expression=part)
    return exp.Paren(this=joined)


def _bucket_of_time(node: exp.Expr) -> exp.Expr | None:
    """Returns DATE_TRUNC for TIME_BUCKET of one week, month or the like: they start alike."""
    width = node.this
    if node.args.get("zone") or node.args.get("origin") or not isinstance(width, exp.Interval):
        return None
    if literal(width.this) != "1" and literal(width.this) != 1:
        return None
    unit = width.args.get("unit")
    return exp.TimestampTrunc(this=node.expression, unit=unit) if unit else None


def _with_rollup(node: exp.Expr) -> exp.Expr | None:
    """Returns GROUP BY ROLLUP(a, b) for GROUP BY a, b WITH ROLLUP."""
    if not any(not rollup.expressions for rollup in node.args.get("rollup") or []):
        return None
    return exp.Group(expressions=[exp.Rollup(expressions=node.expressions)])


# The parts that DATEPART gives alike in every database.
_PARTS = ("year", "quarter", "month", "day", "dayofyear", "hour", "minute", "second")
# Directives of DATE_FORMAT that STRFTIME writes otherwise. %V counts weeks from Sunday there, and
# %U does so here, too, but is not known: it is refused.
_MYSQL = {"%i": "%M", "%s": "%S", "%M": "%B", "%W": "%A", "%v": "%V", "%x": "%G", "%V": "%U"}
_OF_MYSQL = re.compile("%.", re.DOTALL)
_REWRITES: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.EQ: _any_of,
    exp.NEQ: _none_of,
    exp.In: _row_in_list,
    exp.NullSafeEQ: _distinct_from,
    exp.NullSafeNEQ: _distinct_from,
    exp.Date: _date_call,
    exp.DateFromParts: _date_of_parts,
    exp.UnixToTime: _read_constant,
    exp.StrToTime: _read_constant,
    exp.ConcatWs: _with_separator,
    exp.DateBin: _bucket_of_time,
    exp.Group: _with_rollup,
    exp.Anonymous: _unnamed,
}

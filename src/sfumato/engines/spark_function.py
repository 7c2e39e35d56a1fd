# SPDX-License-Identifier: Apache-2.0
"""Translates functions of the emitted SQL to Spark SQL: strings, days, lists, aggregates."""

from sqlglot import exp

from sfumato.engines.spark_kind import (
    TRUTHS,
    WHOLE,
    Kind,
    Rules,
    Typed,
    Writer,
    literal,
    required,
    widened,
)
from sfumato.engines.value_codes import DATE_PATTERN, NUMBER_PATTERN, WHOLE_PATTERN

_PARTS = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    "week": "weekofyear({})",
    "day": "day({})",
    "isodow": "(weekday({}) + 1)",
}
# 2^40 numbers below this add up to less than 2^62.
_PART = 2**22


def _tried(node: exp.Try, write: Writer) -> Typed:
    """Translates TRY of an expression that cannot fail to the expression itself.

    It only hides column statistics from DuckDB's optimizer; on Spark, sources are read without
    them.
    """
    if not isinstance(node.this, exp.Column | exp.Case | exp.Coalesce):
        raise TypeError("TRY of more than a column or a choice")
    return write(node.this)


# --- texts ---------------------------------------------------------------------------------


def _joined(node: exp.DPipe, write: Writer) -> Typed:
    sides = [required(write(side), Kind.VARCHAR) for side in node.flatten()]
    return Typed(f"({' || '.join(sides)})", Kind.VARCHAR)


def _hash(node: exp.MD5, write: Writer) -> Typed:
    value = required(write(node.this), Kind.VARCHAR)
    return Typed(f"md5(CAST({value} AS BINARY))", Kind.VARCHAR)


def _part(node: exp.Substring, write: Writer) -> Typed:
    """Translates a substring with constant start and length."""
    start = _place(node, "start")
    length = _place(node, "length")
    value = required(write(node.this), Kind.VARCHAR)
    return Typed(f"substring({value}, {start}, {length})", Kind.VARCHAR)


def _place(node: exp.Substring, name: str) -> int:
    """Returns an argument of a substring that is a positive constant."""
    constant = node.args.get(name)
    if isinstance(constant, exp.Literal) and constant.this.isdigit() and int(constant.this) > 0:
        return int(constant.this)
    raise TypeError("a part of a text at no constant place")


def _length(node: exp.Length, write: Writer) -> Typed:
    value = required(write(node.this), Kind.VARCHAR)
    return Typed(f"CAST(length({value}) AS BIGINT)", Kind.BIGINT)


def _like(node: exp.Like, write: Writer) -> Typed:
    """Translates LIKE with a constant pattern, in which DuckDB takes a backslash literally."""
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise TypeError("a pattern that is no constant")
    value = required(write(node.this), Kind.VARCHAR)
    escaped = literal(pattern.this.replace(chr(92), chr(92) * 2))
    return Typed(f"({value} LIKE {escaped})", Kind.BOOLEAN)


def _matched(node: exp.RegexpFullMatch, write: Writer) -> Typed:
    """Translates a match of a known pattern, and anchors it.

    These patterns mean the same in Java: they have ASCII classes and repeats, and no anchor.
    """
    if node.expression.this not in (NUMBER_PATTERN, DATE_PATTERN, WHOLE_PATTERN):
        raise TypeError("a pattern that was not compared")
    whole = literal(rf"\A(?:{node.expression.this})\z")
    return Typed(f"({required(write(node.this), Kind.VARCHAR)} RLIKE {whole})", Kind.BOOLEAN)


def _replaced(node: exp.RegexpReplace, write: Writer) -> Typed:
    if (node.expression.this, node.args["replacement"].this) != (r"\.0+$", ""):
        raise TypeError("a pattern that was not compared")
    value = required(write(node.this), Kind.VARCHAR)
    # in Java, $ also matches before a line end at the end
    pattern = literal(node.expression.this[:-1] + chr(92) + "z")
    return Typed(f"regexp_replace({value}, {pattern}, '')", Kind.VARCHAR)


# --- days ----------------------------------------------------------------------------------


def _date_part(node: exp.Anonymous, write: Writer) -> Typed:
    part = node.expressions[0].name if node.name == "date_part" else ""
    if part not in _PARTS:
        raise TypeError(f"{node.name} has no meaning on Spark")
    value = required(write(node.expressions[1]), Kind.DATE)
    return Typed(f"CAST({_PARTS[part].format(value)} AS BIGINT)", Kind.BIGINT)


def _date_trunc(node: exp.Func, write: Writer) -> Typed:
    part = node.args["unit"].name
    if part not in ("YEAR", "QUARTER", "MONTH", "WEEK"):
        raise TypeError(f"the start of a {part}")
    return Typed(f"trunc({required(write(node.this), Kind.DATE)}, '{part}')", Kind.DATE)


def _days_between(node: exp.DateDiff, write: Writer) -> Typed:
    if node.args["unit"].name != "DAY":
        raise TypeError("a difference that is not in days")
    last = required(write(node.this), Kind.DATE)
    first = required(write(node.expression), Kind.DATE)
    return Typed(f"CAST(datediff({last}, {first}) AS BIGINT)", Kind.BIGINT)


# --- lists ---------------------------------------------------------------------------------


def _list(node: exp.Array, write: Writer) -> Typed:
    values = [widened(write(value), Kind.BIGINT) for value in node.expressions]
    return Typed(f"array({', '.join(values)})", Kind.LIST)


def _element(node: exp.Bracket, write: Writer) -> Typed:
    """Translates an index, which starts at 1 on DuckDB; one beyond the list gives NULL on both."""
    (place,) = node.expressions
    index = f"CAST({required(write(place), Kind.BIGINT)} - 1L AS INT)"
    return Typed(f"get({required(write(node.this), Kind.LIST)}, {index})", Kind.BIGINT)


def _sorted(node: exp.ArraySort, write: Writer) -> Typed:
    """Translates a sort with NULL first.

    Spark puts NULL first in ascending order only; for descending order the list is negated.
    """
    inside = required(write(node.this), Kind.LIST)
    ascending = node.args.get("asc")
    if ascending is None or ascending.this:
        return Typed(f"sort_array({inside}, true)", Kind.LIST)
    return Typed(f"transform(sort_array(transform({inside}, a -> -a), true), a -> -a)", Kind.LIST)


def _filtered(node: exp.ArrayFilter, write: Writer) -> Typed:
    if node.expression.sql(dialect="duckdb") != "LAMBDA x : x <> 0":
        raise TypeError("a test that is not x <> 0")
    return Typed(f"filter({required(write(node.this), Kind.LIST)}, a -> a <> 0L)", Kind.LIST)


# --- aggregates and windows ----------------------------------------------------------------


def _aggregate(
    node: exp.Expr,
    write: Writer,
    after: str = "",
) -> Typed:
    """Translates an aggregate or a rank; ``after`` is its FILTER or OVER clause."""
    match node:
        case exp.RowNumber() | exp.DenseRank():
            name = "row_number" if isinstance(node, exp.RowNumber) else "dense_rank"
            return Typed(f"{name}(){after}", Kind.INTEGER)
        case exp.Count():
            return Typed(f"count({_counted(node.this, write)}){after}", Kind.BIGINT)
        case exp.Sum():
            return Typed(_added(node.this, write, after), Kind.HUGEINT)
        case exp.Min() | exp.Max():
            value = write(node.this)
            name = "min" if isinstance(node, exp.Min) else "max"
            return Typed(f"{name}({value.sql}){after}", value.kind)
        case exp.ArgMin():
            value = write(node.this)
            return Typed(f"min_by({value.sql}, {write(node.expression).sql}){after}", value.kind)
        case _:
            raise TypeError(f"{type(node).__name__} is no aggregate")


def _added(node: exp.Expr, write: Writer, after: str) -> str:
    """Translates a sum.

    On Spark a sum has the type of its operand, so 64-bit numbers are split into pieces of 22 bits
    that are added up separately.
    """
    value = write(node)
    if required(value, *WHOLE) and value.kind is Kind.HUGEINT:
        return f"sum({value.sql}){after}"
    whole = widened(value, Kind.BIGINT)
    huge = Kind.HUGEINT.value
    if write.narrow and node.find(exp.Mul) is None:
        return f"CAST(sum({whole}){after} AS {huge})"
    pieces = (
        f"shiftright({whole}, 44)",
        f"shiftright({whole}, 22) & {_PART - 1}L",
        f"{whole} & {_PART - 1}L",
    )
    high, middle, low = (f"CAST(sum({piece}){after} AS {huge})" for piece in pieces)
    return f"(({high} * {_PART}BD + {middle}) * {_PART}BD + {low})"


def _counted(node: exp.Expr, write: Writer) -> str:
    if isinstance(node, exp.Star):
        return "1"
    if isinstance(node, exp.Distinct):
        (inner,) = node.expressions
        return f"DISTINCT {write(inner).sql}"
    return write(node).sql


def _with_filter(node: exp.Filter, write: Writer) -> Typed:
    test = required(write(node.expression.this), *TRUTHS)
    return _aggregate(node.this, write, f" FILTER (WHERE {test})")


def _with_window(node: exp.Window, write: Writer) -> Typed:
    partition = ", ".join(write(key).sql for key in node.args["partition_by"])
    order = []
    if node.args.get("order"):
        order = [_ordered(key, write) for key in node.args["order"].expressions]
    elif isinstance(node.this, exp.RowNumber):
        # Spark requires an order; this one makes all rows equal
        order = ["NULL"]
    by = f" ORDER BY {', '.join(order)}" if order else ""
    return _aggregate(
        node.this,
        write,
        f" OVER (PARTITION BY {partition}{by})",
    )


def _ordered(node: exp.Ordered, write: Writer) -> str:
    direction = "DESC" if node.args.get("desc") else "ASC"
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{write(node.this).sql} {direction} NULLS {nulls}"


FUNCTIONS: Rules = {
    exp.Try: (_tried, "this"),
    exp.DPipe: (_joined, "this expression safe"),
    exp.MD5: (_hash, "this"),
    exp.Substring: (_part, "this start length"),
    exp.Length: (_length, "this"),
    exp.Like: (_like, "this expression"),
    exp.RegexpFullMatch: (_matched, "this expression"),
    exp.RegexpReplace: (_replaced, "this expression replacement single_replace"),
    exp.Anonymous: (_date_part, "this expressions"),
    exp.DateTrunc: (_date_trunc, "this unit"),
    exp.TimestampTrunc: (_date_trunc, "this unit"),
    exp.DateDiff: (_days_between, "this expression unit date_part_boundary"),
    exp.Array: (_list, "expressions"),
    exp.Bracket: (_element, "this expressions"),
    exp.ArraySort: (_sorted, "this asc nulls_first"),
    exp.ArrayFilter: (_filtered, "this expression"),
    exp.Count: (_aggregate, "this big_int"),
    exp.Sum: (_aggregate, "this"),
    exp.Min: (_aggregate, "this"),
    exp.Max: (_aggregate, "this"),
    exp.ArgMin: (_aggregate, "this expression"),
    exp.Filter: (_with_filter, "this expression"),
    exp.Window: (_with_window, "this partition_by order over"),
}

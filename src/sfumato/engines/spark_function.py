# SPDX-License-Identifier: Apache-2.0
"""Functions of the emitted SQL on Spark: texts, days, lists, aggregates, windows."""

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
    """What cannot fail is itself; that no source believes its statistics is seen to where it is read."""
    if not isinstance(node.this, exp.Column | exp.Case | exp.Coalesce):
        raise TypeError("TRY of more than a column or a choice")
    return write(node.this)


# --- texts ---------------------------------------------------------------------------------


def _joined(node: exp.DPipe, write: Writer) -> Typed:
    sides = [required(write(each), Kind.VARCHAR) for each in node.flatten()]
    return Typed(f"({' || '.join(sides)})", Kind.VARCHAR)


def _hash(node: exp.MD5, write: Writer) -> Typed:
    return Typed(f"md5(CAST({required(write(node.this), Kind.VARCHAR)} AS BINARY))", Kind.VARCHAR)


def _part(node: exp.Substring, write: Writer) -> Typed:
    """From a constant place on, so many letters."""
    places = [
        each.this
        for name in ("start", "length")
        if isinstance(each := node.args.get(name), exp.Literal)
    ]
    if len(places) != 2 or not all(each.isdigit() and int(each) > 0 for each in places):
        raise TypeError("a part of a text at no constant place")
    start, length = map(int, places)
    return Typed(
        f"substring({required(write(node.this), Kind.VARCHAR)}, {start}, {length})", Kind.VARCHAR
    )


def _length(node: exp.Length, write: Writer) -> Typed:
    return Typed(f"CAST(length({required(write(node.this), Kind.VARCHAR)}) AS BIGINT)", Kind.BIGINT)


def _like(node: exp.Like, write: Writer) -> Typed:
    """A backslash is itself on DuckDB."""
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise TypeError("a pattern that is no constant")
    value = required(write(node.this), Kind.VARCHAR)
    return Typed(
        f"({value} LIKE {literal(pattern.this.replace(chr(92), chr(92) * 2))})", Kind.BOOLEAN
    )


def _matched(node: exp.RegexpFullMatch, write: Writer) -> Typed:
    """These patterns mean the same to Java: ASCII classes, repeats, no anchor; here they get theirs."""
    if node.expression.this not in (NUMBER_PATTERN, DATE_PATTERN, WHOLE_PATTERN):
        raise TypeError("a pattern that was not compared")
    whole = literal(rf"\A(?:{node.expression.this})\z")
    return Typed(f"({required(write(node.this), Kind.VARCHAR)} RLIKE {whole})", Kind.BOOLEAN)


def _replaced(node: exp.RegexpReplace, write: Writer) -> Typed:
    if (node.expression.this, node.args["replacement"].this) != (r"\.0+$", ""):
        raise TypeError("a pattern that was not compared")
    value = required(write(node.this), Kind.VARCHAR)
    # to Java, $ is before a last line end too
    return Typed(
        f"regexp_replace({value}, {literal(node.expression.this[:-1] + chr(92) + 'z')}, '')",
        Kind.VARCHAR,
    )


# --- days ----------------------------------------------------------------------------------


def _date_part(node: exp.Anonymous, write: Writer) -> Typed:
    part = node.expressions[0].name if node.name == "date_part" else ""
    if part not in _PARTS:
        raise TypeError(f"{node.name} has no meaning on Spark")
    value = required(write(node.expressions[1]), Kind.DATE)
    return Typed(f"CAST({_PARTS[part].format(value)} AS BIGINT)", Kind.BIGINT)


def _date_trunc(node: exp.Func, write: Writer) -> Typed:
    unit = node.args["unit"].name
    if unit not in ("YEAR", "QUARTER", "MONTH", "WEEK"):
        raise TypeError(f"the start of a {unit}")
    return Typed(f"trunc({required(write(node.this), Kind.DATE)}, '{unit}')", Kind.DATE)


def _days_between(node: exp.DateDiff, write: Writer) -> Typed:
    if node.args["unit"].name != "DAY":
        raise TypeError("a difference that is not in days")
    last, first = (required(write(each), Kind.DATE) for each in (node.this, node.expression))
    return Typed(f"CAST(datediff({last}, {first}) AS BIGINT)", Kind.BIGINT)


# --- lists ---------------------------------------------------------------------------------


def _list(node: exp.Array, write: Writer) -> Typed:
    values = ", ".join(widened(write(each), Kind.BIGINT) for each in node.expressions)
    return Typed(f"array({values})", Kind.LIST)


def _element(node: exp.Bracket, write: Writer) -> Typed:
    """The first place is 1 on DuckDB; beyond the list is NULL on both."""
    (place,) = node.expressions
    index = f"CAST({required(write(place), Kind.BIGINT)} - 1L AS INT)"
    return Typed(f"get({required(write(node.this), Kind.LIST)}, {index})", Kind.BIGINT)


def _sorted(node: exp.ArraySort, write: Writer) -> Typed:
    """NULL first; on Spark it is so in ascending order alone, and a descending list is one of negatives."""
    inside, ascending = required(write(node.this), Kind.LIST), node.args.get("asc")
    if ascending is None or ascending.this:
        return Typed(f"sort_array({inside}, true)", Kind.LIST)
    return Typed(f"transform(sort_array(transform({inside}, a -> -a), true), a -> -a)", Kind.LIST)


def _filtered(node: exp.ArrayFilter, write: Writer) -> Typed:
    if node.expression.sql(dialect="duckdb") != "LAMBDA x : x <> 0":
        raise TypeError("a test that is not x <> 0")
    return Typed(f"filter({required(write(node.this), Kind.LIST)}, a -> a <> 0L)", Kind.LIST)


# --- aggregates and windows ----------------------------------------------------------------


def _aggregate(node: exp.Expr, write: Writer, after: str = "") -> Typed:
    """An aggregate or a rank; ``after`` is its filter or its window."""
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
            return Typed(
                f"{'min' if isinstance(node, exp.Min) else 'max'}({value.sql}){after}", value.kind
            )
        case exp.ArgMin():
            value = write(node.this)
            return Typed(f"min_by({value.sql}, {write(node.expression).sql}){after}", value.kind)
        case _:
            raise TypeError(f"{type(node).__name__} is no aggregate")


def _added(node: exp.Expr, write: Writer, after: str) -> str:
    """A sum, which on Spark has the type of what is added: of 64 bits the parts of 22 bits are added apart."""
    value = write(node)
    if required(value, *WHOLE) and value.kind is Kind.HUGEINT:
        return f"sum({value.sql}){after}"
    whole, huge = widened(value, Kind.BIGINT), Kind.HUGEINT.value
    if write.narrow and node.find(exp.Mul) is None:
        return f"CAST(sum({whole}){after} AS {huge})"
    parts = (
        f"shiftright({whole}, 44)",
        f"shiftright({whole}, 22) & {_PART - 1}L",
        f"{whole} & {_PART - 1}L",
    )
    high, middle, low = (f"CAST(sum({each}){after} AS {huge})" for each in parts)
    return f"(({high} * {_PART}BD + {middle}) * {_PART}BD + {low})"


def _counted(node: exp.Expr, write: Writer) -> str:
    if isinstance(node, exp.Star):
        return "1"
    if isinstance(node, exp.Distinct):
        (inner,) = node.expressions
        return f"DISTINCT {write(inner).sql}"
    return write(node).sql


def _with_filter(node: exp.Filter, write: Writer) -> Typed:
    return _aggregate(
        node.this, write, f" FILTER (WHERE {required(write(node.expression.this), *TRUTHS)})"
    )


def _with_window(node: exp.Window, write: Writer) -> Typed:
    partition = ", ".join(write(each).sql for each in node.args["partition_by"])
    order = (
        [_ordered(each, write) for each in node.args["order"].expressions]
        if node.args.get("order")
        else []
    )
    if not order and isinstance(node.this, exp.RowNumber):
        # Spark asks for an order; here every row is alike
        order = ["NULL"]
    by = f" ORDER BY {', '.join(order)}" if order else ""
    return _aggregate(node.this, write, f" OVER (PARTITION BY {partition}{by})")


def _ordered(node: exp.Ordered, write: Writer) -> str:
    direction = "DESC" if node.args.get("desc") else "ASC"
    return f"{write(node.this).sql} {direction} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


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

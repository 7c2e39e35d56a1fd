# SPDX-License-Identifier: Apache-2.0
"""Prints the functions of the SQL tree as Spark SQL: strings, days, lists, aggregates."""

from collections.abc import Callable, Iterable, Mapping
from string import ascii_lowercase, ascii_uppercase

from sfumato.engines import sql_tree as sql
from sfumato.engines.spark_kind import (
    TRUTHS,
    WHOLE,
    Kind,
    Rules,
    Typed,
    Writer,
    alike,
    literal,
    required,
    widened,
)
from sfumato.engines.value_codes import DATE_PATTERN, NUMBER_PATTERN, WHOLE_PATTERN
from sfumato.metadata.date_format import FORMATS, date_pattern, iso_order
from sfumato.metadata.moment_format import FORMATS as MOMENT_FORMATS
from sfumato.metadata.moment_format import moment_order, moment_pattern
from sfumato.metadata.timestamp import MOMENT_PATTERN

# The patterns of declared formats of dates and times, and the orders of their groups that are
# those of ISO.
_DATES = {
    *(date_pattern(form) for form in FORMATS),
    *(moment_pattern(form) for form in MOMENT_FORMATS),
}
_ORDERS = {
    *((date_pattern(form), iso_order(form)) for form in FORMATS),
    *((moment_pattern(form), moment_order(form)) for form in MOMENT_FORMATS),
}
_PARTS = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    "week": "weekofyear({})",
    "day": "day({})",
    "isodow": "(weekday({}) + 1)",
}
_STARTS = ("year", "quarter", "month", "week")
# 2^40 numbers below this add up to less than 2^62.
_PART = 2**22
# A number of this many hexadecimal digits is below 2^60.
_MOST_DIGITS = 15


def _code_points(node: sql.CodePoints, write: Writer) -> Typed:
    """Prints the text itself: a source is read in the plain collation, UTF8_BINARY."""
    text = write(node.value)
    required(text, Kind.VARCHAR)
    return text


def _opaque(node: sql.Opaque, write: Writer) -> Typed:
    """Prints the value itself: on Spark, sources are read without statistics."""
    if not isinstance(node.value, sql.Column | sql.Case) and not _is_coalesce(node.value):
        raise TypeError("more than a column or a choice")
    return write(node.value)


def _is_coalesce(node: sql.Expression) -> bool:
    return isinstance(node, sql.Call) and node.name == "coalesce"


def _operands(node: sql.Call, count: int) -> tuple[sql.Expression, ...]:
    """Returns the operands of a function.

    Raises:
        TypeError: it has more or fewer.
    """
    if len(node.operands) != count:
        raise TypeError(f"{node.name} of {len(node.operands)}")
    return node.operands


def _word(node: sql.Expression) -> str:
    """Returns a string constant; "" for anything else."""
    if isinstance(node, sql.Constant) and isinstance(node.value, str):
        return node.value
    return ""


# --- numbers -------------------------------------------------------------------------------


def _chosen(node: sql.Call, write: Writer) -> Typed:
    """Prints COALESCE, and GREATEST and LEAST, which skip NULL on both engines."""
    values, kind = alike(node.operands, write)
    if len(values) == 1:
        return Typed(values[0], kind)
    return Typed(f"{node.name}({', '.join(values)})", kind)


def _null_if(node: sql.Call, write: Writer) -> Typed:
    (value, other), kind = alike(_operands(node, 2), write)
    return Typed(f"nullif({value}, {other})", kind)


def _floor(node: sql.Call, write: Writer) -> Typed:
    (value,) = _operands(node, 1)
    return Typed(f"CAST(floor({required(write(value), Kind.DOUBLE)}) AS DOUBLE)", Kind.DOUBLE)


def _root(node: sql.Call, write: Writer) -> Typed:
    (value,) = _operands(node, 1)
    return Typed(f"sqrt({required(write(value), Kind.DOUBLE)})", Kind.DOUBLE)


def _non_zero(node: sql.NonZero, write: Writer) -> Typed:
    listed = _array((node.value,), write)
    return Typed(f"get(filter({listed}, a -> a <> 0L), {_FIRST})", Kind.BIGINT)


# --- texts ---------------------------------------------------------------------------------


def _joined(node: sql.Concat, write: Writer) -> Typed:
    sides = [required(write(side), Kind.VARCHAR) for side in node.operands]
    return Typed(f"({' || '.join(sides)})", Kind.VARCHAR)


def _hash(node: sql.Call, write: Writer) -> Typed:
    (value,) = _operands(node, 1)
    return Typed(f"md5(CAST({required(write(value), Kind.VARCHAR)} AS BINARY))", Kind.VARCHAR)


def _length(node: sql.Call, write: Writer) -> Typed:
    (value,) = _operands(node, 1)
    return Typed(f"CAST(length({required(write(value), Kind.VARCHAR)}) AS BIGINT)", Kind.BIGINT)


def _hex_number(node: sql.HexNumber, write: Writer) -> Typed:
    """Prints the number that digits spell: up to 15 of them, so that it fits."""
    if node.start < 1 or not 1 <= node.length <= _MOST_DIGITS:
        raise TypeError("a hexadecimal number that may not fit")
    value = required(write(node.digits), Kind.VARCHAR)
    digits = f"substring({value}, {node.start}, {node.length})"
    return Typed(f"try_cast(conv({digits}, 16, 10) AS BIGINT)", Kind.BIGINT)


def _whole_number(node: sql.WholeNumber, write: Writer) -> Typed:
    """Prints a cast of the strings alone that both engines accept."""
    value = required(write(node.text), Kind.VARCHAR)
    test = _full_match(value, WHOLE_PATTERN)
    number = f"try_cast({value} AS BIGINT)"
    return Typed(f"(CASE WHEN {test} THEN {number} ELSE CAST(NULL AS BIGINT) END)", Kind.BIGINT)


def _like(node: sql.Like, write: Writer) -> Typed:
    """Prints LIKE, in whose pattern DuckDB takes a backslash literally."""
    value = required(write(node.value), Kind.VARCHAR)
    escaped = literal(node.pattern.replace(chr(92), chr(92) * 2))
    return Typed(f"({value} LIKE {escaped})", Kind.BOOLEAN)


def _matched(node: sql.Call, write: Writer) -> Typed:
    """Prints a match of a known pattern.

    These patterns mean the same in Java: they have ASCII classes and repeats, and no anchor.
    """
    value, pattern = _operands(node, 2)
    word = _word(pattern)
    if word not in (NUMBER_PATTERN, DATE_PATTERN, MOMENT_PATTERN, *_DATES):
        raise TypeError("a pattern that was not compared")
    return Typed(_full_match(required(write(value), Kind.VARCHAR), word), Kind.BOOLEAN)


def _full_match(value: str, pattern: str) -> str:
    """Returns a match of the whole string, which needs anchors on Spark."""
    whole = literal(rf"\A(?:{pattern})\z")
    return f"({value} RLIKE {whole})"


def _piece(node: sql.Call, write: Writer) -> Typed:
    """Prints the characters of a string from a place; a negative one counts from the end."""
    value, start, length = _operands(node, 3)
    places = []
    for place in (start, length):
        if not isinstance(place, sql.Constant) or not isinstance(place.value, int):
            raise TypeError("a piece of a string without constant places")
        places.append(place.value)
    if not places[0]:
        raise TypeError("a place 0")
    text = required(write(value), Kind.VARCHAR)
    return Typed(f"substring({text}, {places[0]}, {places[1]})", Kind.VARCHAR)


def _translated(node: sql.Call, write: Writer) -> Typed:
    """Prints a text with the letters of one case in the other."""
    value, *letters = _operands(node, 3)
    old, new = map(_word, letters)
    if {old, new} != {ascii_lowercase, ascii_uppercase}:
        raise TypeError("letters that were not compared")
    text = required(write(value), Kind.VARCHAR)
    return Typed(f"translate({text}, {literal(old)}, {literal(new)})", Kind.VARCHAR)


def _trimmed(node: sql.Call, write: Writer) -> Typed:
    """Prints a text without the spaces at its ends: the function of one operand knows no others."""
    value, characters = _operands(node, 2)
    if _word(characters) != " ":
        raise TypeError("other characters than spaces")
    return Typed(f"{node.name}({required(write(value), Kind.VARCHAR)})", Kind.VARCHAR)


def _replaced(node: sql.Call, write: Writer) -> Typed:
    value, pattern, put = _operands(node, 3)
    if _word(pattern) in _DATES:
        return _reordered(required(write(value), Kind.VARCHAR), _word(pattern), _word(put))
    if (_word(pattern), put) != (r"\.0+$", sql.Constant("")):
        raise TypeError("a pattern that was not compared")
    # in Java, $ also matches before a line end at the end
    whole = literal(_word(pattern)[:-1] + chr(92) + "z")
    raw = required(write(value), Kind.VARCHAR)
    return Typed(f"regexp_replace({raw}, {whole}, '')", Kind.VARCHAR)


def _reordered(
    value: str,
    pattern: str,
    order: str,
) -> Typed:
    """Prints the parts of a date in the order of ISO; Java writes a group as $1."""
    if (pattern, order) not in _ORDERS:
        raise TypeError("an order of a date that was not compared")
    groups = literal(order.replace(chr(92), "$"))
    return Typed(f"regexp_replace({value}, {literal(pattern)}, {groups})", Kind.VARCHAR)


# --- days ----------------------------------------------------------------------------------


def _date_of_code(node: sql.DateOfCode, write: Writer) -> Typed:
    days = required(write(node.days), Kind.BIGINT)
    start = "CAST('1970-01-01' AS DATE)"
    return Typed(f"date_add({start}, try_cast({days} AS INT))", Kind.DATE)


def _date_part(node: sql.Call, write: Writer) -> Typed:
    part, day = _operands(node, 2)
    if _word(part) not in _PARTS:
        raise TypeError("a part of a date that was not compared")
    value = required(write(day), Kind.DATE)
    return Typed(f"CAST({_PARTS[_word(part)].format(value)} AS BIGINT)", Kind.BIGINT)


def _date_trunc(node: sql.Call, write: Writer) -> Typed:
    part, day = _operands(node, 2)
    if _word(part) not in _STARTS:
        raise TypeError("the start of a part that was not compared")
    value = required(write(day), Kind.DATE)
    return Typed(f"trunc({value}, '{_word(part).upper()}')", Kind.DATE)


def _days_between(node: sql.Call, write: Writer) -> Typed:
    part, first, last = _operands(node, 3)
    if _word(part) != "day":
        raise TypeError("a difference that is not in days")
    days = [required(write(day), Kind.DATE) for day in (last, first)]
    return Typed(f"CAST(datediff({days[0]}, {days[1]}) AS BIGINT)", Kind.BIGINT)


def _microseconds(node: sql.Call, write: Writer) -> Typed:
    """Prints the microseconds since 1970 of a moment, or of a time without a zone as in UTC.

    The time zone of a session is UTC (``spark``), so the cast moves nothing.
    """
    (value,) = _operands(node, 1)
    moment = write(value)
    required(moment, Kind.INSTANT, Kind.TIMESTAMP)
    return Typed(f"unix_micros({widened(moment, Kind.INSTANT)})", Kind.BIGINT)


# --- lists ---------------------------------------------------------------------------------


def _list(node: sql.ListOf, write: Writer) -> Typed:
    if node.type not in (None, sql.SqlType.BIGINT):
        raise TypeError("a list of narrow integers")
    return Typed(_array(node.values, write), Kind.LIST)


def _array(nodes: Iterable[sql.Expression], write: Writer) -> str:
    """Prints a list of integers of 64 bits."""
    values = []
    for node in nodes:
        value = write(node)
        required(value, Kind.NULL, Kind.INTEGER, Kind.BIGINT)
        values.append(widened(value, Kind.BIGINT))
    return f"array({', '.join(values)})"


def _element(node: sql.Element, write: Writer) -> Typed:
    """Prints an index, which starts at 1 on DuckDB; one beyond the list gives NULL on both."""
    index = f"CAST({required(write(node.index), Kind.BIGINT)} - 1L AS INT)"
    return Typed(f"get({required(write(node.list), Kind.LIST)}, {index})", Kind.BIGINT)


def _first_of(node: sql.FirstOf, write: Writer) -> Typed:
    """Prints the first of a sorted list, NULL before all others.

    Spark puts NULL first in ascending order only; for descending order the list is negated.
    """
    listed = _array(node.values, write)
    ordered = f"sort_array({listed}, true)"
    if node.greatest:
        negated = f"sort_array(transform({listed}, a -> -a), true)"
        ordered = f"transform({negated}, a -> -a)"
    return Typed(f"get({ordered}, {_FIRST})", Kind.BIGINT)


_FIRST = "CAST(1L - 1L AS INT)"


# --- aggregates and windows ----------------------------------------------------------------


def _aggregate(node: sql.Aggregate, write: Writer) -> Typed:
    after = ""
    if node.where is not None:
        after = f" FILTER (WHERE {required(write(node.where), *TRUTHS)})"
    return _aggregated(node, write, after)


def _aggregated(
    node: sql.Aggregate,
    write: Writer,
    after: str,
) -> Typed:
    """Prints an aggregate or a rank; ``after`` is its FILTER or OVER clause."""
    if node.distinct and node.name != "count":
        raise TypeError(f"{node.name} of distinct values")
    match node.name, node.operands:
        case "row_number" | "rank" | "dense_rank", ():
            return Typed(f"{node.name}(){after}", Kind.INTEGER)
        case "count", (value,):
            return Typed(f"count({_counted(node, value, write)}){after}", Kind.BIGINT)
        case "sum", (value,):
            return Typed(_added(value, write, after), Kind.HUGEINT)
        case "min" | "max", (value,):
            read = write(value)
            return Typed(f"{node.name}({read.sql}){after}", read.kind)
        case "lag" | "lead", (value, sql.Constant(int(offset))):
            read = write(value)
            return Typed(f"{node.name}({read.sql}, {offset}){after}", read.kind)
        case "min_by", (value, key):
            read = write(value)
            return Typed(f"min_by({read.sql}, {write(key).sql}){after}", read.kind)
        case _:
            raise TypeError(f"{node.name} is no aggregate")


def _added(node: sql.Expression, write: Writer, after: str) -> str:
    """Prints a sum.

    On Spark a sum has the type of its operand, so 64-bit numbers are split into pieces of 22 bits
    that are added up separately.
    """
    value = write(node)
    if required(value, *WHOLE) and value.kind is Kind.HUGEINT:
        return f"sum({value.sql}){after}"
    whole = widened(value, Kind.BIGINT)
    huge = Kind.HUGEINT.value
    if write.narrow and not _is_product(node):
        return f"CAST(sum({whole}){after} AS {huge})"
    pieces = (
        f"shiftright({whole}, 44)",
        f"shiftright({whole}, 22) & {_PART - 1}L",
        f"{whole} & {_PART - 1}L",
    )
    high, middle, low = (f"CAST(sum({piece}){after} AS {huge})" for piece in pieces)
    return f"(({high} * {_PART}BD + {middle}) * {_PART}BD + {low})"


def _is_product(node: sql.Expression) -> bool:
    """Whether there is a product in an expression."""
    return any(isinstance(part, sql.Binary) and part.sign == "*" for part in sql.inside(node))


def _counted(node: sql.Aggregate, value: sql.Expression, write: Writer) -> str:
    if value == sql.Star():
        return "1"
    distinct = "DISTINCT " if node.distinct else ""
    return f"{distinct}{write(value).sql}"


def _window(node: sql.Window, write: Writer) -> Typed:
    if node.function.where is not None or not node.partition:
        raise TypeError("a window with a filter, or over all rows")
    partition = ", ".join(write(key).sql for key in node.partition)
    order = [_ordered(key, write) for key in node.order]
    if not order and node.function.name in ("row_number", "rank", "dense_rank", "lag", "lead"):
        # Spark requires an order; this one makes all rows equal
        order = ["NULL"]
    by = f" ORDER BY {', '.join(order)}" if order else ""
    return _aggregated(node.function, write, f" OVER (PARTITION BY {partition}{by})")


def _ordered(node: sql.Expression, write: Writer) -> str:
    if not isinstance(node, sql.Ordered):
        node = sql.Ordered(node)
    return f"{write(node.value).sql} {node.direction or 'ASC'} NULLS {node.nulls or 'LAST'}"


CALLS: Mapping[str, Callable[[sql.Call, Writer], Typed]] = {
    "coalesce": _chosen,
    "greatest": _chosen,
    "least": _chosen,
    "nullif": _null_if,
    "floor": _floor,
    "sqrt": _root,
    "md5": _hash,
    "length": _length,
    "substr": _piece,
    "translate": _translated,
    "trim": _trimmed,
    "ltrim": _trimmed,
    "rtrim": _trimmed,
    "epoch_us": _microseconds,
    "regexp_full_match": _matched,
    "regexp_replace": _replaced,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "date_diff": _days_between,
}
FUNCTIONS: Rules = {
    sql.Opaque: _opaque,
    sql.CodePoints: _code_points,
    sql.Concat: _joined,
    sql.HexNumber: _hex_number,
    sql.WholeNumber: _whole_number,
    sql.Like: _like,
    sql.DateOfCode: _date_of_code,
    sql.NonZero: _non_zero,
    sql.ListOf: _list,
    sql.Element: _element,
    sql.FirstOf: _first_of,
    sql.Aggregate: _aggregate,
    sql.Window: _window,
}

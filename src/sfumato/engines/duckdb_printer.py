# SPDX-License-Identifier: Apache-2.0
"""Prints the SQL tree as DuckDB SQL. Proof: duckdb_printer.proof.md."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sfumato.engines.sql_tree import (
    Aggregate,
    As,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    CodePoints,
    Column,
    Concat,
    Constant,
    DateOfCode,
    Day,
    Each,
    Element,
    FirstOf,
    HexNumber,
    In,
    IsNull,
    Item,
    Join,
    Like,
    ListOf,
    Lists,
    Logic,
    Named,
    Node,
    NonZero,
    Not,
    Opaque,
    Ordered,
    Paren,
    RoundHalfEven,
    Select,
    SqlType,
    Star,
    Table,
    TryCast,
    Typed,
    UnionAll,
    WholeNumber,
    Window,
    With,
)
from sfumato.engines.value_codes import WHOLE_PATTERN

# What a node is written as: words of SQL, and nodes inside of it.
Pieces: TypeAlias = Sequence["str | Node"]

_ROUNDER = "6755399441055744.0::DOUBLE"


def printed(node: Node) -> str:
    """Returns a node of the SQL tree as DuckDB SQL.

    Guarantees:
        a tree is printed as the statement that it is

    Raises:
        KeyError: a node of a class that has no rule.

    >>> from sfumato.engines.sql_tree import number
    >>> printed(Binary("+", Column("Age", quoted=True), number(1)))
    '"Age" + 1::BIGINT'
    """
    # with a stack of its own: an expression may be deeper than Python's
    words: list[str] = []
    waiting = [iter(_RULES[type(node)](node))]
    while waiting:
        for piece in waiting[-1]:
            if type(piece) is str:
                words.append(piece)
            else:
                waiting.append(iter(_RULES[type(piece)](piece)))
                break
        else:
            waiting.pop()
    return "".join(words)


def quote(name: str) -> str:
    """Returns a name as a quoted SQL identifier.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Returns a string as a SQL literal.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def _listed(nodes: Iterable[Node], between: str = ", ") -> list[str | Node]:
    """Returns nodes with words between them."""
    pieces: list[str | Node] = []
    for node in nodes:
        if pieces:
            pieces.append(between)
        pieces.append(node)
    return pieces


# --- leaves and values ---------------------------------------------------------------------


def _column(node: Column) -> Pieces:
    name = quote(node.name) if node.quoted else node.name
    if node.table:
        return [f"{node.table}.{name}"]
    return [name]


def _star(node: Star) -> Pieces:
    star = f"{node.table}.*" if node.table else "*"
    if node.without:
        return [f"{star} EXCLUDE ({', '.join(node.without)})"]
    return [star]


def _constant(node: Constant) -> Pieces:
    match node.value:
        case None:
            return ["NULL"]
        case bool():
            return [str(node.value).upper()]
        case str():
            return [text(node.value)]
        case _:
            return [repr(node.value)]


def _day(node: Day) -> Pieces:
    return [f"DATE '{node.value}'"]


def _paren(node: Paren) -> Pieces:
    return ["(", node.value, ")"]


def _cast(node: Cast) -> Pieces:
    return ["CAST(", node.value, f" AS {node.type.value})"]


def _typed(node: Typed) -> Pieces:
    return [node.value, f"::{node.type.value}"]


def _try_cast(node: TryCast) -> Pieces:
    return ["TRY_CAST(", node.value, f" AS {node.type.value})"]


def _binary(node: Binary) -> Pieces:
    return [node.left, f" {node.sign} ", node.right]


def _concat(node: Concat) -> Pieces:
    return _listed(node.operands, " || ")


def _logic(node: Logic) -> Pieces:
    return _listed(node.operands, f" {node.word} ")


def _not(node: Not) -> Pieces:
    return ["NOT ", node.operand]


def _is_null(node: IsNull) -> Pieces:
    return [node.value, " IS NOT NULL" if node.negated else " IS NULL"]


def _between(node: Between) -> Pieces:
    return [node.value, " BETWEEN ", node.low, " AND ", node.high]


def _in(node: In) -> Pieces:
    word = " NOT IN (" if node.negated else " IN ("
    return [node.value, word, *_listed(node.options), ")"]


def _like(node: Like) -> Pieces:
    return [node.value, f" LIKE {text(node.pattern)}"]


def _case(node: Case) -> Pieces:
    pieces: list[str | Node] = ["CASE"]
    for test, result in node.branches:
        pieces += [" WHEN ", test, " THEN ", result]
    if node.otherwise is not None:
        pieces += [" ELSE ", node.otherwise]
    return [*pieces, " END"]


def _call(node: Call) -> Pieces:
    return [f"{node.name}(", *_listed(node.operands), ")"]


# --- idioms --------------------------------------------------------------------------------


def _opaque(node: Opaque) -> Pieces:
    return ["TRY(", node.value, ")"]


def _code_points(node: CodePoints) -> Pieces:
    return ["CAST(", node.value, ' AS VARCHAR) COLLATE "C"']


def _round_half_even(node: RoundHalfEven) -> Pieces:
    return ["TRY_CAST((", node.value, f" + {_ROUNDER}) - {_ROUNDER} AS BIGINT)"]


def _hex_number(node: HexNumber) -> Pieces:
    part = f", {node.start}, {node.length}"
    return ["TRY_CAST('0x' || substr(", node.digits, f"{part}) AS BIGINT)"]


def _whole_number(node: WholeNumber) -> Pieces:
    number = TryCast(node.text, SqlType.BIGINT)
    test = Call("regexp_full_match", (node.text, Constant(WHOLE_PATTERN)))
    return [Case(((test, number),))]


def _date_of_code(node: DateOfCode) -> Pieces:
    return ["(DATE '1970-01-01' + TRY_CAST(", node.days, " AS INTEGER))"]


def _non_zero(node: NonZero) -> Pieces:
    return ["list_filter([", node.value, "], lambda x: x <> 0)[1]"]


def _list_of(node: ListOf) -> Pieces:
    after = "]" if node.type is None else f"]::{node.type.value}[]"
    return ["[", *_listed(node.values), after]


def _element(node: Element) -> Pieces:
    return ["(", node.list, ")[", node.index, "]"]


def _each(node: Each) -> Pieces:
    return ["list_transform(", node.list, f", lambda {node.name}: ", node.value, ")"]


def _first_of(node: FirstOf) -> Pieces:
    order = "DESC" if node.greatest else "ASC"
    values = _listed(node.values)
    return ["list_sort([", *values, f"]::BIGINT[], '{order}', 'NULLS FIRST')[1]"]


# --- aggregates and windows ----------------------------------------------------------------


def _aggregate(node: Aggregate) -> Pieces:
    before = f"{node.name}(DISTINCT " if node.distinct else f"{node.name}("
    pieces = [before, *_listed(node.operands), ")"]
    if node.where is not None:
        pieces += [" FILTER (WHERE ", node.where, ")"]
    return pieces


def _ordered(node: Ordered) -> Pieces:
    direction = f" {node.direction}" if node.direction else ""
    nulls = f" NULLS {node.nulls}" if node.nulls else ""
    return [node.value, direction + nulls]


def _window(node: Window) -> Pieces:
    pieces: list[str | Node] = [node.function, " OVER ("]
    if node.partition:
        pieces += ["PARTITION BY ", *_listed(node.partition)]
    if node.partition and node.order:
        pieces.append(" ")
    if node.order:
        pieces += ["ORDER BY ", *_listed(node.order)]
    return [*pieces, ")"]


# --- rows ----------------------------------------------------------------------------------


def _as(node: As) -> Pieces:
    return [node.value, " AS ", node.name]


def _table(node: Table) -> Pieces:
    return [node.sql]


def _lists(node: Lists) -> Pieces:
    """DuckDB parses and binds lists several times as fast as the same number of rows."""
    items = [Call("unnest", (values,)).named(name) for name, values in node.columns]
    return ["SELECT ", *_listed(items)]


def _item(node: Item) -> Pieces:
    alias = f" AS {node.alias}" if node.alias else ""
    if isinstance(node.source, Table):
        return [node.source, alias]
    return ["(", node.source, ")", alias]


def _join(node: Join) -> Pieces:
    if node.on is None:
        return [f" {node.word} ", node.item]
    return [f" {node.word} ", node.item, " ON ", node.on]


def _select(node: Select) -> Pieces:
    pieces = ["SELECT ", *_listed(node.items)]
    pieces += [_clause(node, "FROM"), node.source, *node.joins]
    if node.where is not None:
        pieces += [_clause(node, "WHERE"), node.where]
    if node.group:
        pieces += [_clause(node, "GROUP BY"), *_listed(node.group)]
    if node.qualify is not None:
        pieces += [_clause(node, "QUALIFY"), node.qualify]
    return pieces


def _clause(node: Select, word: str) -> str:
    before = "\n" if word in node.breaks else " "
    return f"{before}{word} "


def _union_all(node: UnionAll) -> Pieces:
    pieces: list[str | Node] = []
    for query in node.queries:
        pieces += [" UNION ALL (" if pieces else "(", query, ")"]
    return pieces


def _named(node: Named) -> Pieces:
    word = "MATERIALIZED " if node.materialized else ""
    return [f"{node.name} AS {word}(", node.query, ")"]


def _with(node: With) -> Pieces:
    return ["WITH ", *_listed(node.tables, ",\n"), "\n", node.query]


_RULES: Mapping[type[Any], Callable[[Any], Pieces]] = {
    Column: _column,
    Star: _star,
    Constant: _constant,
    Day: _day,
    Paren: _paren,
    Cast: _cast,
    Typed: _typed,
    TryCast: _try_cast,
    Binary: _binary,
    Concat: _concat,
    Logic: _logic,
    Not: _not,
    IsNull: _is_null,
    Between: _between,
    In: _in,
    Like: _like,
    Case: _case,
    Call: _call,
    Opaque: _opaque,
    CodePoints: _code_points,
    RoundHalfEven: _round_half_even,
    HexNumber: _hex_number,
    WholeNumber: _whole_number,
    DateOfCode: _date_of_code,
    NonZero: _non_zero,
    ListOf: _list_of,
    Element: _element,
    Each: _each,
    FirstOf: _first_of,
    Aggregate: _aggregate,
    Ordered: _ordered,
    Window: _window,
    As: _as,
    Table: _table,
    Lists: _lists,
    Item: _item,
    Join: _join,
    Select: _select,
    UnionAll: _union_all,
    Named: _named,
    With: _with,
}

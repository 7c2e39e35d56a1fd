# SPDX-License-Identifier: Apache-2.0
"""DuckDB text as a SQL tree: the inverse of ``duckdb_printer``, by sqlglot's parser.

A function or an operator that the tree does not know stays a ``Call`` or a ``Binary``, for a printer
to refuse. Text cannot tell ``x::T`` from CAST(x AS T): both are ``Cast``; see ``plain``.
"""

from dataclasses import fields, replace
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB

from sfumato.engines import sql_tree as sql
from sfumato.engines.spark_expression import Scope
from sfumato.engines.spark_kind import common, identifier
from sfumato.engines.spark_printer import Rows
from sfumato.engines.value_codes import WHOLE_PATTERN

SIGNS = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseRightShift: ">>",
    exp.BitwiseLeftShift: "<<",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.Pow: "^",
}
TYPES = {
    "TINYINT": sql.SqlType.TINYINT,
    "SMALLINT": sql.SqlType.SMALLINT,
    "INT": sql.SqlType.INTEGER,
    "BIGINT": sql.SqlType.BIGINT,
    "INT128": sql.SqlType.HUGEINT,
    "UTINYINT": sql.SqlType.UTINYINT,
    "USMALLINT": sql.SqlType.USMALLINT,
    "DOUBLE": sql.SqlType.DOUBLE,
    "TEXT": sql.SqlType.VARCHAR,
    "BOOLEAN": sql.SqlType.BOOLEAN,
    "DATE": sql.SqlType.DATE,
}
AGGREGATES = {
    exp.RowNumber: "row_number",
    exp.DenseRank: "dense_rank",
    exp.Rank: "rank",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.ArgMin: "min_by",
    exp.ArgMax: "max_by",
    exp.Avg: "avg",
    exp.Median: "median",
}
NAMES = {exp.RegexpFullMatch: "regexp_full_match", exp.RegexpReplace: "regexp_replace"}
ROUNDER = "6755399441055744.0"


class _Emitted(DuckDB):
    """DuckDB's grammar without sqlglot's change of list indices."""

    INDEX_OFFSET = 0


class Parsed:
    """A query of DuckDB text, and the tables that VALUES wrote in it, for Spark."""

    def __init__(self, text: str) -> None:
        self.tables: dict[str, Rows] = {}
        self.query = self._query(parse_one(text, dialect=_Emitted))

    # --- queries ---------------------------------------------------------------------------

    def _query(self, node: exp.Expr) -> sql.Query:
        match node:
            case exp.Subquery():
                return self._query(node.this)
            case exp.Union():
                queries = [self._query(side) for side in (node.this, node.expression)]
                first = queries[0]
                left = first.queries if isinstance(first, sql.UnionAll) else (first,)
                return sql.UnionAll((*left, queries[1]))
            case exp.Select() if node.args.get("with_"):
                return self._with(node)
            case exp.Select():
                return self._select(node)
            case _:
                raise TypeError(f"{type(node).__name__} is no query")

    def _with(self, node: exp.Select) -> sql.Query:
        named = []
        for table in node.args["with_"].expressions:
            materialized = bool(table.args.get("materialized"))
            named.append(sql.Named(table.alias, self._query(table.this), materialized=materialized))
        rest = node.copy()
        rest.set("with_", None)
        return sql.With(tuple(named), self._query(rest))

    def _select(self, node: exp.Select) -> sql.Select:
        given = {name for name, value in node.args.items() if value}
        odd = given - {"expressions", "from_", "joins", "where", "group", "qualify"}
        if odd:
            raise TypeError(f"a SELECT with {odd}")
        if "group" in given and [*filter(node.args["group"].args.get, node.args["group"].args)] != [
            "expressions"
        ]:
            raise TypeError("a GROUP BY of another form")
        return sql.Select(
            tuple(self._selected(item) for item in node.expressions),
            self._item(node.args["from_"].this),
            tuple(map(self._join, node.args.get("joins") or ())),
            _clause(node, "where"),
            tuple(map(expression_of, node.args["group"].expressions)) if "group" in given else (),
            _clause(node, "qualify"),
        )

    def _selected(self, item: exp.Expr) -> sql.Expression:
        if isinstance(item, exp.Alias):
            name = item.args["alias"]
            return sql.As(expression_of(item.this), sql.Column(name.name, quoted=_is_quoted(name)))
        return expression_of(item)

    def _join(self, node: exp.Join) -> sql.Join:
        if node.args.get("using") or node.method:
            raise TypeError("a join of another form")
        word = " ".join(filter(None, [node.side or node.kind, "JOIN"]))
        on = node.args.get("on")
        return sql.Join(word, self._item(node.this), None if on is None else expression_of(on))

    def _item(self, node: exp.Expr) -> sql.Item:
        match node:
            case exp.Values():
                return self._values(node)
            case exp.Table():
                if not isinstance(node.this, exp.Identifier):
                    raise TypeError("a function stands in FROM")
                return sql.Item(sql.Table(node.this.sql("duckdb")), node.alias)
            case exp.Subquery() if node.this.args.get("from_") is None and isinstance(
                node.this, exp.Select
            ):
                return sql.Item(_lists(node.this), node.alias)
            case exp.Subquery():
                if node.args.get("alias") and node.args["alias"].args.get("columns"):
                    raise TypeError("an alias of columns")
                return sql.Item(self._query(node.this), node.alias)
            case _:
                raise TypeError(f"{type(node).__name__} stands in FROM")

    def _values(self, node: exp.Values) -> sql.Item:
        """VALUES, which no emitter writes, as a table of its own."""
        scope = Scope({}, narrow=False)
        cells = [[scope(_cell(cell)) for cell in row.expressions] for row in node.expressions]
        names = [column.name for column in node.args["alias"].args["columns"]]
        rows = ", ".join(f"({', '.join(cell.sql for cell in row)})" for row in cells)
        kinds = [common(cell.kind for cell in column) for column in zip(*cells, strict=True)]
        columns = ", ".join(map(identifier, names))
        table = f"values {len(self.tables)}"
        self.tables[table] = Rows(
            f"(SELECT * FROM (VALUES {rows}) AS v({columns}))",
            dict(zip(names, kinds, strict=True)),
        )
        return sql.Item(sql.Table(table), node.alias)


_CELLS: list[sql.Expression] = []


def _cell(node: exp.Expr) -> sql.Expression:
    """A cell; kept, for a scope remembers nodes by their identity."""
    _CELLS.append(expression_of(node))
    return _CELLS[-1]


def _lists(node: exp.Select) -> sql.Lists:
    columns = []
    for item in node.expressions:
        values = expression_of(item.this.this)
        assert isinstance(values, sql.ListOf)
        columns.append((item.alias, values))
    return sql.Lists(tuple(columns))


def _clause(node: exp.Select, name: str) -> sql.Expression | None:
    clause = node.args.get(name)
    return None if clause is None else expression_of(clause.this)


def _is_quoted(name: exp.Expr) -> bool:
    return bool(name.args.get("quoted"))


# --- expressions ---------------------------------------------------------------------------


def expression(text: str) -> sql.Expression:
    """An expression of DuckDB text as a tree."""
    return expression_of(parse_one(text, dialect=_Emitted))


def expression_of(node: exp.Expr) -> sql.Expression:
    """An expression of sqlglot's as a tree."""
    idiom = _idiom(node)
    if idiom is not None:
        return idiom
    match node:
        case exp.Literal():
            return sql.Constant(_literal(node))
        case exp.Null():
            return sql.NULL
        case exp.Boolean():
            return sql.Constant(bool(node.this))
        case exp.Star() | exp.Column(this=exp.Star()):
            return _star(node)
        case exp.Column():
            return sql.Column(node.name, node.table, _is_quoted(node.this))
        case exp.Paren():
            return sql.Paren(expression_of(node.this))
        case exp.Neg():
            return _negative(node)
        case exp.TryCast():
            return sql.TryCast(expression_of(node.this), _type(node.to))
        case exp.Cast():
            return _cast(node)
        case exp.And() | exp.Or():
            word = "AND" if isinstance(node, exp.And) else "OR"
            return sql.Logic(word, tuple(map(expression_of, node.flatten(unnest=False))))
        case exp.DPipe():
            return sql.Concat(tuple(map(expression_of, node.flatten(unnest=False))))
        case exp.Not():
            return _not(node)
        case exp.Is(expression=exp.Null()):
            return sql.IsNull(expression_of(node.this))
        case exp.Between():
            return sql.Between(
                *map(expression_of, (node.this, node.args["low"], node.args["high"]))
            )
        case exp.In(expressions=[_, *_]):
            return sql.In(expression_of(node.this), tuple(map(expression_of, node.expressions)))
        case exp.Like(expression=exp.Literal(is_string=True)):
            return sql.Like(expression_of(node.this), node.expression.this)
        case exp.Case() if not node.this:
            return _case(node)
        case exp.Array():
            return sql.ListOf(tuple(map(expression_of, node.expressions)))
        case exp.Bracket():
            (index,) = node.expressions
            inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
            return sql.Element(expression_of(inner), expression_of(index))
        case exp.Ordered():
            return _ordered(node)
        case exp.Filter():
            function = _aggregate(node.this)
            return replace(function, where=expression_of(node.expression.this))
        case exp.Window():
            return _window(node)
        case exp.Explode():
            return sql.call("unnest", expression_of(node.this))
        case exp.Func():
            return _function(node)
        case exp.Binary() if type(node) in SIGNS:
            return sql.Binary(
                SIGNS[type(node)], expression_of(node.this), expression_of(node.expression)
            )
        case _:
            raise TypeError(f"{type(node).__name__} is no node")


def _idiom(node: exp.Expr) -> sql.Expression | None:
    """The node of ours that several words stand for; None if they stand for themselves."""
    match node:
        case exp.Collate(this=exp.Cast() as cast, expression=exp.Identifier(this="C")):
            return sql.CodePoints(expression_of(cast.this))
        case exp.Try():
            return sql.Opaque(expression_of(node.this))
        case exp.TryCast(this=exp.Sub(this=exp.Paren(this=exp.Add() as added))) if (
            added.expression.sql("duckdb") == node.this.expression.sql("duckdb")
            and ROUNDER in added.expression.sql("duckdb")
        ):
            return sql.RoundHalfEven(expression_of(added.this))
        case exp.TryCast(
            this=exp.DPipe(this=exp.Literal(this="0x"), expression=exp.Substring() as digits)
        ):
            return sql.HexNumber(
                expression_of(digits.this),
                int(digits.args["start"].this),
                int(digits.args["length"].this),
            )
        case exp.Case() if _is_whole_number(node):
            return sql.WholeNumber(expression_of(node.args["ifs"][0].this.this))
        case exp.Paren(this=exp.Add(this=exp.Cast() as day, expression=exp.TryCast() as days)) if (
            expression_of(day) == sql.Day("1970-01-01") and days.to.sql() == "INT"
        ):
            return sql.DateOfCode(expression_of(days.this))
        case exp.Bracket(this=exp.ArrayFilter() as kept) if (
            kept.expression.sql(dialect="duckdb") == "LAMBDA x : x <> 0"
        ):
            (value,) = kept.this.expressions
            return sql.NonZero(expression_of(value))
        case exp.Bracket(this=exp.ArraySort() as ordered):
            ascending = ordered.args.get("asc")
            values = expression_of(ordered.this)
            assert isinstance(values, sql.ListOf)
            greatest = ascending is not None and not ascending.this
            return sql.FirstOf(values.values, greatest)
        case _:
            return None


def _is_whole_number(node: exp.Case) -> bool:
    first = node.args["ifs"][0]
    test, value = first.this, first.args["true"]
    return (
        isinstance(test, exp.RegexpFullMatch)
        and test.expression.name == WHOLE_PATTERN
        and isinstance(value, exp.TryCast)
        and value.this == test.this
    )


def _literal(node: exp.Literal) -> int | float | str:
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.this.isdigit() else float(node.this)


def _star(node: exp.Expr) -> sql.Star:
    star = node if isinstance(node, exp.Star) else node.this
    without = star.args.get("except_") or []
    if star.args.get("replace"):
        raise TypeError("a star that replaces")
    table = "" if isinstance(node, exp.Star) else node.args["table"].name
    return sql.Star(table, tuple(column.name for column in without))


def _negative(node: exp.Neg) -> sql.Expression:
    return _negated(expression_of(node.this))


def _negated(value: sql.Expression) -> sql.Expression:
    """A negative constant: DuckDB reads ``-1::BIGINT`` as the negation of a cast."""
    match value:
        case sql.Constant(int() | float() as number):
            return sql.Constant(-number)
        case sql.Cast(inner, kind):
            return sql.Cast(_negated(inner), kind)
        case _:
            raise TypeError("a negation of more than a constant")


def _type(node: exp.DataType) -> sql.SqlType:
    name = node.sql()
    if name not in TYPES:
        raise TypeError(f"a cast to {name}")
    return TYPES[name]


def _cast(node: exp.Cast) -> sql.Expression:
    if isinstance(node.this, exp.Array) and node.to.expressions:
        return sql.ListOf(
            tuple(map(expression_of, node.this.expressions)), _type(node.to.expressions[0])
        )
    kind = _type(node.to)
    if kind is sql.SqlType.DATE and isinstance(node.this, exp.Literal):
        return sql.Day(str(node.this.this))
    return sql.Cast(expression_of(node.this), kind)


def _not(node: exp.Not) -> sql.Expression:
    inner = expression_of(node.this)
    if isinstance(inner, sql.IsNull | sql.In) and not inner.negated:
        return replace(inner, negated=True)
    return sql.Not(inner)


def _case(node: exp.Case) -> sql.Case:
    branches = []
    for branch in node.args["ifs"]:
        branches.append((expression_of(branch.this), expression_of(branch.args["true"])))
    otherwise = node.args.get("default")
    return sql.Case(tuple(branches), None if otherwise is None else expression_of(otherwise))


def _ordered(node: exp.Ordered) -> sql.Expression:
    direction = {True: "DESC", False: "ASC"}.get(node.args.get("desc"), "")
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return sql.Ordered(expression_of(node.this), direction, nulls)


def _aggregate(node: exp.Expr) -> sql.Aggregate:
    if type(node) not in AGGREGATES:
        raise TypeError(f"{type(node).__name__} is no aggregate")
    operands = []
    distinct = False
    for operand in filter(None, map(node.args.get, ("this", "expression", "count", "offset"))):
        if isinstance(operand, exp.Distinct):
            distinct = True
            operands += operand.expressions
        else:
            operands.append(operand)
    operands += node.expressions
    return sql.Aggregate(
        AGGREGATES[type(node)], tuple(map(expression_of, operands)), distinct=distinct
    )


def _window(node: exp.Window) -> sql.Expression:
    if node.args.get("spec"):
        raise TypeError("a frame of a window")
    function = expression_of(node.this)
    if not isinstance(function, sql.Aggregate):
        raise TypeError("a window of no aggregate")
    order = node.args["order"].expressions if node.args.get("order") else ()
    partition = node.args.get("partition_by") or ()
    return sql.Window(
        function, tuple(map(expression_of, partition)), tuple(map(expression_of, order))
    )


def _function(node: exp.Func) -> sql.Expression:
    if type(node) in AGGREGATES:
        return _aggregate(node)
    match node:
        case exp.DateTrunc() | exp.TimestampTrunc():
            part = sql.Constant(node.args["unit"].name.lower())
            return sql.Call("date_trunc", (part, expression_of(node.this)))
        case exp.DateDiff():
            part = sql.Constant(node.args["unit"].name.lower())
            days = expression_of(node.expression), expression_of(node.this)
            return sql.Call("date_diff", (part, *days))
        case exp.RegexpFullMatch() | exp.RegexpReplace():
            given = [node.this, node.expression, node.args.get("replacement")]
            operands = [expression_of(operand) for operand in given if operand]
            return sql.Call(NAMES[type(node)], tuple(operands))
        case exp.Substring():
            places = [node.args[name] for name in ("start", "length")]
            return sql.Call("substr", tuple(map(expression_of, (node.this, *places))))
        case exp.Trim():
            side = {"LEADING": "l", "TRAILING": "r"}.get(node.args.get("position", ""), "")
            operands = [expression_of(node.this), expression_of(node.expression)]
            return sql.Call(f"{side}trim", tuple(operands))
        case exp.Anonymous():
            return sql.Call(node.name, tuple(map(expression_of, node.expressions)))
        case _:
            operands = [value for value in node.args.values() if isinstance(value, exp.Expr)]
            operands += node.expressions
            name = node.sql_name().lower()
            return sql.Call(name, tuple(map(expression_of, operands)))


def plain(node: Any) -> Any:
    """A tree without what its text does not tell: ``Typed`` is ``Cast``, and no clause breaks."""
    if isinstance(node, tuple):
        return tuple(map(plain, node))
    if not hasattr(node, "__dataclass_fields__"):
        return node
    values = {part.name: plain(getattr(node, part.name)) for part in fields(node)}
    if isinstance(node, sql.Typed):
        return sql.Cast(**values)
    if isinstance(node, sql.UnionAll) and len(node.queries) == 1:
        return values["queries"][0]
    if isinstance(node, sql.Select):
        values["breaks"] = ()
    if isinstance(node, sql.Ordered) and not node.nulls:
        values["nulls"] = "LAST"
    if isinstance(node, sql.Window):
        values["order"] = tuple(map(_as_ordered, node.order))
    return type(node)(**values)


def _as_ordered(node: sql.Expression) -> sql.Expression:
    return plain(node if isinstance(node, sql.Ordered) else sql.Ordered(node))

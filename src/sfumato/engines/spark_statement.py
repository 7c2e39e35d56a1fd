# SPDX-License-Identifier: Apache-2.0
"""An emitted DuckDB statement as Spark SQL: SELECT by SELECT, with the type of every column."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB

from sfumato.engines.spark_expression import Columns, Scope
from sfumato.engines.spark_kind import TRUTHS, WHOLE, Kind, Typed, common, identifier, required


class _Emitted(DuckDB):
    """DuckDB's grammar; places of lists stay as they are written."""

    INDEX_OFFSET = 0


_UNIT = identifier("unit")


@dataclass(frozen=True, slots=True)
class Rows:
    """Something to select from, as it stands in FROM, and the types of its columns in order."""

    sql: str
    columns: Columns


def translated(
    sql: str, tables: Mapping[str, Rows], *, narrow: bool, gathered: bool = False
) -> str:
    """A statement on Spark.

    ``tables``: what stands for each table of the statement. ``narrow``: see ``Writer``.
    ``gathered``: rows are sent to where all of their unit are before they are added up by unit and
    group; else what a task has added up is sent, and again where something is asked of the whole unit.

    Raises:
        TypeError: something of which it is not known that Spark means the same.

    >>> people = Rows("people", {"age": Kind.BIGINT})
    >>> translated('SELECT sum(age) // 2 FROM (SELECT age FROM "t")', {"t": people}, narrow=True)
    'SELECT ...'
    """
    return _query(parse_one(sql, dialect=_Emitted), _Context(tables, narrow, gathered)).sql


@dataclass(frozen=True, slots=True)
class _Context:
    """The tables that can be named, whether sums are narrow, whether rows are gathered."""

    tables: Mapping[str, Rows]
    narrow: bool
    gathered: bool


def _given(node: exp.Expr, allowed: str) -> dict[str, Any]:
    """The arguments of a node; TypeError if there are others than those allowed."""
    given = {
        name: value
        for name, value in node.args.items()
        if value is not None and value is not False and value != []
    }
    if not given.keys() <= {*allowed.split()}:
        raise TypeError(
            f"{type(node).__name__} with {', '.join(sorted(given))} has no meaning on Spark"
        )
    return given


def _query(node: exp.Expr, context: _Context) -> Rows:
    match node:
        case exp.Select():
            return _select(node, context)
        case exp.Subquery():
            _given(node, "this")
            return _query(node.this, context)
        case exp.Union():
            _given(node, "this expression")
            left, right = _query(node.this, context), _query(node.expression, context)
            pairs = zip(left.columns.items(), right.columns.items(), strict=True)
            columns = {name: common((kind, other)) for (name, kind), (_, other) in pairs}
            return Rows(f"({left.sql}) UNION ALL ({right.sql})", columns)
        case _:
            raise TypeError(f"{type(node).__name__} is no query")


def _select(node: exp.Select, context: _Context) -> Rows:
    given = _given(node, "with_ expressions from_ joins where group qualify")
    before = ""
    if "with_" in given:
        (named,) = _given(given["with_"], "expressions")["expressions"]
        inner = _query(named.this, context)
        before = f"WITH {identifier(named.alias)} AS ({inner.sql}) "
        tables = {**context.tables, named.alias: Rows(identifier(named.alias), inner.columns)}
        context = replace(context, tables=tables)
    source, relations = _from(given, context)
    scope = Scope(relations, context.narrow)
    if "where" in given:
        source += f" WHERE {required(scope(given['where'].this), *TRUTHS)}"
    if "qualify" in given:
        return _qualified(node, source, scope)
    items = [item for each in node.expressions for item in _items(each, scope)]
    names = {name or f"_{index}": kind for index, (_, name, kind) in enumerate(items)}
    if len(names) != len(items):
        raise TypeError("a name twice")
    listed = ", ".join(
        f"{sql} AS {identifier(name)}" for (sql, _, _), name in zip(items, names, strict=True)
    )
    if "group" in given:
        first, *others = [
            scope(each).sql for each in _given(given["group"], "expressions")["expressions"]
        ]
        if context.gathered and (first, [*relations]) == (_UNIT, [""]) and others:
            # of a hint that is not heeded the rows are the same
            source = f"(SELECT /*+ REPARTITION({_UNIT}) */ * FROM {source})"
        source += f" GROUP BY {', '.join([first, *others])}"
    return Rows(f"{before}SELECT {listed} FROM {source}", names)


def _qualified(node: exp.Select, source: str, scope: Scope) -> Rows:
    """QUALIFY, which Spark has not: the rank becomes a column, and the rows are selected by it."""
    _given(node, "expressions from_ where qualify")
    test = node.args["qualify"].this
    if not isinstance(test, exp.EQ | exp.LTE) or not isinstance(test.this, exp.Window):
        raise TypeError("QUALIFY without a rank")
    (columns,) = scope.relations.values()
    if [type(each) for each in node.expressions] != [exp.Star] or "rank" in columns:
        raise TypeError("QUALIFY of a part of the columns")
    names = ", ".join(map(identifier, columns))
    ranked = f"SELECT {names}, {scope(test.this).sql} AS `rank` FROM {source}"
    sign = "=" if isinstance(test, exp.EQ) else "<="
    return Rows(
        f"SELECT {names} FROM ({ranked}) WHERE `rank` {sign} {int(test.expression.this)}", columns
    )


def _items(node: exp.Expr, scope: Scope) -> list[tuple[str, str, Kind]]:
    """What a SELECT shows: SQL, a name if there is one, a type."""
    star = node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else node
    if isinstance(star, exp.Star):
        left_out = {each.name for each in _given(star, "except_").get("except_", [])}
        table = node.args["table"].name if star is not node else ""
        shown = [table] if table else [*scope.relations]
        return [
            (f"{identifier(each)}.{identifier(name)}" if each else identifier(name), name, kind)
            for each in shown
            for name, kind in scope.relations[each].items()
            if name not in left_out
        ]
    if isinstance(node, exp.Alias):
        value = scope(node.this)
        return [(value.sql, node.alias, value.kind)]
    value = scope(node)
    return [(value.sql, node.name if isinstance(node, exp.Column) else "", value.kind)]


# --- what stands in FROM -------------------------------------------------------------------


def _from(given: Mapping[str, Any], context: _Context) -> tuple[str, dict[str, Columns]]:
    """The text of FROM, and the columns that can be read from it."""
    sql, alias, columns = _relation(given["from_"].this, context)
    relations = {alias: columns}
    for join in given.get("joins", ()):
        arguments = _given(join, "this on side kind")
        word = {
            ("", ""): "JOIN",
            ("LEFT", ""): "LEFT JOIN",
            ("", "SEMI"): "LEFT SEMI JOIN",
            ("", "ANTI"): "LEFT ANTI JOIN",
        }[join.side, join.kind]
        other, name, found = _relation(arguments["this"], context)
        if name in relations:
            raise TypeError("a relation twice")
        both = Scope({**relations, name: found}, context.narrow)
        sql += f" {word} {other} ON {required(both(arguments['on']), *TRUTHS)}"
        if join.kind not in ("SEMI", "ANTI"):
            relations[name] = found
    return sql, relations


def _relation(node: exp.Expr, context: _Context) -> tuple[str, str, Columns]:
    """What can be selected from: its text, its name, its columns."""
    if isinstance(node, exp.Values):
        return _values(node, context)
    given = _given(node, "this alias")
    alias = node.alias
    after = f" AS {identifier(alias)}" if alias else ""
    if "alias" in given:
        _given(given["alias"], "this")
    if isinstance(node, exp.Table):
        table = context.tables[node.name]
        # without an alias it is known by its own name
        return f"{table.sql}{after}", alias or node.name, table.columns
    if not isinstance(node, exp.Subquery):
        raise TypeError(f"{type(node).__name__} stands in FROM")
    if isinstance(node.this, exp.Select) and node.this.args.get("from_") is None:
        return _lists(node, context)
    inner = _query(node.this, context)
    return f"({inner.sql}){after}", alias, inner.columns


def _lists(node: exp.Subquery, context: _Context) -> tuple[str, str, Columns]:
    """Lists of constants side by side, ``SELECT unnest([...]) AS a, unnest([...]) AS b``, as rows of them."""
    columns = {}
    for each in _given(node.this, "expressions")["expressions"]:
        columns[_given(each, "this alias")["alias"].name] = _list(
            _given(each.this, "this")["this"], context
        )
    kinds = {name: common(value.kind for value in column) for name, column in columns.items()}
    rows = ", ".join(
        f"({', '.join(value.sql for value in row)})" for row in zip(*columns.values(), strict=True)
    )
    alias = f"{identifier(node.alias)}({', '.join(map(identifier, columns))})"
    return f"(VALUES {rows}) AS {alias}", node.alias, kinds


def _list(node: exp.Expr, context: _Context) -> list[Typed]:
    """The values of a list of constants, or of one that is cast to BIGINT[]."""
    scope = Scope({}, context.narrow)
    if isinstance(node, exp.Cast):
        if node.to.sql(dialect="duckdb") != "BIGINT[]":
            raise TypeError(f"a list of {node.to.sql(dialect='duckdb')}")
        return [
            Typed(f"CAST({required(each, *WHOLE)} AS BIGINT)", Kind.BIGINT)
            for each in _list(node.this, context)
        ]
    if not isinstance(node, exp.Array) or not all(
        isinstance(each, exp.Literal | exp.Neg) for each in node.expressions
    ):
        raise TypeError(f"unnest of {type(node).__name__}, which is no list of constants")
    return [scope(each) for each in node.expressions]


def _values(node: exp.Values, context: _Context) -> tuple[str, str, Columns]:
    scope = Scope({}, context.narrow)
    given = _given(node, "expressions alias")
    names = [each.name for each in given["alias"].args["columns"]]
    table = [[scope(each) for each in row.expressions] for row in given["expressions"]]
    kinds = [common(each.kind for each in column) for column in zip(*table, strict=True)]
    listed = ", ".join(f"({', '.join(each.sql for each in row)})" for row in table)
    alias = f"{identifier(node.alias)}({', '.join(map(identifier, names))})"
    return f"(VALUES {listed}) AS {alias}", node.alias, dict(zip(names, kinds, strict=True))

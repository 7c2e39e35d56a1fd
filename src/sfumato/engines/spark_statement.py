# SPDX-License-Identifier: Apache-2.0
"""Translates an emitted DuckDB statement to Spark SQL, SELECT by SELECT, with column types."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB

from sfumato.engines.spark_expression import Columns, Scope
from sfumato.engines.spark_kind import (
    TRUTHS,
    WHOLE,
    Kind,
    Typed,
    common,
    identifier,
    present,
    required,
)


class _Emitted(DuckDB):
    """DuckDB's grammar without sqlglot's change of list indices."""

    INDEX_OFFSET = 0


_UNIT = identifier("unit")
# Joins by their side and kind.
_JOINS = {
    ("", ""): "JOIN",
    ("LEFT", ""): "LEFT JOIN",
    ("", "SEMI"): "LEFT SEMI JOIN",
    ("", "ANTI"): "LEFT ANTI JOIN",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """A FROM item on Spark, and the types of its columns in order."""

    sql: str
    columns: Columns


def translated(
    sql: str, tables: Mapping[str, Rows], *, narrow: bool, gathered: bool = False
) -> str:
    """Translates a statement to Spark SQL.

    ``tables``: the FROM item that replaces each table of the statement. ``narrow``: see ``Writer``.
    ``gathered``: rows are shuffled by unit before they are grouped by unit and other columns.
    Otherwise each task aggregates first, its results are shuffled, and a later window over units
    shuffles again.

    Raises:
        TypeError: a construct that is not known to mean the same on Spark.

    >>> people = Rows("people", {"age": Kind.BIGINT})
    >>> sql = 'SELECT sum(age) // 2 FROM (SELECT age FROM "t")'
    >>> translated(sql, {"t": people}, narrow=True)
    'SELECT ...'
    """
    return _query(parse_one(sql, dialect=_Emitted), _Context(tables, narrow, gathered)).sql


@dataclass(frozen=True, slots=True)
class _Context:
    """The tables that can be named, and the options of ``translated``."""

    tables: Mapping[str, Rows]
    narrow: bool
    gathered: bool


def _given(node: exp.Expr, allowed: str) -> dict[str, Any]:
    """Returns the arguments of a node.

    Raises:
        TypeError: there is one that is not allowed.
    """
    given = present(node)
    if not given.keys() <= {*allowed.split()}:
        names = ", ".join(sorted(given))
        raise TypeError(f"{type(node).__name__} with {names} has no meaning on Spark")
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
            left = _query(node.this, context)
            right = _query(node.expression, context)
            pairs = zip(
                left.columns.items(),
                right.columns.items(),
                strict=True,
            )
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
    items, columns = _listed(node.expressions, scope)
    if "group" in given:
        keys = _given(given["group"], "expressions")["expressions"]
        source = _grouped(keys, source, scope, gathered=context.gathered)
    return Rows(f"{before}SELECT {items} FROM {source}", columns)


def _listed(nodes: list[exp.Expr], scope: Scope) -> tuple[str, dict[str, Kind]]:
    """Translates the items of a SELECT; returns them with the columns that it has."""
    written: list[str] = []
    columns: dict[str, Kind] = {}
    for node in nodes:
        for sql, name, kind in _items(node, scope):
            name = name or f"_{len(written)}"
            if name in columns:
                raise TypeError("a name twice")
            columns[name] = kind
            written.append(f"{sql} AS {identifier(name)}")
    return ", ".join(written), columns


def _grouped(
    keys: list[exp.Expr],
    source: str,
    scope: Scope,
    *,
    gathered: bool,
) -> str:
    """Adds GROUP BY to a FROM clause; ``gathered``: with a hint to shuffle by unit first."""
    by = [scope(key).sql for key in keys]
    if gathered and by[0] == _UNIT and len(by) > 1 and [*scope.relations] == [""]:
        # if Spark ignores the hint, the rows are the same
        source = f"(SELECT /*+ REPARTITION({_UNIT}) */ * FROM {source})"
    return f"{source} GROUP BY {', '.join(by)}"


def _qualified(
    node: exp.Select,
    source: str,
    scope: Scope,
) -> Rows:
    """Translates QUALIFY, which Spark lacks: the rank becomes a column that is tested outside."""
    _given(node, "expressions from_ where qualify")
    test = node.args["qualify"].this
    if not isinstance(test, exp.EQ | exp.LTE) or not isinstance(test.this, exp.Window):
        raise TypeError("QUALIFY without a rank")
    (columns,) = scope.relations.values()
    is_star = len(node.expressions) == 1 and type(node.expressions[0]) is exp.Star
    if not is_star or "rank" in columns:
        raise TypeError("QUALIFY of a part of the columns")
    names = ", ".join(map(identifier, columns))
    ranked = f"SELECT {names}, {scope(test.this).sql} AS `rank` FROM {source}"
    sign = "=" if isinstance(test, exp.EQ) else "<="
    most = int(test.expression.this)
    return Rows(f"SELECT {names} FROM ({ranked}) WHERE `rank` {sign} {most}", columns)


def _items(node: exp.Expr, scope: Scope) -> list[tuple[str, str, Kind]]:
    """Translates an item of a SELECT, a star to several: SQL, its name if any, its type."""
    if isinstance(node, exp.Star):
        return _star(node, [*scope.relations], scope)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return _star(node.this, [node.args["table"].name], scope)
    if isinstance(node, exp.Alias):
        value = scope(node.this)
        return [(value.sql, node.alias, value.kind)]
    value = scope(node)
    return [(value.sql, node.name if isinstance(node, exp.Column) else "", value.kind)]


def _star(
    star: exp.Star,
    relations: list[str],
    scope: Scope,
) -> list[tuple[str, str, Kind]]:
    """Lists the columns of some relations."""
    excluded = {column.name for column in _given(star, "except_").get("except_", [])}
    items = []
    for relation in relations:
        prefix = f"{identifier(relation)}." if relation else ""
        for name, kind in scope.relations[relation].items():
            if name not in excluded:
                items.append((f"{prefix}{identifier(name)}", name, kind))
    return items


# --- what stands in FROM -------------------------------------------------------------------


def _from(given: Mapping[str, Any], context: _Context) -> tuple[str, dict[str, Columns]]:
    """Translates FROM with its joins; returns it with the columns of each relation in scope."""
    sql, alias, columns = _relation(given["from_"].this, context)
    relations = {alias: columns}
    for join in given.get("joins", ()):
        arguments = _given(join, "this on side kind")
        word = _JOINS[join.side, join.kind]
        other, name, columns = _relation(arguments["this"], context)
        if name in relations:
            raise TypeError("a relation twice")
        both = Scope({**relations, name: columns}, context.narrow)
        sql += f" {word} {other} ON {required(both(arguments['on']), *TRUTHS)}"
        if join.kind not in ("SEMI", "ANTI"):
            relations[name] = columns
    return sql, relations


def _relation(node: exp.Expr, context: _Context) -> tuple[str, str, Columns]:
    """Translates a FROM item; returns its SQL, its name and its columns."""
    if isinstance(node, exp.Values):
        return _values(node, context)
    given = _given(node, "this alias")
    alias = node.alias
    after = f" AS {identifier(alias)}" if alias else ""
    if "alias" in given:
        _given(given["alias"], "this")
    if isinstance(node, exp.Table):
        table = context.tables[node.name]
        # without an alias its name is that of the table
        return f"{table.sql}{after}", alias or node.name, table.columns
    if not isinstance(node, exp.Subquery):
        raise TypeError(f"{type(node).__name__} stands in FROM")
    if isinstance(node.this, exp.Select) and node.this.args.get("from_") is None:
        return _lists(node, context)
    inner = _query(node.this, context)
    return f"({inner.sql}){after}", alias, inner.columns


def _lists(node: exp.Subquery, context: _Context) -> tuple[str, str, Columns]:
    """Translates ``SELECT unnest([...]) AS a, unnest([...]) AS b`` of constants to VALUES."""
    columns = {}
    for item in _given(node.this, "expressions")["expressions"]:
        name = _given(item, "this alias")["alias"].name
        columns[name] = _list(_given(item.this, "this")["this"], context)
    kinds = {name: _kind(column) for name, column in columns.items()}
    return _table(node.alias, [*columns.values()], kinds)


def _table(
    alias: str, columns: list[list[Typed]], kinds: dict[str, Kind]
) -> tuple[str, str, Columns]:
    """Returns VALUES with these columns as a FROM item; ``kinds`` are their names and types."""
    rows = []
    for row in zip(*columns, strict=True):
        cells = ", ".join(value.sql for value in row)
        rows.append(f"({cells})")
    names = ", ".join(map(identifier, kinds))
    return f"(VALUES {', '.join(rows)}) AS {identifier(alias)}({names})", alias, kinds


def _kind(column: list[Typed]) -> Kind:
    """Returns the common type of the values of a column."""
    return common(value.kind for value in column)


def _list(node: exp.Expr, context: _Context) -> list[Typed]:
    """Translates a list of constants, which may be cast to BIGINT[]."""
    if isinstance(node, exp.Cast):
        kind = node.to.sql(dialect="duckdb")
        if kind != "BIGINT[]":
            raise TypeError(f"a list of {kind}")
        return [
            Typed(f"CAST({required(value, *WHOLE)} AS BIGINT)", Kind.BIGINT)
            for value in _list(node.this, context)
        ]
    if not isinstance(node, exp.Array) or not all(map(_is_constant, node.expressions)):
        raise TypeError(f"unnest of {type(node).__name__}, which is no list of constants")
    scope = Scope({}, context.narrow)
    return [scope(constant) for constant in node.expressions]


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Neg)


def _values(node: exp.Values, context: _Context) -> tuple[str, str, Columns]:
    scope = Scope({}, context.narrow)
    given = _given(node, "expressions alias")
    names = [column.name for column in given["alias"].args["columns"]]
    rows = [map(scope, row.expressions) for row in given["expressions"]]
    columns = [list(column) for column in zip(*rows, strict=True)]
    kinds = map(_kind, columns)
    return _table(node.alias, columns, dict(zip(names, kinds, strict=True)))

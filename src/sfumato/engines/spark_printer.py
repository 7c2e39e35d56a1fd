# SPDX-License-Identifier: Apache-2.0
"""Prints the SQL tree as Spark SQL, SELECT by SELECT, with the types of the columns.

``spark`` uses it to turn the queries of ``emit`` into statements.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sfumato.engines import sql_tree as sql
from sfumato.engines.spark_expression import Columns, Scope
from sfumato.engines.spark_kind import TRUTHS, WHOLE, Kind, Typed, common, identifier, required

_UNIT = sql.Column("unit")
_JOINS = {
    "JOIN": "JOIN",
    "LEFT JOIN": "LEFT JOIN",
    "SEMI JOIN": "LEFT SEMI JOIN",
    "ANTI JOIN": "LEFT ANTI JOIN",
}
# These keep or drop rows of the left side and add no column.
_TESTS = ("SEMI JOIN", "ANTI JOIN")


@dataclass(frozen=True, slots=True)
class Rows:
    """A FROM item in Spark SQL, and the types of its columns by name, in order."""

    sql: str
    columns: Columns


def printed(
    query: sql.Query, tables: Mapping[str, Rows], *, narrow: bool, gathered: bool = False
) -> str:
    """Prints a query of the SQL tree as Spark SQL.

    ``tables``: the FROM item that replaces each table of the query. ``narrow``: see ``Writer``.
    ``gathered``: rows are shuffled by unit before they are grouped by unit and other columns.
    Otherwise each task aggregates first, its results are shuffled, and a later window over units
    shuffles again.

    Raises:
        TypeError: a construct that is not known to mean the same on Spark.

    >>> people = Rows("people", {"age": Kind.BIGINT})
    >>> age = sql.Select((sql.Column("age"),), sql.Item(sql.Table("t")))
    >>> printed(age, {"t": people}, narrow=True)
    'SELECT `age` AS `age` FROM people'
    """
    return _query(query, _Context(tables, narrow, gathered)).sql


@dataclass(frozen=True, slots=True)
class _Context:
    """The tables that can be named, and the options of ``printed``."""

    tables: Mapping[str, Rows]
    narrow: bool
    gathered: bool


def _query(query: sql.Query, context: _Context) -> Rows:
    match query:
        case sql.Select():
            return _select(query, context)
        case sql.UnionAll():
            return _union(query, context)
        case sql.With():
            return _with(query, context)


def _union(query: sql.UnionAll, context: _Context) -> Rows:
    """Prints a union of two queries or more, as a chain that binds from the left."""
    first, *others = query.queries
    chain = _query(first, context)
    for other in others:
        rows = _query(other, context)
        pairs = zip(chain.columns.items(), rows.columns.values(), strict=True)
        columns = {name: common((kind, right)) for (name, kind), right in pairs}
        chain = Rows(f"({chain.sql}) UNION ALL ({rows.sql})", columns)
    return chain


def _with(query: sql.With, context: _Context) -> Rows:
    (named,) = query.tables
    inner = _query(named.query, context)
    name = identifier(named.name)
    tables = {**context.tables, named.name: Rows(name, inner.columns)}
    rows = _query(query.query, replace(context, tables=tables))
    return Rows(f"WITH {name} AS ({inner.sql}) {rows.sql}", rows.columns)


def _select(select: sql.Select, context: _Context) -> Rows:
    source, relations = _from(select, context)
    scope = Scope(relations, context.narrow)
    if select.where is not None:
        source += f" WHERE {required(scope(select.where), *TRUTHS)}"
    if select.qualify is not None:
        return _qualified(select, source, scope)
    items, columns = _listed(select.items, scope)
    if select.group:
        source = _grouped(select.group, source, scope, gathered=context.gathered)
    return Rows(f"SELECT {items} FROM {source}", columns)


def _listed(nodes: Iterable[sql.Expression], scope: Scope) -> tuple[str, dict[str, Kind]]:
    """Prints the items of a SELECT; returns them with the columns that it has."""
    written: list[str] = []
    columns: dict[str, Kind] = {}
    for node in nodes:
        for value, name in _items(node, scope):
            name = name or f"_{len(written)}"
            if name in columns:
                raise TypeError("a name twice")
            columns[name] = value.kind
            written.append(f"{value.sql} AS {identifier(name)}")
    return ", ".join(written), columns


def _grouped(
    keys: Iterable[sql.Expression],
    source: str,
    scope: Scope,
    *,
    gathered: bool,
) -> str:
    """Adds GROUP BY to a FROM clause; ``gathered``: with a hint to shuffle by unit first."""
    first, *others = keys
    if gathered and first == _UNIT and others and [*scope.relations] == [""]:
        # if Spark ignores the hint, the rows are the same
        source = f"(SELECT /*+ REPARTITION({identifier('unit')}) */ * FROM {source})"
    by = ", ".join(scope(key).sql for key in (first, *others))
    return f"{source} GROUP BY {by}"


def _qualified(
    select: sql.Select,
    source: str,
    scope: Scope,
) -> Rows:
    """Prints QUALIFY, which Spark lacks: the rank becomes a column that is tested outside."""
    rank, sign, most = _rank_test(select.qualify)
    (columns,) = scope.relations.values()
    if select.items != (sql.Star(),) or select.group or "rank" in columns:
        raise TypeError("QUALIFY of a part of the columns")
    names = ", ".join(map(identifier, columns))
    ranked = f"SELECT {names}, {scope(rank).sql} AS `rank` FROM {source}"
    return Rows(f"SELECT {names} FROM ({ranked}) WHERE `rank` {sign} {most}", columns)


def _rank_test(test: sql.Expression | None) -> tuple[sql.Window, str, int]:
    """Returns the rank that a test compares, how, and with which number."""
    match test:
        case sql.Binary("=" | "<=" as sign, sql.Window() as rank, sql.Constant(int() as most)):
            return rank, sign, most
        case _:
            raise TypeError("QUALIFY without a rank")


def _items(node: sql.Expression, scope: Scope) -> list[tuple[Typed, str]]:
    """Prints an item of a SELECT, a star as several: its value, and its name if it has one."""
    match node:
        case sql.Star():
            return _star(node, scope)
        case sql.As(value, name):
            return [(scope(value), name.name)]
        case sql.Column(name):
            return [(scope(node), name)]
        case _:
            return [(scope(node), "")]


def _star(star: sql.Star, scope: Scope) -> list[tuple[Typed, str]]:
    """Lists the columns of a relation, or of all relations."""
    items = []
    for relation in [star.table] if star.table else scope.relations:
        prefix = f"{identifier(relation)}." if relation else ""
        for name, kind in scope.relations[relation].items():
            if name not in star.without:
                items.append((Typed(f"{prefix}{identifier(name)}", kind), name))
    return items


# --- what stands in FROM -------------------------------------------------------------------


def _from(select: sql.Select, context: _Context) -> tuple[str, dict[str, Columns]]:
    """Prints FROM with its joins; returns it with the columns of each relation in scope."""
    source, alias, columns = _relation(select.source, context)
    relations = {alias: columns}
    for join in select.joins:
        if join.word not in _JOINS or join.on is None:
            raise TypeError(f"{join.word} has no meaning on Spark")
        other, name, columns = _relation(join.item, context)
        if name in relations:
            raise TypeError("a relation twice")
        both = Scope({**relations, name: columns}, context.narrow)
        source += f" {_JOINS[join.word]} {other} ON {required(both(join.on), *TRUTHS)}"
        if join.word not in _TESTS:
            relations[name] = columns
    return source, relations


def _relation(item: sql.Item, context: _Context) -> tuple[str, str, Columns]:
    """Prints a FROM item; returns its SQL, its name and its columns."""
    match item.source:
        case sql.Lists():
            return _lists(item.source, item.alias, context)
        case sql.Table(name):
            table = context.tables.get(name)
            if table is None:
                raise TypeError("a table that is not known")
            # without an alias its name is that of the table
            return table.sql + _alias(item), item.alias or name, table.columns
        case query:
            inner = _query(query, context)
            return f"({inner.sql}){_alias(item)}", item.alias, inner.columns


def _alias(item: sql.Item) -> str:
    if item.alias:
        return f" AS {identifier(item.alias)}"
    return ""


def _lists(table: sql.Lists, alias: str, context: _Context) -> tuple[str, str, Columns]:
    """Prints a table of lists as VALUES."""
    scope = Scope({}, context.narrow)
    columns = [_constants(values, scope) for _, values in table.columns]
    kinds = {}
    for (name, _), column in zip(table.columns, columns, strict=True):
        kinds[name] = common(value.kind for value in column)
    rows = []
    for row in zip(*columns, strict=True):
        cells = ", ".join(value.sql for value in row)
        rows.append(f"({cells})")
    names = ", ".join(map(identifier, kinds))
    return f"(VALUES {', '.join(rows)}) AS {identifier(alias)}({names})", alias, kinds


def _constants(values: sql.ListOf, scope: Scope) -> list[Typed]:
    """Prints the constants of a list."""
    if not all(isinstance(value, sql.Constant) for value in values.values):
        raise TypeError("a list of more than constants")
    constants = [scope(value) for value in values.values]
    if values.type is None:
        return constants
    if values.type is not sql.SqlType.BIGINT:
        raise TypeError(f"a list of {values.type.value}")
    return [
        Typed(f"CAST({required(constant, *WHOLE)} AS BIGINT)", Kind.BIGINT)
        for constant in constants
    ]

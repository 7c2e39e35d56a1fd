# SPDX-License-Identifier: Apache-2.0
"""Queries of the SQL tree: nodes whose value is rows."""

from dataclasses import dataclass
from typing import TypeAlias

from sfumato.engines.sql_tree.expressions import Expression, ListOf


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a FROM clause: the text of a source's FROM item, or the name of a subquery of
    ``With``.
    """

    sql: str


@dataclass(frozen=True, slots=True)
class Lists:
    """A table in a FROM clause with constant columns, each a list of the same length."""

    columns: tuple[tuple[str, ListOf], ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A FROM item: a table or a subquery, with an optional ``alias``."""

    source: "Table | Lists | Query"
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """A further FROM item; ``word``: JOIN, or LEFT, SEMI, ANTI or CROSS JOIN."""

    word: str
    item: Item
    on: Expression | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT; ``breaks`` names the clauses that begin a line."""

    items: tuple[Expression, ...]
    source: Item
    joins: tuple[Join, ...] = ()
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    qualify: Expression | None = None
    breaks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of several queries, one after the other."""

    queries: "tuple[Query, ...]"


@dataclass(frozen=True, slots=True)
class Named:
    """A query of WITH; ``materialized``: it is computed once."""

    name: str
    query: "Query"
    materialized: bool = False


@dataclass(frozen=True, slots=True)
class With:
    """WITH ... SELECT: a query that reads named sub-queries."""

    tables: tuple[Named, ...]
    query: "Query"


Query: TypeAlias = Select | UnionAll | With
Node: TypeAlias = Expression | Query | Item | Join | Table | Lists | Named

# The clauses of a long SELECT that begin a line.
TALL = ("FROM", "GROUP BY")

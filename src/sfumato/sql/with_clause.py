# SPDX-License-Identifier: Apache-2.0
"""Puts the queries that WITH names in the places of their names."""

from collections.abc import Mapping
from typing import TypeVar

from sqlglot import exp

from sfumato.sql.reject import require_only

Q = TypeVar("Q", bound=exp.Query)


def inlined(query: Q, known: Mapping[str, exp.Expr]) -> Q:
    """Returns a copy of a query in which names defined by WITH are replaced by their sub-queries.

    ``known`` are the sub-queries that names of a WITH around it stand for.

    >>> from sqlglot import parse_one
    >>> inlined(parse_one("WITH a AS (SELECT 1 AS x) SELECT x FROM a AS b"), {}).sql()
    'SELECT x FROM (SELECT 1 AS x) AS b'
    """
    query = query.copy()
    known = dict(known)
    clause = query.args.get("with_")
    if clause is not None:
        require_only(clause, "expressions")
        for definition in clause.expressions:
            if isinstance(definition.this, exp.Query):
                known[definition.alias.lower()] = exp.Subquery(
                    this=inlined(definition.this, known), alias=definition.args["alias"].copy()
                )
        query.set("with_", None)
    for inner in [node for node in query.find_all(exp.Query) if node.args.get("with_")]:
        inner.replace(inlined(inner, known))
    for table in list(query.find_all(exp.Table)):
        body = known.get(table.name.lower())
        if body is not None and not table.args.get("db"):
            table.replace(_as_subquery(body, table))
    return query


def _as_subquery(body: exp.Expr, table: exp.Table) -> exp.Expr:
    """A query of WITH in the place of its name."""
    inner = body.copy()
    alias = table.args.get("alias")
    columns = body.args["alias"].args.get("columns") or []
    if alias is not None and alias.args.get("columns"):
        columns = alias.args["columns"]
    name = exp.to_identifier(table.alias_or_name)
    copies = [column.copy() for column in columns]
    inner.set("alias", exp.TableAlias(this=name, columns=copies))
    return inner

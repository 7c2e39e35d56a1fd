# SPDX-License-Identifier: Apache-2.0
"""FROM, WITH and sub-queries: a statement's rows, from the inside out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import UnknownName
from sfumato.sql.calls import calls
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.join import joined
from sfumato.sql.names import Context, Source
from sfumato.sql.per_unit import items, per_unit
from sfumato.sql.ranked import ranked
from sfumato.sql.reject import refuse, reject, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, declared, require_plain, require_private
from sfumato.sql.union import union
from sfumato.sql.where import Inner, filtered

_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")


@dataclass(frozen=True, slots=True)
class Defined:
    """A sub-query that WITH names, and the names that it can use itself."""

    query: exp.Expr
    scope: "Definitions"


Definitions: TypeAlias = Mapping[str, Defined]


@dataclass(frozen=True, slots=True)
class Relations:
    """Lowers what stands in FROM."""

    context: Context

    def rows(self, select: exp.Select, known: Definitions) -> From:
        """The rows of FROM and WHERE."""
        known = self.definitions(select, known)
        found = self.source(select, known)
        where = select.args.get("where")
        return (
            found
            if where is None
            else filtered(self.context, found, where.this, self._inner(known))
        )

    def source(self, select: exp.Select, known: Definitions) -> From:
        """The rows of FROM, joined."""
        clause = select.args.get("from_")
        if clause is None:
            raise UnknownName(
                "A question without FROM.", allowed=", ".join(self.context.dataset.tables)
            )
        found = self._item(clause.this, known)
        for join in select.args.get("joins") or []:
            found = joined(self.context, found, self._item(join.this, known), join)
        return found

    def definitions(self, select: exp.Expr, known: Definitions) -> Definitions:
        """The names that WITH gives, each of which the next can use."""
        clause = select.args.get("with_")
        if clause is None:
            return known
        if clause.args.get("recursive"):
            raise refuse(
                "WITH RECURSIVE", ("has no bound on its rows", "Write the steps as sub-queries.")
            )
        for each in clause.expressions:
            require_only(each, "this", "alias", "materialized")
            require_plain(each.args["alias"])
            if not isinstance(each.this, exp.Query):
                raise reject(each.this)
            known = {**known, each.alias.lower(): Defined(each.this, known)}
        return known

    def query(self, node: exp.Expr, known: Definitions, name: str) -> From:
        """The rows of a sub-query."""
        if isinstance(node, exp.Subquery | exp.Paren):
            require_only(node, "this", "alias")
            return self.query(node.this, known, name)
        if isinstance(node, exp.Union):
            known = self.definitions(node, known)
            require_only(node, "this", "expression", "distinct", "with_")
            if node.args.get("distinct") is not False:
                raise reject(node)
            return union(
                self.context, [self.query(each, known, name) for each in _arms(node)], name
            )
        if not isinstance(node, exp.Select):
            raise reject(node)
        require_only(node, *_CLAUSES)
        found = self.rows(node, known)
        if (
            node.args.get("group")
            or node.args.get("distinct")
            or node.args.get("having")
            or calls(node.expressions)
        ):
            return per_unit(self.context, require_private(found), node, name)
        return self._projected(found, node, name)

    def _projected(self, found: From, node: exp.Select, name: str) -> From:
        """Columns under new names; nothing is computed until it is read."""
        found, done = ranked(self.context, found, node)
        scope = found.scope(self.context)
        columns, shown, parts = items(_expanded(node, found), scope, Rows(scope, FUNCTIONS, done))
        source = Source(name, columns, shown, parts, f"The sub-query {name!r}")
        return replace(found, sources=(source,))

    def _item(self, node: exp.Expr, known: Definitions) -> From:
        if isinstance(node, exp.Table):
            defined = known.get(node.name.lower()) if not node.args.get("db") else None
            if defined is None:
                return declared(self.context, node)
            require_only(node, "this", "alias")
            return self.query(defined.query, defined.scope, node.alias or node.name)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            require_plain(node.args.get("alias"))
            return self.query(node, known, node.alias or "sub-query")
        raise reject(node)

    def _inner(self, known: Definitions) -> Inner:
        def source(select: exp.Select) -> From:
            require_only(select, "expressions", "from_", "joins", "where")
            return self.source(select, known)

        return Inner(lambda node: self.query(node, known, "sub-query"), source)


def _arms(node: exp.Expr) -> list[exp.Expr]:
    """The SELECTs of a UNION ALL, from the first to the last."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if (
            isinstance(each, exp.Union)
            and each.args.get("distinct") is False
            and not each.args.get("with_")
        ):
            waiting += [each.expression, each.this]
        else:
            found.append(each)
    return found


def _expanded(node: exp.Select, found: From) -> list[exp.Expr]:
    """The columns of SELECT, * spelt out."""
    columns: list[exp.Expr] = []
    for each in node.expressions:
        table = (
            each.table.lower()
            if isinstance(each, exp.Column) and isinstance(each.this, exp.Star)
            else None
        )
        if not isinstance(each, exp.Star) and table is None:
            columns.append(each)
            continue
        require_only(each.this if table is not None else each)
        for source in found.sources:
            if table in (None, source.name.lower()):
                taken = {node.name.lower() for node in columns}
                columns += [
                    exp.column(name, table=source.name)
                    for name in _names(source)
                    if name.lower() not in taken
                ]
    return columns


def _names(source: Source) -> list[str]:
    """Every column of a source, the unit's included."""
    shown = {name.lower() for name in source.shown}
    return [*source.shown, *(part for part in source.parts if part not in shown)]

# SPDX-License-Identifier: Apache-2.0
"""Lowers FROM, WITH and sub-queries to relations, innermost first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.sql.calls import calls
from sfumato.sql.conditions import conjuncts, passing
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.join import joined
from sfumato.sql.names import Context, Source
from sfumato.sql.per_unit import items, per_unit
from sfumato.sql.person_rows import Again, names_read, shown_columns
from sfumato.sql.person_windows import with_windows
from sfumato.sql.ranked import with_aliases
from sfumato.sql.reject import refuse, reject, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, declared, require_private
from sfumato.sql.union import union
from sfumato.sql.where import Inner, filtered

_GROUPING = ("group", "distinct", "having")
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")


@dataclass(frozen=True, slots=True)
class _Defined:
    """A definition of WITH: its query, the definitions that it can use, its names of columns."""

    query: exp.Expr
    scope: "Definitions"
    columns: tuple[str, ...]


Definitions: TypeAlias = Mapping[str, _Defined]


@dataclass(frozen=True, slots=True)
class Relations:
    """Translates the FROM clauses and sub-queries of one statement into relations of the plan."""

    context: Context

    def rows(self, select: exp.Select, known: Definitions) -> From:
        """Returns the relation of a SELECT's FROM and WHERE; ``known`` has the WITH definitions."""
        known = self.definitions(select, known)
        source = self.source(select, known)
        where = select.args.get("where")
        if where is None:
            return source
        callbacks = self._subquery_callbacks(select, known)
        return filtered(self.context, source, where.this, callbacks)

    def source(self, select: exp.Select, known: Definitions) -> From:
        """Returns the relation of a SELECT's FROM with its joins."""
        return self._joined_tables(select, known, len(select.args.get("joins") or []))

    def _joined_tables(
        self,
        select: exp.Select,
        known: Definitions,
        count: int,
    ) -> From:
        """Returns the rows of FROM with the first ``count`` of its joins."""
        clause = select.args.get("from_")
        if clause is None:
            raise UnknownName(
                "A question without FROM.", allowed=", ".join(self.context.dataset.tables)
            )
        where = select.args.get("where")
        tests = conjuncts(where.this) if where is not None else []
        source = self._from_item(clause.this, known)
        for place, join in enumerate((select.args.get("joins") or [])[:count]):
            again = Again(
                partial(self._joined_tables, select, known, place),
                partial(self._from_item, join.this, known),
                tests,
                names_read(select),
                shown_columns(select, join),
            )
            source = joined(self.context, source, again.right(), join, again)
        return source

    def definitions(self, select: exp.Expr, known: Definitions) -> Definitions:
        """Returns ``known`` together with the WITH definitions of a SELECT.

        Each definition can use those before it.
        """
        clause = select.args.get("with_")
        if clause is None:
            return known
        if clause.args.get("recursive"):
            raise refuse(
                "WITH RECURSIVE", ("has no bound on its rows", "Write the steps as sub-queries.")
            )
        for definition in clause.expressions:
            require_only(definition, "this", "alias", "materialized")
            if not isinstance(definition.this, exp.Query):
                raise reject(definition.this)
            known = {
                **known,
                definition.alias.lower(): _Defined(
                    definition.this, known, _column_list(definition.args["alias"])
                ),
            }
        return known

    def query(
        self,
        node: exp.Expr,
        known: Definitions,
        name: str,
    ) -> From:
        """Returns the relation of a sub-query, with ``name`` as its table name."""
        if isinstance(node, exp.Subquery | exp.Paren):
            require_only(node, "this", "alias")
            return self.query(node.this, known, name)
        if isinstance(node, exp.Union):
            known = self.definitions(node, known)
            require_only(node, "this", "expression", "distinct", "with_")
            if node.args.get("distinct") is not False:
                raise reject(node)
            arms = [self.query(arm, known, name) for arm in _union_arms(node)]
            return union(self.context, arms, name)
        if not isinstance(node, exp.Select):
            raise reject(node)
        is_grouped = any(node.args.get(clause) for clause in _GROUPING) or calls(node.expressions)
        require_only(node, *_CLAUSES, *([] if is_grouped else ["qualify"]))
        rows = self.rows(node, known)
        if is_grouped:
            if node.args.get("distinct") and any(
                item.find(exp.Window) for item in node.expressions
            ):
                return self._distinct_windows(node, known, name)
            again = partial(self.rows, node, known)
            return per_unit(self.context, require_private(rows), node, name, again)
        again = partial(self.rows, node, known)
        return self._project_columns(rows, node, name, again)

    def _distinct_windows(self, node: exp.Select, known: Definitions, name: str) -> From:
        """Returns the rows of SELECT DISTINCT with windows, which come before DISTINCT."""
        inside = node.copy()
        inside.set("distinct", None)
        again = partial(self.query, inside, known, name)
        rows = again()
        outside = exp.select(*_expand_stars(exp.select("*"), rows)).distinct()
        return per_unit(self.context, require_private(rows), outside, name, again)

    def _project_columns(
        self,
        rows: From,
        node: exp.Select,
        name: str,
        again: Callable[[], From],
    ) -> From:
        """Returns the rows with the columns of SELECT, which are computed where they are used."""
        qualify = node.args.get("qualify")
        tests = []
        if qualify is not None:
            tests = [with_aliases(qualify.this, node.expressions, rows.scope(self.context))]
        rows, done = with_windows(self.context, rows, [*node.expressions, *tests], again)
        scope = rows.scope(self.context)
        expressions = Rows(scope, FUNCTIONS, done)
        rows = rows.over(passing(rows.relation, [expressions.test(test) for test in tests]))
        columns, shown, parts = items(_expand_stars(node, rows), scope, expressions)
        source = Source(name, columns, shown, parts, f"The sub-query {name!r}")
        return replace(rows, sources=(source,))

    def _from_item(self, node: exp.Expr, known: Definitions) -> From:
        """Returns the rows of one table or sub-query of FROM."""
        if isinstance(node, exp.Table):
            defined = None
            if not node.args.get("db"):
                defined = known.get(node.name.lower())
            if defined is None:
                return declared(self.context, node)
            require_only(node, "this", "alias")
            rows = self.query(defined.query, defined.scope, node.alias or node.name)
            rows = _with_column_names(rows, defined.columns)
            return _with_column_names(rows, _column_list(node.args.get("alias")))
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            rows = self.query(node, known, node.alias or "sub-query")
            return _with_column_names(rows, _column_list(node.args.get("alias")))
        raise reject(node)

    def _subquery_callbacks(self, outside: exp.Select, known: Definitions) -> Inner:
        """Returns the callbacks with which WHERE lowers its sub-queries."""

        def source(select: exp.Select) -> From:
            require_only(select, "expressions", "from_", "joins", "where")
            return self.source(select, known)

        return Inner(
            lambda node: self.query(node, known, "sub-query"),
            source,
            lambda: self.source(outside, known),
        )


def _column_list(alias: exp.Expr | None) -> tuple[str, ...]:
    """Returns the names of columns in an alias: a, b of AS t (a, b)."""
    if alias is None:
        return ()
    return tuple(column.name for column in alias.args.get("columns") or ())


def _with_column_names(rows: From, names: tuple[str, ...]) -> From:
    """Returns the rows of a sub-query with other names for its first columns."""
    if not names:
        return rows
    (source,) = rows.sources
    if len(names) > len(source.shown) or len(set(map(str.lower, names))) < len(names):
        raise UnsupportedSql(
            f"An alias of {len(names)} columns for a sub-query of {len(source.shown)}.",
            remedy="Give each column one name of its own.",
        )
    shown = (*names, *source.shown[len(names) :])
    renamed = {old.lower(): new.lower() for old, new in zip(source.shown, shown, strict=True)}
    if len(set(renamed.values())) < len(renamed):
        raise UnsupportedSql(
            "A sub-query with two columns of one name.", remedy="Give each its own name with AS."
        )
    columns = {renamed[name]: typed for name, typed in source.columns.items()}
    parts = {renamed[name]: place for name, place in source.parts.items()}
    source = replace(source, columns=columns, shown=shown, parts=parts)
    return replace(rows, sources=(source,))


def _union_arms(node: exp.Expr) -> list[exp.Expr]:
    """Returns the SELECTs of a UNION ALL, from the first to the last."""
    arms: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        arm = waiting.pop()
        is_union_all = isinstance(arm, exp.Union) and arm.args.get("distinct") is False
        if is_union_all and not arm.args.get("with_"):
            waiting += [arm.expression, arm.this]
        else:
            arms.append(arm)
    return arms


def _expand_stars(node: exp.Select, rows: From) -> list[exp.Expr]:
    """Returns the columns of SELECT with * and table.* expanded."""
    columns: list[exp.Expr] = []
    for item in node.expressions:
        if isinstance(item, exp.Star):
            require_only(item)
            sources = list(rows.sources)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            require_only(item.this)
            table = item.table.lower()
            sources = [source for source in rows.sources if source.name.lower() == table]
        else:
            columns.append(item)
            continue
        for source in sources:
            taken = {column.name.lower() for column in columns}
            for name in _column_names(source):
                if name.lower() not in taken:
                    columns.append(exp.column(name, table=source.name))
    return columns


def _column_names(source: Source) -> list[str]:
    """Returns the names of all columns of a source, those of the unit included."""
    shown = {name.lower() for name in source.shown}
    return [*source.shown, *(part for part in source.parts if part not in shown)]

# SPDX-License-Identifier: Apache-2.0
"""Finds the aggregate calls and the group keys in the syntax tree of a SELECT."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope
from sfumato.sql.reject import written

_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls)


def calls(nodes: Iterable[exp.Expr | None]) -> list[exp.Expr]:
    """Returns the outermost aggregate calls in SQL expressions, in order of appearance.

    A call includes its wrappers: FILTER, WITHIN GROUP and IGNORE NULLS. Windows and sub-queries
    are not searched.
    """
    outermost: list[exp.Expr] = []
    waiting = [node for node in nodes if node is not None]
    while waiting:
        node = waiting.pop(0)
        if _is_call(node):
            outermost.append(node)
        elif not isinstance(node, exp.Window | exp.Query):
            waiting[:0] = node.iter_expressions()
    return outermost


def _is_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, with or without a wrapper such as FILTER."""
    if isinstance(node, exp.AggFunc):
        # which keys a row adds up is no statistic of the data
        return not isinstance(node, exp.Grouping | exp.GroupingId)
    return isinstance(node, _WRAPPERS) and _is_call(node.this)


def placed(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """Returns the expression that a GROUP BY item refers to: itself, or an item of SELECT.

    A number is a position in SELECT, a name may be an alias of SELECT. A column of the table takes
    precedence over an alias of the same name.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    place = literal(node)
    if place is not None:
        if not isinstance(place, Fraction) or place not in range(1, len(select.expressions) + 1):
            raise UnsupportedSql(
                f"GROUP BY {written(node)}.",
                allowed=f"a column of SELECT, 1 to {len(select.expressions)}",
            )
        node = select.expressions[int(place) - 1]
    elif isinstance(node, exp.Column) and not node.table and not scope.owns(node):
        node = _aliased_expression(node, select)
    if isinstance(node, exp.Alias):
        aliased: exp.Expr = node.this
        return aliased
    return node


def _aliased_expression(node: exp.Column, select: exp.Select) -> exp.Expr:
    """Returns the first expression of SELECT with this alias, or the node itself."""
    name = node.name.lower()
    for item in select.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == name:
            aliased: exp.Expr = item.this
            return aliased
    return node


def same_nodes(select: exp.Select, keys: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, int]]:
    """Yields the nodes of SELECT, HAVING and ORDER BY equal to a GROUP BY key, with the key's
    position.

    Keys that are plain columns are left out: names resolve to them.
    """
    wanted = []
    for place, key in enumerate(keys):
        if not isinstance(key, exp.Column):
            wanted.append((place, key))
    if not wanted:
        return
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    for part in parts:
        for node in part.walk() if part is not None else ():
            for place, key in wanted:
                if type(node) is type(key) and (node is key or node == key):
                    yield node, place


def keys_of_all(select: exp.Select) -> list[exp.Expr]:
    """Returns the keys of GROUP BY ALL: the items of SELECT that have columns and no aggregate
    call.
    """
    keys: list[exp.Expr] = []
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        if not calls([node]) and node.find(exp.Column) is not None:
            keys.append(node)
    return keys

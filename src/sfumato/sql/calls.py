# SPDX-License-Identifier: Apache-2.0
"""Where the aggregates and the keys of a SELECT stand in its syntax tree."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope
from sfumato.sql.reject import written

_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls)


def calls(nodes: Iterable[exp.Expr | None]) -> list[exp.Expr]:
    """The aggregate calls in expressions, in their order, outermost only, with what is wrapped about them."""
    found: list[exp.Expr] = []
    waiting = [each for each in nodes if each is not None]
    while waiting:
        node = waiting.pop(0)
        if is_call(node):
            found.append(node)
        elif not isinstance(node, exp.Window | exp.Query):
            waiting[:0] = node.iter_expressions()
    return found


def is_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call."""
    return isinstance(node, exp.AggFunc) or (isinstance(node, _WRAPPERS) and is_call(node.this))


def placed(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """What GROUP BY 1, or GROUP BY alias, stands for; a column of the table comes before an alias."""
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
        name = node.name.lower()
        aliased = [
            each.this
            for each in select.expressions
            if isinstance(each, exp.Alias) and each.alias.lower() == name
        ]
        node = aliased[0] if aliased else node
    return node.this if isinstance(node, exp.Alias) else node


def same_nodes(select: exp.Select, keys: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, int]]:
    """The nodes of SELECT, HAVING and ORDER BY that are written as a key is, with the key's place."""
    wanted = [(place, key) for place, key in enumerate(keys) if not isinstance(key, exp.Column)]
    if not wanted:
        return
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    for part in parts:
        for node in part.walk() if part is not None else ():
            for place, key in wanted:
                if type(node) is type(key) and (node is key or node == key):
                    yield node, place

# SPDX-License-Identifier: Apache-2.0
"""SELECT list, HAVING, ORDER BY and LIMIT: expressions over keys and released aggregates."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Date
from sfumato.plan.output import Item, Order
from sfumato.plan.scalar import (
    Arithmetic,
    Constant,
    Estimate,
    Key,
    Operation,
    Scalar,
    leaves,
)
from sfumato.sql.aggregates import Ask, Level
from sfumato.sql.group import Group
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope
from sfumato.sql.post_expressions import Finished
from sfumato.sql.reject import RAW_ROWS, refuse, require_few, require_only, written
from sfumato.sql.row_expressions import Rows
from sfumato.sql.typed import Day, Label, Number, Truth, Typed, Words

_ONE = Fraction(1)


class Outputs:
    """Lowers what stands above the noise.

    ``calls``: the aggregate calls by identity; ``estimates``: how each is read.
    """

    def __init__(
        self,
        scope: Scope,
        rows: Rows,
        group: Group,
        calls: Mapping[int, Ask],
        estimates: Mapping[Ask, Estimate],
    ) -> None:
        self._scope = scope
        self._rows = rows
        self._group = group
        self._calls = calls
        self._estimates = estimates
        self._aliases: dict[str, Typed] = {}
        self._finished = Finished(self._leaf)

    def items(self, nodes: Sequence[exp.Expr]) -> tuple[Item, ...]:
        """The columns of the answer; HAVING and ORDER BY can call them by their names."""
        require_few(len(nodes), "columns")
        found = []
        for node in nodes:
            inner = node.this if isinstance(node, exp.Alias) else node
            typed = self._finished.value(inner)
            name = node.alias if isinstance(node, exp.Alias) else _name(inner)
            self._require_own_name(name, typed)
            found.append((name, typed))
        for name, typed in reversed(found):
            self._aliases[name.lower()] = typed
        return _unique([Item(name, shown(typed)) for name, typed in found])

    def orders(self, clause: exp.Order | None, items: tuple[Item, ...]) -> tuple[Order, ...]:
        """The sort keys of ORDER BY."""
        if clause is None:
            return ()
        require_only(clause, "expressions")
        require_few(len(clause.expressions), "keys of ORDER BY")
        return tuple(self.order(each, items) for each in clause.expressions)

    def order(self, node: exp.Expr, items: tuple[Item, ...]) -> Order:
        """A sort key: a place in the SELECT list, an alias, or an expression."""
        require_only(node, "this", "desc", "nulls_first")
        place = literal(node.this)
        if place is None:
            expression = shown(self._finished.value(node.this))
            if not leaves(expression):
                raise UnsupportedSql(
                    "ORDER BY a constant.",
                    remedy="ORDER BY a column of the answer, or leave it out.",
                )
        elif isinstance(place, Fraction) and place in range(1, len(items) + 1):
            expression = items[int(place) - 1].expression
        else:
            raise UnsupportedSql(
                f"ORDER BY {written(node.this)}.",
                allowed=f"a column of the answer, 1 to {len(items)}",
            )
        return Order(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def test(self, node: exp.Expr) -> Scalar:
        """HAVING: a test of released numbers and keys."""
        return self._finished.test(node)

    def _leaf(self, node: exp.Expr) -> Typed | None:
        """A released number, a key, or an alias; None for what is made of them."""
        ask = self._calls.get(id(node))
        if ask is not None:
            estimate = self._estimates[ask]
            is_day = isinstance(ask, Level) and isinstance(ask.value.type, Date)
            return Day(estimate) if is_day else Number(estimate, _ONE)
        for place, key in enumerate(self._group.nodes):
            if type(node) is type(key) and (node is key or node == key):
                return self._key(place)
        return self._column(node) if isinstance(node, exp.Column) else None

    def _column(self, node: exp.Column) -> Typed:
        if not node.table and node.name.lower() in self._aliases:
            return self._aliases[node.name.lower()]
        if self._scope.part(node) is not None and self._scope.width == 1:
            raise refuse(f"Column {node.name!r} outside an aggregate", RAW_ROWS)
        typed = self._rows.value(node)
        if typed not in self._group.values:
            raise refuse(f"Column {node.name!r} outside GROUP BY", RAW_ROWS)
        return self._key(self._group.values.index(typed))

    def _key(self, place: int) -> Typed:
        """A key, of its own kind; a number is its code times its step."""
        leaf = Key(place)
        match self._group.values[place]:
            case Number():
                step = self._group.keys[place].value.step
                return Number(
                    leaf if step == 1 else Arithmetic(Operation.MULTIPLY, leaf, Constant(step)),
                    _ONE,
                )
            case Label(_, labels, stored):
                return Label(leaf, labels, stored)
            case Day():
                return Day(leaf)
            case Truth():
                return self._finished.truth(leaf)
            case _:
                return Words(leaf)

    def _require_own_name(self, name: str, typed: Typed) -> None:
        """An alias that is also a key's name would mean two things."""
        names = [
            key.name.lower() if isinstance(key, exp.Column) else "" for key in self._group.nodes
        ]
        if name.lower() in names and shown(typed) != shown(self._key(names.index(name.lower()))):
            raise UnsupportedSql(
                f"The alias {name!r} is also the name of a group key.",
                remedy="Choose another name for the column.",
            )


def shown(typed: Typed) -> Scalar:
    """What is shown of a value; a key by itself is decoded by its type."""
    match typed:
        case Number(Arithmetic(Operation.MULTIPLY, Key() as key, Constant())):
            return key
        case Truth(test, codes):
            return test if codes is None else codes
        case Label(Constant(int(code)), labels):
            return Constant(labels[code])
        case Number() | Day() | Label() | Words():
            return typed.expression
        case _:
            raise UnsupportedSql(
                "A column of nothing but NULL, or of an INTERVAL.", remedy="Leave it out."
            )


def _unique(items: Sequence[Item]) -> tuple[Item, ...]:
    """Column names that differ, so that every cell of the answer has one name."""
    taken = {item.name for item in items}
    seen: set[str] = set()
    renamed = []
    for item in items:
        name, count = item.name, 1
        while name in seen or (count > 1 and name in taken):
            count += 1
            name = f"{item.name}_{count}"
        seen.add(name)
        renamed.append(Item(name, item.expression))
    return tuple(renamed)


def _name(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb")

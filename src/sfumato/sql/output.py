# SPDX-License-Identifier: Apache-2.0
"""SELECT list, HAVING, ORDER BY and LIMIT: expressions over keys and released aggregates."""

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import Aggregate
from sfumato.plan.output import Item, Order
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    Estimate,
    IsNull,
    Key,
    Operation,
    Scalar,
)
from sfumato.sql.functions import aggregate
from sfumato.sql.literal import literal
from sfumato.sql.names import Scope
from sfumato.sql.predicate import COMPARISONS, Predicates, connective
from sfumato.sql.reject import RAW_ROWS, refuse, reject, require_only

_OPERATIONS: dict[type[exp.Expr], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Div: Operation.DIVIDE,
}


class Outputs:
    """Lowers what stands above the noise, and collects the aggregates that it needs."""

    def __init__(self, scope: Scope, keys: tuple[Column, ...]) -> None:
        self._scope = scope
        self._keys = keys
        self._aliases: dict[str, Scalar] = {}
        self.aggregates: list[Aggregate] = []

    def item(self, node: exp.Expr) -> Item:
        """A column of the answer."""
        inner = node.this if isinstance(node, exp.Alias) else node
        expression = self._value(inner)
        name = node.alias if isinstance(node, exp.Alias) else _name(inner)
        self._aliases.setdefault(name.lower(), expression)
        return Item(name, expression)

    def order(self, node: exp.Expr, items: tuple[Item, ...]) -> Order:
        """A sort key: a place in the SELECT list, an alias, or an expression."""
        require_only(node, "this", "desc", "nulls_first")
        place = literal(node.this)
        if place is not None:
            return self._placed(place, items, node)
        return Order(self._value(node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _placed(self, place: object, items: tuple[Item, ...], node: exp.Expr) -> Order:
        if place not in range(1, len(items) + 1):
            raise UnsupportedSql(f"ORDER BY {place}.", allowed=f"a column of the answer, 1 to {len(items)}")
        expression = items[int(str(place)) - 1].expression
        return Order(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def test(self, node: exp.Expr) -> Scalar:
        """HAVING: a test of released numbers and keys."""
        found = connective(node, self.test)
        if found is not None:
            return found
        if self._about_key(node):
            return Predicates(self._scope.column, self._key).lower(node)
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self._value(node.this))
            case exp.Between():
                require_only(node, "this", "low", "high")
                value = self._value(node.this)
                low, high = self._value(node.args["low"]), self._value(node.args["high"])
                return And((Compare(Comparison.GE, value, low), Compare(Comparison.LE, value, high)))
            case _ if type(node) in COMPARISONS:
                return Compare(COMPARISONS[type(node)], self._value(node.this), self._value(node.expression))
            case _:
                raise reject(node)

    def _about_key(self, node: exp.Expr) -> bool:
        """Whether a test compares a group key, and not an alias of something released."""
        sides = [node, node.this, node.args.get("expression")]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        return any(self._find_key(each) is not None and each.name.lower() not in self._released() for each in columns)

    def _released(self) -> set[str]:
        return {alias for alias, expression in self._aliases.items() if not isinstance(expression, Key)}

    def _value(self, node: exp.Expr) -> Scalar:
        found = aggregate(node, self._scope)
        if found is not None:
            return self._estimate(found)
        match node:
            case exp.Paren():
                return self._value(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Neg():
                return Arithmetic(Operation.SUBTRACT, Constant(0), self._number(node.this))
            case _ if type(node) in _OPERATIONS:
                op = _OPERATIONS[type(node)]
                return Arithmetic(op, self._number(node.this), self._number(node.expression))
            case _:
                return self._constant(node)

    def _constant(self, node: exp.Expr) -> Scalar:
        value = literal(node)
        if value is None:
            raise reject(node)
        return Constant(value)

    def _number(self, node: exp.Expr) -> Scalar:
        value = self._value(node)
        if isinstance(value, Key) or (isinstance(value, Constant) and isinstance(value.value, str | bool)):
            raise UnsupportedSql("Arithmetic on a key or a text.", allowed="aggregates and numbers")
        return value

    def _estimate(self, wanted: Aggregate) -> Scalar:
        """The place of an aggregate; the same one twice is released once."""
        if wanted not in self.aggregates:
            self.aggregates.append(wanted)
        return Estimate(self.aggregates.index(wanted))

    def _column(self, node: exp.Column) -> Scalar:
        if not node.table and node.name.lower() in self._aliases:
            return self._aliases[node.name.lower()]
        index = self._find_key(node)
        if index is not None:
            return Key(index)
        self._scope.column(node)
        raise refuse(f"Column {node.name!r} outside GROUP BY", RAW_ROWS)

    def _find_key(self, node: exp.Column) -> int | None:
        names = [key.name.lower() for key in self._keys]
        return names.index(node.name.lower()) if node.name.lower() in names else None

    def _key(self, column: Column) -> Scalar:
        if column not in self._keys:
            raise refuse(f"Column {column.name!r} outside GROUP BY", RAW_ROWS)
        return Key(self._keys.index(column))


def _name(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb")

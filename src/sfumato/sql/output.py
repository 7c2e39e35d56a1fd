# SPDX-License-Identifier: Apache-2.0
"""SELECT list, HAVING, ORDER BY and LIMIT: expressions over keys and released aggregates."""

from fractions import Fraction

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
        key = self._find_key(name)
        if key is not None and expression != Key(key):
            raise UnsupportedSql(
                f"The alias {name!r} is also the name of a group key.", remedy="Choose another name for the column."
            )
        return Item(name, expression)

    def name(self, items: tuple[Item, ...]) -> None:
        """Lets HAVING and ORDER BY call the columns of the answer by their names."""
        for item in reversed(items):
            self._aliases[item.name.lower()] = item.expression

    def order(self, node: exp.Expr, items: tuple[Item, ...]) -> Order:
        """A sort key: a place in the SELECT list, an alias, or an expression."""
        require_only(node, "this", "desc", "nulls_first")
        place = literal(node.this)
        if place is None:
            expression = self._value(node.this)
        elif isinstance(place, Fraction) and place in range(1, len(items) + 1):
            expression = items[int(place) - 1].expression
        else:
            raise UnsupportedSql(f"ORDER BY {place}.", allowed=f"a column of the answer, 1 to {len(items)}")
        return Order(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def test(self, node: exp.Expr) -> Scalar:
        """HAVING: a test of released numbers and keys."""
        found = connective(node, self.test)
        if found is not None:
            return found
        if self._about_key(node):
            return Predicates(self._declared, self._key).lower(node)
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self._number(node.this))
            case exp.Between():
                require_only(node, "this", "low", "high")
                value, low, high = (self._number(node.args[each]) for each in ("this", "low", "high"))
                return And((Compare(Comparison.GE, value, low), Compare(Comparison.LE, value, high)))
            case _ if type(node) in COMPARISONS:
                return Compare(COMPARISONS[type(node)], self._number(node.this), self._number(node.expression))
            case _:
                raise reject(node)

    def _about_key(self, node: exp.Expr) -> bool:
        """Whether a test compares a group key, by its name or by an alias of it."""
        sides = [node, node.this, node.args.get("expression")]
        return any(isinstance(side, exp.Column) and self._key_of(side) is not None for side in sides)

    def _key_of(self, node: exp.Column) -> int | None:
        """The place of the group key that a column means."""
        if not node.table and node.name.lower() in self._aliases:
            named = self._aliases[node.name.lower()]
            return named.index if isinstance(named, Key) else None
        if node.table:
            found = self._scope.column(node)
            return self._keys.index(found) if found in self._keys else None
        return self._find_key(node.name)

    def _declared(self, node: exp.Column) -> Column:
        """The column that a name in HAVING means, aliases of keys among them."""
        index = self._key_of(node)
        return self._scope.column(node) if index is None else self._keys[index]

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
            raise UnsupportedSql("A key or a text where a number is needed.", allowed="aggregates and numbers")
        return value

    def _estimate(self, wanted: Aggregate) -> Scalar:
        """The place of an aggregate; the same one twice is released once."""
        if wanted not in self.aggregates:
            self.aggregates.append(wanted)
        return Estimate(self.aggregates.index(wanted))

    def _column(self, node: exp.Column) -> Scalar:
        if not node.table and node.name.lower() in self._aliases:
            return self._aliases[node.name.lower()]
        found = self._scope.column(node)
        if found in self._keys:
            return Key(self._keys.index(found))
        raise refuse(f"Column {node.name!r} outside GROUP BY", RAW_ROWS)

    def _find_key(self, name: str) -> int | None:
        names = [key.name.lower() for key in self._keys]
        return names.index(name.lower()) if name.lower() in names else None

    def _key(self, column: Column) -> Scalar:
        if column not in self._keys:
            raise refuse(f"Column {column.name!r} outside GROUP BY", RAW_ROWS)
        return Key(self._keys.index(column))


def _name(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb")

# SPDX-License-Identifier: Apache-2.0
"""Lowers the SELECT list, HAVING and ORDER BY: expressions over keys and released numbers."""

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
    Grouping,
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
from sfumato.sql.typed import Day, Instant, Label, Number, Truth, Typed, Words

_ONE = Fraction(1)


class Outputs:
    """Translates SELECT, HAVING and ORDER BY to expressions over noisy estimates and group keys.

    ``calls`` maps each aggregate call, by identity, to its request; ``estimates`` maps the request
    to the released number.
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
        """Returns the columns of the answer; their names are then known to HAVING and ORDER BY.

        Call it first: ``test`` and ``orders`` look names up in the columns of the latest call.
        """
        require_few(len(nodes), "columns")
        columns = []
        for node in nodes:
            inner = node.this if isinstance(node, exp.Alias) else node
            typed = self._finished.value(inner)
            name = node.alias if isinstance(node, exp.Alias) else _default_name(inner)
            self._require_own_name(name, typed)
            columns.append((name, typed))
        # of several columns with one name the first is meant
        for name, typed in reversed(columns):
            self._aliases[name.lower()] = typed
        return _unique_names([Item(name, self._column(typed)) for name, typed in columns])

    def with_clipped(
        self,
        items: tuple[Item, ...],
        nodes: Sequence[exp.Expr],
    ) -> tuple[Item, ...]:
        """Returns the columns, and after them a column ``NAME_clipped`` for each that clipping
        changes.

        This object's estimates are those of clipped values; ``items`` are the columns from another
        ``Outputs``, whose estimates are unclipped, for the same SELECT list ``nodes``.
        """
        changed = []
        for item, clipped in zip(items, self.items(nodes), strict=True):
            if clipped.expression != item.expression:
                changed.append(Item(f"{item.name}_clipped", clipped.expression))
        return _unique_names([*items, *changed])

    def orders(self, clause: exp.Order | None, items: tuple[Item, ...]) -> tuple[Order, ...]:
        """Returns the sort keys of an ORDER BY clause; ``items`` are the answer's columns."""
        if clause is None:
            return ()
        require_only(clause, "expressions")
        require_few(len(clause.expressions), "keys of ORDER BY")
        return tuple(self._sort_key(node, items) for node in clause.expressions)

    def _sort_key(self, node: exp.Expr, items: tuple[Item, ...]) -> Order:
        """Returns a sort key."""
        require_only(node, "this", "desc", "nulls_first")
        expression = self._sorted_by(node.this, items)
        descending = bool(node.args.get("desc"))
        nulls_first = bool(node.args.get("nulls_first"))
        return Order(expression, descending, nulls_first)

    def _sorted_by(self, node: exp.Expr, items: tuple[Item, ...]) -> Scalar:
        """Returns what ORDER BY refers to: a position in SELECT, an alias, or an expression."""
        added = self._clipped_column(node, items)
        if added is not None:
            return added
        place = literal(node)
        if place is None:
            expression = self._column(self._finished.value(node))
            if leaves(expression):
                return expression
            raise UnsupportedSql(
                "ORDER BY a constant.", remedy="ORDER BY a column of the answer, or leave it out."
            )
        if isinstance(place, Fraction) and place in range(1, len(items) + 1):
            return items[int(place) - 1].expression
        raise UnsupportedSql(
            f"ORDER BY {written(node)}.", allowed=f"a column of the answer, 1 to {len(items)}"
        )

    def _clipped_column(self, node: exp.Expr, items: tuple[Item, ...]) -> Scalar | None:
        """Returns the column of clipped values that a bare name means; None for other nodes."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        # as in SQL, a column of the answer comes before one of the table
        name = node.name.lower()
        named = [item for item in items if item.name.lower() == name]
        if name in self._aliases or not named:
            return None
        return named[0].expression

    def test(self, node: exp.Expr) -> Scalar:
        """Returns the condition of HAVING as an expression over noisy estimates and group keys."""
        return self._finished.test(node)

    def _leaf(self, node: exp.Expr) -> Typed | None:
        """Returns the value of a released number, a key or an alias; None for other nodes."""
        ask = self._calls.get(id(node))
        if ask is not None:
            estimate = self._estimates[ask]
            is_day = isinstance(ask, Level) and isinstance(ask.value.type, Date)
            if is_day:
                return Day(estimate)
            return Number(estimate, _ONE)
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node)
        for place, key in enumerate(self._group.nodes):
            if type(node) is type(key) and (node is key or node == key):
                return self._key_value(place)
        if isinstance(node, exp.Column):
            return self._alias_or_key(node)
        return None

    def _grouping(self, node: exp.Expr) -> Typed:
        """Returns GROUPING of keys: which of them a row adds up.

        Raises:
            UnsupportedSql: an argument is not a key.
        """
        places = []
        for argument in node.expressions:
            typed = self._rows.value(argument)
            if typed not in self._group.values:
                raise UnsupportedSql(
                    f"GROUPING of {written(argument)}.", allowed="keys of GROUP BY"
                )
            places.append(self._group.values.index(typed))
        if not places:
            raise UnsupportedSql("GROUPING without a key.", remedy="GROUPING(a key of GROUP BY)")
        return Number(Grouping(tuple(places)), _ONE)

    def _alias_or_key(self, node: exp.Column) -> Typed:
        """Returns the value of an alias or of a key.

        Raises:
            UnsupportedSql: a column that is not a key.
        """
        if not node.table and node.name.lower() in self._aliases:
            return self._aliases[node.name.lower()]
        if self._scope.part(node) is not None and self._scope.width == 1:
            raise refuse(f"Column {node.name!r} outside an aggregate", RAW_ROWS)
        typed = self._rows.value(node)
        if typed not in self._group.values:
            raise refuse(f"Column {node.name!r} outside GROUP BY", RAW_ROWS)
        return self._key_value(self._group.values.index(typed))

    def _key_value(self, place: int) -> Typed:
        """Returns the value of a key by its type; a number is its code times its step."""
        leaf = Key(place)
        match self._group.values[place]:
            case Number():
                step = self._group.keys[place].value.step
                if step == 1:
                    return Number(leaf, _ONE)
                return Number(Arithmetic(Operation.MULTIPLY, leaf, Constant(step)), _ONE)
            case Label(_, labels, stored):
                return Label(leaf, labels, stored)
            case Day():
                return Day(leaf)
            case Instant(_, step, zone):
                return Instant(leaf, step, zone)
            case Truth():
                return self._finished.truth(leaf)
            case _:
                return Words(leaf)

    def _column(self, typed: Typed) -> Scalar:
        """Returns the expression of an answer's column.

        A key alone is returned without its step, since the answer's writer decodes its code by the
        declared type. A constant label becomes the declared string.
        """
        match typed:
            case Number(Arithmetic(Operation.MULTIPLY, Key(place) as key, Constant())):
                # a statement can write a product of a key, too
                return key if typed == self._key_value(place) else typed.expression
            case Truth(test, codes):
                return test if codes is None else codes
            case Label(Constant(int(code)), labels):
                return Constant(labels[code])
            case Number() | Day() | Instant() | Label() | Words():
                return typed.expression
            case _:
                raise UnsupportedSql(
                    "A column of nothing but NULL, or of an INTERVAL.", remedy="Leave it out."
                )

    def _require_own_name(self, name: str, typed: Typed) -> None:
        """Refuses an alias that is the name of a key and means something else."""
        for place, key in enumerate(self._group.nodes):
            if not isinstance(key, exp.Column):
                continue
            if key.name.lower() != name.lower():
                continue
            if self._column(typed) == self._column(self._key_value(place)):
                return
            raise UnsupportedSql(
                f"The alias {name!r} is also the name of a group key.",
                remedy="Choose another name for the column.",
            )


def _unique_names(items: Sequence[Item]) -> tuple[Item, ...]:
    """Returns the columns under unique names: a repeated name gets a number."""
    taken = {item.name for item in items}
    seen: set[str] = set()
    renamed = []
    for item in items:
        name = item.name
        count = 1
        while name in seen or (count > 1 and name in taken):
            count += 1
            name = f"{item.name}_{count}"
        seen.add(name)
        renamed.append(Item(name, item.expression))
    return tuple(renamed)


def _default_name(node: exp.Expr) -> str:
    """Returns the name of a column without an alias."""
    if isinstance(node, exp.Column):
        return node.name
    return node.sql(dialect="duckdb")

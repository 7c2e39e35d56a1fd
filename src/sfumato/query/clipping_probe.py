# SPDX-License-Identifier: Apache-2.0
"""The same rows, with a step of room beyond the declared bounds: what was clipped can be told.

A scan clips each value to the type of its column. Read with a type that is one step wider on
both sides, a code at the new end says that the value lay beyond the declared bound. All else
reads the wide column through the declared bounds, so that every other code is what it was.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sfumato.errors import InvalidDeclaration, unknown
from sfumato.metadata.column import Column, Date, Integer, Real
from sfumato.plan.relation import (
    Filter,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Sort,
    Union,
    UnitJoin,
)
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Key,
    Leaf,
    Like,
    Lookup,
    Member,
    Not,
    Or,
    Quotient,
    Scalar,
)

Wide = Mapping[Column, Column]


def wide(column: Column) -> Column | None:
    """The column with a step of room at both ends; None where it has no bounds, or no room.

    >>> wide(Column("age", Integer(0, 120)))
    Column(name='age', type=Integer(-1, 121))
    """
    kind = column.type
    try:
        if isinstance(kind, Integer):
            return Column(
                column.name, Integer(kind.lower_code - 1, kind.upper_code + 1, missing=kind.missing)
            )
        if isinstance(kind, Real):
            low, high = (code * kind.step for code in (kind.lower_code - 1, kind.upper_code + 1))
            return Column(column.name, Real(low, high, step=kind.step, missing=kind.missing))
        if isinstance(kind, Date):
            low_day, high_day = kind.decode(kind.lower_code - 1), kind.decode(kind.upper_code + 1)
            return Column(column.name, Date(low_day, high_day, missing=kind.missing))
    except (InvalidDeclaration, OverflowError):
        pass
    return None


def widened(relation: Relation, columns: Wide) -> Relation:
    """The relation with some of the columns that it provides, those of scanned tables, read wide."""

    def read(expression: Scalar) -> Scalar:
        return through_bounds(expression, columns)

    match relation:
        case Scan():
            return replace(
                relation, columns=tuple(columns.get(each, each) for each in relation.columns)
            )
        case Filter(source, predicate):
            return Filter(widened(source, columns), read(predicate))
        case PublicJoin(source, _, left):
            return replace(relation, source=widened(source, columns), left=read(left))
        case UnitJoin(source, other):
            return replace(relation, source=widened(source, columns), other=widened(other, columns))
        case Semi(source):
            return replace(relation, source=widened(source, columns))
        case Ranked(source, order, ties):
            sorts = tuple(replace(each, expression=read(each.expression)) for each in order)
            # what the declared bounds do not tell apart is told apart by the rest first, as before
            sorts += tuple(Sort(read(each)) for each in ties)
            return replace(
                relation, source=widened(source, columns), order=sorts, ties=_fields(ties, columns)
            )
        case PerUnit() | Union():
            return relation
        case _:
            raise unknown(relation)


def through_bounds(expression: Scalar, columns: Wide) -> Scalar:
    """An expression that reads wide columns and has the codes that it had."""

    def clipped(leaf: Leaf) -> Scalar:
        if not isinstance(leaf, Field) or leaf.column not in columns:
            return leaf
        kind = leaf.column.type
        assert isinstance(kind, Integer | Real | Date), "only these are read wide"
        least = Extreme(
            greatest=True, operands=(Field(columns[leaf.column]), Constant(kind.lower_code))
        )
        return Extreme(greatest=False, operands=(least, Constant(kind.upper_code)))

    return _substituted(expression, clipped)


def _fields(ties: tuple[Scalar, ...], columns: Wide) -> tuple[Scalar, ...]:
    """Ties name columns as they are provided."""
    swap = {Field(column): Field(other) for column, other in columns.items()}
    return tuple(swap.get(each, each) if isinstance(each, Field) else each for each in ties)


def _substituted(expression: Scalar, swap: Callable[[Leaf], Scalar]) -> Scalar:
    """An expression with each leaf replaced."""

    def inner(each: Scalar) -> Scalar:
        return _substituted(each, swap)

    match expression:
        case Field() | Key() | Estimate():
            return swap(expression)
        case Constant():
            return expression
        case And(operands) | Or(operands) | Coalesce(operands) | Extreme(_, operands):
            return replace(expression, operands=tuple(map(inner, operands)))
        case Case(branches, otherwise):
            return Case(
                tuple((inner(test), inner(result)) for test, result in branches), inner(otherwise)
            )
        case Compare(_, left, right) | Arithmetic(_, left, right) | Quotient(left, right):
            return replace(expression, left=inner(left), right=inner(right))
        case (
            Member()
            | Like()
            | IsNull()
            | Not()
            | FloorDivide()
            | Lookup()
            | DatePart()
            | DateTrunc()
        ):
            return replace(expression, operand=inner(expression.operand))
        case _:
            raise unknown(expression)

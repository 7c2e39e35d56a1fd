# SPDX-License-Identifier: Apache-2.0
"""Widens columns by one step on both sides, so that a plan can count the clipped values.

A scan clips each value to the range of its column. In a widened column, a code at the new end means
that the value lay beyond the declared bound. All other expressions clip the widened column to the
declared bounds, so that their codes do not change. ``diagnose`` uses it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sfumato.errors import InvalidDeclaration, unknown
from sfumato.metadata.column import Column, Date, Integer, Real
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Sort,
    Union,
    UnitJoin,
    Windowed,
)
from sfumato.plan.scalar import (
    Constant,
    Extreme,
    Field,
    Leaf,
    Scalar,
    substituted,
)

Wide = Mapping[Column, Column]


def wide(column: Column) -> Column | None:
    """Returns the column with a declared range one step wider at both ends, so that ``diagnose``
    can count the values that are clipped.

    None if its type has no bounds, or they cannot be widened.

    >>> wide(Column("age", Integer(0, 120)))
    Column(name='age', type=Integer(-1, 121))
    """
    kind = column.type
    if not isinstance(kind, Integer | Real | Date | Timestamp):
        return None
    try:
        return Column(column.name, _wider(kind))
    except (InvalidDeclaration, OverflowError):
        return None


def _wider(kind: Integer | Real | Date | Timestamp) -> Integer | Real | Date | Timestamp:
    """The type with both bounds moved outwards by one step."""
    low = kind.lower_code - 1
    high = kind.upper_code + 1
    if isinstance(kind, Timestamp):
        return Timestamp.of_codes(low, high, step=int(kind.step), zone=kind.zone, like=kind)
    if isinstance(kind, Integer):
        return Integer(low, high, missing=kind.missing)
    if isinstance(kind, Real):
        return Real(low * kind.step, high * kind.step, step=kind.step, missing=kind.missing)
    days = kind.decode(low), kind.decode(high)
    return Date(*days, format=kind.format, missing=kind.missing)


def widened(relation: Relation, columns: Wide) -> Relation:
    """Returns the relation with some columns of its scanned tables replaced by wide versions (see
    ``wide``).
    """

    def read(expression: Scalar) -> Scalar:
        return through_bounds(expression, columns)

    match relation:
        case Scan():
            return _widened_scan(relation, columns)
        case Filter(source, predicate):
            return Filter(widened(source, columns), read(predicate))
        case PublicJoin(source, _, left):
            return replace(relation, source=widened(source, columns), left=read(left))
        case KeyJoin():
            return _widened_join(relation, columns)
        case UnitJoin(source, other):
            return replace(relation, source=widened(source, columns), other=widened(other, columns))
        case Semi(source):
            return replace(relation, source=widened(source, columns))
        case Ranked(source, order, ties) | Windowed(source, order=order, ties=ties):
            sorts = tuple(replace(sort, expression=read(sort.expression)) for sort in order)
            if isinstance(relation, Ranked) or not relation.is_rank:
                # the clipped ties come first, so that the order is the same as with declared bounds
                sorts += tuple(Sort(read(tie)) for tie in ties)
            wider_ties = tuple(_widened_tie(tie, columns) for tie in ties)
            wider = replace(relation, source=widened(source, columns), order=sorts, ties=wider_ties)
            return wider if isinstance(wider, Ranked) else _widened_window(wider, read)
        case PerUnit() | Union():
            return relation
        case _:
            raise unknown(relation)


def _widened_window(window: Windowed, read: Callable[[Scalar], Scalar]) -> Windowed:
    """The window whose parts and value are read through their declared bounds."""
    value = window.value
    if value is not None:
        value = replace(value, expression=read(value.expression))
    return replace(window, by=tuple(map(read, window.by)), value=value)


def _widened_scan(scan: Scan, columns: Wide) -> Scan:
    """The scan in which some of its columns are replaced by their wide versions."""
    return replace(scan, columns=tuple(columns.get(column, column) for column in scan.columns))


def _widened_join(join: KeyJoin, columns: Wide) -> KeyJoin:
    """The join of rows and a table by a key, with wide columns in the table."""
    return replace(
        join,
        source=widened(join.source, columns),
        table=_widened_scan(join.table, columns),
        left=through_bounds(join.left, columns),
        right=columns.get(join.right, join.right),
    )


def through_bounds(expression: Scalar, columns: Wide) -> Scalar:
    """Returns an expression that reads wide columns (see ``wide``), each clipped to its declared
    bounds.

    Its codes are therefore the same as over the declared columns.
    """

    def clipped(leaf: Leaf) -> Scalar:
        if not isinstance(leaf, Field) or leaf.column not in columns:
            return leaf
        kind = leaf.column.type
        assert isinstance(kind, Integer | Real | Date | Timestamp), "only these are widened"
        field = Field(columns[leaf.column])
        least = Extreme(greatest=True, operands=(field, Constant(kind.lower_code)))
        return Extreme(greatest=False, operands=(least, Constant(kind.upper_code)))

    return substituted(expression, clipped)


def _widened_tie(tie: Scalar, columns: Wide) -> Scalar:
    """The wide version of a column that breaks ties; any other tie expression is unchanged."""
    if isinstance(tie, Field) and tie.column in columns:
        return Field(columns[tie.column])
    return tie

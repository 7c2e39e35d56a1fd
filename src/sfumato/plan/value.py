# SPDX-License-Identifier: Apache-2.0
"""A value of a row: an expression, and the declared meaning of its codes."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.metadata.column import Boolean, Column, ColumnType, Integer, Real, Text
from sfumato.plan.scalar import Field, Scalar
from sfumato.plan.span import span


@dataclass(frozen=True, slots=True)
class Value:
    """What an aggregate or a key reads of a row.

    Guarantees:
        the codes lie within the declared range

    Raises:
        ValueError: an expression whose span leaves the range of its type.

    >>> Value.of(Column("age", Integer(0, 120))).step
    Fraction(1, 1)
    """

    name: str
    type: ColumnType
    expression: Scalar

    def __post_init__(self) -> None:
        if isinstance(self.type, Text):
            return
        found = span(self.expression)
        if found is not None and not self.type.lower_code <= found[0] <= found[1] <= self.type.upper_code:
            raise ValueError(f"{self.name} may leave the range of its type")

    @classmethod
    def of(cls, column: Column) -> "Value":
        """A declared column as it is."""
        return cls(column.name, column.type, Field(column))

    @property
    def numeric(self) -> Integer | Real | Boolean:
        """The type of a value that can be added up."""
        assert isinstance(self.type, Integer | Real | Boolean), "lowering admits no other type here"
        return self.type

    @property
    def step(self) -> Fraction:
        """What one code is worth."""
        return self.numeric.step


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key of GROUP BY.

    ``codes``: the declared groups, ascending; None: the groups are not public, and a
    threshold decides which are shown (RULES 16). ``missing``: NULL is a group of its own;
    without it, rows whose key is NULL or not declared are in no group.
    """

    value: Value
    codes: tuple[int, ...] | None
    missing: bool = False

    @property
    def size(self) -> int | None:
        """The number of declared groups."""
        return None if self.codes is None else len(self.codes) + self.missing

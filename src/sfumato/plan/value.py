# SPDX-License-Identifier: Apache-2.0
"""A value of a row: an expression, and the declared meaning of its codes."""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from sfumato.metadata.column import (
    LATTICE_STEPS,
    Boolean,
    Column,
    ColumnType,
    Integer,
    Real,
    Text,
)
from sfumato.plan.scalar import Field, Scalar
from sfumato.plan.value_range import is_text, span

# Rounding by less than this fraction (1 / NEGLIGIBLE) of a range is not reported.
NEGLIGIBLE = 10**6


@dataclass(frozen=True, slots=True)
class Value:
    """What an aggregate or a key reads of a row.

    ``name`` is what it is called in titles and messages, and no part of what it is: values that
    differ in their names alone are equal. ``rounding``: by how much computing its expression on
    lattices may have moved it, which follows from the expression.

    Guarantees:
        the codes lie within the declared range

    Raises:
        ValueError: an expression whose span leaves the range of its type, or that is no text.

    >>> Value.of(Column("age", Integer(0, 120))).step
    Fraction(1, 1)
    """

    name: str = field(compare=False)
    type: ColumnType
    expression: Scalar
    rounding: Fraction = field(default=Fraction(0), compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.type, Text):
            if not is_text(self.expression):
                raise ValueError(f"{self.name} is no text")
            return
        found = span(self.expression)
        if (
            found is not None
            and not self.type.lower_code <= found[0] <= found[1] <= self.type.upper_code
        ):
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

    Guarantees:
        no group is declared twice

    Raises:
        ValueError: codes that are not ascending, or none.
    """

    value: Value
    codes: tuple[int, ...] | None
    missing: bool = False

    def __post_init__(self) -> None:
        if self.codes is None:
            return
        if not self.codes and not self.missing:
            raise ValueError(f"{self.value.name} has no group")
        if any(one >= other for one, other in pairwise(self.codes)):
            raise ValueError(f"the codes of {self.value.name} are not ascending")

    @property
    def size(self) -> int | None:
        """The number of declared groups."""
        return None if self.codes is None else len(self.codes) + self.missing


def is_of_range(kind: Integer | Real) -> bool:
    """Whether the step of a type is the one that RULES 12 derives from its range.

    That step is the power of two of which the range has about a million.
    """
    powers = all(each & (each - 1) == 0 for each in kind.step.as_integer_ratio())
    return isinstance(kind, Real) and powers and LATTICE_STEPS <= kind.size <= 2 * LATTICE_STEPS

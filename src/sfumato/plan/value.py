# SPDX-License-Identifier: Apache-2.0
"""Values computed from a row: an expression, and the type that gives its codes a meaning."""

import operator
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.errors import MissingDeclaration, shown
from sfumato.metadata.column import (
    LATTICE_STEPS,
    NARROWEST_CLIP,
    Array,
    Boolean,
    Column,
    ColumnType,
    Integer,
    Real,
    Text,
)
from sfumato.plan.scalar import Field, Scalar
from sfumato.plan.value_range import is_text, span
from sfumato.privacy.unit import AUTO

# Rounding by less than 1 / NEGLIGIBLE of a range is not reported.
NEGLIGIBLE = 10**6


@dataclass(frozen=True, slots=True)
class Value:
    """An expression over the columns of a row, with the type that gives its integer codes a
    meaning.

    Aggregates and keys read it. ``name`` appears in titles and messages; values that differ only in
    their names are equal. ``rounding`` bounds the error from rounding numbers to lattices within
    the expression, from which it follows.

    Guarantees:
        the codes lie within the declared range

    Raises:
        ValueError: the range of the expression exceeds that of the type, or the expression of a
            text is not one.

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
        reached = span(self.expression)
        if reached is None:
            return
        low, high = reached
        if not self.type.lower_code <= low <= high <= self.type.upper_code:
            raise ValueError(f"{self.name} may leave the range of its type")

    @classmethod
    def of(cls, column: Column) -> "Value":
        """Returns the value that reads a declared column, unchanged."""
        return cls(column.name, column.type, Field(column))

    @property
    def numeric(self) -> Integer | Real | Boolean:
        """The type of the value, which must be numeric."""
        assert isinstance(self.type, Integer | Real | Boolean), "lowering admits no other type here"
        return self.type

    @property
    def step(self) -> Fraction:
        """The lattice step: the difference between the values of adjacent codes."""
        return self.numeric.step


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key of GROUP BY.

    ``codes`` are the declared groups, ascending; None: the groups are not public, and a noisy
    threshold decides which are released (RULES 16). ``missing``: NULL is a group of its own;
    without it, rows whose key is NULL or undeclared are in no group.

    Guarantees:
        no group is declared twice

    Raises:
        MissingDeclaration: the value is an array, which has too many values for groups.
        ValueError: there are no codes, or they are not ascending.

    >>> from sfumato.metadata.column import Category
    >>> sex = Value.of(Column("sex", Category("F", "M")))
    >>> GroupKey(sex, (0, 1), missing=True).size, GroupKey(sex, None).size
    (3, None)
    """

    value: Value
    codes: tuple[int, ...] | None
    missing: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.value.type, Array):
            raise MissingDeclaration(
                f"{shown(self.value.name)} is an sf.Array, which has no groups.",
                allowed="columns of single values",
                remedy="Leave it out.",
            )
        if self.codes is None:
            return
        if not self.codes and not self.missing:
            raise ValueError(f"{self.value.name} has no group")
        if not all(map(operator.lt, self.codes, self.codes[1:])):
            raise ValueError(f"the codes of {self.value.name} are not ascending")

    @property
    def size(self) -> int | None:
        """The number of declared groups of this key; None if the groups are not public."""
        if self.codes is None:
            return None
        return len(self.codes) + self.missing


def is_of_range(kind: Integer | Real) -> bool:
    """Returns whether the lattice step of a type is the default, derived from its range (RULES 12).

    That step is a power of two such that the range, or the clip, has about a million steps.
    """
    if not isinstance(kind, Real):
        return False
    size = kind.size
    if isinstance(kind.clip, tuple):
        low, high = kind.clip
        size = high - low + 1
    elif kind.clip is AUTO:
        size //= NARROWEST_CLIP
    power_of_two = all(part & (part - 1) == 0 for part in kind.step.as_integer_ratio())
    return power_of_two and LATTICE_STEPS <= size <= 2 * LATTICE_STEPS

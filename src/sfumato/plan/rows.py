# SPDX-License-Identifier: Apache-2.0
"""Rows read one by one, for tasks: each as the codes of some values, and few rows per unit."""

from dataclasses import dataclass
from itertools import accumulate

from sfumato.errors import MissingDeclaration, WrongUse, shown
from sfumato.metadata.column import Array, Text
from sfumato.plan.aggregate import CountValues
from sfumato.plan.relation import Relation
from sfumato.plan.stages import Raw
from sfumato.plan.value import Value
from sfumato.privacy.unit import Relation as Neighbours

# The code of a missing value: below the code of any type.
MISSING = -(2**63)


@dataclass(frozen=True, slots=True)
class RowList:
    """A plan that reads values of each row of a relation, instead of aggregates.

    Like ``Raw``, it is unbounded: the contribution of a unit is not limited yet.

    Raises:
        WrongUse: there are no values.

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.plan.relation import Scan
    >>> age = Column("age", Integer(0, 120))
    >>> RowList(Scan("people", columns=(age,)), (Value.of(age),)).raw.keys
    ()
    """

    relation: Relation
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise WrongUse("Rows without values.", allowed="at least one value")

    def require_codes(self) -> None:
        """Raises MissingDeclaration, with the name of the value, if one is a text."""
        for value in self.values:
            if isinstance(value.type, Text):
                raise MissingDeclaration(
                    f"{shown(value.name)} is a text: its values are not declared, so they have no "
                    "codes.",
                    allowed="values with codes: a Category, an Integer, a Boolean, a Date, a Real",
                    remedy="Declare it as sf.Category with its values, or leave it out.",
                )

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of codes of each value: 1, or for an array its number of elements.

        The code of a text is only 0, or ``MISSING``: its tokens are stored apart.
        """
        kinds = [value.type for value in self.values]
        return tuple(kind.length if isinstance(kind, Array) else 1 for kind in kinds)

    @property
    def starts(self) -> tuple[int, ...]:
        """The position of the first code of each value among the codes of a row."""
        return tuple(accumulate(self.widths[:-1], initial=0))

    @property
    def raw(self) -> Raw:
        """The equivalent plan with aggregates (a count of each value), from which row limits are
        derived.
        """
        return Raw(self.relation, (), tuple(map(CountValues, self.values)))


@dataclass(frozen=True, slots=True)
class BoundedRows:
    """A plan that reads rows one by one, at most ``most`` of each unit; the engine drops a unit's
    further rows.

    Between neighbouring datasets the rows of one unit are added, removed or replaced, as
    ``neighbours`` says; those of all other units are the same, in the same order. ``unit`` None:
    each row is its own unit.

    With ``naming``, each row comes with a keyed hash of its unit's id, by which the unit is
    recognised in other reads.

    Raises:
        ValueError: ``most`` below 1, or above 1 where each row is its own unit.

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.plan.relation import Scan
    >>> age = Column("age", Integer(0, 120))
    >>> rows = RowList(Scan("people", columns=(age,)), (Value.of(age),))
    >>> BoundedRows(rows, unit=None, most=1, neighbours=Neighbours.ADD_REMOVE).most
    1
    """

    rows: RowList
    unit: str | None
    most: int
    neighbours: Neighbours
    naming: str = ""

    def __post_init__(self) -> None:
        if self.most < 1 or (self.unit is None and self.most != 1):
            raise ValueError("a unit has a row at most, or more; a row that is its own unit is one")

# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: how far apart the exact integers of neighbouring datasets can be."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import to_fraction
from sfumato.privacy.unit import Relation


class Norm(Enum):
    """The norm by which the difference of two integer vectors is measured: L1, L2 or Linf.

    >>> Norm.LINF.value
    'Linf'
    """

    L1 = "L1"
    L2 = "L2"
    LINF = "Linf"


@dataclass(frozen=True, slots=True)
class Distance:
    """A sensitivity: a proved bound of the norm of the difference between the statistics of
    neighbouring datasets.

    ``value`` is the L1 norm, the SQUARE of the L2 norm (so that it is rational), or the largest
    change of one entry (Linf), in lattice steps. ``relation`` is the neighbour relation; bounds
    under different relations are never combined.

    Raises:
        InvalidNumber: a value that is not above 0.

    >>> Distance(Norm.L2, Fraction(25)).value
    Fraction(25, 1)
    >>> Distance(Norm.LINF, Fraction(5)).over(4, Norm.L2).value
    Fraction(100, 1)
    """

    norm: Norm
    value: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", to_fraction("A sensitivity", self.value))
        if self.value <= 0:
            raise InvalidNumber(f"A sensitivity of {self.value}.", allowed="greater than 0")

    def over(self, entries: int, norm: Norm) -> "Distance":
        """Returns the L1 or L2 sensitivity of ``entries`` integers, each of which has this Linf
        sensitivity.
        """
        if self.norm is not Norm.LINF or norm is Norm.LINF or entries < 1:
            raise InvalidDeclaration(
                f"An {self.norm.value} bound over {entries} entries has no {norm.value} form.",
                allowed="from Linf to L1 or L2, one entry or more",
            )
        total = entries * self.value if norm is Norm.L1 else entries * self.value**2
        return Distance(norm, Fraction(total), self.relation)

# SPDX-License-Identifier: Apache-2.0
"""How far apart the exact integers of neighbouring datasets can be."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.errors import InvalidNumber


class Norm(Enum):
    """The norm in which a distance is measured."""

    L1 = "L1"
    L2 = "L2"


@dataclass(frozen=True, slots=True)
class Distance:
    """A sensitivity: a proven bound on a norm of the difference between neighbours.

    ``value`` is the L1 norm, or the SQUARE of the L2 norm, so that both stay exact. It is
    in lattice steps.

    >>> Distance(Norm.L2, Fraction(25)).value
    Fraction(25, 1)
    """

    norm: Norm
    value: Fraction

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise InvalidNumber(f"A sensitivity of {self.value}.", allowed="greater than 0")

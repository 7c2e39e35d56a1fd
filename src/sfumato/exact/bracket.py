# SPDX-License-Identifier: Apache-2.0
"""Proved bounds of a real number: from above, or from both sides."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """A proved upper bound of a number, and a proved lower bound of it or None.

    >>> Bounds(None, 0.2)
    Bounds(lower=None, upper=0.2)
    """

    lower: float | None
    upper: float


@dataclass(frozen=True, slots=True)
class Bracket(Bounds):
    """A proved lower and upper bound of a number.

    >>> Bracket(0.1, 0.2).width
    0.1
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """The upper bound minus the lower bound."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

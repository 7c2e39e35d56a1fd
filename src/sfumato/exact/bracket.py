# SPDX-License-Identifier: Apache-2.0
"""An interval that provably holds a real number."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bracket:
    """``lower <= truth <= upper``: what is computed, as opposed to what is promised.

    >>> Bracket(0.1, 0.2).width
    0.1
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

# SPDX-License-Identifier: Apache-2.0
"""Proved bounds of a real number: an upper one, or both."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """``truth <= upper``; and ``lower <= truth`` where that is proved too, else ``lower`` is None.

    >>> Bounds(None, 0.2)
    Bounds(lower=None, upper=0.2)
    """

    lower: float | None
    upper: float


@dataclass(frozen=True, slots=True)
class Bracket(Bounds):
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

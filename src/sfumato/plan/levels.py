# SPDX-License-Identifier: Apache-2.0
"""A statement with grouping sets (ROLLUP, CUBE) as several questions, measured in one charge.

``query`` plans it so when separate measurements are more accurate than adding up groups.
"""

from dataclasses import dataclass

from sfumato.plan.stages import Bounded


@dataclass(frozen=True, slots=True)
class Level:
    """A bounded plan that measures one or more grouping sets of a statement: its aggregates by some
    of the statement's group keys.

    ``keys`` are the positions of these keys in the statement. ``sets`` are the positions of the
    grouping sets that are computed from this question: the set with exactly these keys, and sets
    that are sums of its groups.
    """

    keys: tuple[int, ...]
    bounded: Bounded
    sets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """A statement with grouping sets (ROLLUP, CUBE), split into bounded plans that are measured
    separately.

    The limits of a unit hold in each of them anew, so they compose like questions that are asked
    one after the other: their L1 sensitivities, or the squares of the L2 sensitivities, add up.

    >>> Levels(()).questions
    ()
    """

    levels: tuple[Level, ...]

    @property
    def questions(self) -> tuple[Bounded, ...]:
        """The bounded plan of each level."""
        return tuple(level.bounded for level in self.levels)

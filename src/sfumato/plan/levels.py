# SPDX-License-Identifier: Apache-2.0
"""Grouping sets that are measured apart: several questions about the same rows, in one charge."""

from dataclasses import dataclass

from sfumato.plan.stages import Bounded


@dataclass(frozen=True, slots=True)
class Level:
    """A question about the rows by some of the keys of a statement.

    ``keys`` are the positions of its keys in the statement. ``sets`` are the positions of the
    grouping sets that are read from it: its own, and those that are sums of its groups.
    """

    keys: tuple[int, ...]
    bounded: Bounded
    sets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a statement with grouping sets, each bounded by itself.

    The limits of a unit hold in each level anew, so the levels compose like questions that are
    asked one after the other: in L1 their distances add up, in L2 their squares.

    >>> Levels(()).questions
    ()
    """

    levels: tuple[Level, ...]

    @property
    def questions(self) -> tuple[Bounded, ...]:
        """The question of each level."""
        return tuple(level.bounded for level in self.levels)

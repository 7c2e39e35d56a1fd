# SPDX-License-Identifier: Apache-2.0
"""A bounded cube whose axes are chosen while it is read. Proof: open_cube.proof.md."""

from dataclasses import dataclass, replace

from sfumato.plan.cube import BoundedCube
from sfumato.plan.stages import Bounded


@dataclass(frozen=True, slots=True)
class OpenCube:
    """The plan of a task that first asks questions, then counts rows by axes chosen from their
    answers.

    A task of ``Session.ask`` may state it as its plan. ``questions`` are asked first. Then the task
    counts rows in cubes that differ from ``cube`` only in their axes (group keys); which axes may
    depend on the released answers.

    Guarantees:
        only cubes of the same rows and bounds are admitted

    >>> from fractions import Fraction
    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.plan import Scan, Value
    >>> from sfumato.plan.cube import Cube, axis
    >>> from sfumato.privacy.distance import Distance, Norm
    >>> columns = Column("age", Integer(0, 9)), Column("size", Integer(0, 3))
    >>> people = Scan("people", columns=columns)
    >>> distances = [Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF)]
    >>> cubes = [Cube(people, (axis(Value.of(column)),)) for column in columns]
    >>> by_age, by_size = (BoundedCube(cube, None, 1, 1, *distances) for cube in cubes)
    >>> OpenCube(by_age).admits(by_size), OpenCube(by_age).admits(replace(by_size, unit="person"))
    (True, False)
    """

    cube: BoundedCube
    questions: tuple[Bounded, ...] = ()

    def admits(self, cube: BoundedCube) -> bool:
        """Returns whether a later count differs from ``self.cube`` at most in its axes.

        If so, the sensitivity bounds that were proved for ``self.cube`` hold for it.
        """
        # a subclass could override equality
        if type(cube) is not BoundedCube:
            return False
        axes = self.cube.cube.axes
        return replace(cube, cube=replace(cube.cube, axes=axes)) == self.cube

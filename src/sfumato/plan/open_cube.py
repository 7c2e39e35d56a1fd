# SPDX-License-Identifier: Apache-2.0
"""A bounded cube whose axes are chosen while it is read. Proof: open_cube.proof.md."""

from dataclasses import dataclass, replace

from sfumato.plan.cube import BoundedCube
from sfumato.plan.stages import Bounded


@dataclass(frozen=True, slots=True)
class OpenCube:
    """The plan of a task that chooses axes from earlier released numbers, then counts rows by them.

    A task of ``Session.ask`` may state it as its plan. ``questions`` are asked first; the axes may
    depend on their released answers. Then cubes are counted that equal ``cube`` in all but the
    axes.

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
        """Whether a cube equals ``cube`` in all but the axes, so that the proved bounds hold."""
        # a subclass could override equality
        if type(cube) is not BoundedCube:
            return False
        axes = self.cube.cube.axes
        return replace(cube, cube=replace(cube.cube, axes=axes)) == self.cube

# SPDX-License-Identifier: Apache-2.0
"""A bounded cube whose axes are chosen while it is read. Proof: open_cube.proof.md."""

from dataclasses import dataclass, replace

from sfumato.plan.cube import BoundedCube
from sfumato.plan.stages import Bounded


@dataclass(frozen=True, slots=True)
class OpenCube:
    """Rows that are counted by axes which are known only once something was released.

    ``questions`` are read first: what is released of them may choose the axes. Then cubes are
    counted that are ``cube`` but for their axes.

    Guarantees:
        only cubes of the same rows and bounds are admitted

    >>> OpenCube.__name__, "Session.ask opens one for a task"
    ('OpenCube', 'Session.ask opens one for a task')
    """

    cube: BoundedCube
    questions: tuple[Bounded, ...] = ()

    def admits(self, cube: BoundedCube) -> bool:
        """Whether a cube is this one but for its axes."""
        # a subclass could override equality
        if type(cube) is not BoundedCube:
            return False
        axes = self.cube.cube.axes
        return replace(cube, cube=replace(cube.cube, axes=axes)) == self.cube

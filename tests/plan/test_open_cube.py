# SPDX-License-Identifier: Apache-2.0
"""What an open cube admits: the same rows and bounds by any axes."""

from dataclasses import replace
from fractions import Fraction

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.plan.cube import BoundedCube, axis
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.value import Value
from tests.synthetic.tiny import cube


class Agreeable(BoundedCube):
    """Says of itself that it equals any cube."""

    __slots__ = ()
    __hash__ = BoundedCube.__hash__

    def __eq__(self, other: object) -> bool:
        return True


def agreeable() -> BoundedCube:
    one = cube()
    return Agreeable(one.cube, one.unit, one.most, one.refinement, one.l1, one.l2, one.apart)


def test_only_cubes_of_the_same_rows_and_bounds_are_admitted():
    one = cube()
    whole = OpenCube(one)
    fewer = replace(one.cube, axes=one.cube.axes[:1])
    assert whole.admits(one) and whole.admits(replace(one, cube=fewer))
    other = Column("v", sf.Integer(0, 9))
    assert whole.admits(replace(one, cube=replace(one.cube, axes=(axis(Value.of(other)),))))
    near = replace(one.l1, value=Fraction(1))
    relation = replace(one.cube.relation, table="others")
    for wrong in (
        replace(one, l1=near),
        replace(one, most=3),
        replace(one, refinement=1),
        replace(one, cube=replace(one.cube, relation=relation)),
        cube(sf.ReplaceOne),
        agreeable(),
    ):
        assert not whole.admits(wrong)

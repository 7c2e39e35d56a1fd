# SPDX-License-Identifier: Apache-2.0
"""Bounded cubes over the tables of ``world``, by hand and by hypothesis."""

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube, Cube, axis
from sfumato.plan.relation import Relation, scans
from sfumato.plan.scope import provided
from sfumato.plan.value import Value
from sfumato.privacy.distance import Distance, Norm
from tests.contracts import plans, world

FINE = 2**20
Cliques = Sequence[Sequence[str]]


def bounded(relation: Relation, *axes: Value, most: int = 1, fine: int = FINE) -> BoundedCube:
    """A cube under any limits: what engines compute does not depend on what is proved of it."""
    owned = all(scan.owner is not None for scan in scans(relation))
    far = (Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF))
    cube = Cube(relation, tuple(map(axis, axes)))
    return BoundedCube(
        cube, "who" if owned else None, most if owned else 1, fine if owned else 1, *far
    )


@st.composite
def cubes(draw: st.DrawFn, depth: int = 3) -> BoundedCube:
    """A cube of a relation over tables of one unit, or over one whose rows are units."""
    relation = draw(
        plans.relations(
            draw(st.sampled_from([world.OWNED, world.OWNED, ("days",), ("rows",)])), depth
        )
    )
    found = draw(
        st.lists(plans.values(provided(relation), text=False, widest=8), min_size=1, max_size=3)
    )
    named = [Value(f"x{place}", each.type, each.expression) for place, each in enumerate(found)]
    return bounded(
        relation, *named, most=draw(st.integers(1, 4)), fine=draw(st.sampled_from([1, 6, FINE]))
    )


@st.composite
def cliques(draw: st.DrawFn, cube: Cube) -> Cliques:
    """Some cliques of a cube, in any order."""
    each = st.permutations(cube.names).flatmap(
        lambda names: st.integers(0, len(names)).map(lambda n: names[:n])
    )
    return draw(st.lists(each, min_size=1, max_size=4))


def same(one: Sequence[Integers], other: Sequence[Integers]) -> bool:
    """Whether marginals are the same to the last bit, of one shape and type."""
    pairs = zip(one, other, strict=True)
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs
    )

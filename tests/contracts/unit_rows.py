# SPDX-License-Identifier: Apache-2.0
"""Bounded rows over the tables of ``world``, by hand and by hypothesis."""

from hypothesis import strategies as st

from sfumato.engines.base import UnitRows
from sfumato.plan.relation import Relation, scans
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.scope import provided
from sfumato.plan.value import Value
from sfumato.privacy.unit import Relation as Neighbours
from tests.contracts import plans, world


def bounded(relation: Relation, *values: Value, most: int = 1) -> BoundedRows:
    """Rows under any limit: what engines give does not depend on what is proved of it."""
    owned = all(scan.owner is not None for scan in scans(relation))
    return BoundedRows(
        RowList(relation, values),
        "who" if owned else None,
        most if owned else 1,
        Neighbours.ADD_REMOVE,
    )


@st.composite
def lists(draw: st.DrawFn, depth: int = 3) -> BoundedRows:
    """Rows of a relation over tables of one unit, or over one whose rows are units."""
    relation = draw(
        plans.relations(
            draw(st.sampled_from([world.OWNED, world.OWNED, ("days",), ("rows",)])), depth
        )
    )
    found = draw(st.lists(plans.values(provided(relation), text=False), min_size=1, max_size=3))
    named = [Value(f"x{place}", each.type, each.expression) for place, each in enumerate(found)]
    return bounded(relation, *named, most=draw(st.integers(1, 4)))


def blocks(rows: UnitRows) -> list[list[list[int]]]:
    """The rows of each unit."""
    return [
        rows.codes[one:other].tolist()
        for one, other in zip(rows.starts[:-1], rows.starts[1:], strict=True)
    ]

# SPDX-License-Identifier: Apache-2.0
"""Bounded rows over the tables of ``world``, by hand and by hypothesis."""

from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.base import UnitRows
from sfumato.plan.relation import Relation, scans
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.scope import provided
from sfumato.plan.value import Value
from sfumato.privacy.unit import Relation as Neighbours
from tests.contracts import plans, world

SPLIT = sf.Text(tokens=sf.Tokens(stop=["a"], most=2))


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
    found = draw(st.lists(plans.values(provided(relation)), min_size=1, max_size=3))
    rules = st.sampled_from([sf.Text(), sf.Text(tokens=sf.Tokens(longest=2)), SPLIT])
    named = []
    for place, each in enumerate(found):
        kind = draw(rules) if isinstance(each.type, sf.Text) else each.type
        named.append(Value(f"x{place}", kind, each.expression))
    return bounded(relation, *named, most=draw(st.integers(1, 4)))


def blocks(rows: UnitRows) -> list[list[list[object]]]:
    """The rows of each unit: codes, and in place of a text its tokens."""
    listed: list[list[object]] = rows.codes.tolist()
    for place, tokens in rows.tokens.items():
        for row, (start, end) in enumerate(zip(tokens.starts[:-1], tokens.starts[1:], strict=True)):
            words = tuple(tokens.strings[number] for number in tokens.numbers[start:end])
            listed[row].append((place, listed[row][place], words))
    return [listed[one:other] for one, other in zip(rows.starts[:-1], rows.starts[1:], strict=True)]

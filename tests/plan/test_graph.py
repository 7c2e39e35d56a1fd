# SPDX-License-Identifier: Apache-2.0
"""A bounded graph is the rows of one table that pass tests, without an owner."""

import pytest

from sfumato.metadata.column import Category, Column
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Filter, Scan, Semi
from sfumato.plan.scalar import Field, Member
from sfumato.plan.show import form
from sfumato.privacy.unit import AddRemove

KIND = Column("kind", Category("x", "y"))
TIES = Scan("ties", columns=(KIND,), owner=Owner(("a", "b"), unordered=True))


def test_a_graph_is_read_from_the_rows_of_one_table():
    close = Filter(Filter(TIES, Member(Field(KIND), (0,))), Member(Field(KIND), (0, 1)))
    graph = BoundedGraph(close, ("a", "b"), "person", AddRemove, ("people", "id"))
    assert (graph.table, graph.scan) == ("ties", TIES)
    assert form(graph) != form(BoundedGraph(close, ("a", "b"), "person", AddRemove))


@pytest.mark.parametrize(
    ("relation", "ends"),
    [
        (Semi(TIES, Scan("people")), ("a", "b")),
        (Scan("ties", owner=Owner(("a", "b"))), ("a", "b")),
        (Scan("ties"), ("a", "b")),
        (TIES, ("a",)),
        (TIES, ("b", "a")),
    ],
)
def test_anything_else_is_no_graph(relation, ends):
    with pytest.raises(ValueError, match="one table"):
        BoundedGraph(relation, ends, "person", AddRemove)

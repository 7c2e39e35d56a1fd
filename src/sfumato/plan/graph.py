# SPDX-License-Identifier: Apache-2.0
"""A graph: the edges that the rows of a table state, each between two names."""

from dataclasses import dataclass

from sfumato.plan.owner import Owner
from sfumato.plan.relation import Filter, Relation, Scan
from sfumato.privacy.unit import Relation as Neighbours


@dataclass(frozen=True, slots=True)
class BoundedGraph:
    """The undirected graph of the rows of ``relation``, whose ``ends`` name two nodes each.

    The unordered pair of its ends is the owner of each row, whoever is protected.

    A row without one of its ends, or with two equal ends, is no edge; rows with the same two ends,
    in either order, are one edge. ``unit`` names whom the graph is about. Without ``nodes``,
    neighbouring graphs differ by one edge. With it, the names of nodes are those in that column of
    that table, an edge with an end that is not among them is dropped, and neighbouring graphs
    differ by one node with all its edges; ``neighbours`` as everywhere.

    Raises:
        ValueError: the relation is more than the rows of one table that pass tests.

    >>> pairs = Owner(("a", "b"), unordered=True)
    >>> BoundedGraph(Scan("ties", owner=pairs), ("a", "b"), "a, b", Neighbours.ADD_REMOVE).table
    'ties'
    """

    relation: Relation
    ends: tuple[str, str]
    unit: str
    neighbours: Neighbours
    nodes: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.scan.owner != Owner(self.ends, unordered=True):
            raise ValueError("a graph is read from the rows of one table, by their two ends")

    @property
    def scan(self) -> Scan:
        """The scan of the table whose rows are the edges."""
        relation = self.relation
        while isinstance(relation, Filter):
            relation = relation.source
        if not isinstance(relation, Scan):
            raise ValueError("a graph is read from the rows of one table")
        return relation

    @property
    def table(self) -> str:
        """The name of the table whose rows are edges."""
        return self.scan.table

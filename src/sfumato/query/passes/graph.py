# SPDX-License-Identifier: Apache-2.0
"""Raw -> BoundedGraph: the ends of edges, and whether an edge or a node is the unit."""

from dataclasses import replace

from sfumato.errors import InvalidDeclaration, UnsupportedSql
from sfumato.plan.aggregate import CountRows
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Filter, Relation, Scan
from sfumato.plan.stages import Raw
from sfumato.privacy.unit import Node
from sfumato.query.passes import Context
from sfumato.query.passes.prune import prune


def graph(raw: Raw, context: Context) -> BoundedGraph:
    """Returns the bounded graph whose edges are the rows that a question counts.

    The question reads them without an owner: the declared unit decides between whom an edge is.

    Raises:
        InvalidDeclaration: the unit of the table is neither ``sf.Edge`` nor ``sf.Node``.
        UnsupportedSql: the question is more than tests of single rows of the table.
    """
    if raw.keys or raw.aggregates != (CountRows(),):
        raise UnsupportedSql("A graph of grouped rows.", allowed="conditions on rows")
    return bound_graph(prune(raw, context).relation, context)


def bound_graph(relation: Relation, context: Context) -> BoundedGraph:
    """Returns the bounded graph whose edges are some rows of one declared table; raises as
    ``graph``.
    """
    source = relation
    while isinstance(source, Filter):
        source = source.source
    if not isinstance(source, Scan):
        raise UnsupportedSql(
            "A graph of rows that depend on other rows.",
            allowed="conditions on the columns of the table of edges: \"kind = 'close'\"",
        )
    dataset = context.dataset
    unit = dataset.tables[source.table].unit
    name = dataset.unit_name(source.table)
    nodes = None
    if isinstance(unit, Node):
        ends = unit.ends
        nodes = unit.of, dataset.node_column(unit)
    elif unit is not None and unit.unordered and name is not None:
        first, second = unit.columns
        ends = first, second
    else:
        raise InvalidDeclaration(
            f"The unit of table {source.table!r} is {unit!r}, by which no edge of a graph is "
            "protected.",
            allowed='unit=sf.Edge("a", "b"), which protects each edge, or '
            'unit=sf.Node("a", "b", of="people"), which protects each person with all edges',
            remedy="Declare one of them for the table.",
        )
    assert name is not None, "each of the two has a name"
    pairs = _with_owner(relation, Owner(ends, unordered=True))
    return BoundedGraph(pairs, ends, name, dataset.relation, nodes)


def _with_owner(relation: Relation, owner: Owner) -> Relation:
    """The rows of a table that pass tests, as rows of an owner."""
    if isinstance(relation, Filter):
        return replace(relation, source=_with_owner(relation.source, owner))
    assert isinstance(relation, Scan), "called with filters of a scan"
    return replace(relation, owner=owner)

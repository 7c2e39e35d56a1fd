# SPDX-License-Identifier: Apache-2.0
"""From a table of edges, and a condition on its rows, to a bounded graph."""

from dataclasses import replace

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.metadata.dataset import Dataset
from sfumato.plan.graph import BoundedGraph
from sfumato.query.pipeline import compile_graph
from sfumato.sql.lower import understand


def graph_of(dataset: Dataset, table: str, where: str | None) -> BoundedGraph:
    """Returns the bounded plan of a graph: its edges are the rows of a table, or those rows that
    pass the SQL condition ``where``.

    Raises:
        UnknownName: there is no such table.
        InvalidDeclaration: the unit of the table is neither ``sf.Edge`` nor ``sf.Node``.
        UnsupportedSql, SqlSyntaxError: ``where`` is not a condition on single rows.
    """
    if not isinstance(table, str) or table not in dataset.tables:
        raise UnknownName(f"No table {shown(table)}.", allowed=", ".join(dataset.tables))
    if where is not None and (not isinstance(where, str) or not where.strip()):
        raise WrongUse(f"where={shown(where)}.", allowed="a condition: \"kind = 'close'\"")
    quoted = table.replace('"', '""')
    condition = "" if where is None else f" WHERE ({where}\n)"
    # rows as they are: whom an edge is about, the graph itself says
    alone = replace(dataset.tables[table], unit=None)
    declared = replace(dataset, tables={table: alone})
    question = understand(f'SELECT COUNT(*) AS edges FROM "{quoted}"{condition}', declared)
    return compile_graph(question.raw, dataset)


def protection_of(plan: BoundedGraph) -> tuple[str, ...]:
    """Returns sentences on the privacy unit and the neighbour relation of a graph."""
    first, second = plan.ends
    step = "added or removed" if plan.neighbours.value == "add-remove" else "replaced by another"
    if plan.nodes is not None:
        table, column = plan.nodes
        who = f"each {plan.unit!r} ({table}.{column}) with all edges at it"
        return (f"Protected: {who}; neighbours differ by one of them {step}.",)
    who = f"each edge, a pair of {first!r} and {second!r} in either order"
    many = (
        "Not protected: that a person has many edges. What k edges show together costs k times "
        "epsilon; sf.Node protects a person with all of them."
    )
    return f"Protected: {who}; neighbours differ by one edge {step}.", many

# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for the edges of a bounded graph, and the numbers of their nodes.

Proof: edges.proof.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato.engines.base import Graph
from sfumato.engines.duckdb_printer import printed, text
from sfumato.engines.relation import Tables, rows, stored_columns
from sfumato.engines.value_sql import Source
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Relation, Scan

if TYPE_CHECKING:
    import pyarrow


def edge_statements(
    plan: BoundedGraph,
    sources: Mapping[str, Source],
    key: str,
) -> list[str]:
    """Returns the SQL that reads a graph: a SELECT of each edge's two node names, one of the node
    count.

    The second is left out if there is no table of nodes.

    Guarantees:
        an edge is there once, whatever rows state it
        the order of edges is a function of key and names
    """
    pairs = _units(plan.relation, sources)
    # the pair "3:ann4:bert" is the name of a unit of two columns: its parts are told by lengths
    first = (
        "SELECT unit, TRY_CAST(split_part(unit, ':', 1) AS BIGINT) AS size, "
        f"substring(unit, instr(unit, ':') + 1) AS rest FROM ({pairs})"
    )
    ends = (
        "SELECT unit, substring(rest, 1, size) AS low, "
        "substring(substring(rest, size + 1), instr(substring(rest, size + 1), ':') + 1) AS high "
        f"FROM ({first})"
    )
    tests = ["low <> high"]
    counted = []
    scan = node_scan(plan)
    if scan is not None:
        names = _units(scan, sources)
        tests += [f"{end} IN (SELECT unit FROM ({names}))" for end in ("low", "high")]
        counted = [f"SELECT count(*) AS nodes FROM ({names})"]
    order = f"md5(concat_ws('|', {text(key)}, unit)), unit"
    edges = f"SELECT [low, high] FROM ({ends}) WHERE {' AND '.join(tests)} ORDER BY {order}"
    return [edges, *counted]


def read_columns(plan: BoundedGraph) -> dict[str, set[str]]:
    """Returns the names of the stored columns, by table, from which a graph's edges and nodes are
    read.
    """
    read = stored_columns(plan.relation)
    scan = node_scan(plan)
    if scan is not None:
        for table, columns in stored_columns(scan).items():
            read[table] = read.get(table, set()) | columns
    return read


def node_scan(plan: BoundedGraph) -> Scan | None:
    """Returns the scan of the table that lists a graph's nodes, each row owned by its node; None if
    there is no such table.
    """
    if plan.nodes is None:
        return None
    table, column = plan.nodes
    return Scan(table, owner=Owner((column,)))


def numbered(results: Sequence["pyarrow.Table"]) -> Graph:
    """Returns the graph that the results of ``edge_statements`` contain; nodes are numbered as they
    appear.
    """
    names = results[0].column(0).combine_chunks().flatten().dictionary_encode()
    numbers = names.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    nodes = len(names.dictionary)
    for counted in results[1:]:
        nodes = counted.column(0)[0].as_py()
    return Graph(numbers.reshape(-1, 2), nodes)


def _units(relation: Relation, sources: Mapping[str, Source]) -> str:
    """Returns the SELECT of the name of each unit that has a row, each once."""
    # integers that name units would be selected as such
    tables = replace(Tables.of(relation, sources), numbered=False)
    return f"SELECT DISTINCT unit FROM ({printed(rows(relation, tables))})"

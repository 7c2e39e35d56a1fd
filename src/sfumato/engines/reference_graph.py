# SPDX-License-Identifier: Apache-2.0
"""The edges of a bounded graph in plain Python."""

import numpy as np

from sfumato.engines.base import Graph
from sfumato.engines.edges import node_scan
from sfumato.engines.reference_order import hashed
from sfumato.engines.reference_rows import Tables, rows
from sfumato.plan.graph import BoundedGraph


def reference_graph(
    plan: BoundedGraph,
    tables: Tables,
    key: str,
) -> Graph:
    """Returns the graph; nodes are numbered as they appear.

    >>> from sfumato.plan.owner import Owner
    >>> from sfumato.plan.relation import Scan
    >>> from sfumato.privacy.unit import AddRemove
    >>> scan = Scan("ties", owner=Owner(("a", "b"), unordered=True))
    >>> plan = BoundedGraph(scan, ("a", "b"), "a, b", AddRemove)
    >>> ties = [{"a": "x", "b": "y"}, {"a": "y", "b": "x"}, {"a": "x", "b": "x"}]
    >>> reference_graph(plan, {"ties": ties}, "key").pairs.tolist()
    [[0, 1]]
    """
    pairs = {row.unit for row in rows(plan.relation, tables) if row.unit is not None}
    scan = node_scan(plan)
    listed = None if scan is None else {row.unit for row in rows(scan, tables)}
    numbers: dict[str, int] = {}
    edges = []
    for pair in sorted(pairs, key=lambda unit: (hashed(key, unit), unit)):
        ends = _ends(pair)
        if ends[0] == ends[1] or (listed is not None and not listed.issuperset(ends)):
            continue
        edges.append([numbers.setdefault(name, len(numbers)) for name in ends])
    nodes = len(numbers) if listed is None else len(listed)
    return Graph(np.array(edges, np.int64).reshape(-1, 2), nodes)


def _ends(pair: str) -> tuple[str, str]:
    """Returns the two names of a pair, each of which stands after its length."""
    size, _, rest = pair.partition(":")
    _, _, second = rest[int(size) :].partition(":")
    return rest[: int(size)], second

# SPDX-License-Identifier: Apache-2.0
"""Synthetic graphs with the released degrees and triangles.

Source: Seshadhri, Kolda, Pinar (Physical Review E 2012): blocks of nodes of like degree, whose
edges close triangles, then all edges that are left by matching stubs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.graph.answer import DegreeTable
from sfumato.graph.questions import Shape
from sfumato.graph.task import graph_task
from sfumato.graph.triangles import count_triangles
from sfumato.noise import Integers
from sfumato.query.allowance import allowance
from sfumato.query.session import Session
from sfumato.query.statistic import Graph
from sfumato.query.task import Stored

if TYPE_CHECKING:
    import pyarrow

# The most ends of edges of a synthetic graph, and the most nodes of a block.
_MOST_ENDS, _MOST_IN_BLOCK = 2 * 10**8, 2_000
# How often the density of blocks is halved, and stubs are matched.
_HALVINGS, _MATCHINGS = 12, 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticGraph(DegreeTable):
    """A random graph that was drawn to match a noisy degree histogram and a noisy number of
    triangles; its nodes are numbers.

    ``pairs`` are its edges. ``histogram`` and ``sequence`` are the released degrees, which those of
    the graph are near. ``density`` is the share of pairs within a block that have an edge.
    """

    pairs: Integers
    density: float

    @property
    def nodes(self) -> int:
        """The number of nodes in the noisy degree histogram; each has at least one edge there."""
        return sum(self.histogram.values())

    @property
    def triangles(self) -> int:
        """The released noisy number of triangles, which the drawn graph approaches."""
        return int(self.facts["triangles"])

    def to_arrow(self) -> "pyarrow.Table":
        """A pyarrow table of edges, with the columns a and b."""
        import pyarrow

        first, second = self.pairs.T
        return pyarrow.table({"a": pyarrow.array(first), "b": pyarrow.array(second)})

    def to_networkx(self) -> Any:
        """A graph of the package networkx.

        Raises:
            WrongUse: it is not installed.
        """
        try:
            import networkx
        except ImportError:
            raise WrongUse(
                "networkx is not installed.", remedy="pip install networkx; or .to_arrow()."
            ) from None
        graph = networkx.Graph(synthetic=True, charge=self.charge_id)
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.pairs.tolist())
        return graph

    def save(self, path: str | Path) -> None:
        """Writes the graph to a file that ends in .graphml, .parquet or .csv.

        Raises:
            WrongUse: another ending.
        """
        place = Path(path)
        if place.suffix == ".graphml":
            place.write_text(self._graphml(), encoding="utf-8")
        elif place.suffix == ".parquet":
            from pyarrow import parquet

            marks = {"synthetic": "true", "charge": self.charge_id}
            parquet.write_table(self.to_arrow().replace_schema_metadata(marks), place)
        elif place.suffix == ".csv":
            lines = ["a,b", *(f"{first},{second}" for first, second in self.pairs.tolist())]
            place.write_text("\n".join([*lines, ""]), encoding="utf-8")
        else:
            raise WrongUse(f"save({shown(str(path))}).", allowed=".graphml, .parquet, .csv")

    def _graphml(self) -> str:
        lines = [
            '<?xml version="1.0" encoding="utf-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            f"<!-- synthetic, charge {self.charge_id} -->",
            '<graph edgedefault="undirected">',
        ]
        lines += [f"<node id={quoteattr(str(node))}/>" for node in range(self.nodes)]
        for first, second in self.pairs.tolist():
            lines.append(f'<edge source="{first}" target="{second}"/>')
        return "\n".join([*lines, "</graph>", "</graphml>", ""])

    def __repr__(self) -> str:
        line = (
            f"synthetic graph: {self.nodes:,} nodes, {len(self.pairs):,} edges, "
            f"{count_triangles(Graph(self.pairs, self.nodes)):,} triangles"
        )
        return "\n".join([line, *self.notes])


def synthesize(
    session: Session,
    table: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    where: str | None = None,
) -> SyntheticGraph:
    """Draws a graph that is like the one whose edges are the rows of a table; it is charged.

    The unit of the table is ``sf.Edge``. Half of the cost measures the degrees, half the triangles;
    the same question again gives the same graph. Communities, paths and attributes are not those
    of the private graph. Where few nodes have most of the edges, the triangles come out too many.

    Raises:
        As ``graph.ask``; WrongUse: the noise made a graph that is too large to draw.
    """
    task = graph_task(session.dataset, table, Shape(), allowance(epsilon=epsilon, rho=rho), where)
    stored = session.ask(task)
    return drawn_graph(json.loads(stored.body), stored)


def drawn_graph(facts: Mapping[str, Any], stored: Stored) -> SyntheticGraph:
    """The graph of released degrees and triangles; the same for the same facts."""
    released = DegreeTable(facts, stored)
    ends = sum(degree * nodes for degree, nodes in released.histogram.items())
    if ends > _MOST_ENDS:
        raise WrongUse(f"A graph of {ends // 2:,} edges.", remedy="Ask at a higher cost.")
    degrees = released.sequence
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        density = (low + high) / 2
        pairs = _drawn(degrees, density, np.random.default_rng(facts["drawn_from"]))
        if count_triangles(Graph(pairs, len(degrees))) < facts["triangles"]:
            low = density
        else:
            high = density
    density = (low + high) / 2
    pairs = _drawn(degrees, density, np.random.default_rng(facts["drawn_from"]))
    return SyntheticGraph(facts, stored, pairs, density)


def _drawn(degrees: Integers, density: float, dice: np.random.Generator) -> Integers:
    """The edges of a graph of falling degrees: within blocks, then between stubs that are left.

    A block is a node of degree k with the k nodes of the next higher degrees.
    """
    rising = np.flatnonzero(degrees >= 2)[::-1]
    blocks = [np.zeros((0, 2), np.int64)]
    start = 0
    while start < len(rising) - 1:
        size = min(int(degrees[rising[start]]) + 1, _MOST_IN_BLOCK)
        block = rising[start : start + size]
        first, second = np.triu_indices(len(block), 1)
        kept = dice.random(len(first)) < density
        blocks.append(np.column_stack([block[first[kept]], block[second[kept]]]))
        start += size
    pairs = np.concatenate(blocks)
    for _ in range(_MATCHINGS):
        left = np.maximum(degrees - np.bincount(pairs.ravel(), minlength=len(degrees)), 0)
        stubs = np.repeat(np.arange(len(degrees)), left)
        if len(stubs) < 2:
            break
        dice.shuffle(stubs)
        matched = stubs[: len(stubs) // 2 * 2].reshape(-1, 2)
        pairs = _simple(np.concatenate([pairs, matched]))
    return pairs


def _simple(pairs: Integers) -> Integers:
    """The edges without loops, each once."""
    apart = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(np.sort(apart, axis=1), axis=0)

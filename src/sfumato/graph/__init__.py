# SPDX-License-Identifier: Apache-2.0
"""Questions about graphs: edges, degrees and triangles of a table whose rows are edges.

The unit of the table is an edge (``sf.Edge``) or a person with all edges (``sf.Node``). This room
may import ``query`` and every room below; it reads private data through tasks only. Begin with
``task.py`` and ``ways.py``; the statistics, each with its proof, are ``edge_count``,
``degree_counts``, ``triangles``, ``kept_edges`` and ``kept_degrees``.
"""

from sfumato.graph.answer import Answer, Count, DegreeTable
from sfumato.graph.questions import Degrees, Edges, Question, Shape, Triangles
from sfumato.graph.synthesis import SyntheticGraph, synthesize
from sfumato.graph.task import Preview, ask, preview

__all__ = [
    "Answer",
    "Count",
    "DegreeTable",
    "Degrees",
    "Edges",
    "Preview",
    "Question",
    "Shape",
    "SyntheticGraph",
    "Triangles",
    "ask",
    "preview",
    "synthesize",
]

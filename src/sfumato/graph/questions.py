# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a graph."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sfumato.errors import InvalidNumber, shown

# The highest limit of degrees that can be declared.
MOST_DEGREE = 2**20


@dataclass(frozen=True, slots=True)
class Edges:
    """A question for the number of edges of a graph.

    Under ``sf.Node``, an edge counts only while both its nodes have fewer than ``max_degree``
    counted edges. ``max_degree`` must be a public number; without it, half of the cost selects one.

    >>> Edges(max_degree=64)
    Edges(max_degree=64)
    """

    max_degree: int | None = None
    name: ClassVar[str] = "edges"

    def __post_init__(self) -> None:
        _require_degree(self.max_degree)


@dataclass(frozen=True, slots=True)
class Degrees:
    """A question for the degree histogram of a graph: the number of nodes of each degree.

    ``max_degree`` is as in ``Edges``; without it, three tenths of the cost select one.

    >>> Degrees().max_degree is None
    True
    """

    max_degree: int | None = None
    name: ClassVar[str] = "degrees"

    def __post_init__(self) -> None:
        _require_degree(self.max_degree)


@dataclass(frozen=True, slots=True)
class Triangles:
    """A question for the number of triangles of a graph: three nodes with an edge between any two.
    It needs the unit ``sf.Edge``.

    >>> Triangles()
    Triangles()
    """

    name: ClassVar[str] = "triangles"


@dataclass(frozen=True, slots=True)
class Shape:
    """The question that ``synthesize`` asks: the degrees and the triangles of a graph, for half of
    the cost each.

    It needs the unit ``sf.Edge``.

    >>> Shape()
    Shape()
    """

    name: ClassVar[str] = "synthetic graph"


Question: TypeAlias = Edges | Degrees | Triangles | Shape


def _require_degree(degree: object) -> None:
    if degree is not None and (type(degree) is not int or not 1 <= degree <= MOST_DEGREE):
        raise InvalidNumber(
            f"max_degree = {shown(degree)}.", allowed=f"an integer from 1 to {MOST_DEGREE:,}"
        )

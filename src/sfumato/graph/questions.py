# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a graph."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sfumato.errors import InvalidNumber, shown

# The highest limit of degrees that can be declared.
MOST_DEGREE = 2**20


@dataclass(frozen=True, slots=True)
class Edges:
    """The number of edges.

    Under ``sf.Node`` edges are kept as long as both ends have kept fewer than ``max_degree``; a
    limit is selected, for half of the cost, if none is given. It must be public.

    >>> Edges(max_degree=64)
    Edges(max_degree=64)
    """

    max_degree: int | None = None
    name: ClassVar[str] = "edges"

    def __post_init__(self) -> None:
        _require_degree(self.max_degree)


@dataclass(frozen=True, slots=True)
class Degrees:
    """How many nodes have each degree.

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
    """The number of triangles: three nodes with an edge between any two. Under ``sf.Edge`` alone.

    >>> Triangles()
    Triangles()
    """

    name: ClassVar[str] = "triangles"


@dataclass(frozen=True, slots=True)
class Shape:
    """A question for degrees and triangles together, half of the cost each, by which ``synthesize``
    draws.

    Under ``sf.Edge`` alone.

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

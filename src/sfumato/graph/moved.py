# SPDX-License-Identifier: Apache-2.0
"""Statistics of graphs, and how far they move if one edge or node is added, removed or replaced.

Proof: moved.proof.md.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeVar

from sfumato.errors import InvalidDeclaration
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import BoundedStatistic

E = TypeVar("E", covariant=True)


@dataclass(frozen=True, slots=True)
class OfGraph(BoundedStatistic[E]):
    """The base class of statistics of a graph, whose privacy unit is an edge, or a node if
    ``of_nodes``.

    Raises:
        InvalidDeclaration: the unit of the graph is the other one.
    """

    plan: BoundedGraph

    of_nodes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.plan) is not BoundedGraph or (self.plan.nodes is None) is self.of_nodes:
            raise InvalidDeclaration(
                "A statistic of another unit.",
                allowed=f"a graph whose unit is sf.{'Node' if self.of_nodes else 'Edge'}",
            )

    @property
    @abstractmethod
    def moves(self) -> dict[Norm, int]:
        """The sensitivity of the integers, by norm, if one unit (edge or node) is added or removed;
        squared in L2.
        """

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity in a norm (squared in L2): ``moves`` if neighbours differ by one
        unit added or removed.

        If one unit is replaced it is twice ``moves``, or four times in squared L2.

        Raises:
            InvalidDeclaration: nothing is proved in this norm.
        """
        if norm not in self.moves:
            raise InvalidDeclaration(f"A statistic of a graph in {norm.value}.")
        times = 1
        if self.plan.neighbours is Relation.REPLACE_ONE:
            times = 4 if norm is Norm.L2 else 2
        return Distance(norm, Fraction(times * self.moves[norm]), self.plan.neighbours)

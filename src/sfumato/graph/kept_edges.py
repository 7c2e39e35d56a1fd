# SPDX-License-Identifier: Apache-2.0
"""Edges kept under a limit of degrees, if a node is the unit, and how good each limit is.

Source: Day, Li, Lyu (SIGMOD 2016) project a graph edge by edge; Raskhodnikova, Smith (FOCS 2016)
select among scores of different sensitivities. Proof: kept_edges.proof.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidDeclaration, shown
from sfumato.graph.moved import OfGraph
from sfumato.noise import Integers
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Graph, Opened

# Steps of a normalised score: one moves by at most this many.
STEPS = 2**20


@dataclass(frozen=True, slots=True)
class KeptEdges(OfGraph[list[int]]):
    """The statistic that counts edges after some are dropped so that no node has more than
    ``limit``; the privacy unit is a node.

    The number is multiplied by ``scale``, the quotient of ``reach`` and ``limit`` rounded down, so
    that its sensitivity is at most ``reach`` at every limit.

    Guarantees:
        the number of kept edges moves by at most its proved distance

    Raises:
        InvalidDeclaration: a limit below 1, or an edge is the unit.
    """

    limit: int
    reach: int

    of_nodes: ClassVar[bool] = True

    @property
    def scale(self) -> int:
        """The public factor by which the number of edges is multiplied."""
        return self.reach // self.limit

    @property
    def moves(self) -> dict[Norm, int]:
        """The sensitivity to one node more or less: ``reach`` in L1, its square in squared L2."""
        return {Norm.L1: self.reach, Norm.L2: self.reach**2}

    def exact(self, opened: Opened) -> list[int]:
        """Returns the exact number of edges that remain under the limit, times ``scale``, in a
        list.
        """
        kept = int(degrees_kept(opened, self.plan, self.limit).sum()) // 2
        return [kept * self.scale]


@dataclass(frozen=True, slots=True)
class LimitScores(OfGraph[list[int]]):
    """The scores by which a degree limit is selected privately, one for each of ``limits``: minus
    its normalised error, in units of 2^-20.

    The error of a limit T is q(T) = ``price`` T - ``ends`` kept(T): the noise that it needs, less
    the edges that remain, where ``ends`` is 1 (edges) or 2 (their ends). Its sensitivity is
    ``ends`` T. With ``margin`` times that added, the score of T is minus the largest difference to
    another limit, divided by the sensitivities of both, so that each score has the sensitivity one.

    Guarantees:
        no score of a limit moves by more than its proved distance

    Raises:
        InvalidDeclaration: a limit below 1, or an edge is the unit.
    """

    limits: tuple[int, ...]
    price: Fraction
    margin: Fraction
    ends: int = 1

    of_nodes: ClassVar[bool] = True

    @property
    def moves(self) -> dict[Norm, int]:
        """The sensitivity of each score to one node more or less, in units of 2^-20 (Linf)."""
        return {Norm.LINF: STEPS}

    def exact(self, opened: Opened) -> list[int]:
        """Returns the exact score of each limit, rounded down to an integer."""
        moves = [self.ends * limit for limit in self.limits]
        errors = []
        for limit, move in zip(self.limits, moves, strict=True):
            kept = int(degrees_kept(opened, self.plan, limit).sum()) // 2
            errors.append(self.price * limit - self.ends * kept + self.margin * move)
        scores = []
        for error, move in zip(errors, moves, strict=True):
            worst = max(
                (error - other) / (move + step) for other, step in zip(errors, moves, strict=True)
            )
            scores.append(math.floor(-worst * STEPS))
        return scores


def degrees_kept(opened: Opened, plan: BoundedGraph, limit: int) -> Integers:
    """Returns the exact degree of each node after edges are dropped so that no node has more than
    ``limit``.
    """
    return opened.of_graph(plan, ("kept", limit), lambda graph: keep(graph, limit))


def keep(graph: Graph, limit: int) -> Integers:
    """Takes the edges in their order, and keeps one if both its ends have kept fewer than limit.

    Returns the degree of each node among them.

    Raises:
        InvalidDeclaration: a limit that is no integer, or below 1.

    >>> keep(Graph(np.array([[0, 1], [0, 2], [1, 2]]), 4), 1).tolist()
    [1, 1, 0, 0]
    """
    if type(limit) is not int or limit < 1:
        raise InvalidDeclaration(f"max_degree={shown(limit)}.", allowed="an integer >= 1")
    degrees = [0] * graph.nodes
    for first, second in graph.pairs.tolist():
        if degrees[first] < limit and degrees[second] < limit:
            degrees[first] += 1
            degrees[second] += 1
    return np.array(degrees, np.int64)

# SPDX-License-Identifier: Apache-2.0
"""Edges kept under a limit of degrees, if a node is the unit, and how good each limit is.

Source: Day, Li, Lyu (SIGMOD 2016) project a graph edge by edge; Raskhodnikova, Smith (FOCS 2016)
select among scores of different sensitivities. Proof: kept_edges.proof.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidDeclaration, shown
from sfumato.graph.moved import moved, require_unit
from sfumato.noise import Integers
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Graph, Opened

# The highest limit of degrees that can be declared.
MOST_DEGREE = 2**20
# Steps of a normalised score: one moves by at most this many.
STEPS = 2**20


@dataclass(frozen=True, slots=True)
class KeptEdges(BoundedStatistic[list[int]]):
    """The number of edges that are kept if no node keeps more than ``limit``, times ``scale``.

    ``scale`` is how often the limit goes into ``reach``: what is released then moves by at most
    ``reach``, whichever limit was selected.

    Guarantees:
        the number of kept edges moves by at most its proved distance

    Raises:
        InvalidDeclaration: a limit outside 1 to 2^20, or above ``reach``; an edge is the unit.
    """

    plan: BoundedGraph
    limit: int
    reach: int

    def __post_init__(self) -> None:
        require_unit(self.plan, node=True)
        require_limit(self.limit, self.reach)

    @property
    def scale(self) -> int:
        """By what the number is multiplied."""
        return self.reach // self.limit

    def distance(self, norm: Norm) -> Distance:
        """The reach in L1, its square in L2."""
        return moved(self.plan, norm, l1=self.reach, l2=self.reach**2)

    def exact(self, opened: Opened) -> list[int]:
        """The exact number, times the scale."""
        kept = int(degrees_kept(opened, self.plan, self.limit).sum()) // 2
        return [kept * self.scale]


@dataclass(frozen=True, slots=True)
class LimitScores(BoundedStatistic[list[int]]):
    """How good each limit of degrees is: minus the normalised error, in steps of 2^-20.

    The error of a limit T is q(T) = ``price`` T - ``ends`` kept(T): the noise that it needs, less
    what it keeps, where ``ends`` is 1 (edges) or 2 (their ends). q(T) moves by ``ends`` T. With
    ``margin`` times that on top, the score of T is minus the largest difference to another limit,
    divided by what both can move together, so that each score moves by one.

    Guarantees:
        no score of a limit moves by more than its proved distance

    Raises:
        InvalidDeclaration: no limits, or one outside 1 to 2^20; an edge is the unit.
    """

    plan: BoundedGraph
    limits: tuple[int, ...]
    price: Fraction
    margin: Fraction
    ends: int = 1

    def __post_init__(self) -> None:
        require_unit(self.plan, node=True)
        if not self.limits or self.ends not in (1, 2):
            raise InvalidDeclaration("Limits to select from.", allowed="one or more")
        for limit in self.limits:
            require_limit(limit, MOST_DEGREE)

    def distance(self, norm: Norm) -> Distance:
        """One score, in steps (Linf)."""
        return moved(self.plan, norm, linf=STEPS)

    def exact(self, opened: Opened) -> list[int]:
        """The exact scores, rounded down."""
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
    """The degree of each node among the edges that are kept under a limit."""
    return opened.of_graph(plan, ("kept", limit), lambda graph: keep(graph, limit))


def keep(graph: Graph, limit: int) -> Integers:
    """Takes the edges in their order, and keeps one if both its ends have kept fewer than limit.

    Returns the degree of each node among them.

    >>> keep(Graph(np.array([[0, 1], [0, 2], [1, 2]]), 4), 1).tolist()
    [1, 1, 0, 0]
    """
    degrees = [0] * graph.nodes
    for first, second in graph.pairs.tolist():
        if degrees[first] < limit and degrees[second] < limit:
            degrees[first] += 1
            degrees[second] += 1
    return np.array(degrees, np.int64)


def require_limit(limit: int, reach: int) -> None:
    """Raises InvalidDeclaration unless a limit is an integer from 1 to 2^20 within its reach."""
    if type(limit) is not int or not 1 <= limit <= min(MOST_DEGREE, reach):
        raise InvalidDeclaration(
            f"max_degree={shown(limit)}.", allowed=f"an integer from 1 to {MOST_DEGREE:,}"
        )

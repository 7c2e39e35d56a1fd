# SPDX-License-Identifier: Apache-2.0
"""How each question about a graph is measured: its steps, and what is made of their results."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeAlias

from sfumato.errors import UnsupportedSql, WrongUse, shown, unknown
from sfumato.exact.rounding import log_up, sqrt_down
from sfumato.graph.degree_counts import DegreeCounts
from sfumato.graph.edge_count import EdgeCount
from sfumato.graph.isotonic import histogram_of_columns, histogram_of_cumulative
from sfumato.graph.kept_degrees import KeptDegrees
from sfumato.graph.kept_edges import KeptEdges, LimitScores
from sfumato.graph.questions import MOST_DEGREE, Degrees, Edges, Question, Shape, Triangles
from sfumato.graph.triangles import CommonNeighbours, TriangleLadder
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.ladder import LadderMechanism, ladder
from sfumato.mechanisms.selection import SelectionMechanism, exponential
from sfumato.noise.entropy import token
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event, Json
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator
from sfumato.query.statistic import BoundedStatistic

# The limits of degrees among which one is selected.
LIMITS: tuple[int, ...] = tuple(2**power for power in range(13))
CONFIDENCE = Fraction(95, 100)
# Noise is not wider than this in any row of a graph, nearly always.
_SURE = 1 - Fraction(1, 10**9)
# That the selected limit is far from the best has this probability.
_FAR = Fraction(1, 20)
# More edges than this are not expected; columns and rows are public numbers of this size's root.
_MOST_EDGES = 2**40

Facts: TypeAlias = dict[str, Json]


class Way(Protocol):
    """The interface of a measurement plan for a question about a graph: the mechanisms that answer
    it, fixed before the data is read.
    """

    @property
    def event(self) -> Event: ...

    @property
    def cells(self) -> tuple[int | None, ...]: ...

    @property
    def expected(self) -> tuple[str, ...]:
        """Sentences on the expected error, computed from declarations and the cost alone."""
        ...

    def run(self, curator: Curator) -> Facts: ...


def way_of(plan: BoundedGraph, question: Question, allowed: Allowance) -> Way:
    """Returns the measurement plan of a question about a graph, by the declared privacy unit (edge
    or node) and the cost ``allowed``.

    Raises:
        WrongUse: no question, or a limit of degrees under ``sf.Edge``.
        UnsupportedSql: no bound is known for it under ``sf.Node``.
    """
    if not isinstance(question, Edges | Degrees | Triangles | Shape):
        raise WrongUse(
            f"The question {shown(question)}.",
            allowed="graph.Edges(), graph.Degrees(), graph.Triangles()",
        )
    if plan.nodes is None:
        if isinstance(question, Edges | Degrees) and question.max_degree is not None:
            raise WrongUse(
                f"max_degree={question.max_degree} where an edge is the unit.",
                remedy="Leave it out: an edge changes no more, however many edges its ends have.",
            )
        match question:
            case Edges():
                return EdgesOfEdges(plan, allowed)
            case Degrees():
                return DegreesOfEdges(plan, allowed)
            case Triangles():
                return TrianglesOfEdges(plan, allowed)
            case Shape():
                return ShapeOfEdges(plan, allowed)
            case _:
                raise unknown(question)
    match question:
        case Edges(limit):
            return EdgesOfNodes(plan, allowed, limit)
        case Degrees(limit):
            return DegreesOfNodes(plan, allowed, limit)
        case Triangles() | Shape():
            raise UnsupportedSql(
                f"Triangles of table {plan.table!r}, whose unit is a person: one person can be in "
                "nearly all of them.",
                allowed="graph.Edges(), graph.Degrees()",
                remedy='Declare the table with unit=sf.Edge("a", "b"), if an edge is to be '
                "protected and not a person.",
            )
        case _:
            raise unknown(question)


@dataclass(frozen=True, slots=True)
class EdgesOfEdges:
    """The number of edges where an edge is the unit: one noisy count."""

    plan: BoundedGraph
    allowed: Allowance

    @property
    def noise(self) -> AdditiveMechanism:
        """The noise of the count."""
        return _noise(self.allowed, EdgeCount(self.plan), self.allowed.amount)

    @property
    def event(self) -> Event:
        return _event(EdgeCount(self.plan), self.noise)

    @property
    def cells(self) -> tuple[int | None, ...]:
        return (1,)

    @property
    def expected(self) -> tuple[str, ...]:
        return (f"The number of edges: +-{self.noise.error(CONFIDENCE):,} in 95% of answers.",)

    def run(self, curator: Curator) -> Facts:
        (edges,) = curator.measure(EdgeCount(self.plan), self.noise)
        return interval(edges, self.noise.error(CONFIDENCE))


@dataclass(frozen=True, slots=True)
class DegreesOfEdges:
    """Degrees where an edge is the unit: the number of edges, then columns and rows."""

    plan: BoundedGraph
    allowed: Allowance

    @property
    def _noises(self) -> tuple[AdditiveMechanism, AdditiveMechanism]:
        counting, shaping = self.allowed.shares(1, 19)
        shape = DegreeCounts(self.plan, 1, 1)
        return (
            _noise(self.allowed, EdgeCount(self.plan), counting),
            _noise(self.allowed, shape, shaping),
        )

    @property
    def event(self) -> Event:
        count, shape = self._noises
        statistic = DegreeCounts(self.plan, 1, 1)
        return Composed((_event(EdgeCount(self.plan), count), _event(statistic, shape)))

    @property
    def cells(self) -> tuple[int | None, ...]:
        return (1,)

    @property
    def expected(self) -> tuple[str, ...]:
        _, shape = self._noises
        half = shape.error(CONFIDENCE)
        line = f"Each number of nodes of at least one degree: +-{half:,} in 95% of answers, "
        return (line + "before it is smoothed; the histogram is nearer.",)

    def run(self, curator: Curator) -> Facts:
        count, shape = self._noises
        (edges,) = curator.measure(EdgeCount(self.plan), count)
        columns, rows = shape_of(edges)
        noisy = curator.measure(DegreeCounts(self.plan, columns, rows), shape)
        return _listed(histogram_of_columns(noisy, columns, shape.error(_SURE)))


def shape_of(edges: int) -> tuple[int, int]:
    """How many columns and rows of the degrees are measured, for a noisy number of edges.

    >>> shape_of(14_484), shape_of(-5)
    ((43, 674), (1, 2))
    """
    ends = 2 * min(max(edges, 1), _MOST_EDGES)
    columns = math.ceil(math.sqrt(ends) / 4)
    return columns, math.ceil(ends / columns)


@dataclass(frozen=True, slots=True)
class TrianglesOfEdges:
    """Triangles where an edge is the unit: how far an interval reaches, then the ladder."""

    plan: BoundedGraph
    allowed: Allowance

    @property
    def _steps(self) -> tuple[AdditiveMechanism, LadderMechanism]:
        widths, rungs = self.allowed.shares(1, 9)
        return _noise(self.allowed, CommonNeighbours(self.plan), widths), ladder_of(
            self.plan, self.allowed, rungs
        )

    @property
    def event(self) -> Event:
        width, rungs = self._steps
        drawn = rungs.event(TriangleLadder(self.plan).rung_distance())
        return Composed((_event(CommonNeighbours(self.plan), width), drawn))

    @property
    def cells(self) -> tuple[int | None, ...]:
        return (1,)

    @property
    def expected(self) -> tuple[str, ...]:
        _, rungs = self._steps
        return tuple(_expected_triangles(rungs))

    def run(self, curator: Curator) -> Facts:
        width, rungs = self._steps
        (common,) = curator.measure(CommonNeighbours(self.plan), width)
        triangles = curator.ladder(TriangleLadder(self.plan), rungs)
        # one in a hundred for the width, four for the ladder
        widest = max(common + width.error(Fraction(99, 100)), 0)
        return interval(triangles, rungs.error(Fraction(96, 100), widest))


@dataclass(frozen=True, slots=True)
class ShapeOfEdges:
    """Degrees and triangles where an edge is the unit, and a number to draw a graph from."""

    plan: BoundedGraph
    allowed: Allowance

    @property
    def _steps(self) -> tuple[DegreesOfEdges, LadderMechanism]:
        first, second = self.allowed.shares(2)
        degrees = DegreesOfEdges(self.plan, replace(self.allowed, amount=first))
        return degrees, ladder_of(self.plan, self.allowed, second)

    @property
    def event(self) -> Event:
        degrees, rungs = self._steps
        drawn = rungs.event(TriangleLadder(self.plan).rung_distance())
        return Composed((degrees.event, drawn))

    @property
    def cells(self) -> tuple[int | None, ...]:
        return (1,)

    @property
    def expected(self) -> tuple[str, ...]:
        degrees, rungs = self._steps
        return (*degrees.expected, *_expected_triangles(rungs))

    def run(self, curator: Curator) -> Facts:
        degrees, rungs = self._steps
        facts = degrees.run(curator)
        triangles = curator.ladder(TriangleLadder(self.plan), rungs)
        return facts | {"triangles": max(triangles, 0), "drawn_from": int(token()[:12], 16)}


def _expected_triangles(rungs: LadderMechanism) -> list[str]:
    """How far a number of triangles is off on average, by the most common neighbours."""
    lines = []
    for width in (10, 100, 1000):
        error = round(rungs.mean_error(width))
        lines.append(
            f"Triangles: {error:,} off on average, if no two nodes share more than {width:,} "
            "neighbours."
        )
    return lines


def ladder_of(plan: BoundedGraph, allowed: Allowance, share: Fraction) -> LadderMechanism:
    """The ladder of triangles that costs a share."""
    return ladder(TriangleLadder(plan).rung_distance(), _pure(allowed, share))


@dataclass(frozen=True, slots=True)
class EdgesOfNodes:
    """Edges where a node is the unit: a limit of degrees, selected or given, then kept edges."""

    plan: BoundedGraph
    allowed: Allowance
    max_degree: int | None

    @property
    def _limiting(self) -> "Limiting":
        return Limiting(self.plan, self.allowed, self.max_degree, (1, 1), 1)

    @property
    def event(self) -> Event:
        limiting = self._limiting
        return limiting.event(self._statistic(1), self._noise)

    @property
    def cells(self) -> tuple[int | None, ...]:
        return (1,)

    @property
    def expected(self) -> tuple[str, ...]:
        limits = LIMITS if self.max_degree is None else (self.max_degree,)
        half = self._noise.error(CONFIDENCE)
        lines = []
        for limit in limits:
            width = math.ceil(Fraction(half, self._statistic(limit).scale))
            lines.append(f"Kept edges at a limit of {limit:,}: +-{width:,} in 95% of answers.")
        return tuple(lines)

    def run(self, curator: Curator) -> Facts:
        limit = self._limiting.run(curator)
        statistic = self._statistic(limit)
        (kept,) = curator.measure(statistic, self._noise)
        half = math.ceil(Fraction(self._noise.error(CONFIDENCE), statistic.scale))
        return interval(round(Fraction(kept, statistic.scale)), half) | {"limit": limit}

    def _statistic(self, limit: int) -> KeptEdges:
        reach = LIMITS[-1] if self.max_degree is None else self.max_degree
        return KeptEdges(self.plan, min(limit, reach), reach)

    @property
    def _noise(self) -> AdditiveMechanism:
        return _noise(self.allowed, self._statistic(1), self._limiting.left)


@dataclass(frozen=True, slots=True)
class DegreesOfNodes:
    """Degrees where a node is the unit: a limit, then the number of nodes by kept degree."""

    plan: BoundedGraph
    allowed: Allowance
    max_degree: int | None

    @property
    def _limiting(self) -> "Limiting":
        return Limiting(self.plan, self.allowed, self.max_degree, (3, 7), 2)

    @property
    def event(self) -> Event:
        return self._limiting.event(self._statistic(1), self._noise)

    @property
    def cells(self) -> tuple[int | None, ...]:
        return () if self.max_degree is None else (self.max_degree + 1,)

    @property
    def expected(self) -> tuple[str, ...]:
        limits = LIMITS if self.max_degree is None else (self.max_degree,)
        half = self._noise.error(CONFIDENCE)
        lines = []
        for limit in limits:
            width = math.ceil(Fraction(half, self._statistic(limit).scale))
            lines.append(
                f"Each number of nodes of at most one degree, at a limit of {limit:,}: +-{width:,} "
                "in 95% of answers, before they are smoothed."
            )
        return tuple(lines)

    def run(self, curator: Curator) -> Facts:
        limit = self._limiting.run(curator)
        statistic = self._statistic(limit)
        noisy = curator.measure(statistic, self._noise)
        cumulative = [int(number) / statistic.scale for number in noisy]
        return _listed(histogram_of_cumulative(cumulative)) | {"limit": limit}

    def _statistic(self, limit: int) -> KeptDegrees:
        # a reach of many times the limit loses less than 1% to rounding
        reach = MOST_DEGREE if self.max_degree is None else self.max_degree + 1
        return KeptDegrees(self.plan, min(limit, reach - 1), reach)

    @property
    def _noise(self) -> AdditiveMechanism:
        return _noise(self.allowed, self._statistic(1), self._limiting.left)


@dataclass(frozen=True, slots=True)
class Limiting:
    """The selection of a limit of degrees for a share of the cost, unless one is given.

    ``shares`` are the weights of the selection and of what is measured then; ``ends`` is how many
    integers an edge counts for.
    """

    plan: BoundedGraph
    allowed: Allowance
    max_degree: int | None
    shares: tuple[int, int]
    ends: int

    @property
    def left(self) -> Fraction:
        """The cost of what is measured then."""
        if self.max_degree is not None:
            return self.allowed.amount
        _, left = self.allowed.shares(*self.shares)
        return left

    @property
    def _scores(self) -> LimitScores:
        share, left = self.allowed.shares(*self.shares)
        # Gaussian noise of this rho is about as wide as Laplace noise of this epsilon
        price = 1 / (left if self.allowed.norm is Norm.L1 else sqrt_down(2 * left))
        margin = 2 * log_up(len(LIMITS) / _FAR) / _pure(self.allowed, share)
        return LimitScores(self.plan, LIMITS, price, margin, self.ends)

    @property
    def _selection(self) -> SelectionMechanism:
        share, _ = self.allowed.shares(*self.shares)
        return exponential(self._scores.distance(Norm.LINF), _pure(self.allowed, share))

    def event(self, statistic: BoundedStatistic[object], noise: AdditiveMechanism) -> Event:
        """The event of both steps."""
        measured = _event(statistic, noise)
        if self.max_degree is not None:
            return measured
        return Composed((self._selection.event(self._scores.distance(Norm.LINF)), measured))

    def run(self, curator: Curator) -> int:
        """The limit."""
        if self.max_degree is not None:
            return self.max_degree
        place: int = curator.select(self._scores, self._selection)
        return LIMITS[place]


def interval(value: int, half_width: int) -> Facts:
    """A number that cannot be negative, with its interval."""
    low, high = max(value - half_width, 0), max(value + half_width, 0)
    return {"value": max(value, 0), "low": low, "high": high}


def _listed(histogram: dict[int, int]) -> Facts:
    return {"degrees": [[degree, nodes] for degree, nodes in sorted(histogram.items())]}


def _noise(
    allowed: Allowance,
    statistic: BoundedStatistic[object],
    share: Fraction,
) -> AdditiveMechanism:
    return allowed.noise(statistic.distance(allowed.norm), share)


def _event(statistic: BoundedStatistic[object], noise: AdditiveMechanism) -> Event:
    return noise.event(statistic.distance(noise.norm))


def _pure(allowed: Allowance, share: Fraction) -> Fraction:
    """The epsilon of a selection that costs a share: one of epsilon costs rho = epsilon^2/8."""
    if allowed.norm is Norm.L1:
        return share
    return sqrt_down(8 * share)

# SPDX-License-Identifier: Apache-2.0
"""The compiler: a fixed sequence of passes (``query/passes``) from a raw plan to a bounded one."""

from collections.abc import Mapping
from types import MappingProxyType

from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube, Cube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.stages import Bounded, Raw
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.bound import bound
from sfumato.query.passes.cube import cube
from sfumato.query.passes.graph import graph
from sfumato.query.passes.layout import layout
from sfumato.query.passes.limit import limit
from sfumato.query.passes.prune import prune
from sfumato.query.passes.rows import rows
from sfumato.query.passes.track import track

PASSES = (prune, track, limit, layout, bound)
# No table is prepared.
UNPREPARED: Mapping[str, int] = MappingProxyType({})


def compile_plan(
    plan: Raw,
    dataset: Dataset,
    norm: Norm,
    layouts: Mapping[str, int] = UNPREPARED,
) -> Bounded:
    """Returns a plan whose sensitivities are bounded in ``norm``, compiled from a raw plan.

    ``layouts`` has the prepared layouts of tables.
    """
    context = Context(dataset, norm, layouts)
    first, second, third, fourth, last = PASSES
    tracked = second(first(plan, context), context)
    limited = third(tracked, context)
    return last(fourth(limited, context), context)


def compile_cube(raw: Cube, dataset: Dataset) -> BoundedCube:
    """Compiles a raw cube into one whose marginals have bounded L1 and L2 sensitivity."""
    return cube(raw, Context(dataset, Norm.L1))


def compile_rows(
    raw: RowList,
    dataset: Dataset,
    *,
    most: int | None = None,
    naming: str = "",
) -> BoundedRows:
    """Returns a plan that reads a bounded number of rows of each unit, compiled from a list of
    rows.

    That number is ``most``, or the declared limit by default. With ``naming``, units get names: a
    hash that is keyed by this string.
    """
    return rows(raw, Context(dataset, Norm.L1), most=most, naming=naming)


def compile_graph(raw: Raw, dataset: Dataset) -> BoundedGraph:
    """Returns the bounded graph whose edges are the rows that a raw plan counts."""
    return graph(raw, Context(dataset, Norm.L1))

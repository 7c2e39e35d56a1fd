# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Tracked: decides whether the table is read from its prepared layout."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Aggregate, Quantiles
from sfumato.plan.relation import Relation, Semi, row_by_row, scans
from sfumato.plan.scope import nodes
from sfumato.plan.stages import Bounded, Tracked
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.stability import distance, occupied, refinement


def layout(plan: Tracked, context: Context) -> Tracked:
    """Returns the plan so that it reads prepared layouts (fixed samples of each unit's rows), if
    every table has one and no aggregate then needs more noise.

    The decision depends on declarations only. The sample in a layout is fixed, so nothing may
    multiply its rows afterwards: only relations that return each row at most once are read from
    it (RULES 18). From joined tables one row of each unit is read, so it must not matter which;
    likewise a unit must be declared to have one row in each table in which units are looked up.

    Guarantees:
        a layout is read only where no part needs more noise
    """
    relation = plan.raw.relation
    scan = row_by_row(relation)
    if plan.unit is None or scan is None or _unprepared(relation, context.kept):
        return plan
    if _several(relation, context.dataset) or _of_conditions(plan):
        return plan
    kept = replace(plan, kept=context.kept[scan.table])
    for aggregate in plan.raw.aggregates:
        if _noise(aggregate, kept, context) > _noise(aggregate, plan, context):
            return plan
    return kept


def layout_notes(bounded: Bounded, dataset: Dataset, layouts: Mapping[str, int]) -> tuple[str, ...]:
    """Returns a note for the reader on whether a prepared layout was read, and why; empty if there
    is none.
    """
    relation = bounded.tracked.raw.relation
    tables = [table for table in _tables(relation) if table in layouts]
    if not tables:
        return ()
    named = f"The prepared layout of {', '.join(tables)}"
    if bounded.tracked.kept is not None:
        return (f"{named} was read: no part needs more noise for it.",)
    return (f"{named} was not read: {_obstacle(bounded.tracked, dataset, layouts)}.",)


def _of_conditions(plan: Tracked) -> bool:
    """Whether a part counts the units with a row that passes a condition of its own."""
    return any(isinstance(part, CountUnitsWhere) for part in plan.raw.aggregates)


def _obstacle(plan: Tracked, dataset: Dataset, layouts: Mapping[str, int]) -> str:
    """Why a prepared layout was not read."""
    relation = plan.raw.relation
    if _of_conditions(plan):
        return "units that pass a condition are counted among all rows"
    if row_by_row(relation) is None:
        return "the question combines the rows of a unit before it counts them"
    others = _unprepared(relation, layouts)
    if others:
        return f"{', '.join(others)} has none"
    several = _several(relation, dataset)
    if several:
        return f"of {', '.join(several)} it has a sample only, where any row of a unit counts"
    return "its fixed sample would need more noise"


def _tables(relation: Relation) -> list[str]:
    """The distinct private tables of a relation."""
    return list(dict.fromkeys(scan.table for scan in scans(relation)))


def _unprepared(relation: Relation, layouts: Mapping[str, int]) -> list[str]:
    """The private tables of a relation that have no prepared layout."""
    return [table for table in _tables(relation) if table not in layouts]


def _several(relation: Relation, dataset: Dataset) -> list[str]:
    """The tables in which units are looked up, and in which a unit may have several rows."""
    several = {}
    for node in nodes(relation):
        scan = row_by_row(node.units) if isinstance(node, Semi) else None
        if scan is None:
            continue
        unit = dataset.row_unit(scan.table)
        if unit is None or not unit.once:
            several[scan.table] = unit
    return list(several)


def _noise(aggregate: Aggregate, plan: Tracked, context: Context) -> Fraction:
    """The distance of a part in lattice steps; for quantiles, over all groups of a unit."""
    fine = refinement(plan)
    pure = context.norm is Norm.L1
    proved = distance(aggregate, plan, context.norm, context.dataset.relation, fine).value
    if isinstance(aggregate, Quantiles):
        steps = proved / fine
        return (steps if pure else steps**2) * occupied(aggregate, plan)
    return proved / (fine if pure else fine**2)

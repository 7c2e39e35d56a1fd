# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Tracked: whether the table is read from its prepared layout."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Aggregate, Quantiles
from sfumato.plan.relation import Relation, Semi, row_by_row, scans
from sfumato.plan.scope import nodes
from sfumato.plan.stages import Bounded, Tracked
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.stability import distance, occupied, refinement


def layout(plan: Tracked, context: Context) -> Tracked:
    """Reads the layouts where every table has one and no part needs more noise for it.

    Decided from declarations alone. A layout has been sampled once for all, so nothing may
    multiply its rows afterwards: only relations that give each row at most once (RULES 18).
    Of tables that are joined to it one row of each unit is read, so it must not matter which; of
    tables in which units are looked up, too, so a unit must have one there, as declared.

    Guarantees:
        a layout is read only where no part needs more noise
    """
    relation = plan.raw.relation
    scan = row_by_row(relation)
    if (
        plan.unit is None
        or scan is None
        or _unprepared(relation, context.kept)
        or _several(relation, context.dataset)
    ):
        return plan
    kept = replace(plan, kept=context.kept[scan.table])
    worse = any(
        _noise(each, kept, context) > _noise(each, plan, context) for each in plan.raw.aggregates
    )
    return plan if worse else kept


def layout_notes(bounded: Bounded, dataset: Dataset, kept: Mapping[str, int]) -> tuple[str, ...]:
    """Where there is a prepared layout: whether it was read, and why."""
    relation = bounded.tracked.raw.relation
    tables, others, several = (
        _tables(relation, kept),
        _unprepared(relation, kept),
        _several(relation, dataset),
    )
    if not tables:
        return ()
    named = f"The prepared layout of {', '.join(tables)}"
    if bounded.tracked.kept is not None:
        return (f"{named} was read: no part needs more noise for it.",)
    if row_by_row(relation) is None:
        return (
            f"{named} was not read: the question combines the rows of a unit before it counts them.",
        )
    if others:
        return (f"{named} was not read: {', '.join(others)} has none.",)
    if several:
        return (
            f"{named} was not read: of {', '.join(several)} it has a sample only, where any row of a unit counts.",
        )
    return (f"{named} was not read: its fixed sample would need more noise.",)


def _tables(relation: Relation, kept: Mapping[str, int]) -> list[str]:
    """The private tables of a relation that have a layout."""
    return [
        table for table in dict.fromkeys(scan.table for scan in scans(relation)) if table in kept
    ]


def _unprepared(relation: Relation, kept: Mapping[str, int]) -> list[str]:
    """Those that have none."""
    return [
        table
        for table in dict.fromkeys(scan.table for scan in scans(relation))
        if table not in kept
    ]


def _several(relation: Relation, dataset: Dataset) -> list[str]:
    """The tables in which units are looked up, of which one row of a unit is not all that it may have."""
    looked_up = [row_by_row(each.units) for each in nodes(relation) if isinstance(each, Semi)]
    units = {scan.table: dataset.tables[scan.table].unit for scan in looked_up if scan is not None}
    return [table for table, unit in units.items() if unit is None or not unit.once]


def _noise(aggregate: Aggregate, plan: Tracked, context: Context) -> Fraction:
    """What a part asks of the noise: its distance in lattice steps, of quantiles over all groups of a unit."""
    fine = refinement(plan)
    far = distance(aggregate, plan, context.norm, context.dataset.relation, fine).value
    if isinstance(aggregate, Quantiles):
        steps = far / fine
        return (steps if context.norm is Norm.L1 else steps * steps) * occupied(aggregate, plan)
    return far / (fine if context.norm is Norm.L1 else fine * fine)

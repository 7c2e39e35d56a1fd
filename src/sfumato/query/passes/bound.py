# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Bounded: the proved distance of every part, in the norm of the noise."""

from sfumato.plan.aggregate import Aggregate
from sfumato.plan.stages import Bounded, Part, Tracked
from sfumato.query.passes import Context
from sfumato.query.stability import distance, occupied, refinement


def bound(plan: Tracked, context: Context) -> Bounded:
    """Returns a plan with a proved sensitivity for each of its aggregates.

    Only a bounded plan can be run by an engine.
    """
    fine = refinement(plan)
    relation = context.dataset.relation

    def part(aggregate: Aggregate) -> Part:
        proved = distance(aggregate, plan, context.norm, relation, fine)
        return Part(aggregate, proved, occupied(aggregate, plan))

    parts = tuple(part(aggregate) for aggregate in plan.raw.aggregates)
    return Bounded(plan, context.norm, fine, parts)

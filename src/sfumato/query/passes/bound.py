# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Bounded: the proved distance of every part, in the norm of the noise."""

from sfumato.plan.aggregate import Aggregate
from sfumato.plan.stages import Bounded, Part, Tracked
from sfumato.query.passes import Context
from sfumato.query.stability import distance, occupied, refinement


def bound(plan: Tracked, context: Context) -> Bounded:
    """The plan that an engine may run: what a unit contributes is bounded, by enforcement."""
    fine = refinement(plan)
    relation = context.dataset.relation

    def part(aggregate: Aggregate) -> Part:
        return Part(
            aggregate,
            distance(aggregate, plan, context.norm, relation, fine),
            occupied(aggregate, plan),
        )

    return Bounded(plan, context.norm, fine, tuple(part(each) for each in plan.raw.aggregates))

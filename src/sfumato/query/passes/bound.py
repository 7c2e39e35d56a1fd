# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Bounded: the proved distance of every part, in the norm of the noise."""

from sfumato.plan.status import Bounded, Part, Tracked
from sfumato.query.passes import Context
from sfumato.query.stability import distance, refinement


def bound(plan: Tracked, context: Context) -> Bounded:
    """The plan that an engine may run: what a unit contributes is bounded, by enforcement."""
    fine = refinement(plan)
    relation = context.dataset.relation
    parts = tuple(Part(each, distance(each, plan, context.norm, relation, fine)) for each in plan.raw.aggregates)
    return Bounded(plan, context.norm, fine, parts)

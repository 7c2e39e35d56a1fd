# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Tracked: derives the limits that a question needs, and drops the others."""

from dataclasses import replace

from sfumato.errors import MissingDeclaration
from sfumato.plan.aggregate import CountUnits
from sfumato.plan.scope import is_one_group
from sfumato.plan.stages import Limits, Tracked
from sfumato.query.passes import Context


def limit(plan: Tracked, context: Context) -> Tracked:
    """Returns the plan with contribution limits derived from one another, and without those that
    cannot bind.

    A unit with at most T rows has at most T in a group, and is in at most T groups. A unit is in
    no more groups than there are, and in one group if the keys are properties of the unit. If the
    groups are not public, the limit of groups always binds.

    Raises:
        MissingDeclaration: a limit that the proof needs is not declared.
    """
    if plan.unit is None:
        return plan
    declared = plan.limits
    rows = declared.in_group
    groups = declared.in_groups
    total = declared.total
    keys = [key.value.expression for key in plan.raw.keys]
    if plan.groups == 1 or is_one_group(plan.raw.relation, keys):
        groups = 1
    if groups is None:
        raise _missing(plan, "max_groups", "how many groups one of them can be in")
    if rows is None and not all(isinstance(item, CountUnits) for item in plan.raw.aggregates):
        raise _missing(plan, "max_rows", "how many rows one of them can have")
    binding = groups if plan.groups is None or groups < plan.groups else None
    if rows is not None and total is not None and total >= rows * groups:
        total = None
    return replace(plan, limits=Limits(rows, binding, total))


def _missing(plan: Tracked, name: str, what: str) -> MissingDeclaration:
    """The refusal of a question that needs a limit which is not declared."""
    return MissingDeclaration(
        f"The unit {plan.unit!r} has no {name}: nothing says {what}.",
        allowed=f"sf.Unit({plan.unit!r}, {name}=...) or max_rows_total=...",
        remedy=f"Declare {name} for the unit; rows beyond it are weighed down, never refused.",
    )

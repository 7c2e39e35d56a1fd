# SPDX-License-Identifier: Apache-2.0
"""Tracked -> Tracked: the limits that the question needs and that bind, none else."""

from dataclasses import replace

from sfumato.errors import MissingDeclaration
from sfumato.plan.aggregate import CountUnits
from sfumato.plan.scope import is_one_group
from sfumato.plan.stages import Limits, Tracked
from sfumato.query.passes import Context


def limit(plan: Tracked, context: Context) -> Tracked:
    """Fills in what a limit implies of another, and drops what cannot bind.

    A unit with at most T rows has at most T in a group and is in at most T groups; a unit
    is in at most as many groups as there are, and in one where the keys say something of the
    unit itself. Where the groups are not public, the limit of groups always binds.

    Raises:
        MissingDeclaration: a limit that the proof needs is not declared.
    """
    if plan.unit is None:
        return plan
    declared = plan.limits
    rows = _smaller(declared.rows, declared.total)
    groups = _smaller(declared.groups, declared.total)
    if plan.groups == 1 or is_one_group(
        plan.raw.relation, [key.value.expression for key in plan.raw.keys]
    ):
        groups = 1
    if groups is None:
        raise _missing(plan, "max_groups", "how many groups one of them can be in")
    if rows is None and not all(isinstance(each, CountUnits) for each in plan.raw.aggregates):
        raise _missing(plan, "max_rows", "how many rows one of them can have")
    binding = groups if plan.groups is None or groups < plan.groups else None
    total = (
        declared.total
        if rows is None or declared.total is None or declared.total < rows * groups
        else None
    )
    return replace(plan, limits=Limits(rows, binding, total))


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _missing(plan: Tracked, name: str, what: str) -> MissingDeclaration:
    if name == "max_groups" and plan.limits.rows == 1:
        return MissingDeclaration(
            f"The unit {plan.unit!r} has no {name}: max_rows=1 is one row in each group, and nothing says {what}.",
            allowed=f"sf.Unit({plan.unit!r}, max_rows_total=1) or max_groups=...",
            remedy="If a unit has one row in the whole table, declare max_rows_total=1 instead of max_rows=1; else say in "
            "how many groups it counts: max_groups=...",
        )
    return MissingDeclaration(
        f"The unit {plan.unit!r} has no {name}: nothing says {what}.",
        allowed=f"sf.Unit({plan.unit!r}, {name}=...) or max_rows_total=...",
        remedy=f"Declare {name} for the unit; rows beyond it are weighed down, never refused.",
    )

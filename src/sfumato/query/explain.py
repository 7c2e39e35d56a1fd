# SPDX-License-Identifier: Apache-2.0
"""In words: who is protected, what was bounded and how, and which bias that brings."""

from sfumato.exact.rational import decimal_text
from sfumato.metadata.column import Boolean, Date, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountUnits, CountValues, Mean, Sum, numeric
from sfumato.plan.relation import predicates
from sfumato.plan.scalar import Field, leaves
from sfumato.plan.show import title
from sfumato.plan.status import Bounded
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.choose import Planned


def protection(dataset: Dataset, bounded: Bounded) -> list[str]:
    """Whom the guarantee is about, under which neighbour relation."""
    unit = bounded.tracked.unit
    who = f"each value of {unit!r} is one unit" if unit else "each row is one unit"
    step = "added or removed" if dataset.relation is Relation.ADD_REMOVE else "replaced by another"
    return [f"Protected: {who}; neighbours differ by one unit {step}."]


def bounding(bounded: Bounded) -> list[str]:
    """What was bounded, and how."""
    lines = []
    for part in bounded.parts:
        if isinstance(part.aggregate, Sum | Mean) and not isinstance(part.aggregate.column.type, Boolean):
            kind = numeric(part.aggregate.column)
            low, high = (decimal_text(code * kind.step) for code in (kind.lower_code, kind.upper_code))
            lines.append(
                f"{part.aggregate.column.name} was clipped to its declared [{low}, {high}] and rounded to steps of "
                f"{decimal_text(kind.step)}."
            )
    return list(dict.fromkeys([*lines, *_unit_bounding(bounded)]))


def _unit_bounding(bounded: Bounded) -> list[str]:
    tracked = bounded.tracked
    if tracked.unit is None:
        return []
    limits, lines = tracked.limits, []
    linear = any(not isinstance(part.aggregate, CountUnits) for part in bounded.parts)
    if limits.rows and linear:
        lines.append(f"A unit counts with at most {limits.rows} rows a group.")
    root = ", its root under Gaussian noise," if bounded.norm is Norm.L2 else ""
    if limits.groups and linear:
        lines.append(f"A unit in k > {limits.groups} groups counts with weight {limits.groups}/k{root} in each.")
    if limits.total and linear:
        lines.append(f"A unit with n > {limits.total} rows counts with weight {limits.total}/n{root} in each.")
    if any(isinstance(part.aggregate, CountUnits) for part in bounded.parts) and (limits.groups or limits.total):
        kept = min(each for each in (limits.groups, limits.total) if each)
        lines.append(f"COUNT(DISTINCT unit) sees a unit in at most {kept} groups, chosen by a keyed hash.")
    return [*lines, "Rows whose unit is NULL are not used."]


def bias(bounded: Bounded) -> list[str]:
    """What the interval does NOT hold: the difference between the bounded and the raw answer."""
    lines = []
    limits = bounded.tracked.limits
    limited = bounded.tracked.unit is not None
    for part in bounded.parts:
        name = title(part.aggregate)
        match part.aggregate:
            case Sum(column) | Mean(column) if isinstance(column.type, Boolean):
                pass
            case Sum(column) | Mean(column):
                lines.append(
                    f"{name}: values beyond the declared bounds of {column.name} count as the bound; the interval does "
                    "not hold what that changes."
                )
            case CountUnits() if limited and (limits.groups or limits.total):
                lines.append(f"{name}: never above the raw count; units beyond the limits are missing from it.")
            case CountValues() if limited:
                lines.append(f"{name}: never above the raw count; rows beyond the limits are missing from it.")
            case _ if limited and not isinstance(part.aggregate, CountUnits):
                lines.append(f"{name}: never above the raw count; rows beyond the limits are missing from it.")
        if isinstance(part.aggregate, Sum | Mean) and limited:
            lines.append(f"{name}: units beyond the row and group limits weigh less than in the raw data.")
    lines += [
        f"WHERE: {name} is compared as declared: clipped to its bounds, on its steps." for name in _compared(bounded)
    ]
    keys = [key.name for key in bounded.tracked.raw.keys if key.type.missing is None]
    if keys:
        lines.append(f"Rows where {' or '.join(keys)} is missing or not a declared value are in no group.")
    return list(dict.fromkeys(lines))


def _compared(bounded: Bounded) -> list[str]:
    """The columns whose clipping can change which rows a WHERE keeps."""
    read = [leaf for test in predicates(bounded.tracked.raw.relation) for leaf in leaves(test)]
    columns = [leaf.column for leaf in read if isinstance(leaf, Field)]
    return list(dict.fromkeys(each.name for each in columns if isinstance(each.type, Integer | Real | Date)))


def explain(planned: Planned, dataset: Dataset) -> str:
    """The whole of it, as text."""
    bounded = planned.bounded
    lines = [*protection(dataset, bounded)]
    for part, item in zip(bounded.parts, planned.cost.items, strict=True):
        lines.append(
            f"{title(part.aggregate)}: {item['mechanism']} noise of {item['parameter']} on integers, {item['sensitivity']}; "
            + (f"epsilon {item['epsilon']}." if item["epsilon"] != "unbounded" else f"rho {item['rho']}.")
        )
    lines += [f"Bounded: {line}" for line in bounding(bounded)]
    lines += [f"Bias: {line}" for line in bias(bounded)]
    lines += [f"Note: {line}" for line in planned.notes]
    lines.append(f"Cost: {planned.cost}; the pure gate books {planned.cost.epsilon}, the zCDP gate {planned.cost.rho}.")
    return "\n".join(lines)

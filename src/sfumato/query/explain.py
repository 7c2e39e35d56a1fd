# SPDX-License-Identifier: Apache-2.0
"""In words: who is protected, what was bounded and how, and which bias that brings."""

from collections.abc import Iterator

from sfumato.exact.rational import decimal_text
from sfumato.metadata.column import Boolean, Column, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountUnits,
    Mean,
    Quantiles,
    Sum,
    Variance,
    read_value,
)
from sfumato.plan.relation import Semi, is_single, predicates, scans
from sfumato.plan.scalar import Field, Scalar, leaves
from sfumato.plan.scope import is_one_group, nodes
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
    for column in _columns(bounded):
        kind = column.type
        if isinstance(kind, Integer | Real):
            low, high = (decimal_text(code * kind.step) for code in (kind.lower_code, kind.upper_code))
            moved = f", which moves a value by at most {decimal_text(kind.step / 2)}" if isinstance(kind, Real) else ""
            lines.append(
                f"{column.name} was clipped to its declared [{low}, {high}] and rounded to steps of "
                f"{decimal_text(kind.step)}{moved}."
            )
    return list(dict.fromkeys([*lines, *_unit_bounding(bounded)]))


def _columns(bounded: Bounded) -> Iterator[Column]:
    """The columns that aggregates read, in order."""
    for part in bounded.parts:
        value = read_value(part.aggregate)
        if value is not None:
            yield from _fields(value.expression)


def _fields(expression: Scalar) -> Iterator[Column]:
    for leaf in leaves(expression):
        if isinstance(leaf, Field):
            yield leaf.column


def _is_weighed(aggregate: Aggregate) -> bool:
    return not isinstance(aggregate, CountUnits | CountDistinct)


def _unit_bounding(bounded: Bounded) -> list[str]:
    tracked = bounded.tracked
    if tracked.unit is None:
        return []
    if is_single(tracked.raw.relation):
        return ["Rows whose unit is NULL are not used."]
    limits, lines = tracked.limits, []
    if tracked.kept is not None:
        return [*_kept_bounding(bounded), "Rows whose unit is NULL are not used."]
    linear = any(_is_weighed(part.aggregate) for part in bounded.parts)
    kept = min((each for each in (limits.groups, limits.total) if each), default=None)
    if limits.rows and linear:
        lines.append(f"A unit counts with at most {limits.rows} rows a group.")
    if tracked.raw.is_open:
        lines += [f"A unit counts in at most {kept} groups, chosen by a keyed hash."] if kept else []
    lines += _weighing(bounded)
    if kept and not tracked.raw.is_open and not all(_is_weighed(part.aggregate) for part in bounded.parts):
        lines.append(f"COUNT(DISTINCT ...) sees a unit in at most {kept} groups, chosen by a keyed hash.")
    for part in bounded.parts:
        if isinstance(part.aggregate, CountDistinct) and limits.rows:
            lines.append(f"{title(part.aggregate)} sees at most {limits.rows} values of a unit in a group.")
    return [*lines, "Rows whose unit is NULL are not used."]


def _weighing(bounded: Bounded) -> Iterator[str]:
    """How a unit is weighed down that has more rows within the limit of a group than the limits allow in all."""
    limits, keys = bounded.tracked.limits, [key.value.expression for key in bounded.tracked.raw.keys]
    spread = not bounded.tracked.raw.is_open and not is_one_group(bounded.tracked.raw.relation, keys)
    most = limits.in_all if spread else limits.total
    if most is None or limits.rows is None:
        return
    # leaves are bounded in L1 whatever the noise
    weighed = [part.aggregate for part in bounded.parts if _is_weighed(part.aggregate)]
    norms = {Norm.L1 if isinstance(each, Quantiles) else bounded.norm for each in weighed}
    if Norm.L2 in norms:
        squares = limits.rows * most
        yield f"A unit of which they are s > {squares}, squared and added up, counts with weight sqrt({squares}/s) in each."
    if Norm.L1 in norms:
        what = "for quantiles " if Norm.L2 in norms else ""
        yield f"A unit with n > {most} of them in all groups together counts {what}with weight {most}/n in each."


def _kept_bounding(bounded: Bounded) -> Iterator[str]:
    """Of a prepared layout: how many rows of a unit each aggregate counts."""
    seen: dict[int, list[str]] = {}
    for part in bounded.parts:
        seen.setdefault(bounded.tracked.counted(part.aggregate), []).append(title(part.aggregate))
    for most, titles in seen.items():
        yield (
            f"At most {most} rows of a unit count in {', '.join(titles)}: a sample by a keyed hash, fixed when the layout "
            "was prepared."
        )


def bias(bounded: Bounded) -> list[str]:
    """What the interval does NOT hold: the difference between the bounded and the raw answer."""
    limited = bounded.tracked.unit is not None and not is_single(bounded.tracked.raw.relation)
    lines = [line for part in bounded.parts for line in _bias_of(part.aggregate, bounded, limited=limited)]
    if bounded.tracked.kept is not None:
        lines.append(
            "Prepared layout: rows of a unit beyond the sample are missing, whatever WHERE asks; every answer misses "
            "the same ones, so asking again does not average it out."
        )
        looked_up = dict.fromkeys(scan.table for each in _semis(bounded) for scan in scans(each.units))
        lines += [
            f"Prepared layout: of {table} one row of a unit is looked at; more than the one declared are not."
            for table in looked_up
        ]
    lines += [
        f"WHERE: {name} is compared as declared: clipped to its bounds, on its steps." for name in _compared(bounded)
    ]
    keys = bounded.tracked.raw.keys
    dropped = [key.value.name for key in keys if key.codes is not None and not key.missing]
    if dropped:
        lines.append(f"Rows where {' or '.join(dropped)} is missing or not a declared value are in no group.")
    hidden = [key.value.name for key in keys if key.codes is None]
    if hidden:
        lines.append(
            f"Groups of {', '.join(hidden)} with few units are not shown; the counts of units that are shown lean "
            "upwards near the threshold."
        )
    return list(dict.fromkeys(lines))


def _semis(bounded: Bounded) -> list[Semi]:
    """Where units are looked up."""
    return [each for each in nodes(bounded.tracked.raw.relation) if isinstance(each, Semi)]


def _never_above(bounded: Bounded) -> str:
    """What is missing lowers a count, but where a unit counts because it was not found."""
    looked_for = bounded.tracked.kept is not None and any(each.negated for each in _semis(bounded))
    return "" if looked_for else "never above the raw count; "


def _bias_of(aggregate: Aggregate, bounded: Bounded, *, limited: bool) -> list[str]:
    name, limits = title(aggregate), bounded.tracked.limits
    value, below = read_value(aggregate), _never_above(bounded)
    lines = []
    if isinstance(aggregate, Sum | Mean | Variance | Quantiles) and value is not None:
        clipped = [each.name for each in _fields(value.expression) if not isinstance(each.type, Boolean)]
        if clipped:
            lines.append(
                f"{name}: values beyond the declared bounds of {', '.join(dict.fromkeys(clipped))} count as the bound; "
                "the interval does not hold what that changes."
            )
        if isinstance(aggregate, Variance | Quantiles) and aggregate.coarse > 1 and not isinstance(value.type, Text):
            lines.append(
                f"{name}: values are read on a public grid of {decimal_text(aggregate.coarse * value.type.step)}."
            )
        if limited and bounded.tracked.kept is None:
            lines.append(f"{name}: units beyond the row and group limits weigh less than in the raw data.")
        return lines
    if isinstance(aggregate, CountUnits):
        cut = limited and (limits.groups or limits.total or bounded.tracked.kept)
        return [f"{name}: {below}units beyond the limits are missing from it."] if cut else []
    if isinstance(aggregate, CountDistinct):
        return [f"{name}: {below}values that only units beyond the limits have are missing from it."]
    return [f"{name}: {below}rows beyond the limits are missing from it."] if limited else []


def _compared(bounded: Bounded) -> list[str]:
    """The columns whose clipping can change which rows a WHERE keeps."""
    relation = bounded.tracked.raw.relation
    declared = {column for scan in scans(relation) for column in scan.columns}
    columns = [column for test in predicates(relation) for column in _fields(test) if column in declared]
    return list(dict.fromkeys(each.name for each in columns if isinstance(each.type, Integer | Real | Date)))


def explain(planned: Planned, dataset: Dataset) -> str:
    """The whole of it, as text."""
    bounded = planned.bounded
    lines = [*protection(dataset, bounded)]
    for part, item in zip(bounded.parts, planned.cost.items, strict=True):
        cost = f"epsilon {item['epsilon']}" if item["epsilon"] != "unbounded" else f"rho {item['rho']}"
        cost += f", delta {item['delta']}" if item["delta"] != "0" else ""
        lines.append(
            f"{title(part.aggregate)}: {item['mechanism']}{' noise of' if part.distance.norm is not Norm.LINF else ','} "
            f"{item['parameter']} on integers, {item['sensitivity']}; {cost}."
        )
    lines += [f"Bounded: {line}" for line in bounding(bounded)]
    lines += [f"Bias: {line}" for line in bias(bounded)]
    lines += [f"Note: {line}" for line in planned.notes]
    gates = f"the pure gate books {planned.cost.epsilon}, the zCDP gate {planned.cost.rho}"
    if planned.cost.epsilon == "unbounded":
        gates = f"Gaussian noise closes the pure gate, the zCDP gate books {planned.cost.rho}"
    lines.append(f"Cost: {planned.cost}; {gates}.")
    return "\n".join(lines)

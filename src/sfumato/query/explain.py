# SPDX-License-Identifier: Apache-2.0
"""In words: who is protected, what was bounded and how, and which bias that brings."""

from collections.abc import Iterator

from sfumato.exact.rational import decimal_text, two_digits
from sfumato.metadata.column import Column, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
    read_value,
)
from sfumato.plan.relation import UNLIMITED, Computed, Semi, Summary, is_single, predicates, scans
from sfumato.plan.scope import is_one_group, nodes
from sfumato.plan.show import title
from sfumato.plan.stages import Bounded
from sfumato.plan.value import NEGLIGIBLE, Value
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.choose import Planned
from sfumato.query.lineage import Origin, origin

# What a sub-query may compute of a unit that has more rows than its limits allow.
_SUMMARIES = {
    Summary.COUNT: "the number of rows",
    Summary.COUNT_VALUES: "the number of values",
    Summary.COUNT_DISTINCT: "the number of different values",
    Summary.SUM: "the sum",
}


def protection(dataset: Dataset, unit: str | None) -> list[str]:
    """Whom the guarantee is about, under which neighbour relation; ``unit`` None: each row."""
    who = f"each value of {unit!r} is one unit" if unit else "each row is one unit"
    step = "added or removed" if dataset.relation is Relation.ADD_REMOVE else "replaced by another"
    return [f"Protected: {who}; neighbours differ by one unit {step}."]


def bounding(bounded: Bounded) -> list[str]:
    """What was bounded, and how."""
    values = [read_value(part.aggregate) for part in bounded.parts]
    read = origin(
        bounded.tracked.raw.relation, *(value.expression for value in values if value is not None)
    )
    lines = [line for column in read.columns for line in _clipping(column)]
    lines += [f"{what[0].upper()}{what[1:]} was cut to {ends}." for what, ends in _cuts(read)]
    return list(dict.fromkeys([*lines, *_unit_bounding(bounded)]))


def _clipping(column: Column) -> Iterator[str]:
    kind = column.type
    if isinstance(kind, Date):
        yield f"{column.name} was clipped to its declared {_ends(kind)}."
    if isinstance(kind, Integer | Real):
        moved = (
            f", which moves a value by at most {decimal_text(kind.step / 2)}"
            if isinstance(kind, Real)
            else ""
        )
        yield (
            f"{column.name} was clipped to its declared {_ends(kind)} and rounded to steps of "
            f"{decimal_text(kind.step)}{moved}."
        )


def _ends(kind: Integer | Real | Date) -> str:
    codes = kind.lower_code, kind.upper_code
    if isinstance(kind, Date):
        return f"[{', '.join(kind.decode(code).isoformat() for code in codes)}]"
    return f"[{', '.join(decimal_text(code * kind.step) for code in codes)}]"


def _cuts(read: Origin) -> Iterator[tuple[str, str]]:
    """What sub-queries compute of a unit's rows that a unit within its limits does not leave, and where it is cut."""
    for each in read.summaries:
        kind = each.column.type
        if each.summary in _SUMMARIES and isinstance(kind, Integer | Real) and _is_cut(each, kind):
            yield f"{_SUMMARIES[each.summary]} of a unit in a sub-query", _ends(kind)


def _is_cut(computed: Computed, kind: Integer | Real) -> bool:
    """Whether declared limits, and not the rows that a table may have, end the range of a summary."""
    if computed.value is None or computed.summary is Summary.COUNT_VALUES:
        return kind.upper_code < UNLIMITED
    inner = computed.value.type
    if computed.summary is Summary.COUNT_DISTINCT:
        return kind.upper_code < (
            UNLIMITED if isinstance(inner, Text) else min(inner.size, UNLIMITED)
        )
    low, high = computed.value.numeric.lower_code, computed.value.numeric.upper_code
    return kind.upper_code < high * UNLIMITED or kind.lower_code > low * UNLIMITED


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
        lines += (
            [f"A unit counts in at most {kept} groups, chosen by a keyed hash."] if kept else []
        )
    lines += _weighing(bounded)
    if (
        kept
        and not tracked.raw.is_open
        and not all(_is_weighed(part.aggregate) for part in bounded.parts)
    ):
        lines.append(
            f"COUNT(DISTINCT ...) sees a unit in at most {kept} groups, chosen by a keyed hash."
        )
    for part in bounded.parts:
        if isinstance(part.aggregate, CountDistinct) and limits.rows:
            lines.append(
                f"{title(part.aggregate)} sees at most {limits.rows} values of a unit in a group."
            )
    return [*lines, "Rows whose unit is NULL are not used."]


def _weighing(bounded: Bounded) -> Iterator[str]:
    """How a unit is weighed down that has more rows within the limit of a group than the limits allow in all."""
    limits, keys = (
        bounded.tracked.limits,
        [key.value.expression for key in bounded.tracked.raw.keys],
    )
    spread = not bounded.tracked.raw.is_open and not is_one_group(
        bounded.tracked.raw.relation, keys
    )
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
    below = _never_above(bounded)
    lines = [
        line
        for part in bounded.parts
        for line in _bias_of(part.aggregate, bounded, below, limited=limited)
    ]
    if bounded.tracked.kept is not None:
        lines.append(
            "Prepared layout: rows of a unit beyond the sample are missing, whatever WHERE asks; every answer misses "
            "the same ones, so asking again does not average it out."
        )
        looked_up = dict.fromkeys(
            scan.table for each in _semis(bounded) for scan in scans(each.units)
        )
        lines += [
            f"Prepared layout: of {table} one row of a unit is looked at; more than the one declared are not."
            for table in looked_up
        ]
    relation, keys = bounded.tracked.raw.relation, bounded.tracked.raw.keys
    compared = origin(relation, *predicates(relation))
    grouped = origin(relation, *(key.value.expression for key in keys))
    for word, done, read in (("WHERE", "compared", compared), ("GROUP BY", "grouped", grouped)):
        lines += [
            f"{word}: {name} is {done} as declared: clipped to its bounds, on its steps."
            for name in _bounds(read)
        ]
        lines += [f"{word}: {what} is cut to {ends}." for what, ends in _cuts(read)]
    lines += [line for key in keys for line in _rounded("GROUP BY", key.value)]
    dropped = [key.value.name for key in keys if key.codes is not None and not key.missing]
    if dropped:
        lines.append(
            f"Rows where {' or '.join(dropped)} is missing or not a declared value are in no group."
        )
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
    """What is missing lowers a count, but where a unit counts because it was not found, or a value as another one."""
    raw = bounded.tracked.raw
    looked_for = bounded.tracked.kept is not None and any(each.negated for each in _semis(bounded))
    read = origin(
        raw.relation, *predicates(raw.relation), *(key.value.expression for key in raw.keys)
    )
    return "" if looked_for or _bounds(read) or any(_cuts(read)) else "never above the raw count; "


def _bias_of(aggregate: Aggregate, bounded: Bounded, below: str, *, limited: bool) -> list[str]:
    name, limits, lines = title(aggregate), bounded.tracked.limits, list[str]()
    if isinstance(aggregate, Sum | Mean | Variance | Quantiles | CountDistinct):
        lines += _clipped_values(
            name, origin(bounded.tracked.raw.relation, aggregate.value.expression)
        )
    if isinstance(aggregate, CountValues | CountDistinct):
        # a divisor that was rounded to zero has no value
        lines += _rounded(name, aggregate.value)
    if isinstance(aggregate, Sum | Mean | Variance | Quantiles):
        kind = aggregate.value.type
        lines += _rounded(name, aggregate.value)
        if (
            isinstance(aggregate, Variance | Quantiles)
            and aggregate.coarse > 1
            and not isinstance(kind, Text)
        ):
            lines.append(
                f"{name}: values are read on a public grid of {decimal_text(aggregate.coarse * kind.step)}."
            )
        if limited and bounded.tracked.kept is None:
            lines.append(
                f"{name}: units beyond the row and group limits weigh less than in the raw data."
            )
        return lines
    if isinstance(aggregate, CountUnits):
        cut = limited and (limits.groups or limits.total or bounded.tracked.kept)
        return [f"{name}: {below}units beyond the limits are missing from it."] if cut else []
    if isinstance(aggregate, CountDistinct):
        missing = (
            f"{name}: {below}values that only units beyond the limits have are missing from it."
        )
        return [*lines, missing] if limited else lines
    return (
        [*lines, f"{name}: {below}rows beyond the limits are missing from it."]
        if limited
        else lines
    )


def _rounded(name: str, value: Value) -> Iterator[str]:
    """What computing a value on lattices moves, if it is more than a millionth of its range."""
    kind = value.type
    if (
        not isinstance(kind, Text)
        and value.rounding * NEGLIGIBLE > (kind.upper_code - kind.lower_code) * kind.step
    ):
        yield f"{name}: what is computed of a row is rounded by up to {two_digits(value.rounding)}."


def _clipped_values(name: str, read: Origin) -> Iterator[str]:
    """Of an aggregate, what clipping changes in what it reads."""
    clipped = _bounds(read)
    if clipped:
        yield (
            f"{name}: values beyond the declared bounds of {', '.join(clipped)} count as the bound; "
            "the interval does not hold what that changes."
        )
    for what, ends in _cuts(read):
        yield f"{name}: {what} is cut to {ends}; the interval does not hold what that changes."


def _bounds(read: Origin) -> list[str]:
    """The columns that are clipped to declared bounds."""
    return [
        column.name for column in read.columns if isinstance(column.type, Integer | Real | Date)
    ]


def explain(planned: Planned, dataset: Dataset) -> str:
    """The whole of it, as text."""
    bounded = planned.bounded
    lines = [*protection(dataset, bounded.tracked.unit)]
    for part, item in zip(bounded.parts, planned.cost.items, strict=True):
        cost = (
            f"epsilon {item['epsilon']}" if item["epsilon"] != "unbounded" else f"rho {item['rho']}"
        )
        cost += f", delta {item['delta']}" if item["delta"] != "0" else ""
        lines.append(
            f"{title(part.aggregate)}: {item['mechanism']}{' noise of' if part.distance.norm is not Norm.LINF else ','} "
            f"{item['parameter']} on integers, {item['sensitivity']}; {cost}."
        )
    lines += [f"Bounded: {line}" for line in bounding(bounded)]
    lines += [f"Bias: {line}" for line in (*bias(bounded), *planned.question.bias)]
    lines += [f"Note: {line}" for line in planned.notes]
    gates = f"the pure gate books {planned.cost.epsilon}, the zCDP gate {planned.cost.rho}"
    if planned.cost.epsilon == "unbounded":
        gates = f"Gaussian noise closes the pure gate, the zCDP gate books {planned.cost.rho}"
    lines.append(f"Cost: {planned.cost}; {gates}.")
    return "\n".join(lines)

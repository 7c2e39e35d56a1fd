# SPDX-License-Identifier: Apache-2.0
"""Describes an answer in words: who is protected, what was bounded, and the bias of that.

``release`` and ``preview`` use it for SQL; marginals and synthetic data use ``protection``.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from sfumato.exact.rational import decimal_text, two_digits
from sfumato.metadata.column import Array, Column, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountUnits,
    Quantiles,
)
from sfumato.plan.relation import UNLIMITED, Computed, Semi, Summary, is_single, predicates, scans
from sfumato.plan.scope import is_one_group, nodes
from sfumato.plan.stages import Bounded, Part, Raw
from sfumato.plan.value import NEGLIGIBLE, GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.choose import Planned
from sfumato.query.cost import is_earlier
from sfumato.query.lineage import Origin, origin

# The summaries of a unit's rows in a sub-query that depend on how many rows the unit has.
_SUMMARIES = {
    Summary.COUNT: "the number of rows",
    Summary.COUNT_VALUES: "the number of values",
    Summary.COUNT_DISTINCT: "the number of different values",
    Summary.SUM: "the sum",
}


def protection(dataset: Dataset, unit: str | None) -> list[str]:
    """Returns sentences on the privacy unit and the neighbour relation.

    If ``unit`` is None, each row is a unit.
    """
    who = f"each value of {unit!r} is one unit" if unit else "each row is one unit"
    step = "added or removed" if dataset.relation is Relation.ADD_REMOVE else "replaced by another"
    return [f"Protected: {who}; neighbours differ by one unit {step}."]


def bounding(bounded: Bounded) -> list[str]:
    """Returns sentences on the values and contributions that were clipped, rounded, limited or
    weighted before the noise.
    """
    expressions = []
    for part in bounded.parts:
        value = part.aggregate.read
        if value is not None:
            expressions.append(value.expression)
    read = origin(bounded.tracked.raw.relation, *expressions)
    lines: list[str] = []
    for column in read.columns:
        lines += _clipping(column)
    for what, ends in _cuts(read):
        lines.append(f"{what[0].upper()}{what[1:]} was cut to {ends}.")
    lines += _unit_bounding(bounded)
    return list(dict.fromkeys(lines))


def _clipping(column: Column) -> Iterator[str]:
    """How the values of a column were clipped and rounded, if they were."""
    kind = column.type
    if isinstance(kind, Date | Timestamp):
        yield f"{column.name} was clipped to its declared {_ends(kind)}."
    if isinstance(kind, Integer | Real):
        moved = ""
        if isinstance(kind, Real):
            moved = f", which moves a value by at most {decimal_text(kind.step / 2)}"
        yield (
            f"{column.name} was clipped to its declared {_ends(kind)} and rounded to steps of "
            f"{decimal_text(kind.step)}{moved}."
        )


def _ends(kind: Integer | Real | Date | Timestamp) -> str:
    """The bounds of a type as an interval in brackets."""
    low = kind.lower_code
    high = kind.upper_code
    if isinstance(kind, Date | Timestamp):
        return f"[{kind.decode(low)}, {kind.decode(high)}]"
    return f"[{decimal_text(low * kind.step)}, {decimal_text(high * kind.step)}]"


def _cuts(read: Origin) -> Iterator[tuple[str, str]]:
    """Yields the per-unit summaries of sub-queries that a unit's limits cut, each with its range."""
    for computed in read.summaries:
        kind = computed.column.type
        if computed.summary not in _SUMMARIES or not isinstance(kind, Integer | Real):
            continue
        if _is_cut(computed, kind):
            yield f"{_SUMMARIES[computed.summary]} of a unit in a sub-query", _ends(kind)


def _is_cut(computed: Computed, kind: Integer | Real) -> bool:
    """Whether the range of a summary follows from declared limits, so that its values may be cut."""
    if computed.value is None or computed.summary is Summary.COUNT_VALUES:
        return kind.upper_code < UNLIMITED
    inner = computed.value.type
    if computed.summary is Summary.COUNT_DISTINCT:
        most = UNLIMITED if isinstance(inner, Text) else min(inner.size, UNLIMITED)
        return kind.upper_code < most
    low = computed.value.numeric.lower_code
    high = computed.value.numeric.upper_code
    return kind.upper_code < high * UNLIMITED or kind.lower_code > low * UNLIMITED


def _is_weighed(aggregate: Aggregate) -> bool:
    """Whether an aggregate gives rows beyond a limit a smaller weight, instead of dropping them."""
    return not isinstance(aggregate, CountUnits | CountDistinct)


def _unit_bounding(bounded: Bounded) -> Iterator[str]:
    """How the contribution of a unit was bounded."""
    tracked = bounded.tracked
    if tracked.unit is None:
        return
    if not is_single(tracked.raw.relation):
        if tracked.kept is None:
            yield from _limit_bounding(bounded)
        else:
            yield from _kept_bounding(bounded)
    yield "Rows whose unit is NULL are not used."


def _limit_bounding(bounded: Bounded) -> Iterator[str]:
    """How the rows and groups of a unit were limited and weighted."""
    limits = bounded.tracked.limits
    is_open = bounded.tracked.raw.is_open
    aggregates = [part.aggregate for part in bounded.parts]
    weighed = [_is_weighed(aggregate) for aggregate in aggregates]
    groups = limits.in_groups
    if limits.rows and any(weighed):
        yield f"A unit counts with at most {limits.rows} rows a group."
    if is_open and groups:
        yield f"A unit counts in at most {groups} groups, chosen by a keyed hash."
    yield from _weighing(bounded)
    if groups and not is_open and not all(weighed):
        yield f"COUNT(DISTINCT ...) sees a unit in at most {groups} groups, chosen by a keyed hash."
    for aggregate in aggregates:
        if isinstance(aggregate, CountDistinct) and limits.rows:
            yield f"{aggregate.title} sees at most {limits.rows} values of a unit in a group."


def _weighing(bounded: Bounded) -> Iterator[str]:
    """The weights of units that have more rows in all groups than the limits allow."""
    limits = bounded.tracked.limits
    raw = bounded.tracked.raw
    keys = [key.value.expression for key in raw.keys]
    spread = not raw.is_open and not is_one_group(raw.relation, keys)
    most = limits.in_all if spread else limits.total
    if most is None or limits.rows is None:
        return
    norms = set()
    for part in bounded.parts:
        if isinstance(part.aggregate, Quantiles):
            # leaves are bounded in L1 under any noise
            norms.add(Norm.L1)
        elif _is_weighed(part.aggregate):
            norms.add(bounded.norm)
    if Norm.L2 in norms:
        squares = limits.rows * most
        yield (
            f"A unit of which they are s > {squares}, squared and added up, "
            f"counts with weight sqrt({squares}/s) in each."
        )
    if Norm.L1 in norms:
        what = "for quantiles " if Norm.L2 in norms else ""
        yield (
            f"A unit with n > {most} of them in all groups together "
            f"counts {what}with weight {most}/n in each."
        )


def _kept_bounding(bounded: Bounded) -> Iterator[str]:
    """The number of rows of a unit that each aggregate counts in a prepared layout."""
    seen: dict[int, list[str]] = {}
    for part in bounded.parts:
        most = bounded.tracked.counted(part.aggregate)
        seen.setdefault(most, []).append(part.aggregate.title)
    for most, titles in seen.items():
        yield (
            f"At most {most} rows of a unit count in {', '.join(titles)}: "
            "a sample by a keyed hash, fixed when the layout was prepared."
        )


def bias(bounded: Bounded) -> list[str]:
    """Returns sentences on how the bounded answer, without noise, differs from the raw one.

    The intervals do not cover this difference.
    """
    limited = bounded.tracked.unit is not None and not is_single(bounded.tracked.raw.relation)
    below = _never_above(bounded)
    lines: list[str] = []
    for part in bounded.parts:
        lines += _bias_of(part.aggregate, bounded, below, limited=limited)
    if bounded.tracked.kept is not None:
        lines += _bias_of_layout(bounded)
    lines += _bias_of_rows(bounded.tracked.raw)
    lines += _bias_of_keys(bounded.tracked.raw.keys)
    return list(dict.fromkeys(lines))


def _bias_of_layout(bounded: Bounded) -> Iterator[str]:
    """The bias of reading a prepared layout, which has a fixed sample of the rows."""
    yield (
        "Prepared layout: rows of a unit beyond the sample are missing, whatever WHERE asks; "
        "every answer misses the same ones, so asking again does not average it out."
    )
    for semi in _semis(bounded):
        for scan in scans(semi.units):
            yield (
                f"Prepared layout: of {scan.table} one row of a unit is looked at; "
                "more than the one declared are not."
            )


def _bias_of_rows(raw: Raw) -> Iterator[str]:
    """The bias of clipping the values that WHERE compares and GROUP BY groups."""
    relation = raw.relation
    keys = raw.keys
    compared = origin(relation, *predicates(relation))
    grouped = origin(relation, *(key.value.expression for key in keys))
    for word, done, read in (("WHERE", "compared", compared), ("GROUP BY", "grouped", grouped)):
        for name in _bounds(read):
            yield f"{word}: {name} is {done} as declared: clipped to its bounds, on its steps."
        for what, ends in _cuts(read):
            yield f"{word}: {what} is cut to {ends}."


def _bias_of_keys(keys: Sequence[GroupKey]) -> Iterator[str]:
    """The bias of rounded keys, and of rows and groups that are not shown."""
    for key in keys:
        yield from _rounded("GROUP BY", key.value)
    dropped = [key.value.name for key in keys if key.codes is not None and not key.missing]
    if dropped:
        names = " or ".join(dropped)
        yield f"Rows where {names} is missing or not a declared value are in no group."
    hidden = [key.value.name for key in keys if key.codes is None]
    if hidden:
        yield (
            f"Groups of {', '.join(hidden)} with few units are not shown; "
            "the counts of units that are shown lean upwards near the threshold."
        )


def _semis(bounded: Bounded) -> list[Semi]:
    """The semi-joins of a plan."""
    return [node for node in nodes(bounded.tracked.raw.relation) if isinstance(node, Semi)]


def _never_above(bounded: Bounded) -> str:
    """A remark that limits can only lower a count; empty if they could also raise it.

    They can raise it if a unit outside the sample passes NOT IN, or a clipped value passes a
    filter.
    """
    raw = bounded.tracked.raw
    negated = any(semi.negated for semi in _semis(bounded))
    if bounded.tracked.kept is not None and negated:
        return ""
    keys = [key.value.expression for key in raw.keys]
    read = origin(raw.relation, *predicates(raw.relation), *keys)
    if _bounds(read) or any(_cuts(read)):
        return ""
    return "never above the raw count; "


def _bias_of(
    aggregate: Aggregate,
    bounded: Bounded,
    below: str,
    *,
    limited: bool,
) -> Iterator[str]:
    """The bias of one aggregate; ``limited`` if a unit can have more rows than its limits allow."""
    name = aggregate.title
    value = aggregate.read
    if value is not None:
        if aggregate.reads_codes:
            yield from _clipped_values(name, origin(bounded.tracked.raw.relation, value.expression))
        # a count of values too: a quotient whose divisor is rounded to zero is NULL
        yield from _rounded(name, value)
        yield from _coarsened(name, aggregate, value)
    if limited:
        yield from _limited(aggregate, bounded, below)


def _limited(aggregate: Aggregate, bounded: Bounded, below: str) -> Iterator[str]:
    """The bias of the limits of a unit."""
    name = aggregate.title
    limits = bounded.tracked.limits
    kept_rows = bounded.tracked.kept
    match aggregate.counts:
        case "":
            if kept_rows is None:
                yield (
                    f"{name}: units beyond the row and group limits "
                    "weigh less than in the raw data."
                )
        case "units":
            if limits.groups or limits.total or kept_rows:
                yield f"{name}: {below}units beyond the limits are missing from it."
        case "values":
            yield (
                f"{name}: {below}values that only units beyond the limits have are missing from it."
            )
        case "rows":
            yield f"{name}: {below}rows beyond the limits are missing from it."
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not known here")


def _coarsened(name: str, aggregate: Aggregate, value: Value) -> Iterator[str]:
    """A sentence if the grid on which an aggregate reads its values is coarser than declared."""
    kind = value.type
    if aggregate.coarse > 1 and not isinstance(kind, Text):
        size = decimal_text(aggregate.coarse * kind.step)
        yield f"{name}: values are read on a public grid of {size}."


def _rounded(name: str, value: Value) -> Iterator[str]:
    """A sentence if a computed value is rounded by more than a millionth of its range."""
    kind = value.type
    if isinstance(kind, Text):
        return
    span = (kind.upper_code - kind.lower_code) * kind.step
    if value.rounding * NEGLIGIBLE > span:
        yield f"{name}: what is computed of a row is rounded by up to {two_digits(value.rounding)}."


def _clipped_values(name: str, read: Origin) -> Iterator[str]:
    """The bias of clipping and rounding the values that an aggregate reads.

    A column with a clip has its possible range as bounds, which no value leaves.
    """
    clipped = [name for name in _bounds(read) if not _has_clip(read, name)]
    if clipped:
        yield (
            f"{name}: values beyond the declared bounds of {', '.join(clipped)} count as the "
            "bound; "
            "the interval does not hold what that changes."
        )
    for column, step in _coarse_steps(read):
        yield (
            f"{column} is rounded to steps of {decimal_text(step)}; "
            "the intervals do not hold what that changes."
        )
    for what, ends in _cuts(read):
        yield f"{name}: {what} is cut to {ends}; the interval does not hold what that changes."


def _coarse_steps(read: Origin) -> Iterator[tuple[str, Fraction]]:
    """Yields each column whose data may be rounded by more than a millionth of its range, with its
    step.
    """
    for column in read.columns:
        step = coarse_step(column.type)
        if step is not None and not isinstance(column.type, Array):
            yield column.name, step


def coarse_step(kind: ColumnType) -> Fraction | None:
    """Returns the step of numbers that may be rounded by more than a millionth of their range, else
    None. Those of an Integer may: text, decimals and floats can be declared as one.

    >>> coarse_step(Integer(0, 5)), coarse_step(Real(0, 1))
    (Fraction(1, 1), None)
    """
    if isinstance(kind, Array):
        kind = kind.element
    if not isinstance(kind, Integer | Real):
        return None
    size = kind.upper_code - kind.lower_code
    return kind.step if isinstance(kind, Integer) or 2 * size < NEGLIGIBLE else None


def _bounds(read: Origin) -> list[str]:
    """The names of the columns that are clipped to declared bounds."""
    bounded = Integer | Real | Date | Timestamp
    return [column.name for column in read.columns if isinstance(column.type, bounded)]


def _has_clip(read: Origin, name: str) -> bool:
    """Whether a column is declared with a clip that differs from its bounds."""
    kinds = [column.type for column in read.columns if column.name == name]
    return any(isinstance(kind, Integer | Real) and kind.clip is not None for kind in kinds)


def explain(planned: Planned, dataset: Dataset) -> str:
    """Returns lines of text on the privacy and the error of a planned question."""
    bounded = planned.bounded
    lines = [*protection(dataset, bounded.tracked.unit)]
    for part, item in zip(planned.parts, planned.cost.items, strict=True):
        lines.append(_part_text(part, item))
    bounds = [line for each in planned.questions for line in bounding(each)]
    distortions = [line for each in planned.questions for line in bias(each)]
    lines += [f"Bounded: {line}" for line in dict.fromkeys(bounds)]
    lines += [f"Bias: {line}" for line in dict.fromkeys([*distortions, *planned.question.bias])]
    lines += [f"Note: {line}" for line in planned.notes]
    if planned.cost.is_earlier:
        return "\n".join([*lines, f"Cost: {planned.cost}."])
    gates = f"the pure gate books {planned.cost.epsilon}, the zCDP gate {planned.cost.rho}"
    if planned.cost.epsilon == "unbounded":
        gates = f"Gaussian noise closes the pure gate, the zCDP gate books {planned.cost.rho}"
    lines.append(f"Cost: {planned.cost}; {gates}.")
    return "\n".join(lines)


def _part_text(part: Part, item: Mapping[str, str]) -> str:
    """The noise, sensitivity and cost of one part."""
    if is_earlier(item):
        return f"{part.aggregate.title}: {item['mechanism']}, which {item['parameter']} paid for."
    cost = f"epsilon {item['epsilon']}"
    if item["epsilon"] == "unbounded":
        cost = f"rho {item['rho']}"
    if item["delta"] != "0":
        cost += f", delta {item['delta']}"
    noise = "," if part.distance.norm is Norm.LINF else " noise of"
    return (
        f"{item['release']}: {item['mechanism']}{noise} {item['parameter']} on integers, "
        f"{item['sensitivity']}; {cost}."
    )

# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for a bounded plan: every intermediate value is an integer. Proof: emit.proof.md.

All parts that are linear in the rows share one statement with the counts of units; each distinct
count and each histogram of quantiles has a statement of its own. In a prepared layout every row
counts by itself, as where rows are units; there a count of units is a statement of its own. No row
can make a statement fail. A window function is used only where a limit can bind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import pushed_down
from sfumato.engines.group_sampling import LARGEST, Order, every_group
from sfumato.engines.grouped_rows import (
    is_plain,
    key_names,
    rows_in_groups,
    select,
    summed_before_join,
    unit_and_keys,
)
from sfumato.engines.layout import key_alone
from sfumato.engines.linear_aggregates import clipped, fits, integers, sums
from sfumato.engines.preaggregation import taken_apart
from sfumato.engines.relation import Tables
from sfumato.engines.value_sql import Source
from sfumato.errors import unknown
from sfumato.metadata.column import Text
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
    read_value,
)
from sfumato.plan.scalar import Scalar
from sfumato.plan.scope import is_one_group
from sfumato.plan.stages import Bounded
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm


@dataclass(frozen=True, slots=True)
class Statement:
    """A SQL statement, and the indices of the parts whose integers it returns."""

    sql: str
    places: tuple[int, ...]


# Up to this many groups of a unit are kept by a streaming top-k; more are sorted.
_FEW = 8
# A unit has fewer than 2^36 rows. If its count in each group is at most _SQUARED, the squares of
# these counts add up to less than 2^63; they always add up to less than _UTMOST.
_SQUARED = 2**26
_UTMOST = 2**80


def statements(
    plan: Bounded,
    sources: Mapping[str, Source],
    sampling_key: str,
    *,
    windows: bool = False,
) -> tuple[Statement, ...]:
    """Returns the statements that together compute the integers of a plan.

    ``windows`` restricts the SQL to what Spark supports, too; see ``Tables``.

    Guarantees:
        no row can make a statement fail
        the engine gives the integers of the reference
    """
    raw, stored = pushed_down(plan.tracked.raw, sources, windows=windows)
    plan = replace(plan, tracked=replace(plan.tracked, raw=raw))
    order = Order(sampling_key, stored.numbered, by_row=windows)
    written: list[Statement] = []
    linear: list[int] = []
    for place in range(len(plan.parts)):
        sql = _own_statement(plan, _tables(plan, place, stored), place, order)
        if sql is None:
            linear.append(place)
        else:
            written.append(Statement(sql, (place,)))
    if linear:
        tables = _tables(plan, linear[0], stored)
        write = _first if _is_of_first(plan, linear) and not windows else _linear
        written.insert(0, Statement(write(plan, tables, linear, order), tuple(linear)))
    return tuple(written)


def _own_statement(plan: Bounded, tables: Tables, place: int, order: Order) -> str | None:
    """Returns the statement of a part that has its own; None if it is linear in the rows."""
    aggregate = plan.parts[place].aggregate
    match aggregate:
        case CountUnits() if plan.tracked.kept is not None:
            return _units(plan, tables)
        case CountDistinct(read):
            return _distinct(plan, tables, read, order)
        case Quantiles():
            return _leaves(plan, tables, aggregate, order)
        case CountUnits() | CountRows() | CountValues() | Sum() | Mean() | Variance():
            return None
        case _:
            raise unknown(aggregate)


def _tables(plan: Bounded, place: int, tables: Tables) -> Tables:
    """Returns the tables as one part reads them.

    Of a prepared layout, all linear parts read the same number of rows of each unit.
    """
    tracked = plan.tracked
    aggregate = plan.parts[place].aggregate
    if tracked.kept is None:
        return tables
    first = key_alone(tracked.raw) if isinstance(aggregate, CountUnits) else None
    return replace(tables, kept=tracked.counted(aggregate), first=first)


def _read(plan: Bounded, places: Sequence[int]) -> dict[Scalar, Value]:
    """Returns the values that the parts read, each once.

    An expression that is always NULL may be read both as a string and as a code; then it is a code.
    """
    values: dict[Scalar, Value] = {}
    for place in places:
        value = read_value(plan.parts[place].aggregate)
        if value is None:
            continue
        if value.expression in values and isinstance(value.type, Text):
            continue
        values[value.expression] = value
    return values


# --- counts and sums -----------------------------------------------------------------------


def _linear(
    plan: Bounded,
    tables: Tables,
    places: Sequence[int],
    order: Order,
) -> str:
    """Aggregates rows to (unit, group), clips each to its row limit, then adds up with weights."""
    aggregates = [plan.parts[place].aggregate for place in places]
    limit = plan.tracked.limits.rows
    values = _read(plan, places)
    names = {expression: f"v{index}" for index, expression in enumerate(values)}
    fit = not is_plain(plan) and all(fits(aggregate, limit) for aggregate in aggregates)
    pairs = _pairs(plan, tables, aggregates, values, narrow=fit)
    if is_plain(plan):
        return _sums_of_rows(plan, aggregates, names, pairs)
    counted = any(isinstance(aggregate, CountUnits) for aggregate in aggregates)
    only_units = all(isinstance(aggregate, CountUnits) for aggregate in aggregates)
    is_weighed = _most(plan) is not None and not only_units
    pairs = _placed(plan, pairs, order, counted=counted)
    if is_weighed:
        pairs = _weighed(plan, pairs, plan.norm, windows=tables.windows)
    added = _sum_over_units(plan, is_weighed=is_weighed, narrow=fit)
    released = []
    for aggregate in aggregates:
        if isinstance(aggregate, CountUnits):
            released.append(_counted_units(plan))
        else:
            terms = clipped(aggregate, names, limit, narrow=fit)
            released += [added.format(term) for term in terms]
    return select([*key_names(plan), *released], pairs, key_names(plan))


def _sums_of_rows(
    plan: Bounded,
    aggregates: Sequence[Aggregate],
    names: Mapping[Scalar, str],
    groups: str,
) -> str:
    """Selects the integers of each group where each row counts by itself."""
    released = []
    for aggregate in aggregates:
        for integer in integers(aggregate, names):
            released.append(f"({integer}) * {plan.refinement}")
    return select([*key_names(plan), *released], groups)


def _pairs(
    plan: Bounded,
    tables: Tables,
    aggregates: Sequence[Aggregate],
    values: Mapping[Scalar, Value],
    *,
    narrow: bool,
) -> str:
    """Selects a row for each (unit, group), or each group where rows count by themselves.

    It has the number of rows, ``n``, and the sums that the aggregates need.
    """
    names = {expression: f"v{index}" for index, expression in enumerate(values)}
    read = {names[expression]: typed(value) for expression, value in values.items()}
    summed: list[str] = []
    for aggregate in aggregates:
        for name, sql in sums(aggregate, names, narrow=narrow).items():
            summed.append(f"{sql} AS {name}")
    summed = [*dict.fromkeys(summed)]
    apart = None if is_plain(plan) else taken_apart(plan.tracked.raw, values.values())
    if apart is not None:
        return summed_before_join(plan, tables, apart, (read, summed))
    items = [*unit_and_keys(plan), "count(*) AS n", *summed]
    return select(
        items,
        rows_in_groups(plan, tables, read),
        unit_and_keys(plan),
    )


def _sum_over_units(plan: Bounded, *, is_weighed: bool, narrow: bool) -> str:
    """Returns the format of the sum of a term over the units of a group."""
    if not is_weighed:
        return f"coalesce(sum({{}}), 0) * {plan.refinement}"
    wide = "" if narrow else "::HUGEINT"
    return f"coalesce(sum(({{}}){wide} * weight), 0)"


def _counted_units(plan: Bounded) -> str:
    """Returns the number of units in a group: those for which it is one of the first groups."""
    if not _is_placed(plan, counted=True):
        return f"count(*) * {plan.refinement}"
    return f"count(*) FILTER (WHERE place <= {_kept(plan)}) * {plan.refinement}"


def _is_of_first(plan: Bounded, places: Sequence[int]) -> bool:
    """Whether ``_first`` can write the parts.

    They must depend only on which groups each unit keeps, a few, and on its row count in each.
    """
    limits = plan.tracked.limits
    aggregates = [plan.parts[place].aggregate for place in places]
    if is_plain(plan) or not _is_placed(plan, counted=True) or (_kept(plan) or 0) > _FEW:
        return False
    if all(isinstance(aggregate, CountUnits) for aggregate in aggregates):
        return True
    if not plan.tracked.raw.is_open or limits.total is not None:
        return False
    if limits.rows is None or limits.rows > LARGEST:
        return False
    return all(isinstance(aggregate, CountUnits | CountRows) for aggregate in aggregates)


def _first(
    plan: Bounded,
    tables: Tables,
    places: Sequence[int],
    order: Order,
) -> str:
    """Counts the units, and their rows, in the groups that each unit keeps."""
    keys = key_names(plan)
    kept = _kept(plan)
    assert kept is not None, "a unit keeps some of its groups"
    by_unit = ["unit", *keys]
    amount = ""
    items = by_unit
    if any(isinstance(plan.parts[place].aggregate, CountRows) for place in places):
        items = [*by_unit, "count(*) AS n"]
        amount = f"least(n, {plan.tracked.limits.rows})"
    pairs = select(items, rows_in_groups(plan, tables, {}), by_unit)
    groups = every_group(plan.tracked.raw.keys, keys)
    first = order.first(pairs, keys, kept, amount, groups)
    released = []
    for place in places:
        is_units = isinstance(plan.parts[place].aggregate, CountUnits)
        released.append(f"{'units' if is_units else 'amount'} * {plan.refinement}")
    return select([*keys, *released], first)


# --- limits of a unit ----------------------------------------------------------------------


def _kept(plan: Bounded) -> int | None:
    """Returns the number of groups in which a unit is counted; None if it is counted in all."""
    limits = plan.tracked.limits
    return _least(limits.groups, limits.total)


def _least(*limits: int | None) -> int | None:
    """Returns the smallest limit that is set; None if none is."""
    return min((limit for limit in limits if limit is not None), default=None)


def _is_placed(plan: Bounded, *, counted: bool) -> bool:
    """Whether the groups of a unit must be ordered."""
    raw = plan.tracked.raw
    return _is_spread(plan) and _kept(plan) is not None and (raw.is_open or counted)


def _is_spread(plan: Bounded) -> bool:
    """Whether a unit can be in several groups."""
    raw = plan.tracked.raw
    return not is_one_group(raw.relation, [key.value.expression for key in raw.keys])


def _placed(plan: Bounded, pairs: str, order: Order, *, counted: bool) -> str:
    """Adds the column ``place`` to (unit, group) rows where it is needed.

    Where keys are open, selects only the rows within the group limit.
    """
    if not _is_placed(plan, counted=counted):
        return pairs
    place = f"row_number() OVER (PARTITION BY unit ORDER BY {_by(plan)}) AS place"
    placed = select(["*", place], order.placed(pairs, key_names(plan)))
    if not plan.tracked.raw.is_open:
        return placed
    return f"{select(['*'], placed)} WHERE place <= {_kept(plan)}"


def _weighed(plan: Bounded, pairs: str, norm: Norm, *, windows: bool) -> str:
    """Adds the column ``weight`` to (unit, group) rows: the weight of the unit.

    It depends on a sum over all rows of the unit, which is joined or computed by a window.
    """
    most = _most(plan)
    limit = plan.tracked.limits.rows
    if most is None:
        return select(["*", f"{plan.refinement}::BIGINT AS weight"], pairs)
    size = "n" if limit is None else f"least(n, {limit})"
    kind = "BIGINT"
    if norm is not Norm.L1:
        if limit is None or limit > _SQUARED:
            kind = "HUGEINT"
            size = f"{size}::HUGEINT * {size}"
        else:
            size = f"{size} * {size}"
    weight = f"{_weight(plan, norm, most)} AS weight"
    if not _is_spread(plan):
        return select(["*", weight], select(["*", f"{size} AS total"], pairs))
    if windows:
        total = f"TRY_CAST(sum({size}) OVER (PARTITION BY unit) AS {kind}) AS total"
        return select(["*", weight], select(["*", total], pairs))
    total = f"TRY_CAST(sum({size}) AS {kind}) AS total"
    units = select(["unit", weight], select(["unit", total], "SELECT * FROM pairs", ["unit"]))
    return (
        f"WITH pairs AS MATERIALIZED ({pairs})\n"
        f"SELECT pairs.*, weight FROM pairs JOIN ({units}) AS u ON pairs.unit = u.unit"
    )


def _most(plan: Bounded) -> int | None:
    """Returns the row limit over all groups that weights enforce; None if no unit can exceed it."""
    limits = plan.tracked.limits
    spread = _is_spread(plan) and not plan.tracked.raw.is_open
    return limits.in_all if spread else limits.total


def _weight(plan: Bounded, norm: Norm, most: int) -> str:
    """Returns the weight of a unit as a function of its ``total`` (RULES 13).

    For f the refinement and R the row limit of a group it is floor(f min(1, most / total)) in L1
    and floor(f sqrt(min(1, R most / total))) in L2, where ``total`` is a sum of squares.
    """
    fine = plan.refinement
    limit = plan.tracked.limits.in_group
    assert limit is not None, "what bounds all rows bounds those of a group"
    if norm is Norm.L1:
        return f"TRY_CAST(least({fine}::BIGINT, {_whole(fine * most)} // total) AS BIGINT)"
    squares = min(limit * most, _UTMOST)
    # f^2 <= 2^40, where the floor of a correctly rounded root is the integer root
    smallest = f"least({fine**2}::BIGINT, {_whole(fine**2 * squares)} // total)"
    return f"TRY_CAST(floor(sqrt(TRY_CAST({smallest} AS DOUBLE))) AS BIGINT)"


def _whole(number: int) -> str:
    """Returns an integer literal in the type that fits it."""
    return f"{number}::{'BIGINT' if number < 2**63 else 'HUGEINT'}"


def _by(plan: Bounded) -> str:
    """Returns the ORDER BY list of the groups of a unit: no two groups are equal in it."""
    return ", ".join(["h", *(f"{key} NULLS FIRST" for key in key_names(plan))])


# --- units of a prepared layout ------------------------------------------------------------


def _units(plan: Bounded, tables: Tables) -> str:
    """Counts the units with a row in each group of a prepared layout.

    Where the layout marks the first row of each unit and value, only these rows are read.
    """
    keys = key_names(plan)
    counted = [*keys, f"count(*) * {plan.refinement}"]
    if tables.first is not None:
        return select(counted, rows_in_groups(plan, tables, {}), keys)
    by_unit = ["unit", *keys]
    pairs = select(
        by_unit,
        rows_in_groups(plan, tables, {"unit": "unit"}),
        by_unit,
    )
    return select(counted, pairs, keys)


# --- distinct values -----------------------------------------------------------------------


def _distinct(
    plan: Bounded,
    tables: Tables,
    read: Value,
    order: Order,
) -> str:
    """Counts the distinct values in each group, from the first groups and values of each unit."""
    keys = key_names(plan)
    limits = plan.tracked.limits
    counted = [*keys, f"count(DISTINCT v0) * {plan.refinement}"]
    values = rows_in_groups(plan, tables, {"v0": typed(read)})
    if is_plain(plan):
        return select(counted, values, keys)
    shown = ["unit", *keys, "v0"]
    values = select(shown, values, shown)
    if _is_placed(plan, counted=True):
        place = f"dense_rank() OVER (PARTITION BY unit ORDER BY {_by(plan)})"
        ordered = select(["*"], order.placed(values, key_names(plan)))
        values = f"{ordered} QUALIFY {place} <= {_kept(plan)}"
    most = _least(limits.rows, limits.total)
    if most is not None:
        present = f"{select(shown, values)} WHERE v0 IS NOT NULL"
        ordered = select(["*"], order.placed(present, [*keys, "v0"]))
        by_unit = ", ".join(["unit", *keys])
        place = f"row_number() OVER (PARTITION BY {by_unit} ORDER BY h, v0)"
        values = f"{ordered} QUALIFY {place} <= {most}"
    return select(counted, values, keys)


# --- quantiles -----------------------------------------------------------------------------


def _leaves(
    plan: Bounded,
    tables: Tables,
    aggregate: Quantiles,
    order: Order,
) -> str:
    """Adds up the weights of the rows in each leaf of each group; one output row for each leaf."""
    kind = aggregate.value.type
    keys = key_names(plan)
    fine = plan.refinement
    assert not isinstance(kind, Text), "a text has no leaf"
    leaf = f"({typed(aggregate.value)} - ({kind.lower_code})) // {aggregate.coarse}"
    source = rows_in_groups(plan, tables, {"leaf": leaf})
    if is_plain(plan):
        present = f"{select(['*'], source)} WHERE leaf IS NOT NULL"
        return select(
            [*keys, "leaf", f"count(*) * {fine}"],
            present,
            [*keys, "leaf"],
        )
    join = "JOIN" if plan.tracked.raw.is_open else "LEFT JOIN"
    shares = _shares(plan, tables, order)
    same = ["f.unit = p.unit", *(f"f.{key} IS NOT DISTINCT FROM p.{key}" for key in keys)]
    by = ", ".join([*(f"f.{key}" for key in keys), "leaf"])
    return (
        f"WITH found AS MATERIALIZED ({source})\n"
        f"SELECT {by}, sum(coalesce(share, {fine})) "
        f"FROM found AS f {join} ({shares}) AS p ON {' AND '.join(same)}\n"
        f"WHERE leaf IS NOT NULL GROUP BY {by}"
    )


def _shares(plan: Bounded, tables: Tables, order: Order) -> str:
    """Selects the weight of one row of each (unit, group) of the table ``found``."""
    by_unit = ["unit", *key_names(plan)]
    limit = plan.tracked.limits.rows
    items = [*by_unit, "count(*) AS n", "count(leaf) AS held"]
    pairs = select(items, "SELECT * FROM found", by_unit)
    pairs = _placed(plan, pairs, order, counted=False)
    weighed = _weighed(plan, pairs, Norm.L1, windows=tables.windows)
    few = "held" if limit is None else f"least(held, {limit})"
    shares = select([*by_unit, f"weight * {few} // nullif(held, 0) AS share"], weighed)
    if plan.tracked.raw.is_open:
        return shares
    # the rows of a unit within its limits have full weight, so the outer join need not find it
    bound = f"weight < {plan.refinement}"
    if limit is not None:
        bound += f" OR held > {limit}"
    return f"{shares} WHERE {bound}"

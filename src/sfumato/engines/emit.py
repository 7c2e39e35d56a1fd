# SPDX-License-Identifier: Apache-2.0
"""SQL trees that compute the integers of a bounded plan. Proof: emit.proof.md.

All linear aggregates share one statement with the counts of units. Each distinct count has its own
statement, and so has each set of quantile leaves. In a prepared layout a row is counted by itself,
as where every row is a unit; counts of units are then a statement of their own. Every intermediate
value is an integer, and no row can make a statement fail. A window function is used only where a
limit can bind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.engines import sql_tree as sql
from sfumato.engines import unit_limits
from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import pushed_down
from sfumato.engines.group_sampling import LARGEST, Order, every_group
from sfumato.engines.grouped_rows import (
    ROW_COUNT,
    as_columns,
    is_plain,
    key_names,
    rows_in_groups,
    select,
    summed_before_join,
    unit_and_keys,
)
from sfumato.engines.layout import key_alone
from sfumato.engines.linear_aggregates import clipped, fits, integers, or_zero, shifted, sums
from sfumato.engines.preaggregation import taken_apart
from sfumato.engines.relation import UNIT, Tables, same_unit
from sfumato.engines.value_sql import Source
from sfumato.metadata.column import Text
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    Linear,
    Quantiles,
)
from sfumato.plan.scalar import Scalar
from sfumato.plan.stages import Bounded
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm


@dataclass(frozen=True, slots=True)
class Emitted:
    """A query as an SQL tree, and the indices of the plan's parts whose integers it returns."""

    query: sql.Query
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a SQL query in an engine's dialect, and the indices of the plan's aggregates that
    it computes.
    """

    sql: str
    places: tuple[int, ...]


# Up to this many groups of a unit are kept by a streaming top-k; more are sorted.
_FEW = 8
_LEAF = sql.Column("leaf")
_FOUND = sql.Table("found")


def queries(
    plan: Bounded,
    sources: Mapping[str, Source],
    sampling_key: str,
    *,
    windows: bool = False,
) -> tuple[Emitted, ...]:
    """Returns the SQL queries that together compute the exact integers of a plan, each with the
    aggregates that it computes.

    ``windows`` restricts them to what Spark supports, too; see ``Tables``.

    Guarantees:
        no row can make a statement fail
        the engine gives the integers of the reference
    """
    raw, stored = pushed_down(plan.tracked.raw, sources, windows=windows)
    plan = replace(plan, tracked=replace(plan.tracked, raw=raw))
    order = Order(sampling_key, stored.numbered, by_row=windows)
    emitted: list[Emitted] = []
    linear: list[int] = []
    for place in range(len(plan.parts)):
        query = _own_query(plan, _tables(plan, place, stored), place, order)
        if query is None:
            linear.append(place)
        else:
            emitted.append(Emitted(query, (place,)))
    if linear:
        tables = _tables(plan, linear[0], stored)
        write = _first if _is_of_first(plan, linear) and not windows else _linear
        emitted.insert(0, Emitted(write(plan, tables, linear, order), tuple(linear)))
    return tuple(emitted)


def _own_query(plan: Bounded, tables: Tables, place: int, order: Order) -> sql.Query | None:
    """Returns the query of a part that has its own; None if it is linear in the rows."""
    aggregate = plan.parts[place].aggregate
    match aggregate:
        case CountUnits() if plan.tracked.kept is not None:
            return _units(plan, tables)
        case CountDistinct(read):
            return _distinct(plan, tables, read, order)
        case Quantiles():
            return _leaves(plan, tables, aggregate, order)
        case CountUnits() | Linear():
            return None
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not known here")


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
        value = plan.parts[place].aggregate.read
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
) -> sql.Query:
    """Aggregates rows to (unit, group), clips each to its row limit, then adds up with weights."""
    aggregates = [plan.parts[place].aggregate for place in places]
    limit = plan.tracked.limits.rows
    values = _read(plan, places)
    names = {expression: f"v{index}" for index, expression in enumerate(values)}
    fit = not is_plain(plan) and all(fits(aggregate, limit) for aggregate in aggregates)
    pairs = _pairs(plan, tables, aggregates, values, narrow=fit)
    if is_plain(plan):
        return _sums_of_rows(plan, aggregates, names, pairs)
    of_units = [isinstance(aggregate, CountUnits) for aggregate in aggregates]
    is_weighed = unit_limits.most_rows(plan) is not None and not all(of_units)
    pairs = unit_limits.placed(plan, pairs, order, counted=any(of_units))
    if is_weighed:
        pairs = unit_limits.weighed(plan, pairs, plan.norm, windows=tables.windows)
    released: list[sql.Expression] = []
    for aggregate in aggregates:
        if isinstance(aggregate, CountUnits):
            released.append(_counted_units(plan, aggregate, names))
        else:
            for term in clipped(aggregate, names, limit, narrow=fit):
                released.append(_sum_over_units(plan, term, is_weighed=is_weighed, narrow=fit))
    return select([*key_names(plan), *released], pairs, key_names(plan))


def _sums_of_rows(
    plan: Bounded,
    aggregates: Sequence[Aggregate],
    names: Mapping[Scalar, str],
    groups: sql.Query,
) -> sql.Query:
    """Selects the integers of each group where each row counts by itself."""
    released = []
    for aggregate in aggregates:
        for integer in integers(aggregate, names):
            released.append(unit_limits.refined(plan, sql.Paren(integer)))
    return select([*key_names(plan), *released], groups)


def _pairs(
    plan: Bounded,
    tables: Tables,
    aggregates: Sequence[Aggregate],
    values: Mapping[Scalar, Value],
    *,
    narrow: bool,
) -> sql.Query:
    """Selects a row for each (unit, group), or each group where rows count by themselves.

    It has the number of rows, ``n``, and the sums that the aggregates need.
    """
    names = {expression: f"v{index}" for index, expression in enumerate(values)}
    read = {names[expression]: typed(value) for expression, value in values.items()}
    added: dict[str, sql.Expression] = {}
    for aggregate in aggregates:
        added |= sums(aggregate, names, narrow=narrow)
    summed = as_columns(added)
    apart = None if is_plain(plan) else taken_apart(plan.tracked.raw, values.values())
    if apart is not None:
        return summed_before_join(plan, tables, apart, (read, summed))
    items = [*unit_and_keys(plan), ROW_COUNT, *summed]
    return select(
        items,
        rows_in_groups(plan, tables, read),
        unit_and_keys(plan),
    )


def _sum_over_units(
    plan: Bounded, term: sql.Expression, *, is_weighed: bool, narrow: bool
) -> sql.Expression:
    """Adds a term up over the units of a group."""
    if not is_weighed:
        return unit_limits.refined(plan, or_zero(sql.aggregate("sum", term)))
    value: sql.Expression = sql.Paren(term)
    if not narrow:
        value = sql.Typed(value, sql.SqlType.HUGEINT)
    return or_zero(sql.aggregate("sum", value * unit_limits.WEIGHT))


def _counted_units(
    plan: Bounded, aggregate: CountUnits, names: Mapping[Scalar, str]
) -> sql.Expression:
    """Returns the number of units in a group: those for which it is one of the first groups.

    Of a condition those with a row that passes it.
    """
    tests: list[sql.Expression] = []
    if unit_limits.is_placed(plan, counted=True):
        tests.append(unit_limits.at_most(sql.Column("place"), unit_limits.kept(plan)))
    if isinstance(aggregate, CountUnitsWhere):
        tests.append(sql.Column(f"m_{names[aggregate.value.expression]}") > 0)
    where = sql.conjunction(tests)
    return unit_limits.refined(plan, sql.Aggregate("count", (sql.Star(),), where))


def _is_of_first(plan: Bounded, places: Sequence[int]) -> bool:
    """Whether ``_first`` can write the parts.

    They must depend only on which groups each unit keeps, a few, and on its row count in each.
    """
    limits = plan.tracked.limits
    aggregates = [plan.parts[place].aggregate for place in places]
    if (
        is_plain(plan)
        or not unit_limits.is_placed(plan, counted=True)
        or (unit_limits.kept(plan) or 0) > _FEW
    ):
        return False
    if any(isinstance(aggregate, CountUnitsWhere) for aggregate in aggregates):
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
) -> sql.Query:
    """Counts the units, and their rows, in the groups that each unit keeps."""
    keys = key_names(plan)
    groups_kept = unit_limits.kept(plan)
    assert groups_kept is not None, "a unit keeps some of its groups"
    by_unit = [UNIT, *keys]
    amount = None
    items: list[sql.Expression] = [*by_unit]
    if any(isinstance(plan.parts[place].aggregate, CountRows) for place in places):
        items.append(ROW_COUNT)
        amount = unit_limits.cut_to(unit_limits.ROWS, plan.tracked.limits.rows)
    pairs = select(items, rows_in_groups(plan, tables, {}), by_unit)
    groups = every_group(plan.tracked.raw.keys, keys)
    first = order.first(pairs, keys, groups_kept, amount, groups)
    released = []
    for place in places:
        is_units = isinstance(plan.parts[place].aggregate, CountUnits)
        released.append(unit_limits.refined(plan, sql.Column("units" if is_units else "amount")))
    return select([*keys, *released], first)


# --- units of a prepared layout ------------------------------------------------------------


def _units(plan: Bounded, tables: Tables) -> sql.Query:
    """Counts the units with a row in each group of a prepared layout.

    Where the layout marks the first row of each unit and value, only these rows are read.
    """
    keys = key_names(plan)
    counted = [*keys, unit_limits.refined(plan, sql.aggregate("count"))]
    if tables.first is not None:
        return select(counted, rows_in_groups(plan, tables, {}), keys)
    by_unit = [UNIT, *keys]
    pairs = select(
        by_unit,
        rows_in_groups(plan, tables, {"unit": UNIT}),
        by_unit,
    )
    return select(counted, pairs, keys)


# --- distinct values -----------------------------------------------------------------------


def _distinct(
    plan: Bounded,
    tables: Tables,
    read: Value,
    order: Order,
) -> sql.Query:
    """Counts the distinct values in each group, from the first groups and values of each unit."""
    keys = key_names(plan)
    limits = plan.tracked.limits
    value = sql.Column("v0")
    distinct = sql.Aggregate("count", (value,), distinct=True)
    counted = [*keys, unit_limits.refined(plan, distinct)]
    values = rows_in_groups(plan, tables, {"v0": typed(read)})
    if is_plain(plan):
        return select(counted, values, keys)
    shown = [UNIT, *keys, value]
    values = select(shown, values, shown)
    if unit_limits.is_placed(plan, counted=True):
        place = sql.Window(sql.Aggregate("dense_rank"), (UNIT,), unit_limits.group_order(plan))
        ordered = select([sql.Star()], order.placed(values, key_names(plan)))
        values = replace(ordered, qualify=unit_limits.at_most(place, unit_limits.kept(plan)))
    most = unit_limits.least(limits.rows, limits.total)
    if most is not None:
        values = _first_values(values, keys, most, order)
    return select(counted, values, keys)


def _first_values(
    values: sql.Query, keys: Sequence[sql.Column], most: int, order: Order
) -> sql.Query:
    """Selects the first values, but NULL, of each unit in each group."""
    value = sql.Column("v0")
    present = replace(select([UNIT, *keys, value], values), where=value.is_present)
    ordered = select([sql.Star()], order.placed(present, [*keys, value]))
    by = sql.Column("h"), value
    place = sql.Window(sql.Aggregate("row_number"), (UNIT, *keys), by)
    return replace(ordered, qualify=unit_limits.at_most(place, most))


# --- quantiles -----------------------------------------------------------------------------


def _leaves(
    plan: Bounded,
    tables: Tables,
    aggregate: Quantiles,
    order: Order,
) -> sql.Query:
    """Adds up the weights of the rows in each leaf of each group; one output row for each leaf."""
    kind = aggregate.value.type
    keys = key_names(plan)
    assert not isinstance(kind, Text), "a text has no leaf"
    above = sql.Paren(shifted(typed(aggregate.value), kind.lower_code))
    leaf: sql.Expression = above // aggregate.coarse if aggregate.coarse > 1 else above
    source = rows_in_groups(plan, tables, {"leaf": leaf})
    if is_plain(plan):
        present = replace(select([sql.Star()], source), where=_LEAF.is_present)
        counted = unit_limits.refined(plan, sql.aggregate("count"))
        return select([*keys, _LEAF, counted], present, [*keys, _LEAF])
    weights = _weights_of_leaves(plan, _shares(plan, tables, order))
    return sql.With((sql.Named("found", source, materialized=True),), weights)


def _weights_of_leaves(plan: Bounded, shares: sql.Query) -> sql.Query:
    """Joins the rows of the table ``found`` to their weights, and adds these up in each leaf."""
    keys = key_names(plan)
    word = "JOIN" if plan.tracked.raw.is_open else "LEFT JOIN"
    by = *(replace(key, table="f") for key in keys), _LEAF
    share = sql.call("coalesce", sql.Column("share"), plan.refinement)
    return sql.Select(
        (*by, sql.aggregate("sum", share)),
        sql.Item(_FOUND, "f"),
        (sql.Join(word, sql.Item(shares, "p"), _same_group(keys)),),
        where=_LEAF.is_present,
        group=by,
        breaks=("WHERE",),
    )


def _same_group(keys: Sequence[sql.Column]) -> sql.Expression | None:
    """Tests whether ``f`` and ``p`` have the same unit and keys."""
    tests = [sql.Column("unit", "f").equals(sql.Column("unit", "p"))]
    for key in keys:
        left = replace(key, table="f")
        tests.append(left.same(replace(key, table="p")))
    return sql.conjunction(tests)


def _shares(plan: Bounded, tables: Tables, order: Order) -> sql.Query:
    """Selects the weight of one row of each (unit, group) of the table ``found``."""
    by_unit = [UNIT, *key_names(plan)]
    limit = plan.tracked.limits.rows
    held = sql.Column("held")
    items = [*by_unit, ROW_COUNT, sql.aggregate("count", _LEAF).named(held)]
    rows_of = _rows_that_may_be_cut(plan, windows=tables.windows)
    pairs = unit_limits.placed(plan, select(items, rows_of, by_unit), order, counted=False)
    weighed = unit_limits.weighed(plan, pairs, Norm.L1, windows=tables.windows)
    few = held if limit is None else unit_limits.cut_to(held, limit)
    product = unit_limits.WEIGHT * few
    share = product // sql.call("nullif", held, 0)
    shares = select([*by_unit, share.named("share")], weighed)
    if plan.tracked.raw.is_open:
        return shares
    # the rows of a unit within its limits have full weight, so the outer join need not find it
    bound: sql.Expression = plan.refinement > unit_limits.WEIGHT
    if limit is not None:
        is_cut = held > limit
        bound = sql.Logic("OR", (bound, is_cut))
    return replace(shares, where=bound)


def _rows_that_may_be_cut(plan: Bounded, *, windows: bool) -> sql.Query:
    """Selects the rows of the table ``found``, but of units that are within every limit.

    A unit is if it has no more rows than one group may have, and no more than all may have. To
    find that, rows are counted by unit alone: far cheaper than by unit and group.
    """
    few = unit_limits.least(plan.tracked.limits.rows, unit_limits.most_rows(plan))
    every = sql.Item(_FOUND, "l")
    if few is None or windows or plan.tracked.raw.is_open:
        return sql.Select((sql.Star("l"),), every)
    counted = select([UNIT, ROW_COUNT], sql.Select((sql.Star(),), sql.Item(_FOUND)), [UNIT])
    many = replace(select([UNIT], counted), where=few < unit_limits.ROWS)
    return sql.Select((sql.Star("l"),), every, (same_unit("SEMI JOIN", many),))

# SPDX-License-Identifier: Apache-2.0
"""A bounded plan as DuckDB SQL: integers from the first line on. Proof: emit.proof.md.

One statement for all that is linear in the rows and the counts of units, one for each
distinct count, one for each histogram of quantiles. Of a prepared layout each row counts by
itself, as where rows are units; counts of units are statements of their own there. Each is
total: no row can make it fail. A window is there only where a limit can bind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.engines.expression import narrow, truth, typed
from sfumato.engines.filter_pushdown import names_read, split
from sfumato.engines.group_sampling import LARGEST, Order, every_group
from sfumato.engines.layout import key_alone
from sfumato.engines.linear_aggregates import clipped, fits, integers, sums
from sfumato.engines.preaggregation import Apart, taken_apart
from sfumato.engines.relation import Tables, rows
from sfumato.engines.value_sql import Source
from sfumato.errors import unknown
from sfumato.metadata.column import Text
from sfumato.plan.aggregate import (
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
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm


@dataclass(frozen=True, slots=True)
class Statement:
    """A SQL statement, and the places of the parts whose integers it gives."""

    sql: str
    places: tuple[int, ...]


# So many groups of a unit are kept while they come by; more are put in order.
_FEW = 8
# Of fewer than 2^36 rows: squares of counts up to the first add up to 64 bits, of any to less than the second.
_SQUARED, _UTMOST = 2**26, 2**80


def statements(
    plan: Bounded, sources: Mapping[str, Source], sampling_key: str, *, windows: bool = False
) -> tuple[Statement, ...]:
    """The statements that together give the integers of a plan.

    ``windows``: in SQL that Spark has, too; see ``Tables``.

    Guarantees:
        no row can make a statement fail
        the engine gives the integers of the reference
    """
    found, linear = [], []
    tracked = plan.tracked
    # what can be asked of stored values is asked there, and is no test of the rows any more
    relation, tests = split(tracked.raw.relation, sources)
    raw = replace(tracked.raw, relation=relation)
    plan = replace(plan, tracked=replace(tracked, raw=raw))
    stored = replace(
        Tables.of(relation, sources), tests=tests, read=names_read(raw), windows=windows
    )
    order = Order(sampling_key, stored.numbered, by_row=windows)
    for place, part in enumerate(plan.parts):
        tables = _tables(plan, place, stored)
        match part.aggregate:
            case CountUnits() if plan.tracked.kept is not None:
                found.append(Statement(_units(plan, tables), (place,)))
            case CountDistinct(read):
                found.append(Statement(_distinct(plan, tables, read, order), (place,)))
            case Quantiles():
                found.append(Statement(_leaves(plan, tables, part.aggregate, order), (place,)))
            case CountUnits() | CountRows() | CountValues() | Sum() | Mean() | Variance():
                linear.append(place)
            case _:
                raise unknown(part.aggregate)
    if linear:
        tables = _tables(plan, linear[0], stored)
        write = _first if _is_of_first(plan, linear) and not windows else _linear
        found.insert(0, Statement(write(plan, tables, linear, order), tuple(linear)))
    return tuple(found)


def _tables(plan: Bounded, place: int, tables: Tables) -> Tables:
    """The tables as a part reads them; all that is linear in the rows reads as many rows of a unit."""
    tracked, aggregate = plan.tracked, plan.parts[place].aggregate
    if tracked.kept is None:
        return tables
    first = key_alone(tracked.raw) if isinstance(aggregate, CountUnits) else None
    return replace(tables, kept=tracked.counted(aggregate), first=first)


# --- rows and groups -----------------------------------------------------------------------


def _keys(plan: Bounded) -> list[str]:
    return [f"k{index}" for index in range(len(plan.tracked.raw.keys))]


def _is_plain(plan: Bounded) -> bool:
    """Whether each row counts by itself."""
    return plan.tracked.unit is None or plan.tracked.kept is not None


def _by_unit(plan: Bounded) -> list[str]:
    return _keys(plan) if _is_plain(plan) else ["unit", *_keys(plan)]


def _select(items: Sequence[str], source: str, group: Sequence[str] = ()) -> str:
    by = f"\nGROUP BY {', '.join(group)}" if group else ""
    return f"SELECT {', '.join(items)}\nFROM ({source}){by}"


def _rows(plan: Bounded, tables: Tables, read: Mapping[str, str]) -> str:
    """The rows that are in a group: the unit (where it matters), the keys and what is read."""
    raw = plan.tracked.raw
    items = [] if _is_plain(plan) else ["unit"]
    written = typed if _is_plain(plan) or tables.windows else narrow
    items += [
        f"{written(key.value)} AS {name}" for key, name in zip(raw.keys, _keys(plan), strict=True)
    ]
    items += [f"{expression} AS {name}" for name, expression in read.items()]
    found = rows(raw.relation, tables)
    return (
        found
        if items == ["unit"]
        else _in_groups(plan, f"SELECT {', '.join(items) or '1'} FROM ({found})")
    )


def _added_apart(
    plan: Bounded, tables: Tables, apart: Apart, added: tuple[Mapping[str, str], Sequence[str]]
) -> str:
    """(unit, group) rows where each unit is in one group: added up by unit, then joined to what the keys read."""
    (read, summed), keys = added, [key.value for key in plan.tracked.raw.keys]
    items = ["unit", *(f"{expression} AS {name}" for name, expression in read.items())]
    units = _select(
        ["unit", "count(*) AS n", *summed], _select(items, rows(apart.source, tables)), ["unit"]
    )
    shown = ", ".join(
        ["l.*", *(f"{typed(key)} AS {name}" for key, name in zip(keys, _keys(plan), strict=True))]
    )
    tests = " AND ".join(truth(each) for each in apart.tests)
    joined = f"SELECT {shown} FROM ({units}) AS l {'LEFT ' * apart.outer}JOIN ({rows(apart.other, tables)}) AS r ON l.unit = r.unit"
    return _in_groups(plan, f"{joined} WHERE {tests}" if tests else joined)


def _in_groups(plan: Bounded, source: str) -> str:
    keys = zip(plan.tracked.raw.keys, _keys(plan), strict=True)
    tests = [test for key, name in keys if (test := _in_group(key, name))]
    return f"SELECT * FROM ({source}) WHERE {' AND '.join(tests)}" if tests else source


def _in_group(key: GroupKey, name: str) -> str:
    """Whether a row is in a group; empty: it always is."""
    kind, codes = key.value.type, key.codes
    if codes is None or (not isinstance(kind, Text) and len(codes) == kind.size):
        # the codes of a value lie within its type
        return "" if key.missing else f"{name} IS NOT NULL"
    if not codes:
        return f"{name} IS NULL"
    if codes[-1] - codes[0] == len(codes) - 1:
        declared = f"{name} BETWEEN {codes[0]} AND {codes[-1]}"
    else:
        declared = f"{name} IN ({', '.join(map(str, codes))})"
    return f"({name} IS NULL OR {declared})" if key.missing else declared


def _read(plan: Bounded, places: Sequence[int]) -> dict[Scalar, Value]:
    """The values that are read, each once; one that is always NULL as a code, if it is one to any aggregate."""
    found: dict[Scalar, Value] = {}
    for place in places:
        each = read_value(plan.parts[place].aggregate)
        if each is not None and not (each.expression in found and isinstance(each.type, Text)):
            found[each.expression] = each
    return found


# --- counts and sums -----------------------------------------------------------------------


def _linear(plan: Bounded, tables: Tables, places: Sequence[int], order: Order) -> str:
    """Rows to (unit, group), each clipped to its row limit; then the groups of a unit weighed."""
    aggregates, limit = [plan.parts[place].aggregate for place in places], plan.tracked.limits.rows
    values = _read(plan, places)
    names = {expression: f"v{index}" for index, expression in enumerate(values)}
    read = {names[expression]: typed(each) for expression, each in values.items()}
    narrow = not _is_plain(plan) and all(fits(each, limit) for each in aggregates)
    needed = [sums(each, names, narrow=narrow) for each in aggregates]
    summed = dict.fromkeys(f"{sql} AS {name}" for each in needed for name, sql in each.items())
    apart = None if _is_plain(plan) else taken_apart(plan.tracked.raw, values.values())
    if apart is None:
        pairs = _select(
            [*_by_unit(plan), "count(*) AS n", *summed], _rows(plan, tables, read), _by_unit(plan)
        )
    else:
        pairs = _added_apart(plan, tables, apart, (read, [*summed]))
    if _is_plain(plan):
        found = [
            f"({each}) * {plan.refinement}"
            for aggregate in aggregates
            for each in integers(aggregate, names)
        ]
        return _select([*_keys(plan), *found], pairs)
    counted = any(isinstance(each, CountUnits) for each in aggregates)
    pairs = _placed(plan, pairs, order, counted=counted)
    weighed = _most(plan) is not None and not all(
        isinstance(each, CountUnits) for each in aggregates
    )
    if weighed:
        pairs = _weighed(plan, pairs, plan.norm, windows=tables.windows)
    wide = "" if narrow else "::HUGEINT"
    added = (
        f"coalesce(sum(({{}}){wide} * weight), 0)"
        if weighed
        else f"coalesce(sum({{}}), 0) * {plan.refinement}"
    )
    released = []
    for aggregate in aggregates:
        if isinstance(aggregate, CountUnits):
            first = (
                f" FILTER (WHERE place <= {_kept(plan)})" if _is_placed(plan, counted=True) else ""
            )
            released.append(f"count(*){first} * {plan.refinement}")
        else:
            terms = clipped(aggregate, names, limit, narrow=narrow)
            released += [added.format(term) for term in terms]
    return _select([*_keys(plan), *released], pairs, _keys(plan))


def _is_of_first(plan: Bounded, places: Sequence[int]) -> bool:
    """Whether all that counts is which groups, a few, a unit keeps, and how many rows it has there."""
    limits, aggregates = plan.tracked.limits, [plan.parts[place].aggregate for place in places]
    if _is_plain(plan) or not _is_placed(plan, counted=True) or (_kept(plan) or 0) > _FEW:
        return False
    if all(isinstance(each, CountUnits) for each in aggregates):
        return True
    known = limits.total is None and limits.rows is not None and limits.rows <= LARGEST
    return (
        plan.tracked.raw.is_open
        and known
        and all(isinstance(each, CountUnits | CountRows) for each in aggregates)
    )


def _first(plan: Bounded, tables: Tables, places: Sequence[int], order: Order) -> str:
    """Units, and their rows, in the groups that they keep."""
    keys, kept = _keys(plan), _kept(plan)
    assert kept is not None, "a unit keeps some of its groups"
    counted = any(isinstance(plan.parts[place].aggregate, CountRows) for place in places)
    pairs = _select(
        ["unit", *keys, *["count(*) AS n"] * counted], _rows(plan, tables, {}), ["unit", *keys]
    )
    amount = f"least(n, {plan.tracked.limits.rows})" if counted else ""
    first = order.first(pairs, keys, kept, amount, every_group(plan.tracked.raw.keys, keys))
    read = [
        "units" if isinstance(plan.parts[place].aggregate, CountUnits) else "amount"
        for place in places
    ]
    return _select([*keys, *(f"{each} * {plan.refinement}" for each in read)], first)


# --- limits of a unit ----------------------------------------------------------------------


def _kept(plan: Bounded) -> int | None:
    """In how many groups a unit is counted; None: in all."""
    limits = plan.tracked.limits
    return min((each for each in (limits.groups, limits.total) if each is not None), default=None)


def _is_placed(plan: Bounded, *, counted: bool) -> bool:
    """Whether the groups of a unit have to be put in order."""
    raw = plan.tracked.raw
    return _is_spread(plan) and _kept(plan) is not None and (raw.is_open or counted)


def _is_spread(plan: Bounded) -> bool:
    """Whether a unit can be in several groups."""
    raw = plan.tracked.raw
    return not is_one_group(raw.relation, [key.value.expression for key in raw.keys])


def _placed(plan: Bounded, pairs: str, order: Order, *, counted: bool) -> str:
    """(unit, group) rows with their ``place``, where it is asked for; of open keys only those within the limit."""
    if not _is_placed(plan, counted=counted):
        return pairs
    place = f"row_number() OVER (PARTITION BY unit ORDER BY {_by(plan)}) AS place"
    found = _select(["*", place], _in_order(plan, pairs, order))
    return (
        f"{_select(['*'], found)} WHERE place <= {_kept(plan)}"
        if plan.tracked.raw.is_open
        else found
    )


def _weighed(plan: Bounded, pairs: str, norm: Norm, *, windows: bool) -> str:
    """(unit, group) rows with their ``weight``, which is that of the unit.

    What it depends on is added up by unit, and joined or shown by windows.
    """
    most, limit = _most(plan), plan.tracked.limits.rows
    if most is None:
        return _select(["*", f"{plan.refinement}::BIGINT AS weight"], pairs)
    size = "n" if limit is None else f"least(n, {limit})"
    wide = "" if limit is not None and limit <= _SQUARED else "::HUGEINT"
    size, kind = (
        (size, "BIGINT") if norm is Norm.L1 else (f"{size}{wide} * {size}", wide[2:] or "BIGINT")
    )
    weight = f"{_weight(plan, norm, most)} AS weight"
    if not _is_spread(plan):
        return _select(["*", weight], _select(["*", f"{size} AS total"], pairs))
    over = " OVER (PARTITION BY unit)" if windows else ""
    total = f"TRY_CAST(sum({size}){over} AS {kind}) AS total"
    if windows:
        return _select(["*", weight], _select(["*", total], pairs))
    units = _select(["unit", weight], _select(["unit", total], "SELECT * FROM pairs", ["unit"]))
    return f"WITH pairs AS MATERIALIZED ({pairs})\nSELECT pairs.*, weight FROM pairs JOIN ({units}) AS u ON pairs.unit = u.unit"


def _most(plan: Bounded) -> int | None:
    """To how many rows a unit is weighed down over all its groups; None: it cannot have more."""
    limits = plan.tracked.limits
    spread = _is_spread(plan) and not plan.tracked.raw.is_open
    return limits.in_all if spread else limits.total


def _weight(plan: Bounded, norm: Norm, most: int) -> str:
    """floor(f min(1, most / total)), of squares floor(f sqrt(min(1, R most / total))) (RULES 13)."""
    fine, rows = plan.refinement, plan.tracked.limits.in_group
    assert rows is not None, "what bounds all rows bounds those of a group"
    if norm is Norm.L1:
        return f"TRY_CAST(least({fine}::BIGINT, {_whole(fine * most)} // total) AS BIGINT)"
    squares = min(rows * most, _UTMOST)
    # f^2 <= 2^40, where the floor of a correctly rounded root is the integer root
    smallest = f"least({fine**2}::BIGINT, {_whole(fine**2 * squares)} // total)"
    return f"TRY_CAST(floor(sqrt(TRY_CAST({smallest} AS DOUBLE))) AS BIGINT)"


def _whole(number: int) -> str:
    """An integer in the type that holds it."""
    return f"{number}::{'BIGINT' if number < 2**63 else 'HUGEINT'}"


def _in_order(plan: Bounded, rows: str, order: Order) -> str:
    """Rows of units with the place ``h`` of their group."""
    return order.placed(rows, _keys(plan))


def _by(plan: Bounded) -> str:
    """The sampling order of the groups of a unit: no two are alike in it."""
    return ", ".join(["h", *(f"{key} NULLS FIRST" for key in _keys(plan))])


# --- units of a prepared layout ------------------------------------------------------------


def _units(plan: Bounded, tables: Tables) -> str:
    """How many units have a row in each group; where they are marked, one row of each is read."""
    keys = _keys(plan)
    if tables.first is not None:
        return _select([*keys, f"count(*) * {plan.refinement}"], _rows(plan, tables, {}), keys)
    pairs = _select(["unit", *keys], _rows(plan, tables, {"unit": "unit"}), ["unit", *keys])
    return _select([*keys, f"count(*) * {plan.refinement}"], pairs, keys)


# --- distinct values -----------------------------------------------------------------------


def _distinct(plan: Bounded, tables: Tables, read: Value, order: Order) -> str:
    """The first groups of each unit, the first values of it there, and how many they are together."""
    keys, fine = _keys(plan), plan.refinement
    counted = [*keys, f"count(DISTINCT v0) * {fine}"]
    found = _rows(plan, tables, {"v0": typed(read)})
    if _is_plain(plan):
        return _select(counted, found, keys)
    found = _select(["unit", *keys, "v0"], found, ["unit", *keys, "v0"])
    if _is_placed(plan, counted=True):
        place = f"dense_rank() OVER (PARTITION BY unit ORDER BY {_by(plan)})"
        found = f"{_select(['*'], _in_order(plan, found, order))} QUALIFY {place} <= {_kept(plan)}"
    limits = plan.tracked.limits
    most = min((each for each in (limits.rows, limits.total) if each is not None), default=None)
    if most is not None:
        shown = ["unit", *keys, "v0"]
        valued = order.placed(f"{_select(shown, found)} WHERE v0 IS NOT NULL", [*keys, "v0"])
        place = f"row_number() OVER (PARTITION BY {', '.join(['unit', *keys])} ORDER BY h, v0)"
        found = f"{_select(['*'], valued)} QUALIFY {place} <= {most}"
    return _select(counted, found, keys)


# --- quantiles -----------------------------------------------------------------------------


def _leaves(plan: Bounded, tables: Tables, aggregate: Quantiles, order: Order) -> str:
    """The weight of the rows in each leaf of each group, leaf by leaf."""
    kind, keys, fine = aggregate.value.type, _keys(plan), plan.refinement
    assert not isinstance(kind, Text), "a text has no leaf"
    leaf = f"({typed(aggregate.value)} - ({kind.lower_code})) // {aggregate.coarse}"
    found = _rows(plan, tables, {"leaf": leaf})
    if _is_plain(plan):
        return _select(
            [*keys, "leaf", f"count(*) * {fine}"],
            f"{_select(['*'], found)} WHERE leaf IS NOT NULL",
            [*keys, "leaf"],
        )
    by_unit, limit = ["unit", *keys], plan.tracked.limits.rows
    pairs = _select(
        [*by_unit, "count(*) AS n", "count(leaf) AS held"], "SELECT * FROM found", by_unit
    )
    pairs = _placed(plan, pairs, order, counted=False)
    few = "held" if limit is None else f"least(held, {limit})"
    # a unit within its limits adds its rows as they are, and is not looked up
    bound = f"weight < {fine}" + ("" if limit is None else f" OR held > {limit}")
    joined, where = ("JOIN", "") if plan.tracked.raw.is_open else ("LEFT JOIN", f" WHERE {bound}")
    weighed = _weighed(plan, pairs, Norm.L1, windows=tables.windows)
    shares = f"{_select([*by_unit, f'weight * {few} // nullif(held, 0) AS share'], weighed)}{where}"
    same = " AND ".join(
        ["f.unit = p.unit", *(f"f.{key} IS NOT DISTINCT FROM p.{key}" for key in keys)]
    )
    by = ", ".join([*(f"f.{key}" for key in keys), "leaf"])
    return (
        f"WITH found AS MATERIALIZED ({found})\n"
        f"SELECT {by}, sum(coalesce(share, {fine})) FROM found AS f {joined} ({shares}) AS p ON {same}\n"
        f"WHERE leaf IS NOT NULL GROUP BY {by}"
    )

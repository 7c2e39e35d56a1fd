# SPDX-License-Identifier: Apache-2.0
"""Lowers GROUP BY: the keys, and the grouping sets of ROLLUP, CUBE and GROUPING SETS."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import prod

from sqlglot import exp

from sfumato.errors import UnsupportedSql, unknown
from sfumato.metadata.column import Column, Text
from sfumato.plan.aggregate import Aggregate, Linear
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Summary,
    Union,
    UnitJoin,
    Windowed,
)
from sfumato.plan.scalar import Scalar
from sfumato.plan.scope import provided
from sfumato.plan.value import GroupKey
from sfumato.sql.calls import calls, keys_of_all, placed
from sfumato.sql.key_domain import image, may_be_missing
from sfumato.sql.names import Scope
from sfumato.sql.reject import refuse, require_few, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.typed import Number, Typed, number, value_of
from sfumato.sql.where_ranges import Tests, about, holding

_MOST_SETS = 64
_COUNTS = (Summary.COUNT, Summary.COUNT_VALUES, Summary.COUNT_DISTINCT)
_THE_UNIT = (
    "makes every group one person",
    (
        "Group by a column that many persons share, or leave it out; "
        "per person: a sub-query that groups by {unit}, aggregated outside."
    ),
)
_NOT_LINEAR = (
    (
        "adds up the groups after the noise, which only COUNT, SUM, AVG and VARIANCE "
        "of declared groups allow"
    ),
    "Ask one question for each grouping: GROUP BY a, b; GROUP BY a; and without GROUP BY.",
)


@dataclass(frozen=True, slots=True)
class Group:
    """The GROUP BY of a question: its keys as syntax, SQL values and plan keys, and grouping sets.

    ``sets`` has the positions of the keys of each grouping set; it is empty without ROLLUP, CUBE
    or GROUPING SETS.
    """

    nodes: tuple[exp.Expr, ...]
    values: tuple[Typed, ...]
    keys: tuple[GroupKey, ...]
    sets: tuple[tuple[int, ...], ...]


def grouped(
    select: exp.Select,
    scope: Scope,
    rows: Rows,
    relation: Relation,
) -> Group:
    """Returns the GROUP BY of a SELECT, with its keys as values of the plan and without
    repetitions.

    Raises:
        UnsupportedSql: a key that is the unit, a constant or an aggregate, or that has no group.
        MissingDeclaration: a key with more than 100,000 groups.
    """
    clause = select.args.get("group")
    sets = [()] if clause is None else _share_nodes(_grouping_sets(clause, select, scope))
    nodes: list[exp.Expr] = []
    values: list[Typed] = []
    keys: list[GroupKey] = []
    places: dict[int, int] = {}
    absent = _nullable_columns(relation)
    tests = scope.written(holding(relation))
    wanted = dict.fromkeys(node for chosen in sets for node in chosen)
    require_few(len(wanted), "keys of GROUP BY")
    for node in wanted:
        _require_key(node, scope)
        typed = rows.value(node)
        if isinstance(typed, Number):
            rows.tell(typed, number(0))
        if typed not in values:
            nodes.append(node)
            values.append(typed)
            keys.append(_key(node, typed, absent, tests))
        places[id(node)] = values.index(typed)
    kept = _key_positions(sets, places, len(keys))
    return Group(tuple(nodes), tuple(values), tuple(keys), kept)


def _key_positions(
    sets: Sequence[tuple[exp.Expr, ...]], places: Mapping[int, int], count: int
) -> tuple[tuple[int, ...], ...]:
    """Returns the positions of the keys of each set, each set once; () for one set of all keys."""
    position_sets: dict[tuple[int, ...], None] = {}
    for chosen in sets:
        positions = {places[id(node)] for node in chosen}
        position_sets[tuple(sorted(positions))] = None
    if list(position_sets) == [tuple(range(count))]:
        return ()
    return tuple(position_sets)


def require_linear(group: Group, aggregates: Sequence[Aggregate]) -> None:
    """Refuses grouping sets with aggregates whose noisy groups cannot be added up."""
    if not group.sets:
        return
    is_declared = all(key.codes is not None for key in group.keys)
    if not is_declared or not all(isinstance(aggregate, Linear) for aggregate in aggregates):
        raise refuse(
            "ROLLUP, CUBE or GROUPING SETS",
            _NOT_LINEAR,
        )


def _key(
    node: exp.Expr,
    typed: Typed,
    absent: frozenset[Column],
    tests: Tests,
) -> GroupKey:
    """Returns a key of the plan, with its declared groups."""
    name = node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb")
    value = value_of(typed, name)
    known = about(value.expression, tests)
    codes = None
    if not isinstance(value.type, Text):
        codes = image(value.expression, known)
    missing = may_be_missing(value.expression, absent, known)
    if codes == () and not missing:
        raise UnsupportedSql(f"WHERE leaves no group of {name}.", remedy="Leave a test out.")
    return GroupKey(value, codes, missing)


def _nullable_columns(relation: Relation) -> frozenset[Column]:
    """Returns the columns that may be NULL although their values are declared.

    An outer join or LAG found no row, or the value is computed from such a column.
    """
    match relation:
        case Scan():
            return frozenset()
        case PerUnit(source, keys, computed):
            values = [(column, value.expression) for column, value in keys]
            values += [
                (each.column, each.value.expression)
                for each in computed
                if each.value is not None and each.summary not in _COUNTS
            ]
            return _computed_nullable(source, values)
        case Union(sources, rows, columns):
            if relation.exclusive:
                return frozenset(columns)
            parts = zip(sources, rows, strict=True)
            return frozenset().union(
                *(_computed_nullable(arm, zip(columns, row, strict=True)) for arm, row in parts)
            )
        case UnitJoin(source, other, outer):
            own = frozenset(provided(other)) if outer else _nullable_columns(other)
        case PublicJoin() | KeyJoin() if relation.outer:
            own = frozenset(relation.table.columns)
        case Windowed() if relation.value is not None:
            own = frozenset({relation.column})
        case Filter() | Semi() | Ranked() | Windowed() | PublicJoin() | KeyJoin():
            own = frozenset()
        case _:
            raise unknown(relation)
    return own | _nullable_columns(relation.source)


def _computed_nullable(
    source: Relation, values: Iterable[tuple[Column, Scalar]]
) -> frozenset[Column]:
    """Returns the columns whose expressions over a relation may be NULL."""
    absent = _nullable_columns(source)
    tests = tuple(holding(source))
    return frozenset(
        column
        for column, expression in values
        if may_be_missing(expression, absent, about(expression, tests))
    )


def _require_key(node: exp.Expr, scope: Scope) -> None:
    """Refuses a key that is the unit, an aggregate or a constant."""
    if scope.part(node) is not None and scope.width == 1:
        why, instead = _THE_UNIT
        raise refuse("GROUP BY the unit", (why, instead.replace("{unit}", scope.unit_name())))
    if calls([node]):
        raise UnsupportedSql(
            "An aggregate in GROUP BY.", remedy="Group by columns; HAVING tests aggregates."
        )
    if node.find(exp.Column) is None:
        raise UnsupportedSql("GROUP BY a constant.", remedy="Leave it out, or group by a column.")


def _grouping_sets(
    clause: exp.Group, select: exp.Select, scope: Scope
) -> list[tuple[exp.Expr, ...]]:
    """Returns the keys of each grouping set; one set for a plain GROUP BY."""
    require_only(clause, "expressions", "all")
    if clause.args.get("all"):
        return [tuple(keys_of_all(select))]
    parts = [_key_lists(element, select, scope) for element in clause.expressions]
    size = prod(len(part) for part in parts)
    if size > _MOST_SETS:
        raise UnsupportedSql(
            f"{size:,} grouping sets.", allowed=f"at most {_MOST_SETS}", remedy="Name fewer."
        )
    return [tuple(chain.from_iterable(choice)) for choice in product(*parts)]


def _key_lists(node: exp.Expr, select: exp.Select, scope: Scope) -> list[tuple[exp.Expr, ...]]:
    """Returns the alternative key lists that one element of GROUP BY stands for."""
    if isinstance(node, exp.GroupingSets):
        alternatives = [_key_lists(element, select, scope) for element in node.expressions]
        return list(chain.from_iterable(alternatives))
    if not isinstance(node, exp.Rollup | exp.Cube):
        return [_element_keys(node, select, scope)]
    elements = [_element_keys(element, select, scope) for element in node.expressions]
    sizes = range(len(elements), -1, -1)
    chosen: list[Sequence[tuple[exp.Expr, ...]]] = []
    if isinstance(node, exp.Rollup):
        chosen += [elements[:size] for size in sizes]
    elif len(elements) > 6:
        raise UnsupportedSql(
            "CUBE of more than 6 keys.", remedy="GROUPING SETS with the sets that you need."
        )
    else:
        chosen += chain.from_iterable(combinations(elements, size) for size in sizes)
    return [tuple(chain.from_iterable(choice)) for choice in chosen]


def _element_keys(node: exp.Expr, select: exp.Select, scope: Scope) -> tuple[exp.Expr, ...]:
    """Returns the keys of an element in parentheses, or the one key that it is."""
    if isinstance(node, exp.Tuple):
        return tuple(placed(element, select, scope) for element in node.expressions)
    return (placed(node, select, scope),)


def _share_nodes(sets: list[tuple[exp.Expr, ...]]) -> list[tuple[exp.Expr, ...]]:
    """Returns the sets with the same node wherever the same key is written."""
    first: dict[exp.Expr, exp.Expr] = {}
    for chosen in sets:
        for node in chosen:
            first.setdefault(node, node)
    shared = []
    for chosen in sets:
        nodes = [first[node] for node in chosen]
        shared.append(tuple(nodes))
    return shared

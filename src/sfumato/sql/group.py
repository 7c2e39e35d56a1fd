# SPDX-License-Identifier: Apache-2.0
"""GROUP BY: the keys, and the sets of them that ROLLUP, CUBE and GROUPING SETS keep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Text
from sfumato.plan.aggregate import Aggregate, CountRows, CountValues, Mean, Sum, Variance
from sfumato.plan.relation import PerUnit, PublicJoin, Relation, Scan, Union, UnitJoin
from sfumato.plan.value import GroupKey
from sfumato.sql.calls import calls, placed
from sfumato.sql.key_domain import image, may_be_missing
from sfumato.sql.names import Scope
from sfumato.sql.reject import refuse, require_few, require_only
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import fields
from sfumato.sql.typed import Number, Typed, number, value_of
from sfumato.sql.where_ranges import Tests, about, holding

_LINEAR = (CountRows, CountValues, Sum, Mean, Variance)
_MOST_SETS = 64
_THE_UNIT = (
    "makes every group one person",
    (
        "Group by a column that many persons share, or leave it out; per person: a sub-query that groups by {unit}, "
        "aggregated outside."
    ),
)


@dataclass(frozen=True, slots=True)
class Group:
    """The keys of a question: as written, as lowered, as planned; and the grouping sets."""

    nodes: tuple[exp.Expr, ...]
    values: tuple[Typed, ...]
    keys: tuple[GroupKey, ...]
    sets: tuple[tuple[int, ...], ...]


def grouped(select: exp.Select, scope: Scope, rows: Rows, relation: Relation) -> Group:
    """The keys of GROUP BY."""
    clause = select.args.get("group")
    sets: list[tuple[exp.Expr, ...]] = [()] if clause is None else _sets(clause, select, scope)
    nodes: list[exp.Expr] = []
    values: list[Typed] = []
    keys: list[GroupKey] = []
    places: dict[int, int] = {}
    absent, tests = frozenset(_absent(relation)), scope.written(holding(relation))
    wanted = dict.fromkeys(each for chosen in sets for each in chosen)
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
    kept = tuple(
        dict.fromkeys(
            tuple(sorted({places[id(each)] for each in chosen})) for chosen in _same(sets)
        )
    )
    whole = kept == (tuple(range(len(keys))),)
    return Group(tuple(nodes), tuple(values), tuple(keys), () if whole else kept)


def require_linear(group: Group, aggregates: Sequence[Aggregate]) -> None:
    """Totals of groups are added up after the noise, which only counts and sums allow."""
    if not group.sets:
        return
    why = (
        "adds up the groups after the noise, which only COUNT, SUM, AVG and VARIANCE of declared groups allow",
        "Ask one question for each grouping: GROUP BY a, b; GROUP BY a; and without GROUP BY.",
    )
    if any(key.codes is None for key in group.keys) or not all(
        isinstance(each, _LINEAR) for each in aggregates
    ):
        raise refuse("ROLLUP, CUBE or GROUPING SETS", why)


def _key(node: exp.Expr, typed: Typed, absent: frozenset[Column], tests: Tests) -> GroupKey:
    name = node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb")
    value = value_of(typed, name)
    known = about(value.expression, tests)
    codes = None if isinstance(value.type, Text) else image(value.expression, known)
    missing = may_be_missing(value.expression, absent, known)
    if codes == () and not missing:
        raise UnsupportedSql(f"WHERE leaves no group of {name}.", remedy="Leave a test out.")
    return GroupKey(value, codes, missing)


def _absent(relation: Relation) -> Iterator[Column]:
    """The columns that an outer join leaves NULL."""
    if isinstance(relation, PublicJoin) and relation.outer:
        yield from relation.table.columns
    if isinstance(relation, UnitJoin) and relation.outer:
        yield from (each.column for each in fields(relation.other))
    if not isinstance(relation, Scan | Union | PerUnit):
        yield from _absent(relation.source)


def _require_key(node: exp.Expr, scope: Scope) -> None:
    if scope.part(node) is not None and scope.width == 1:
        raise refuse(
            "GROUP BY the unit", (_THE_UNIT[0], _THE_UNIT[1].replace("{unit}", scope.unit_name()))
        )
    if calls([node]):
        raise UnsupportedSql(
            "An aggregate in GROUP BY.", remedy="Group by columns; HAVING tests aggregates."
        )
    if node.find(exp.Column) is None:
        raise UnsupportedSql("GROUP BY a constant.", remedy="Leave it out, or group by a column.")


def _sets(clause: exp.Group, select: exp.Select, scope: Scope) -> list[tuple[exp.Expr, ...]]:
    """The keys of each grouping set; without ROLLUP and the like there is one."""
    require_only(clause, "expressions", "all")
    if clause.args.get("all"):
        plain = [each.this if isinstance(each, exp.Alias) else each for each in select.expressions]
        return [
            tuple(each for each in plain if not calls([each]) and each.find(exp.Column) is not None)
        ]
    parts = [_part(each, select, scope) for each in clause.expressions]
    size = prod(len(part) for part in parts)
    if size > _MOST_SETS:
        raise UnsupportedSql(
            f"{size:,} grouping sets.", allowed=f"at most {_MOST_SETS}", remedy="Name fewer."
        )
    return [tuple(node for chosen in choice for node in chosen) for choice in product(*parts)]


def _part(node: exp.Expr, select: exp.Select, scope: Scope) -> list[tuple[exp.Expr, ...]]:
    """The alternatives that one element of GROUP BY stands for."""
    if isinstance(node, exp.Rollup | exp.Cube):
        elements = [_tuple(each, select, scope) for each in node.expressions]
        if isinstance(node, exp.Rollup):
            chosen = [elements[:size] for size in range(len(elements), -1, -1)]
        else:
            if len(elements) > 6:
                raise UnsupportedSql(
                    "CUBE of more than 6 keys.", remedy="GROUPING SETS with the sets that you need."
                )
            chosen = [
                list(each)
                for size in range(len(elements), -1, -1)
                for each in combinations(elements, size)
            ]
        return [tuple(key for element in each for key in element) for each in chosen]
    if isinstance(node, exp.GroupingSets):
        return [
            alternative for each in node.expressions for alternative in _part(each, select, scope)
        ]
    return [_tuple(node, select, scope)]


def _tuple(node: exp.Expr, select: exp.Select, scope: Scope) -> tuple[exp.Expr, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(placed(each, select, scope) for each in node.expressions)
    return (placed(node, select, scope),)


def _same(sets: list[tuple[exp.Expr, ...]]) -> list[tuple[exp.Expr, ...]]:
    """Each key by the first node that is written as it is."""
    first: dict[exp.Expr, exp.Expr] = {}
    for chosen in sets:
        for node in chosen:
            first.setdefault(node, node)
    return [tuple(first[node] for node in chosen) for chosen in sets]

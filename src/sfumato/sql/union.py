# SPDX-License-Identifier: Apache-2.0
"""UNION ALL of rows that belong to the same units."""

from collections.abc import Sequence
from dataclasses import replace

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.plan.relation import Union
from sfumato.plan.scalar import Coalesce, Scalar
from sfumato.plan.value import Value
from sfumato.sql.names import Context, Source
from sfumato.sql.row_expressions import unified
from sfumato.sql.tables import From
from sfumato.sql.typed import Person, Typed, Words, code_of, computed, value_of


def union(context: Context, arms: Sequence[From], name: str) -> From:
    """Returns the relation of a UNION ALL of sub-queries; columns are matched by position."""
    _require_alike(arms)
    head = arms[0].sources[0]
    named: dict[str, Typed] = {}
    columns: list[Column] = []
    rows: list[list[Scalar]] = [[] for _ in arms]
    for place, column in enumerate(head.shown):
        if column.lower() in head.parts:
            named[column.lower()] = Person(column, None)
            continue
        value, codes, any_of_them = _merge_column([_column_at(arm, place) for arm in arms], column)
        merged = Column(context.name("union.column"), value.type)
        columns.append(merged)
        for row, code in zip(rows, codes, strict=True):
            row.append(code)
        named[column.lower()] = computed(merged, any_of_them)
    relations = tuple(arm.relation for arm in arms)
    relation = Union(relations, tuple(map(tuple, rows)), tuple(columns))
    source = Source(name, named, head.shown, head.parts, f"The sub-query {name!r}")
    rows_of_arms = arms[0].over(relation)
    return replace(rows_of_arms, sources=(source,), limit=_row_limit(arms), once=False)


def _row_limit(arms: Sequence[From]) -> int | None:
    """Returns the largest number of rows of a unit; None if an arm has no limit."""
    total = 0
    for arm in arms:
        if arm.limit is None:
            return None
        total += arm.limit
    return total


def _require_alike(arms: Sequence[From]) -> None:
    """Refuses arms with different units, or whose columns do not match."""
    units = {arm.unit for arm in arms}
    if None in units or len(units) > 1:
        raise UnsupportedSql(
            "UNION ALL of tables that are not declared to be about the same units.",
            remedy="Declare both with the same unit, sf.Unit(..., name=...), or ask two questions.",
        )
    parts = [_unit_positions(arm.sources[0]) for arm in arms]
    if any(other != parts[0] for other in parts):
        raise UnsupportedSql(
            "UNION ALL whose columns do not match.",
            remedy="Give each SELECT the same columns in the same places, the unit among them.",
        )


def _unit_positions(source: Source) -> list[int | None]:
    """Returns for each column its position among those that identify the unit, or None."""
    return [source.parts.get(column.lower()) for column in source.shown]


def _column_at(arm: From, place: int) -> Typed:
    """Returns the column of an arm at a position."""
    source = arm.sources[0]
    return source.columns[source.shown[place].lower()]


def _merge_column(values: Sequence[Typed], name: str) -> tuple[Value, list[Scalar], Typed]:
    """Merges the columns of the arms at one position.

    Returns a value whose type has the values of every arm, the code of each arm, and a value that
    stands for any of them.
    """
    if all(isinstance(value, Words) for value in values):
        return value_of(values[0], name), [code_of(value) for value in values], values[0]
    wrap, codes = unified(values)
    # the range of COALESCE spans the ranges of its operands
    any_of_them = wrap(Coalesce(tuple(codes)))
    return value_of(any_of_them, name), codes, any_of_them

# SPDX-License-Identifier: Apache-2.0
"""UNION ALL of rows of the same units."""

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
    """The rows of several sub-queries one after the other; columns go by their places."""
    _require_alike(arms)
    head = arms[0].sources[0]
    named: dict[str, Typed] = {}
    columns: list[Column] = []
    rows: list[list[Scalar]] = [[] for _ in arms]
    for place, column in enumerate(head.shown):
        if column.lower() in head.parts:
            named[column.lower()] = Person(column, None)
            continue
        typed, codes, either = _column([_at(each, place) for each in arms], column)
        made = Column(context.name("union.column"), typed.type)
        columns.append(made)
        for row, code in zip(rows, codes, strict=True):
            row.append(code)
        named[column.lower()] = computed(made, either)
    limits = [each.limit for each in arms]
    return replace(
        arms[0].over(
            Union(tuple(each.relation for each in arms), tuple(map(tuple, rows)), tuple(columns))
        ),
        sources=(Source(name, named, head.shown, head.parts, f"The sub-query {name!r}"),),
        limit=None if None in limits else sum(each for each in limits if each is not None),
        once=False,
    )


def _require_alike(arms: Sequence[From]) -> None:
    """Refuses arms of other units, or whose columns do not match."""
    units = {each.unit for each in arms}
    if None in units or len(units) > 1:
        raise UnsupportedSql(
            "UNION ALL of tables that are not declared to be about the same units.",
            remedy="Declare both with the same unit, sf.Unit(..., name=...), or ask two questions.",
        )
    sources = [each.sources[0] for each in arms]
    parts = [[each.parts.get(column.lower()) for column in each.shown] for each in sources]
    if any(each != parts[0] for each in parts):
        raise UnsupportedSql(
            "UNION ALL whose columns do not match.",
            remedy="Give each SELECT the same columns in the same places, the unit among them.",
        )


def _at(arm: From, place: int) -> Typed:
    """The column of an arm at a place."""
    source = arm.sources[0]
    return source.columns[source.shown[place].lower()]


def _column(values: Sequence[Typed], name: str) -> tuple[Value, list[Scalar], Typed]:
    """The type that holds the values of every arm, the code of each, and what any of them is."""
    if all(isinstance(each, Words) for each in values):
        return value_of(values[0], name), [code_of(each) for each in values], values[0]
    wrap, codes = unified(values)
    # COALESCE of the codes has the hull of their ranges
    any_of_them = wrap(Coalesce(tuple(codes)))
    return value_of(any_of_them, name), codes, any_of_them

# SPDX-License-Identifier: Apache-2.0
"""The rows of a relation as DuckDB SQL: codes, and the text of the unit. Proof: relation.proof.md.

Each relation is one SELECT; its columns are named by ``alias``, the unit is ``unit``. The
rows of a public table, and those that are units themselves, have no ``unit``.
"""

from collections.abc import Mapping
from typing import TypeAlias

from sfumato.engines.expression import alias, truth, typed, value
from sfumato.engines.reading import Source, code, named, reading
from sfumato.metadata.column import Column, Text
from sfumato.plan.owner import Owner
from sfumato.plan.relation import (
    Computed,
    Filter,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Summary,
    Union,
    UnitJoin,
    scans,
)
from sfumato.plan.scalar import Scalar
from sfumato.plan.scope import provided
from sfumato.plan.span import is_text
from sfumato.plan.value import Value

Sources: TypeAlias = Mapping[str, Source]


def rows(relation: Relation, sources: Sources) -> str:
    """The SELECT of a relation.

    Guarantees:
        every relation has the rows of the reference
    """
    match relation:
        case Scan():
            return _scan(relation, sources)
        case Filter(source, predicate):
            return f"SELECT * FROM ({rows(source, sources)}) WHERE {truth(predicate)}"
        case PublicJoin():
            return _public_join(relation, sources)
        case UnitJoin(source, other, outer):
            joined = "".join(f", r.{alias(column)}" for column in provided(other))
            return (
                f"SELECT l.*{joined} FROM ({rows(source, sources)}) AS l "
                f"{_join(outer=outer)} ({rows(other, sources)}) AS r ON l.unit = r.unit"
            )
        case Semi(source, units, negated):
            return (
                f"SELECT l.* FROM ({rows(source, sources)}) AS l "
                f"{'ANTI' if negated else 'SEMI'} JOIN ({rows(units, sources)}) AS r ON l.unit = r.unit"
            )
        case PerUnit():
            return _per_unit(relation, sources)
        case Ranked():
            return _ranked(relation, sources)
        case Union(many, values, columns):
            unit = ["unit"] if is_owned(relation) else []
            return " UNION ALL ".join(
                f"(SELECT {_listed([*unit, *map(_named, read, columns)])} FROM ({rows(source, sources)}))"
                for source, read in zip(many, values, strict=True)
            )


def is_owned(relation: Relation) -> bool:
    """Whether rows have a unit other than themselves."""
    return all(scan.owner is not None for scan in scans(relation))


def _named(expression: Scalar, column: Column) -> str:
    return f"{typed(Value(column.name, column.type, expression))} AS {alias(column)}"


def _listed(items: list[str]) -> str:
    return ", ".join(items) or "1"


def _join(*, outer: bool) -> str:
    return "LEFT JOIN" if outer else "JOIN"


# --- tables --------------------------------------------------------------------------------


def _scan(scan: Scan, sources: Sources) -> str:
    """Innermost each value as it is compared (a number of steps, a day, a text), then its code."""
    source = sources[scan.table]
    readings = [
        f"{reading(column.name.removeprefix(scan.prefix), column.type, source)} AS {alias(column)}"
        for column in scan.columns
    ]
    codes = [f"{code(column, alias(column))} AS {alias(column)}" for column in scan.columns]
    if scan.owner is None:
        return f"SELECT {_listed(codes)} FROM (SELECT {_listed(readings)} FROM {source.sql})"
    return f"SELECT {_listed([*codes, 'unit'])} FROM ({_owned(readings, scan.owner, source, sources)}) WHERE unit IS NOT NULL"


def _owned(items: list[str], owner: Owner, source: Source, sources: Sources) -> str:
    """Items of a table with the unit of each row; a row that nobody owns may be missing."""
    if owner.via is None or owner.owner is None:
        return f"SELECT {_listed([*items, f'{named(owner.columns, source)} AS unit'])} FROM {source.sql}"
    key = f"{named(owner.keys, sources[owner.via])} AS key"
    owners = (
        f"SELECT key, min(unit) AS unit FROM ({_owned([key], owner.owner, sources[owner.via], sources)}) "
        "WHERE key IS NOT NULL AND unit IS NOT NULL GROUP BY key"
    )
    own = f"SELECT {_listed([*items, f'{named(owner.columns, source)} AS link'])} FROM {source.sql}"
    return f"SELECT l.* EXCLUDE (link), r.unit FROM ({own}) AS l JOIN ({owners}) AS r ON l.link = r.key"


def _public_join(join: PublicJoin, sources: Sources) -> str:
    """Of each key the first row in the order of the columns, NULLs first."""
    scan, key = join.table, alias(join.right)
    read = Scan(scan.table, scan.prefix, tuple(dict.fromkeys((*scan.columns, join.right))))
    order = ", ".join(f"{alias(column)} NULLS FIRST" for column in scan.columns) or "1"
    left = value(join.left) if isinstance(join.right.type, Text) is is_text(join.left) else "NULL"
    public = (
        f"SELECT * FROM ({rows(read, sources)}) WHERE {key} IS NOT NULL "
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
    )
    joined = "".join(f", r.{alias(column)}" for column in scan.columns)
    return (
        f"SELECT l.* EXCLUDE (key){joined} FROM (SELECT *, {left} AS key FROM ({rows(join.source, sources)})) AS l "
        f"{_join(outer=join.outer)} ({public}) AS r ON l.key = r.{key}"
    )


# --- rows of one unit ----------------------------------------------------------------------


def _per_unit(relation: PerUnit, sources: Sources) -> str:
    keys = [alias(column) for column, _ in relation.keys]
    items = [_named(key.expression, column) for column, key in relation.keys]
    items += [
        f"{typed(each.value)} AS v{index}" for index, each in enumerate(relation.columns) if each.value is not None
    ]
    summaries = [
        f"{_summary(each, f'v{index}')} AS {alias(each.column)}" for index, each in enumerate(relation.columns)
    ]
    cut = [f"{_cut(each.column)} AS {alias(each.column)}" for each in relation.columns]
    inner = f"SELECT {_listed(['unit', *items])} FROM ({rows(relation.source, sources)})"
    grouped = f"SELECT {_listed(['unit', *keys, *summaries])} FROM ({inner}) GROUP BY {_listed(['unit', *keys])}"
    return f"SELECT {_listed(['unit', *keys, *cut])} FROM ({grouped})"


def _summary(computed: Computed, read: str) -> str:
    match computed.summary:
        case Summary.COUNT:
            return "count(*)"
        case Summary.COUNT_VALUES:
            return f"count({read})"
        case Summary.COUNT_DISTINCT:
            return f"count(DISTINCT {read})"
        case _:
            return f"{computed.summary.value}({read})"


def _cut(column: Column) -> str:
    """Within the range of the column; NULL stays."""
    assert not isinstance(column.type, Text), "a plan computes no text"
    name, low, high = alias(column), column.type.lower_code, column.type.upper_code
    return f"CASE WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high} ELSE TRY_CAST({name} AS BIGINT) END"


def _ranked(relation: Ranked, sources: Sources) -> str:
    order = [
        *(f"{value(each.expression)} {'DESC' if each.descending else 'ASC'} NULLS LAST" for each in relation.order),
        *(f"{value(each)} ASC NULLS LAST" for each in relation.ties),
    ]
    assert not isinstance(relation.column.type, Text), "a rank is a number"
    number = f"row_number() OVER (PARTITION BY unit{' ORDER BY ' if order else ''}{', '.join(order)})"
    cut = f"least({number}, {relation.column.type.upper_code})"
    return f"SELECT *, {cut} AS {alias(relation.column)} FROM ({rows(relation.source, sources)})"

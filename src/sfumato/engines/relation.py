# SPDX-License-Identifier: Apache-2.0
"""The rows of a relation as DuckDB SQL: codes, and the unit. Proof: relation.proof.md.

Each relation is one SELECT; its columns are named by ``alias``, the unit is ``unit``. The
rows of a public table, and those that are units themselves, have no ``unit``.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.engines.expression import alias, truth, typed, value
from sfumato.engines.value_sql import Source, code, listed, named, quote, reading
from sfumato.errors import unknown
from sfumato.metadata.column import Boolean, Category, Column, Text
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
from sfumato.plan.scalar import Field, Member, Scalar
from sfumato.plan.scope import nodes, provided
from sfumato.plan.value import Value
from sfumato.plan.value_range import is_text


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a question.

    ``numbered``: units are whole numbers (BIGINT), else texts. ``kept``: how many rows of a
    unit are read of a prepared layout, of tables that are joined to it, or asked for its unit, one; with ``first`` only those
    that are the first of their unit to have their value of that column. ``tests`` are asked of stored values, by the name of
    the column that they read; ``read`` are the names of the columns that anybody reads, None: all.
    ``windows``: what a unit has in all is shown by windows; else it is added up and joined, which
    is cheaper where what is joined is not computed twice.
    """

    sources: Mapping[str, Source]
    numbered: bool
    kept: int = 0
    first: Column | None = None
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    read: frozenset[str] | None = None
    windows: bool = False

    @classmethod
    def of(cls, relation: Relation, sources: Mapping[str, Source]) -> "Tables":
        """Units are compared as numbers where every table of a relation holds them as such."""
        private = [scan for scan in scans(relation) if not sources[scan.table].coded]
        owners = [(scan.table, scan.owner) for scan in private if scan.owner is not None]
        return cls(sources, all(_is_numbered(table, owner, sources) for table, owner in owners))

    @property
    def joined(self) -> "Tables":
        """The tables as a join to one row of each unit reads them, or one that only asks whether there is one."""
        return replace(self, kept=1, first=None) if self.kept else self

    def shown(self, columns: Sequence[Column]) -> list[Column]:
        """Those columns that anybody reads."""
        return [column for column in columns if self.read is None or column.name in self.read]


def _is_numbered(table: str, owner: Owner, sources: Mapping[str, Source]) -> bool:
    if owner.via is not None and owner.owner is not None:
        return _is_numbered(owner.via, owner.owner, sources)
    return len(owner.columns) == 1 and sources[table].is_short(owner.columns[0])


def stored_columns(relation: Relation) -> dict[str, set[str]]:
    """The columns that a relation reads of each table, with those that lead to its units."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in nodes(relation):
        if isinstance(each, PublicJoin):
            columns = (*each.table.columns, each.right)
            found[each.table.table] |= {
                column.name.removeprefix(each.table.prefix) for column in columns
            }
        if isinstance(each, Scan):
            found[each.table] |= {column.name.removeprefix(each.prefix) for column in each.columns}
            table, owner = each.table, each.owner
            while owner is not None:
                found[table] |= set(owner.columns)
                if owner.via is None:
                    break
                found[owner.via] |= set(owner.keys)
                table, owner = owner.via, owner.owner
    return dict(found)


def rows(relation: Relation, tables: Tables) -> str:
    """The SELECT of a relation.

    Guarantees:
        every relation has the rows of the reference
    """
    match relation:
        case Scan():
            return _scan(relation, tables)
        case Filter(Ranked() as ranked, Member(Field(column), (1,))) if column == ranked.column:
            return _first(ranked, tables)
        case Filter(source, predicate):
            return f"SELECT * FROM ({rows(source, tables)}) WHERE {truth(predicate)}"
        case PublicJoin():
            return _public_join(relation, tables)
        case UnitJoin(source, other, outer):
            joined = "".join(f", r.{alias(column)}" for column in tables.shown(provided(other)))
            return (
                f"SELECT l.*{joined} FROM ({rows(source, tables)}) AS l "
                f"{_join(outer=outer)} ({rows(other, tables.joined)}) AS r ON l.unit = r.unit"
            )
        case Semi(source, units, negated):
            return (
                f"SELECT l.* FROM ({rows(source, tables)}) AS l "
                f"{'ANTI' if negated else 'SEMI'} JOIN ({rows(units, tables.joined)}) AS r ON l.unit = r.unit"
            )
        case PerUnit():
            return _per_unit(relation, tables)
        case Ranked():
            return _ranked(relation, tables)
        case Union(many, values, columns):
            unit = ["unit"] if is_owned(relation) else []
            return " UNION ALL ".join(
                f"(SELECT {_items([*unit, *map(_named, read, columns)])} FROM ({rows(source, tables)}))"
                for source, read in zip(many, values, strict=True)
            )
        case _:
            raise unknown(relation)


def is_owned(relation: Relation) -> bool:
    """Whether rows have a unit other than themselves."""
    return all(scan.owner is not None for scan in scans(relation))


def _named(expression: Scalar, column: Column) -> str:
    return f"{typed(Value(column.name, column.type, expression))} AS {alias(column)}"


def _items(items: list[str]) -> str:
    return ", ".join(items) or "1"


def _join(*, outer: bool) -> str:
    return "LEFT JOIN" if outer else "JOIN"


# --- tables --------------------------------------------------------------------------------


def _scan(scan: Scan, tables: Tables) -> str:
    """Innermost each value as it is compared (a number of steps, a day, a text), then its code."""
    source = tables.sources[scan.table]
    if source.coded:
        codes = [
            f"CAST({in_layout(scan, column)} AS {_held(column)}) AS {alias(column)}"
            for column in scan.columns
        ]
        first = "" if tables.first is None else f" AND {first_in_layout(scan, tables.first)}"
        return f"SELECT {_items([*codes, 'unit'])} FROM {source.sql} WHERE place <= {tables.kept}{first}"
    readings, codes, joins = [], [], []
    for index, column in enumerate(tables.shown(scan.columns)):
        name, kind, shown = column.name.removeprefix(scan.prefix), column.type, alias(column)
        readings.append(f"{reading(name, kind, source)} AS {shown}")
        if isinstance(kind, Category | Boolean):
            codes.append(f"d{index}.code AS {shown}")
            joins.append(f" LEFT JOIN {listed(kind)} AS d{index} ON s.{shown} = d{index}.text")
        else:
            codes.append(f"{code(kind, f's.{shown}', short=source.is_short(name))} AS {shown}")
    tests = [test for column in scan.columns for test in tables.tests.get(column.name, ())]
    stored = f"{source.sql} WHERE {' AND '.join(tests)}" if tests else source.sql
    if scan.owner is None:
        return f"SELECT {_items(codes)} FROM (SELECT {_items(readings)} FROM {stored}) AS s{''.join(joins)}"
    owned = _owned(readings, scan.owner, replace(source, sql=stored), tables)
    return f"SELECT {_items([*codes, 's.unit'])} FROM ({owned}) AS s{''.join(joins)} WHERE s.unit IS NOT NULL"


def in_layout(scan: Scan, column: Column) -> str:
    """The column of a prepared layout that holds the codes of a scanned one."""
    return quote(f"c_{column.name.removeprefix(scan.prefix)}")


def first_in_layout(scan: Scan, column: Column) -> str:
    """Whether a row of a prepared layout is the first of its unit to have its value of a column."""
    return quote(f"f_{column.name.removeprefix(scan.prefix)}")


def _held(column: Column) -> str:
    return "VARCHAR" if isinstance(column.type, Text) else "BIGINT"


def _owned(items: list[str], owner: Owner, source: Source, tables: Tables) -> str:
    """Items of a table with the unit of each row; a row that nobody owns may be missing."""
    if owner.via is None or owner.owner is None:
        unit = (
            f"CAST({quote(owner.columns[0])} AS BIGINT)"
            if tables.numbered
            else named(owner.columns, source)
        )
        return f"SELECT {_items([*items, f'{unit} AS unit'])} FROM {source.sql}"
    above = tables.sources[owner.via]
    key = f"{named(owner.keys, above)} AS key"
    # of several the smallest as a text
    smallest = "min_by(unit, CAST(unit AS VARCHAR))" if tables.numbered else "min(unit)"
    owners = (
        f"SELECT key, {smallest} AS unit FROM ({_owned([key], owner.owner, above, tables)}) "
        "WHERE key IS NOT NULL AND unit IS NOT NULL GROUP BY key"
    )
    own = f"SELECT {_items([*items, f'{named(owner.columns, source)} AS link'])} FROM {source.sql}"
    return f"SELECT l.* EXCLUDE (link), r.unit FROM ({own}) AS l JOIN ({owners}) AS r ON l.link = r.key"


def _public_join(join: PublicJoin, tables: Tables) -> str:
    """Of each key the first row in the order of the columns, NULLs first."""
    scan, key = join.table, alias(join.right)
    read = Scan(scan.table, scan.prefix, tuple(dict.fromkeys((*scan.columns, join.right))))
    order = ", ".join(f"{alias(column)} NULLS FIRST" for column in scan.columns) or "1"
    left = value(join.left) if isinstance(join.right.type, Text) is is_text(join.left) else "NULL"
    public = (
        f"SELECT * FROM ({rows(read, tables)}) WHERE {key} IS NOT NULL "
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
    )
    joined = "".join(f", r.{alias(column)}" for column in scan.columns)
    return (
        f"SELECT l.* EXCLUDE (key){joined} FROM (SELECT *, {left} AS key FROM ({rows(join.source, tables)})) AS l "
        f"{_join(outer=join.outer)} ({public}) AS r ON l.key = r.{key}"
    )


# --- rows of one unit ----------------------------------------------------------------------


def _per_unit(relation: PerUnit, tables: Tables) -> str:
    keys = [alias(column) for column, _ in relation.keys]
    items = [_named(key.expression, column) for column, key in relation.keys]
    items += [
        f"{typed(each.value)} AS v{index}"
        for index, each in enumerate(relation.columns)
        if each.value is not None
    ]
    summaries = [
        f"{_summary(each, f'v{index}')} AS {alias(each.column)}"
        for index, each in enumerate(relation.columns)
    ]
    cut = [f"{_cut(each.column)} AS {alias(each.column)}" for each in relation.columns]
    inner = f"SELECT {_items(['unit', *items])} FROM ({rows(relation.source, tables)})"
    grouped = f"SELECT {_items(['unit', *keys, *summaries])} FROM ({inner}) GROUP BY {_items(['unit', *keys])}"
    return f"SELECT {_items(['unit', *keys, *cut])} FROM ({grouped})"


def _summary(computed: Computed, read: str) -> str:
    match computed.summary:
        case Summary.COUNT:
            return "count(*)"
        case Summary.COUNT_VALUES:
            return f"count({read})"
        case Summary.COUNT_DISTINCT:
            return f"count(DISTINCT {read})"
        case Summary.MEAN:
            return _mean(computed, read)
        case Summary.SUM | Summary.MINIMUM | Summary.MAXIMUM:
            return f"{computed.summary.value}({read})"
        case _:
            raise unknown(computed.summary)


def _mean(computed: Computed, read: str) -> str:
    """floor(f sum / count + 1/2) for f codes of the mean in one of the value, from what is not negative."""
    assert computed.value is not None and not isinstance(computed.value.type, Text), (
        "a mean is one of numbers"
    )
    times, under = computed.finer.as_integer_ratio()
    least = times * computed.value.type.lower_code // under
    count = f"count({read})::HUGEINT"
    above = f"{2 * times} * sum({read})::HUGEINT + ({under - 2 * under * least}) * {count}"
    return f"({above}) // nullif({2 * under} * {count}, 0) + ({least})"


def _cut(column: Column) -> str:
    """Within the range of the column; NULL stays."""
    assert not isinstance(column.type, Text), "a plan computes no text"
    name, low, high = alias(column), column.type.lower_code, column.type.upper_code
    return f"CASE WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high} ELSE TRY_CAST({name} AS BIGINT) END"


def _first(relation: Ranked, tables: Tables) -> str:
    """The first row of each unit; where it holds one column and is the least in it, without a window."""
    number, tie = alias(relation.column), relation.ties[0] if len(relation.ties) == 1 else None
    if tables.kept == 1:
        return f"SELECT *, 1::BIGINT AS {number} FROM ({rows(relation.source, tables)})"
    if (
        not isinstance(tie, Field)
        or relation.order
        or tables.shown(provided(relation.source)) != [tie.column]
    ):
        return f"SELECT * FROM ({_ranked(relation, tables)}) WHERE {number} = 1"
    least = alias(tie.column)
    return f"SELECT unit, min({least}) AS {least}, 1::BIGINT AS {number} FROM ({rows(relation.source, tables)}) GROUP BY unit"


def _ranked(relation: Ranked, tables: Tables) -> str:
    order = [
        *(
            f"{value(each.expression)} {'DESC' if each.descending else 'ASC'} NULLS LAST"
            for each in relation.order
        ),
        *(f"{value(each)} ASC NULLS LAST" for each in relation.ties),
    ]
    assert not isinstance(relation.column.type, Text), "a rank is a number"
    number = (
        f"row_number() OVER (PARTITION BY unit{' ORDER BY ' if order else ''}{', '.join(order)})"
    )
    cut = f"least({number}, {relation.column.type.upper_code})"
    return f"SELECT *, {cut} AS {alias(relation.column)} FROM ({rows(relation.source, tables)})"

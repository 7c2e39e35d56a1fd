# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for the rows of a relation: codes, and the unit. Proof: relation.proof.md.

Each relation is one SELECT. Its columns are named by ``alias``; the unit is the column ``unit``.
Rows of a public table, and rows that are units themselves, have no column ``unit``.
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
    """The tables of a question, and how its statement reads them.

    ``numbered``: units are integers (BIGINT), else strings. ``kept``: the number of rows of each
    unit that are read from a prepared layout; of a table that is joined by unit, or tested for a
    row of the unit, one is read. With ``first``, only rows marked as the first of their unit with
    their value of that column are read. ``tests`` are conditions on stored values, by the name of
    the column that they read; ``read`` are the names of the columns that the question reads, None
    for all. ``windows``: totals of a unit are computed by window functions, else by GROUP BY and a
    join. The join is cheaper where its input is not computed twice.
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
        """Builds the tables of a relation; units are integers if every table stores them so."""
        private = [scan for scan in scans(relation) if not sources[scan.table].coded]
        owners = [(scan.table, scan.owner) for scan in private if scan.owner is not None]
        return cls(sources, all(_is_numbered(table, owner, sources) for table, owner in owners))

    @property
    def joined(self) -> "Tables":
        """The tables as they are read for a join to one row of each unit, or for a semi-join."""
        if not self.kept:
            return self
        return replace(self, kept=1, first=None)

    def shown(self, columns: Sequence[Column]) -> list[Column]:
        """Returns those columns that the question reads."""
        return [column for column in columns if self.read is None or column.name in self.read]


def _is_numbered(
    table: str,
    owner: Owner,
    sources: Mapping[str, Source],
) -> bool:
    if owner.via is not None and owner.owner is not None:
        return _is_numbered(owner.via, owner.owner, sources)
    return len(owner.columns) == 1 and sources[table].is_short(owner.columns[0])


def stored_columns(relation: Relation) -> dict[str, set[str]]:
    """Returns the stored columns that a relation reads, by table.

    Columns that are needed to look up units are included.
    """
    stored: dict[str, set[str]] = defaultdict(set)
    for node in nodes(relation):
        if isinstance(node, PublicJoin):
            columns = (*node.table.columns, node.right)
            stored[node.table.table] |= _stored_names(node.table, columns)
        if isinstance(node, Scan):
            stored[node.table] |= _stored_names(node, node.columns)
            _add_owner_columns(stored, node)
    return dict(stored)


def _stored_names(scan: Scan, columns: Sequence[Column]) -> set[str]:
    return {column.name.removeprefix(scan.prefix) for column in columns}


def _add_owner_columns(stored: dict[str, set[str]], scan: Scan) -> None:
    """Adds the columns that lead from the rows of a scan to their units."""
    table = scan.table
    owner = scan.owner
    while owner is not None:
        stored[table] |= set(owner.columns)
        if owner.via is None:
            return
        stored[owner.via] |= set(owner.keys)
        table = owner.via
        owner = owner.owner


def rows(relation: Relation, tables: Tables) -> str:
    """Returns the SELECT of a relation.

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
            shown = tables.shown(provided(other))
            return (
                f"SELECT l.*{_of_right(shown)} FROM ({rows(source, tables)}) AS l "
                f"{_join(outer=outer)} ({rows(other, tables.joined)}) AS r ON l.unit = r.unit"
            )
        case Semi(source, units, negated):
            join = "ANTI JOIN" if negated else "SEMI JOIN"
            return (
                f"SELECT l.* FROM ({rows(source, tables)}) AS l "
                f"{join} ({rows(units, tables.joined)}) AS r ON l.unit = r.unit"
            )
        case PerUnit():
            return _per_unit(relation, tables)
        case Ranked():
            return _ranked(relation, tables)
        case Union():
            return _union(relation, tables)
        case _:
            raise unknown(relation)


def _is_owned(relation: Relation) -> bool:
    """Whether rows have a unit other than themselves."""
    return all(scan.owner is not None for scan in scans(relation))


def _union(union: Union, tables: Tables) -> str:
    unit = ["unit"] if _is_owned(union) else []
    selects = []
    for source, values in zip(union.sources, union.values, strict=True):
        items = _items([*unit, *map(_named, values, union.columns)])
        selects.append(f"(SELECT {items} FROM ({rows(source, tables)}))")
    return " UNION ALL ".join(selects)


def _named(expression: Scalar, column: Column) -> str:
    """Returns a SELECT item: an expression as a column."""
    return f"{typed(Value(column.name, column.type, expression))} AS {alias(column)}"


def _of_right(columns: Sequence[Column]) -> str:
    """Returns more SELECT items: columns of the right side of a join."""
    return "".join(f", r.{alias(column)}" for column in columns)


def _items(items: list[str]) -> str:
    return ", ".join(items) or "1"


def _join(*, outer: bool) -> str:
    if outer:
        return "LEFT JOIN"
    return "JOIN"


# --- tables --------------------------------------------------------------------------------


def _scan(scan: Scan, tables: Tables) -> str:
    """Selects the codes of a table.

    The inner SELECT reads each value in the form in which it is compared (a number of steps, a
    day, a string); the outer one maps these to codes.
    """
    source = tables.sources[scan.table]
    if source.coded:
        return _layout_scan(scan, tables)
    readings = []
    codes = []
    joins = []
    for index, column in enumerate(tables.shown(scan.columns)):
        name = column.name.removeprefix(scan.prefix)
        kind = column.type
        shown = alias(column)
        readings.append(f"{reading(name, kind, source)} AS {shown}")
        if isinstance(kind, Category | Boolean):
            codes.append(f"d{index}.code AS {shown}")
            joins.append(f" LEFT JOIN {listed(kind)} AS d{index} ON s.{shown} = d{index}.text")
        else:
            codes.append(f"{code(kind, f's.{shown}', short=source.is_short(name))} AS {shown}")
    tests: list[str] = []
    for column in scan.columns:
        tests += tables.tests.get(column.name, ())
    stored = f"{source.sql} WHERE {' AND '.join(tests)}" if tests else source.sql
    joined = "".join(joins)
    if scan.owner is None:
        inner = f"SELECT {_items(readings)} FROM {stored}"
        return f"SELECT {_items(codes)} FROM ({inner}) AS s{joined}"
    inner = _owned(readings, scan.owner, replace(source, sql=stored), tables)
    items = _items([*codes, "s.unit"])
    return f"SELECT {items} FROM ({inner}) AS s{joined} WHERE s.unit IS NOT NULL"


def _layout_scan(scan: Scan, tables: Tables) -> str:
    """Selects the codes of a prepared layout."""
    items = []
    for column in scan.columns:
        stored = "VARCHAR" if isinstance(column.type, Text) else "BIGINT"
        items.append(f"CAST({in_layout(scan, column)} AS {stored}) AS {alias(column)}")
    test = f"place <= {tables.kept}"
    if tables.first is not None:
        test += f" AND {first_in_layout(scan, tables.first)}"
    return f"SELECT {_items([*items, 'unit'])} FROM {tables.sources[scan.table].sql} WHERE {test}"


def in_layout(scan: Scan, column: Column) -> str:
    """Returns the column of a prepared layout that stores the codes of a scanned column."""
    return quote(f"c_{column.name.removeprefix(scan.prefix)}")


def first_in_layout(scan: Scan, column: Column) -> str:
    """Returns the Boolean column of a layout that marks the first rows of a column's values.

    It is TRUE of a row that is the first of its unit with its value of ``column``.
    """
    return quote(f"f_{column.name.removeprefix(scan.prefix)}")


def _owned(
    items: list[str],
    owner: Owner,
    source: Source,
    tables: Tables,
) -> str:
    """Selects items of a table and the unit of each row; a row without an owner may be dropped."""
    if owner.via is None or owner.owner is None:
        unit = named(owner.columns, source)
        if tables.numbered:
            unit = f"CAST({quote(owner.columns[0])} AS BIGINT)"
        return f"SELECT {_items([*items, f'{unit} AS unit'])} FROM {source.sql}"
    above = tables.sources[owner.via]
    key = f"{named(owner.keys, above)} AS key"
    # if a key leads to several units, the smallest one, compared as strings
    smallest = "min_by(unit, CAST(unit AS VARCHAR))" if tables.numbered else "min(unit)"
    owners = (
        f"SELECT key, {smallest} AS unit FROM ({_owned([key], owner.owner, above, tables)}) "
        "WHERE key IS NOT NULL AND unit IS NOT NULL GROUP BY key"
    )
    own = f"SELECT {_items([*items, f'{named(owner.columns, source)} AS link'])} FROM {source.sql}"
    return (
        f"SELECT l.* EXCLUDE (link), r.unit FROM ({own}) AS l "
        f"JOIN ({owners}) AS r ON l.link = r.key"
    )


def _public_join(join: PublicJoin, tables: Tables) -> str:
    """Joins the first public row of each key in the order of its columns, NULL first."""
    scan = join.table
    key = alias(join.right)
    read = Scan(
        scan.table,
        scan.prefix,
        tuple(dict.fromkeys((*scan.columns, join.right))),
    )
    order = ", ".join(f"{alias(column)} NULLS FIRST" for column in scan.columns) or "1"
    is_comparable = isinstance(join.right.type, Text) is is_text(join.left)
    left = value(join.left) if is_comparable else "NULL"
    public = (
        f"SELECT * FROM ({rows(read, tables)}) WHERE {key} IS NOT NULL "
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
    )
    source = f"SELECT *, {left} AS key FROM ({rows(join.source, tables)})"
    return (
        f"SELECT l.* EXCLUDE (key){_of_right(scan.columns)} FROM ({source}) AS l "
        f"{_join(outer=join.outer)} ({public}) AS r ON l.key = r.{key}"
    )


# --- rows of one unit ----------------------------------------------------------------------


def _per_unit(relation: PerUnit, tables: Tables) -> str:
    keys = [alias(column) for column, _ in relation.keys]
    items = ["unit", *(_named(key.expression, column) for column, key in relation.keys)]
    summaries = ["unit", *keys]
    cut = ["unit", *keys]
    for index, computed in enumerate(relation.columns):
        shown = alias(computed.column)
        read = f"v{index}"
        if computed.value is not None:
            items.append(f"{typed(computed.value)} AS {read}")
        summaries.append(f"{_summary(computed, read)} AS {shown}")
        cut.append(f"{_cut(computed.column)} AS {shown}")
    inner = f"SELECT {_items(items)} FROM ({rows(relation.source, tables)})"
    by = _items(["unit", *keys])
    return f"SELECT {_items(cut)} FROM (SELECT {_items(summaries)} FROM ({inner}) GROUP BY {by})"


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
    """Returns floor(f sum / count + 1/2), for f codes of the mean in one code of the value.

    The numerator is computed from values shifted to be non-negative, where // rounds down.
    """
    assert computed.value is not None and not isinstance(computed.value.type, Text), (
        "a mean is one of numbers"
    )
    times, under = computed.finer.as_integer_ratio()
    least = times * computed.value.type.lower_code // under
    count = f"count({read})::HUGEINT"
    above = f"{2 * times} * sum({read})::HUGEINT + ({under - 2 * under * least}) * {count}"
    return f"({above}) // nullif({2 * under} * {count}, 0) + ({least})"


def _cut(column: Column) -> str:
    """Clips a column to its range; NULL stays NULL."""
    assert not isinstance(column.type, Text), "a plan computes no text"
    name = alias(column)
    low = column.type.lower_code
    high = column.type.upper_code
    ends = f"WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high}"
    return f"CASE {ends} ELSE TRY_CAST({name} AS BIGINT) END"


def _first(relation: Ranked, tables: Tables) -> str:
    """Selects the first row of each unit.

    Needs no window function if the rows have a single column and the first row has its minimum.
    """
    number = alias(relation.column)
    tie = relation.ties[0] if len(relation.ties) == 1 else None
    source = f"({rows(relation.source, tables)})"
    if tables.kept == 1:
        return f"SELECT *, 1::BIGINT AS {number} FROM {source}"
    shown = tables.shown(provided(relation.source))
    if not isinstance(tie, Field) or relation.order or shown != [tie.column]:
        return f"SELECT * FROM ({_ranked(relation, tables)}) WHERE {number} = 1"
    least = alias(tie.column)
    items = f"unit, min({least}) AS {least}, 1::BIGINT AS {number}"
    return f"SELECT {items} FROM {source} GROUP BY unit"


def _ranked(relation: Ranked, tables: Tables) -> str:
    order = []
    for key in relation.order:
        direction = "DESC" if key.descending else "ASC"
        order.append(f"{value(key.expression)} {direction} NULLS LAST")
    order += [f"{value(tie)} ASC NULLS LAST" for tie in relation.ties]
    assert not isinstance(relation.column.type, Text), "a rank is a number"
    by = f" ORDER BY {', '.join(order)}" if order else ""
    number = f"row_number() OVER (PARTITION BY unit{by})"
    cut = f"least({number}, {relation.column.type.upper_code})"
    return f"SELECT *, {cut} AS {alias(relation.column)} FROM ({rows(relation.source, tables)})"

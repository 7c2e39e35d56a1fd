# SPDX-License-Identifier: Apache-2.0
"""SQL trees for the rows of a relation: codes, and the unit. Proof: relation.proof.md.

Each relation is one SELECT. Its columns are named by ``alias``; the unit is the column ``unit``.
Rows of a public table, and rows that are units themselves, have no column ``unit``.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.engines import sql_tree as sql
from sfumato.engines.expression import alias, truth, typed, value
from sfumato.engines.value_sql import Source, code, listed, named, reading, stored
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

UNIT = sql.Column("unit")
_ALL = (sql.Star(),)


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
    tests: Mapping[str, tuple[sql.Expression, ...]] = field(default_factory=dict)
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


def rows(relation: Relation, tables: Tables) -> sql.Query:
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
            return sql.Select(_ALL, sql.Item(rows(source, tables)), where=truth(predicate))
        case PublicJoin():
            return _public_join(relation, tables)
        case UnitJoin(source, other, outer):
            shown = tables.shown(provided(other))
            joined = same_unit(_join(outer=outer), rows(other, tables.joined))
            left = sql.Item(rows(source, tables), "l")
            return sql.Select((sql.Star("l"), *_of_right(shown)), left, (joined,))
        case Semi(source, units, negated):
            word = "ANTI JOIN" if negated else "SEMI JOIN"
            joined = same_unit(word, rows(units, tables.joined))
            return sql.Select((sql.Star("l"),), sql.Item(rows(source, tables), "l"), (joined,))
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


def _union(union: Union, tables: Tables) -> sql.Query:
    unit = [UNIT] if _is_owned(union) else []
    queries = []
    for source, values in zip(union.sources, union.values, strict=True):
        items = _items([*unit, *map(_named, values, union.columns)])
        queries.append(sql.Select(items, sql.Item(rows(source, tables))))
    return sql.UnionAll(tuple(queries))


def _named(expression: Scalar, column: Column) -> sql.As:
    """Returns a SELECT item: an expression as a column."""
    return sql.As(typed(Value(column.name, column.type, expression)), alias(column))


def _of_right(columns: Sequence[Column]) -> list[sql.Expression]:
    """Returns more SELECT items: columns of the right side of a join."""
    return [replace(alias(column), table="r") for column in columns]


def _items(items: Sequence[sql.Expression]) -> tuple[sql.Expression, ...]:
    return tuple(items) or (sql.Constant(1),)


def _join(*, outer: bool) -> str:
    if outer:
        return "LEFT JOIN"
    return "JOIN"


def same_unit(word: str, other: sql.Query) -> sql.Join:
    """Joins the rows ``r`` of the same unit."""
    left, right = sql.columns(["unit"], "l") + sql.columns(["unit"], "r")
    return sql.Join(word, sql.Item(other, "r"), sql.Binary("=", left, right))


# --- tables --------------------------------------------------------------------------------


def _scan(scan: Scan, tables: Tables) -> sql.Query:
    """Selects the codes of a table.

    The inner SELECT reads each value in the form in which it is compared (a number of steps, a
    day, a string); the outer one maps these to codes.
    """
    source = tables.sources[scan.table]
    if source.coded:
        return _layout_scan(scan, tables)
    readings: list[sql.Expression] = []
    codes: list[sql.Expression] = []
    joins = []
    for index, column in enumerate(tables.shown(scan.columns)):
        name = column.name.removeprefix(scan.prefix)
        shown = alias(column)
        readings.append(sql.As(reading(name, column.type, source), shown))
        read = replace(shown, table="s")
        if isinstance(column.type, Category | Boolean):
            codes.append(sql.As(sql.Column("code", f"d{index}"), shown))
            joins.append(_codes_of(column.type, f"d{index}", read))
        else:
            short = source.is_short(name)
            codes.append(sql.As(code(column.type, read, short=short), shown))
    test = _stored_tests(scan, tables)
    if scan.owner is None:
        inner: sql.Query = sql.Select(_items(readings), sql.Item(sql.Table(source.sql)), where=test)
        return sql.Select(_items(codes), sql.Item(inner, "s"), tuple(joins))
    inner = _owned(readings, scan.owner, source, tables, test)
    unit = sql.Column("unit", "s")
    is_owned = sql.IsNull(unit, negated=True)
    return sql.Select((*codes, unit), sql.Item(inner, "s"), tuple(joins), is_owned)


def _codes_of(kind: Category | Boolean, name: str, read: sql.Expression) -> sql.Join:
    """Joins the code of a string."""
    same = sql.Binary("=", read, sql.Column("text", name))
    return sql.Join("LEFT JOIN", sql.Item(listed(kind), name), same)


def _stored_tests(scan: Scan, tables: Tables) -> sql.Expression | None:
    """Returns the conditions on the stored values of a table."""
    tests: list[sql.Expression] = []
    for column in scan.columns:
        tests += tables.tests.get(column.name, ())
    return sql.conjunction(tests)


def _layout_scan(scan: Scan, tables: Tables) -> sql.Query:
    """Selects the codes of a prepared layout."""
    items: list[sql.Expression] = []
    for column in scan.columns:
        is_text = isinstance(column.type, Text)
        kind = sql.SqlType.VARCHAR if is_text else sql.SqlType.BIGINT
        items.append(sql.As(sql.Cast(in_layout(scan, column), kind), alias(column)))
    tests: list[sql.Expression] = [
        sql.Binary("<=", sql.Column("place"), sql.Constant(tables.kept)),
    ]
    if tables.first is not None:
        tests.append(first_in_layout(scan, tables.first))
    source = sql.Item(sql.Table(tables.sources[scan.table].sql))
    return sql.Select((*items, UNIT), source, where=sql.conjunction(tests))


def in_layout(scan: Scan, column: Column) -> sql.Column:
    """Returns the column of a prepared layout that stores the codes of a scanned column."""
    return stored(f"c_{column.name.removeprefix(scan.prefix)}")


def first_in_layout(scan: Scan, column: Column) -> sql.Column:
    """Returns the Boolean column of a layout that marks the first rows of a column's values.

    It is TRUE of a row that is the first of its unit with its value of ``column``.
    """
    return stored(f"f_{column.name.removeprefix(scan.prefix)}")


def _owned(
    items: Sequence[sql.Expression],
    owner: Owner,
    source: Source,
    tables: Tables,
    test: sql.Expression | None = None,
) -> sql.Query:
    """Selects items of a table and the unit of each row; a row without an owner may be dropped.

    ``test`` is a condition on stored values.
    """
    rows_of = sql.Item(sql.Table(source.sql))
    if owner.via is None or owner.owner is None:
        unit = named(owner.columns, source)
        if tables.numbered:
            unit = sql.Cast(stored(owner.columns[0]), sql.SqlType.BIGINT)
        return sql.Select((*items, sql.As(unit, UNIT)), rows_of, where=test)
    link = sql.As(named(owner.columns, source), sql.Column("link"))
    own = sql.Select((*items, link), rows_of, where=test)
    owners = _owners(owner.keys, owner.owner, tables.sources[owner.via], tables)
    same = sql.Binary("=", sql.Column("link", "l"), sql.Column("key", "r"))
    joined = sql.Join("JOIN", sql.Item(owners, "r"), same)
    shown = sql.Star("l", ("link",)), sql.Column("unit", "r")
    return sql.Select(shown, sql.Item(own, "l"), (joined,))


def _owners(keys: Sequence[str], owner: Owner, source: Source, tables: Tables) -> sql.Query:
    """Selects each key of a table with its unit.

    If a key leads to several units, it is the smallest one, compared as strings.
    """
    key = sql.Column("key")
    smallest = sql.Aggregate("min", (UNIT,))
    if tables.numbered:
        smallest = sql.Aggregate("min_by", (UNIT, sql.Cast(UNIT, sql.SqlType.VARCHAR)))
    above = _owned([sql.As(named(keys, source), key)], owner, source, tables)
    is_known = sql.conjunction(sql.IsNull(column, negated=True) for column in (key, UNIT))
    items = key, sql.As(smallest, UNIT)
    return sql.Select(items, sql.Item(above), where=is_known, group=(key,))


def _public_join(join: PublicJoin, tables: Tables) -> sql.Query:
    """Joins the first public row of each key in the order of its columns, NULL first."""
    scan = join.table
    right = alias(join.right)
    key = sql.Column("key")
    is_comparable = isinstance(join.right.type, Text) is is_text(join.left)
    left = value(join.left) if is_comparable else sql.NULL
    source = sql.Select((*_ALL, sql.As(left, key)), sql.Item(rows(join.source, tables)))
    same = sql.Binary("=", sql.Column("key", "l"), replace(right, table="r"))
    joined = sql.Join(_join(outer=join.outer), sql.Item(_first_public(join, tables), "r"), same)
    shown = sql.Star("l", ("key",)), *_of_right(scan.columns)
    return sql.Select(shown, sql.Item(source, "l"), (joined,))


def _first_public(join: PublicJoin, tables: Tables) -> sql.Query:
    """Selects the first public row of each key."""
    scan = join.table
    right = alias(join.right)
    read = Scan(scan.table, scan.prefix, tuple(dict.fromkeys((*scan.columns, join.right))))
    order = [sql.Ordered(alias(column), nulls="FIRST") for column in scan.columns]
    number = sql.Window(sql.Aggregate("row_number"), (right,), _items(order))
    return sql.Select(
        _ALL,
        sql.Item(rows(read, tables)),
        where=sql.IsNull(right, negated=True),
        qualify=sql.Binary("=", number, sql.Constant(1)),
    )


# --- rows of one unit ----------------------------------------------------------------------


def _per_unit(relation: PerUnit, tables: Tables) -> sql.Query:
    keys = [alias(column) for column, _ in relation.keys]
    items: list[sql.Expression] = [UNIT]
    items += [_named(key.expression, column) for column, key in relation.keys]
    summaries: list[sql.Expression] = [UNIT, *keys]
    cut: list[sql.Expression] = [UNIT, *keys]
    for index, computed in enumerate(relation.columns):
        shown = alias(computed.column)
        read = sql.Column(f"v{index}")
        if computed.value is not None:
            items.append(sql.As(typed(computed.value), read))
        summaries.append(sql.As(_summary(computed, read), shown))
        cut.append(sql.As(_cut(computed.column), shown))
    inner = sql.Select(tuple(items), sql.Item(rows(relation.source, tables)))
    summed = sql.Select(tuple(summaries), sql.Item(inner), group=(UNIT, *keys))
    return sql.Select(tuple(cut), sql.Item(summed))


def _summary(computed: Computed, read: sql.Expression) -> sql.Expression:
    match computed.summary:
        case Summary.COUNT:
            return sql.Aggregate("count", _ALL)
        case Summary.COUNT_VALUES:
            return sql.Aggregate("count", (read,))
        case Summary.COUNT_DISTINCT:
            return sql.Aggregate("count", (read,), distinct=True)
        case Summary.MEAN:
            return _mean(computed, read)
        case Summary.SUM | Summary.MINIMUM | Summary.MAXIMUM:
            return sql.Aggregate(computed.summary.value, (read,))
        case _:
            raise unknown(computed.summary)


def _mean(computed: Computed, read: sql.Expression) -> sql.Expression:
    """Returns floor(f sum / count + 1/2), for f codes of the mean in one code of the value.

    The numerator is computed from values shifted to be non-negative, where // rounds down.
    """
    assert computed.value is not None and not isinstance(computed.value.type, Text), (
        "a mean is one of numbers"
    )
    times, under = computed.finer.as_integer_ratio()
    least = times * computed.value.type.lower_code // under
    count = sql.Typed(sql.Aggregate("count", (read,)), sql.SqlType.HUGEINT)
    total = sql.Typed(sql.Aggregate("sum", (read,)), sql.SqlType.HUGEINT)
    scaled = sql.Binary("*", sql.Constant(2 * times), total)
    raised = _times(under - 2 * under * least, count)
    above = sql.Paren(sql.Binary("+", scaled, raised))
    twice = sql.Binary("*", sql.Constant(2 * under), count)
    mean = sql.Binary("//", above, sql.Call("nullif", (twice, sql.Constant(0))))
    return sql.Binary("+", mean, sql.Paren(sql.Constant(least)))


def _times(factor: int, value: sql.Expression) -> sql.Expression:
    return sql.Binary("*", sql.Paren(sql.Constant(factor)), value)


def _cut(column: Column) -> sql.Expression:
    """Clips a column to its range; NULL stays NULL."""
    assert not isinstance(column.type, Text), "a plan computes no text"
    name = alias(column)
    low = sql.Constant(column.type.lower_code)
    high = sql.Constant(column.type.upper_code)
    branches = (sql.Binary("<", name, low), low), (sql.Binary(">", name, high), high)
    return sql.Case(branches, sql.TryCast(name, sql.SqlType.BIGINT))


def _first(relation: Ranked, tables: Tables) -> sql.Query:
    """Selects the first row of each unit.

    Needs no window function if the rows have a single column and the first row has its minimum.
    """
    number = alias(relation.column)
    one = sql.As(sql.number(1), number)
    tie = relation.ties[0] if len(relation.ties) == 1 else None
    if tables.kept == 1:
        return sql.Select((*_ALL, one), sql.Item(rows(relation.source, tables)))
    shown = tables.shown(provided(relation.source))
    if not isinstance(tie, Field) or relation.order or shown != [tie.column]:
        is_first = sql.Binary("=", number, sql.Constant(1))
        return sql.Select(_ALL, sql.Item(_ranked(relation, tables)), where=is_first)
    least = alias(tie.column)
    items = UNIT, sql.As(sql.Aggregate("min", (least,)), least), one
    return sql.Select(items, sql.Item(rows(relation.source, tables)), group=(UNIT,))


def _ranked(relation: Ranked, tables: Tables) -> sql.Query:
    assert not isinstance(relation.column.type, Text), "a rank is a number"
    order = []
    for key in relation.order:
        direction = "DESC" if key.descending else "ASC"
        order.append(sql.Ordered(value(key.expression), direction, "LAST"))
    order += [sql.Ordered(value(tie), "ASC", "LAST") for tie in relation.ties]
    number = sql.Window(sql.Aggregate("row_number"), (UNIT,), tuple(order))
    cut = sql.Call("least", (number, sql.Constant(relation.column.type.upper_code)))
    shown = *_ALL, sql.As(cut, alias(relation.column))
    return sql.Select(shown, sql.Item(rows(relation.source, tables)))

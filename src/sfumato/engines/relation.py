# SPDX-License-Identifier: Apache-2.0
"""SQL trees for the rows of a relation: codes, and the unit. Proof: relation.proof.md.

``emit``, ``cube`` and ``rows`` build their statements on it. Each relation is one SELECT. Its
columns are named by ``alias``; the unit is the column ``unit``. Rows of a public table, and rows
that are units themselves, have no column ``unit``.
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
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    Windowed,
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
    """The tables of a question, and options of how its SQL statement reads them.

    ``numbered``: units are integers (BIGINT), else strings. ``kept``: how many rows of each unit
    are read from a prepared layout; a table that is joined by unit, or tested for a row of the
    unit, is read with one. ``first``: the name of a column; only rows marked as the first of their
    unit with their value of that column are read. ``tests`` are conditions on stored values, by the
    name of the column that they read. ``read`` are the names of the columns that the question
    reads; None means all. ``windows``: totals of a unit are computed by window functions, else by
    GROUP BY and a join, which is cheaper where its input is not computed twice.
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
        """Returns the tables of a relation; units are integers if every table stores integers."""
        private = [scan for scan in scans(relation) if not sources[scan.table].coded]
        owners = [(scan.table, scan.owner) for scan in private if scan.owner is not None]
        return cls(sources, all(_is_numbered(table, owner, sources) for table, owner in owners))

    @property
    def joined(self) -> "Tables":
        """A copy for the right side of a join by unit: it reads one row of each unit of a
        layout.
        """
        if not self.kept:
            return self
        return replace(self, kept=1, first=None)

    def shown(self, columns: Sequence[Column]) -> list[Column]:
        """Returns those of the given columns that the question reads."""
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
    """Returns the names of the stored columns that a plan's relation reads, by table.

    Columns that are needed to look up units are included.
    """
    stored: dict[str, set[str]] = defaultdict(set)
    for node in nodes(relation):
        if isinstance(node, PublicJoin | KeyJoin):
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
    """Returns the SELECT of the rows of a plan's relation: the codes of their columns and their
    unit.

    Guarantees:
        every relation has the rows of the reference
    """
    match relation:
        case Scan():
            return _scan(relation, tables)
        case Filter(Ranked() as ranked, Member(Field(column), (1,))) if column == ranked.column:
            return _first_of_unit(ranked, tables)
        case Filter(source, predicate):
            return sql.Select(_ALL, sql.Item(rows(source, tables)), where=truth(predicate))
        case PublicJoin() | KeyJoin():
            return _key_join(relation, tables)
        case UnitJoin():
            return _unit_join(relation, tables)
        case Semi(source, units, negated):
            joined = same_unit("ANTI JOIN" if negated else "SEMI JOIN", rows(units, tables.joined))
            return sql.Select((sql.Star("l"),), sql.Item(rows(source, tables), "l"), (joined,))
        case PerUnit():
            return _per_unit(relation, tables)
        case Ranked():
            return _select_ranks(relation, tables)
        case Windowed():
            return _windowed(relation, tables)
        case Union():
            return _union(relation, tables)
        case _:
            raise unknown(relation)


def _unit_join(join: UnitJoin, tables: Tables) -> sql.Query:
    shown = tables.shown(provided(join.other))
    joined = same_unit(_join_word(outer=join.outer), rows(join.other, tables.joined))
    left = sql.Item(rows(join.source, tables), "l")
    return sql.Select((sql.Star("l"), *_of_right(shown)), left, (joined,))


def _is_owned(relation: Relation) -> bool:
    """Whether rows have a unit other than themselves."""
    return all(scan.owner is not None for scan in scans(relation))


def _union(union: Union, tables: Tables) -> sql.Query:
    unit = [UNIT] if _is_owned(union) else []
    queries = []
    for source, values in zip(union.sources, union.values, strict=True):
        items = _items_or_one([*unit, *map(_select_item, values, union.columns)])
        queries.append(sql.Select(items, sql.Item(rows(source, tables))))
    return sql.UnionAll(tuple(queries))


def _select_item(expression: Scalar, column: Column) -> sql.As:
    """Returns a SELECT item: an expression as a column."""
    return typed(Value(column.name, column.type, expression)).named(alias(column))


def _of_right(columns: Sequence[Column]) -> list[sql.Expression]:
    """Returns more SELECT items: columns of the right side of a join."""
    return [replace(alias(column), table="r") for column in columns]


def _items_or_one(items: Sequence[sql.Expression]) -> tuple[sql.Expression, ...]:
    return tuple(items) or (sql.Constant(1),)


def _join_word(*, outer: bool) -> str:
    if outer:
        return "LEFT JOIN"
    return "JOIN"


def same_unit(word: str, other: sql.Query) -> sql.Join:
    """Returns the SQL join of rows ``l`` with rows ``r`` of the same unit; ``word``: LEFT JOIN
    etc.
    """
    left, right = sql.columns(["unit"], "l") + sql.columns(["unit"], "r")
    return sql.Join(word, sql.Item(other, "r"), left.equals(right))


# --- tables --------------------------------------------------------------------------------


def _scan(scan: Scan, tables: Tables) -> sql.Query:
    """Selects the codes of a table.

    The inner SELECT reads each value in the form in which it is compared (a number of steps, a
    day, a string); the outer one maps these to codes.
    """
    source = tables.sources[scan.table]
    if source.coded:
        return _layout_scan(scan, tables)
    readings = []
    for column in tables.shown(scan.columns):
        name = column.name.removeprefix(scan.prefix)
        readings.append(reading(name, column.type, source).named(alias(column)))
    shown, joins = codes(scan, tables)
    test = _stored_tests(scan, tables)
    if scan.owner is None:
        inner: sql.Query = sql.Select(
            _items_or_one(readings), sql.Item(sql.Table(source.sql)), where=test
        )
        return sql.Select(_items_or_one(shown), sql.Item(inner, "s"), joins)
    inner = _select_with_unit(readings, scan.owner, source, tables, test)
    unit = sql.Column("unit", "s")
    return sql.Select((*shown, unit), sql.Item(inner, "s"), joins, where=unit.is_present)


def codes(scan: Scan, tables: Tables) -> tuple[list[sql.As], tuple[sql.Join, ...]]:
    """Returns the SELECT items that compute the codes of a table's columns, and the joins with
    lookup tables of category codes.

    The codes are computed from the readings in the FROM item ``s``.
    """
    source = tables.sources[scan.table]
    items = []
    joins = []
    for index, column in enumerate(tables.shown(scan.columns)):
        shown = alias(column)
        read = replace(shown, table="s")
        if isinstance(column.type, Category | Boolean):
            items.append(sql.Column("code", f"d{index}").named(shown))
            joins.append(_codes_of(column.type, f"d{index}", read))
        else:
            short = source.is_short(column.name.removeprefix(scan.prefix))
            items.append(code(column.type, read, short=short).named(shown))
    return items, tuple(joins)


def _codes_of(kind: Category | Boolean, name: str, read: sql.Expression) -> sql.Join:
    """Joins the code of a string."""
    same = read.equals(sql.Column("text", name))
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
        items.append(sql.Cast(in_layout(scan, column), kind).named(alias(column)))
    tests: list[sql.Expression] = [
        sql.Column("place") <= tables.kept,
    ]
    if tables.first is not None:
        tests.append(first_in_layout(scan, tables.first))
    source = sql.Item(sql.Table(tables.sources[scan.table].sql))
    return sql.Select((*items, UNIT), source, where=sql.conjunction(tests))


def in_layout(scan: Scan, column: Column) -> sql.Column:
    """Returns the column of a prepared layout that stores the codes of a declared column."""
    return stored(f"c_{column.name.removeprefix(scan.prefix)}")


def first_in_layout(scan: Scan, column: Column) -> sql.Column:
    """Returns the Boolean column of a layout that marks each unit's first row with each value."""
    return stored(f"f_{column.name.removeprefix(scan.prefix)}")


def _select_with_unit(
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
        unit = named(owner.columns, source, unordered=owner.unordered)
        if tables.numbered:
            unit = sql.Cast(stored(owner.columns[0]), sql.SqlType.BIGINT)
        return sql.Select((*items, unit.named(UNIT)), rows_of, where=test)
    link = named(owner.columns, source).named("link")
    own = sql.Select((*items, link), rows_of, where=test)
    owners = _units_of_keys(owner.keys, owner.owner, tables.sources[owner.via], tables)
    same = sql.Column("link", "l").equals(sql.Column("key", "r"))
    joined = sql.Join("JOIN", sql.Item(owners, "r"), same)
    shown = sql.Star("l", ("link",)), sql.Column("unit", "r")
    return sql.Select(shown, sql.Item(own, "l"), (joined,))


def _units_of_keys(keys: Sequence[str], owner: Owner, source: Source, tables: Tables) -> sql.Query:
    """Selects each key of a table with its unit.

    If a key leads to several units, it is the smallest one, compared as strings.
    """
    key = sql.Column("key")
    smallest = sql.aggregate("min", UNIT)
    if tables.numbered:
        smallest = sql.aggregate("min_by", UNIT, sql.Cast(UNIT, sql.SqlType.VARCHAR))
    above = _select_with_unit([named(keys, source).named(key)], owner, source, tables)
    is_known = sql.conjunction(column.is_present for column in (key, UNIT))
    items = key, smallest.named(UNIT)
    return sql.Select(items, sql.Item(above), where=is_known, group=(key,))


def _key_join(join: PublicJoin | KeyJoin, tables: Tables) -> sql.Query:
    """Joins the first row of each key in the order of its columns, NULL first.

    Of a private table it is the first row of the same unit.
    """
    scan = join.table
    right = alias(join.right)
    key = sql.Column("key")
    is_comparable = isinstance(join.right.type, Text) is is_text(join.left)
    left = value(join.left) if is_comparable else sql.NULL
    source = sql.Select((*_ALL, left.named(key)), sql.Item(rows(join.source, tables)))
    same = sql.Column("key", "l").equals(replace(right, table="r"))
    own = replace(UNIT, table="l").equals(replace(UNIT, table="r"))
    both = sql.conjunction([same, own] if isinstance(join, KeyJoin) else [same])
    joined = sql.Join(
        _join_word(outer=join.outer), sql.Item(_first_of_key(join, tables), "r"), both
    )
    shown = sql.Star("l", ("key",)), *_of_right(scan.columns)
    return sql.Select(shown, sql.Item(source, "l"), (joined,))


def _first_of_key(join: PublicJoin | KeyJoin, tables: Tables) -> sql.Query:
    """Selects the first row of each key, of each unit and key in a private table."""
    scan = join.table
    right = alias(join.right)
    read = replace(scan, columns=tuple(dict.fromkeys((*scan.columns, join.right))))
    among = (UNIT, right) if isinstance(join, KeyJoin) else (right,)
    order = [sql.Ordered(alias(column), nulls="FIRST") for column in scan.columns]
    number = sql.Window(sql.Aggregate("row_number"), among, _items_or_one(order))
    return sql.Select(
        _ALL,
        sql.Item(rows(read, tables)),
        where=right.is_present,
        qualify=number.equals(1),
    )


# --- rows of one unit ----------------------------------------------------------------------


def _per_unit(relation: PerUnit, tables: Tables) -> sql.Query:
    keys = [alias(column) for column, _ in relation.keys]
    items: list[sql.Expression] = [UNIT]
    items += [_select_item(key.expression, column) for column, key in relation.keys]
    summaries: list[sql.Expression] = [UNIT, *keys]
    cut: list[sql.Expression] = [UNIT, *keys]
    for index, computed in enumerate(relation.columns):
        shown = alias(computed.column)
        read = sql.Column(f"v{index}")
        if computed.value is not None:
            items.append(typed(computed.value).named(read))
        summaries.append(_summary(computed, read).named(shown))
        cut.append(_clip_column(computed.column).named(shown))
    inner = sql.Select(tuple(items), sql.Item(rows(relation.source, tables)))
    summed = sql.Select(tuple(summaries), sql.Item(inner), group=(UNIT, *keys))
    return sql.Select(tuple(cut), sql.Item(summed))


def _summary(computed: Computed, read: sql.Expression) -> sql.Expression:
    match computed.summary:
        case Summary.COUNT:
            return sql.aggregate("count")
        case Summary.COUNT_VALUES:
            return sql.aggregate("count", read)
        case Summary.COUNT_DISTINCT:
            return sql.Aggregate("count", (read,), distinct=True)
        case Summary.MEAN:
            return _mean(computed, read)
        case Summary.SUM | Summary.MINIMUM | Summary.MAXIMUM:
            return sql.aggregate(computed.summary.value, read)
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
    count = sql.Typed(sql.aggregate("count", read), sql.SqlType.HUGEINT)
    total = sql.Typed(sql.aggregate("sum", read), sql.SqlType.HUGEINT)
    scaled = sql.Constant(2 * times) * total
    raised = _multiply(under - 2 * under * least, count)
    above = sql.Paren(scaled + raised)
    twice = sql.Constant(2 * under) * count
    mean = above // sql.call("nullif", twice, 0)
    return mean + sql.Paren(sql.Constant(least))


def _multiply(factor: int, value: sql.Expression) -> sql.Expression:
    return sql.Paren(sql.Constant(factor)) * value


def _clip_column(column: Column) -> sql.Expression:
    """Clips a column to its range; NULL stays NULL."""
    assert not isinstance(column.type, Text), "a plan computes no text"
    name = alias(column)
    low = sql.Constant(column.type.lower_code)
    high = sql.Constant(column.type.upper_code)
    branches = (name < low, low), (name > high, high)
    return sql.Case(branches, sql.TryCast(name, sql.SqlType.BIGINT))


def _first_of_unit(relation: Ranked, tables: Tables) -> sql.Query:
    """Selects the first row of each unit.

    Needs no window function if the rows have a single column and the first row has its minimum.
    """
    number = alias(relation.column)
    one = sql.number(1).named(number)
    tie = relation.ties[0] if len(relation.ties) == 1 else None
    if tables.kept == 1:
        return sql.Select((*_ALL, one), sql.Item(rows(relation.source, tables)))
    shown = tables.shown(provided(relation.source))
    if not isinstance(tie, Field) or relation.order or shown != [tie.column]:
        is_first = number.equals(1)
        return sql.Select(_ALL, sql.Item(_select_ranks(relation, tables)), where=is_first)
    least = alias(tie.column)
    items = UNIT, sql.aggregate("min", least).named(least), one
    return sql.Select(items, sql.Item(rows(relation.source, tables)), group=(UNIT,))


def _select_ranks(relation: Ranked, tables: Tables) -> sql.Query:
    assert not isinstance(relation.column.type, Text), "a rank is a number"
    order = _order(relation.order, relation.ties)
    number = sql.Window(sql.Aggregate("row_number"), (UNIT,), order)
    cut = sql.call("least", number, relation.column.type.upper_code)
    shown = *_ALL, cut.named(alias(relation.column))
    return sql.Select(shown, sql.Item(rows(relation.source, tables)))


def _order(order: Sequence[Sort], ties: Sequence[Scalar]) -> tuple[sql.Expression, ...]:
    keys = []
    for key in order:
        direction = "DESC" if key.descending else "ASC"
        keys.append(sql.Ordered(value(key.expression), direction, "LAST"))
    return (*keys, *(sql.Ordered(value(tie), "ASC", "LAST") for tie in ties))


def _windowed(relation: Windowed, tables: Tables) -> sql.Query:
    order = _order(relation.order, () if relation.is_rank else relation.ties)
    among = (UNIT, *map(value, relation.by))
    name = relation.function.value
    if relation.value is not None:
        looked_up = sql.Aggregate(name, (typed(relation.value), sql.Constant(relation.offset)))
        shown: sql.Expression = sql.Window(looked_up, among, order)
    else:
        assert not isinstance(relation.column.type, Text), "a number of rows"
        number = sql.Window(sql.Aggregate(name), among, order)
        shown = sql.call("least", number, relation.column.type.upper_code)
    items = *_ALL, shown.named(alias(relation.column))
    return sql.Select(items, sql.Item(rows(relation.source, tables)))

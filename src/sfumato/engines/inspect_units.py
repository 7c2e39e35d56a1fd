# SPDX-License-Identifier: Apache-2.0
"""Counts the rows of each unit of a table, and what limits leave out: for the owner, not private.

``query.data_check`` reports these counts. Rows are those that a question reads (``relation.rows``);
rows without a unit are not among them. No question uses this module.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from sfumato.engines import sql_tree as sql
from sfumato.engines.declared import named_owners
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.expression import alias
from sfumato.engines.layout import MOST_GROUPS
from sfumato.engines.relation import UNIT, Tables, rows, stored_columns
from sfumato.engines.remote import count_respellings
from sfumato.engines.result_rows import Rows
from sfumato.engines.value_sql import Source, named, stored
from sfumato.metadata.column import Column, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.privacy.unit import Bound, Unit

_KEY = sql.Column("k")
_ROWS = sql.Column("n")
_IN_ALL = sql.Column("in_all")
_GROUPS = sql.Column("groups_of")
_CUT = sql.Column("cut")
_MOST = sql.Column("most")
# Of rows or groups of a unit; more than any table has.
_NO_LIMIT = 2**40


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """How many units exceed a limit, and how many of their rows or groups are left out.

    Attributes:
        limit: its name and value: "max_rows=2".
        by: the column by which groups are formed; "" if all rows are one group.
        over: the units that are over the limit.
        lost, out_of: how many rows they lose, out of all rows that have a unit; or, if
            ``of_groups``, how many of the pairs of a unit and a group in which it has rows.

    >>> LimitFacts("max_rows=2", "ward", over=1, lost=3, out_of=9).of_groups
    False
    """

    limit: str
    by: str
    over: int
    lost: int
    out_of: int
    of_groups: bool = False


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """Counts of the units of a table and of its rows without a unit.

    Attributes:
        unit: the declared unit.
        rows: all rows of the table.
        unnamed: rows whose unit, or whose key to it, is missing; no question uses them.
        without_partner: rows whose key leads to no unit of the other table (``via=``).
        units: the units that have rows.
        limits: one for each declared limit and each way to form groups.
        respelled: by column that identifies units, the number of spellings that the database
            treats as equal to another one (a collation) but that are different ids here; columns
            without such spellings are left out.

    >>> UnitFacts(Unit("person"), rows=9, unnamed=1, without_partner=0, units=4).used
    8
    """

    unit: Unit
    rows: int
    unnamed: int
    without_partner: int
    units: int
    limits: tuple[LimitFacts, ...] = ()
    respelled: tuple[tuple[str, int], ...] = ()

    @property
    def used(self) -> int:
        """The number of rows that belong to a unit."""
        return self.rows - self.unnamed - self.without_partner

    def with_limits(self, limits: tuple[LimitFacts, ...]) -> "UnitFacts":
        """Returns a copy with the counts for these limits added."""
        return replace(self, limits=self.limits + limits)


def inspect_rows(engine: DuckDB, table: str) -> int:
    """Returns the number of rows of a table."""
    scan = Scan(table, "", ())
    ((count,),) = _ask(engine, scan, partial(_size, table))
    return int(count)


def inspect_units(engine: DuckDB, dataset: Dataset, table: str, unit: Unit) -> UnitFacts:
    """Counts the units of a table, and the rows that its contribution limits leave out.

    All rows are taken as one group.

    Raises:
        InvalidSource: a column that leads to the units cannot be read to its end.
    """
    scan = Scan(table, "", (), owner_of(dataset, table))
    ((count, with_name),) = _ask(engine, scan, partial(_names, table, unit))
    ((units, in_all, *over),) = _ask(engine, scan, partial(_totals, scan, unit))
    used = int(in_all or 0)
    limits = []
    for name, limit in _row_limits(unit):
        beyond, lost, *over = over
        facts = LimitFacts(
            f"{name}={limit}",
            "",
            over=beyond,
            lost=int(lost or 0),
            out_of=used,
        )
        limits.append(facts)
    return UnitFacts(
        unit,
        rows=count,
        unnamed=count - with_name,
        without_partner=with_name - used,
        units=units,
        limits=tuple(limits),
        respelled=tuple(_respelled(engine, dataset, table)),
    )


def _respelled(engine: DuckDB, dataset: Dataset, table: str) -> Iterator[tuple[str, int]]:
    """Yields the columns of ``UnitFacts.respelled`` with their numbers.

    Only a database has collations; one of a DuckDB file is refused unless it is declared.
    """
    served = engine.served(table)
    for unit, column in dict.fromkeys(named_owners(dataset.tables, table)):
        number = 0
        if served is not None:
            number = count_respellings(served, column)
        elif unit.spellings_apart:
            query = partial(_respellings, table, column)
            ((number,),) = engine.unprotected({table: {column}}, query)
        if number:
            yield column, int(number)


def _respellings(table: str, column: str, sources: Mapping[str, Source]) -> str:
    """Counts the texts of a column that its collation calls equal to another one."""
    source = sources[table]
    if source.family(column) != "text":
        return "SELECT 0"
    raw = stored(column)
    spellings = sql.Aggregate("count", (sql.CodePoints(raw),), distinct=True)
    ids = sql.Aggregate("count", (raw,), distinct=True)
    return printed(sql.Select((spellings - ids,), sql.Item(sql.Table(source.sql))))


def inspect_groups(
    engine: DuckDB,
    dataset: Dataset,
    table: str,
    unit: Unit,
    column: Column,
) -> tuple[LimitFacts, ...]:
    """Counts what limits leave out of a question with GROUP BY of one column.

    Raises:
        InvalidSource: a column cannot be read to its end.
    """
    scan = Scan(table, "", (column,), owner_of(dataset, table))
    (found,) = _ask(engine, scan, partial(_group_totals, scan, unit, column))
    sizes = _GroupSizes(*[int(number or 0) for number in found])
    facts = []
    if isinstance(unit.max_rows, int):
        of_rows = LimitFacts(
            f"max_rows={unit.max_rows}",
            column.name,
            over=sizes.rows_over,
            lost=sizes.rows_lost,
            out_of=sizes.rows,
        )
        facts.append(of_rows)
    if isinstance(unit.max_groups, int):
        of_groups = LimitFacts(
            f"max_groups={unit.max_groups}",
            column.name,
            over=sizes.groups_over,
            lost=sizes.both_lost,
            out_of=sizes.rows,
        )
        if _is_chosen(unit, column):
            of_groups = replace(
                of_groups,
                lost=sizes.groups_lost,
                out_of=sizes.groups,
                of_groups=True,
            )
        facts.append(of_groups)
    return tuple(facts)


def group_columns(dataset: Dataset, table: str) -> Iterator[Column]:
    """Yields the possible GROUP BY columns of a table; none if limits do not depend on groups."""
    declared = dataset.tables[table]
    unit = declared.unit
    if not isinstance(unit, Unit):
        return
    limits = unit.max_rows, unit.max_groups
    if not any(isinstance(limit, int) for limit in limits):
        return
    for name, kind in declared.columns.items():
        if isinstance(kind, Real):
            continue
        if isinstance(kind, Text) or kind.size <= MOST_GROUPS:
            yield Column(name, kind)


@dataclass(frozen=True, slots=True)
class _GroupSizes:
    """Sums over the units, with GROUP BY of one column.

    ``rows`` and ``groups`` of all units; of ``max_rows`` and ``max_groups`` the units over the
    limit and what is beyond it; and the rows beyond both limits together.
    """

    rows: int
    groups: int
    rows_over: int
    rows_lost: int
    groups_over: int
    groups_lost: int
    both_lost: int


def _is_chosen(unit: Unit, column: Column) -> bool:
    """Whether a unit keeps some of its groups and loses the others; else its rows weigh less."""
    return isinstance(column.type, Text) or not isinstance(unit.max_rows, int)


def _ask(
    engine: DuckDB,
    scan: Scan,
    query: Callable[[Mapping[str, Source]], sql.Query],
) -> Rows:
    """Runs a query over the rows of a scan."""
    asked = stored_columns(scan)
    return engine.unprotected(asked, lambda sources: printed(query(sources)))


def _size(table: str, sources: Mapping[str, Source]) -> sql.Query:
    """Counts all rows of a table."""
    source = sql.Table(sources[table].sql)
    return sql.Select((sql.aggregate("count"),), sql.Item(source))


def _names(table: str, unit: Unit, sources: Mapping[str, Source]) -> sql.Query:
    """Counts all rows, and those whose unit or key has a name."""
    source = sources[table]
    name = named(unit.columns, source)
    items = (
        sql.aggregate("count"),
        sql.aggregate("count", name),
    )
    return sql.Select(items, sql.Item(sql.Table(source.sql)))


def _row_limits(unit: Unit) -> Iterator[tuple[str, int]]:
    """Yields the declared limits of the rows of a unit in one group."""
    if isinstance(unit.max_rows, int):
        yield "max_rows", unit.max_rows
    if isinstance(unit.max_rows_total, int):
        yield "max_rows_total", unit.max_rows_total


def _totals(scan: Scan, unit: Unit, sources: Mapping[str, Source]) -> sql.Query:
    """Counts units and their rows, and for each limit of rows the units over it and the rest."""
    tables = Tables.of(scan, sources)
    items: list[sql.Expression] = [
        sql.aggregate("count"),
        sql.aggregate("sum", _ROWS),
    ]
    for _, limit in _row_limits(unit):
        items += _over(_ROWS, limit)
    units = sql.Select(
        (UNIT, sql.aggregate("count").named(_ROWS)),
        sql.Item(rows(scan, tables)),
        group=(UNIT,),
    )
    return sql.Select(tuple(items), sql.Item(units))


def _over(number: sql.Expression, limit: int) -> tuple[sql.Expression, sql.Expression]:
    """Counts the units whose number is over a limit, and adds up what is beyond it."""
    counted = sql.Aggregate(
        "count",
        (sql.Star(),),
        where=number > limit,
    )
    beyond = sql.call("greatest", number - limit, 0)
    return counted, sql.aggregate("sum", beyond)


def _group_totals(
    scan: Scan,
    unit: Unit,
    column: Column,
    sources: Mapping[str, Source],
) -> sql.Query:
    """Selects the ``_GroupSizes`` of a column.

    Where ``max_rows`` is declared, rows beyond it are cut first; the unit then loses what is beyond
    ``max_rows`` times ``max_groups`` rows.
    """
    most_rows = _limit(unit.max_rows)
    most_groups = _limit(unit.max_groups)
    relation = rows(scan, Tables.of(scan, sources))
    units = _group_sizes(relation, column, most_rows)
    rows_over, _ = _over(_MOST, most_rows)
    _, both_lost = _over(_CUT, most_rows * most_groups)
    items = (
        sql.aggregate("sum", _IN_ALL),
        sql.aggregate("sum", _GROUPS),
        rows_over,
        sql.aggregate("sum", _IN_ALL - _CUT),
        *_over(_GROUPS, most_groups),
        both_lost,
    )
    return sql.Select(items, sql.Item(units))


def _limit(declared: Bound) -> int:
    """Returns a limit that is a number, or one that nothing exceeds."""
    if isinstance(declared, int):
        return declared
    return _NO_LIMIT


def _group_sizes(relation: sql.Query, column: Column, most_rows: int) -> sql.Query:
    """Selects for each unit its rows, its groups, its largest group, and its rows once cut."""
    key = alias(column)
    is_kept = None
    if column.type.missing is None:
        # else rows without a key are a group too
        is_kept = key.is_present
    pairs = sql.Select(
        (UNIT, key.named(_KEY), sql.aggregate("count").named(_ROWS)),
        sql.Item(relation),
        where=is_kept,
        group=(UNIT, key),
    )
    cut = sql.call("least", _ROWS, most_rows)
    sizes = (
        sql.aggregate("sum", _ROWS).named(_IN_ALL),
        sql.aggregate("count").named(_GROUPS),
        sql.aggregate("max", _ROWS).named(_MOST),
        sql.aggregate("sum", cut).named(_CUT),
    )
    return sql.Select(sizes, sql.Item(pairs), group=(UNIT,))

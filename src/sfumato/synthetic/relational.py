# SPDX-License-Identifier: Apache-2.0
"""Describes several tables of one unit: a parent with one row per unit, and child tables.

The columns of a parent are its own and the number of rows in each child. The columns of a child are
its own, the parent's, and, if a column orders the rows, the position and the previous row. Reads
declarations only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sfumato.errors import MissingDeclaration, UnknownName, WrongUse, shown
from sfumato.metadata.column import Column, Date, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan, Union
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.scalar import Constant, Field, Scalar
from sfumato.plan.value import Value
from sfumato.privacy.unit import Unit
from sfumato.query.passes.track import rows_in_all, whose
from sfumato.query.pipeline import compile_rows
from sfumato.synthetic.schema import Axis, Bins, TextAxis, Texts, axes_of
from sfumato.synthetic.text_keys import place_of

T = TypeVar("T")

# The most rows of a unit in one child, and in all tables as they are read.
MOST_CHILDREN, MOST_READ = 256, 2**20
_DROPPED = "rows beyond it are dropped, never refused."


@dataclass(frozen=True, slots=True)
class Child:
    """A table with up to ``most`` rows per unit; ``order`` names the column that orders them.

    If the rows refer to rows of another child, ``above`` is that child, ``link`` the column of this
    table and ``target`` the column of that one; empty if the rows belong directly to the unit.

    >>> visits = Child("visits", (Axis(Column("age", Integer(0, 99))),), most=3, order="age")
    >>> [one.name for one in (visits.number, visits.place, *visits.before)]
    ['number of visits', 'place among visits', 'previous age of visits']
    """

    table: str
    axes: tuple[Axis, ...]
    most: int
    order: str = ""
    above: str = ""
    link: str = ""
    target: str = ""

    @property
    def number(self) -> Axis:
        """A column of the parent table: how many rows each unit has in this child table."""
        return Axis(Column(f"number of {self.table}", Integer(0, self.most)))

    @property
    def place(self) -> Axis:
        """The position of a row among those of its unit, from 1."""
        return Axis(Column(f"place among {self.table}", Integer(1, max(self.most, 2))))

    @property
    def before(self) -> tuple[Axis, ...]:
        """The columns of the previous row; missing in the first row."""
        found = []
        for one in self.axes:
            found.append(_rename_axis(one, f"previous {one.name} of {self.table}"))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Family:
    """A parent table with its child tables, as they are synthesised together; ``key`` is the column
    that identifies the privacy unit.

    >>> age = Axis(Column("age", Integer(0, 99)))
    >>> family = Family("people", "id", (age,), (Child("visits", (age,), 3),))
    >>> [[one.name for one in family.widened(table)] for table in (0, 1)]
    [['age', 'number of visits'], ['age', 'people.age', 'number of visits']]
    """

    parent: str
    key: str
    axes: tuple[Axis, ...]
    children: tuple[Child, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, the parent first."""
        return (self.parent, *(child.table for child in self.children))

    @property
    def own(self) -> tuple[tuple[Axis, ...], ...]:
        """For each table, the parent first, its own columns as axes."""
        return (self.axes, *(child.axes for child in self.children))

    @property
    def ids(self) -> tuple[str, ...]:
        """For each child, the column by which rows of another child refer to it; empty if none
        do.
        """
        targets = {child.above: child.target for child in self.children}
        return tuple(targets.get(child.table, "") for child in self.children)

    def widened(
        self,
        table: int,
    ) -> tuple[Axis, ...]:
        """Returns the axes of a table (by index), followed by the columns on which they may depend:
        of the parent, numbers of child rows, the previous row.
        """
        numbers = tuple(child.number for child in self.children)
        if not table:
            return (*self.axes, *numbers)
        child = self.children[table - 1]
        above = tuple(_rename_axis(one, f"{self.parent}.{one.name}") for one in self.axes)
        found = (*child.axes, *above, *numbers)
        if child.order:
            found = (*found, child.place, *child.before)
        return found

    def with_axes(
        self,
        table: int,
        axes: Sequence[Axis],
    ) -> "Family":
        """Returns the family with other axes for a table's own columns."""
        own = tuple(axes[: len(self.own[table])])
        if not table:
            return replace(self, axes=own)
        children = list(self.children)
        children[table - 1] = replace(children[table - 1], axes=own)
        return replace(self, children=tuple(children))

    def start(
        self,
        table: int,
    ) -> int:
        """Returns the index, in the joint rows of all tables (``rows_of``), of the first column of
        a table.
        """
        return 1 + sum(len(axes) for axes in self.own[:table])


def _rename_axis(
    axis: Axis,
    name: str,
) -> Axis:
    return replace(axis, column=Column(name, axis.column.type))


def family_of(
    dataset: Dataset,
    tables: Sequence[str],
    columns: Sequence[str] | None = None,
    bins: Mapping[str, Bins] | None = None,
    order: Mapping[str, str] | None = None,
    texts: Texts | None = None,
) -> Family:
    """Returns the tables as they are declared, the parent first; reads declarations only.

    Columns, bins and texts are named ``table.column``. Without ``order``, the first date or
    timestamp of a child orders its rows.

    Raises:
        UnknownName: a table or a column that is not declared.
        MissingDeclaration: a child without a limit of rows.
        WrongUse: tables without one common unit, a first one with several rows a unit, or a limit
            above 256.
    """
    parent, *others = tables
    key = _require_one_unit(dataset, tables)
    _require_tables((*(columns or ()), *(bins or ()), *(texts or ())), tables)
    _require_once(dataset, parent)
    axes = []
    for name in tables:
        named = None if columns is None else list(_stated_for(name, dict.fromkeys(columns)))
        axes.append(
            _axes(
                dataset, name, named, _stated_for(name, bins or {}), _stated_for(name, texts or {})
            )
        )
    children = []
    for name, own in zip(others, axes[1:], strict=True):
        ordering = _order_column(own, name, (order or {}).get(name))
        above = _table_above(dataset, name, tables)
        children.append(Child(name, own, _row_limit(dataset, name), ordering, *above))
    return Family(parent, key, axes[0], tuple(children))


def _require_tables(
    names: Sequence[str],
    tables: Sequence[str],
) -> None:
    """Raises UnknownName for columns that name none of the tables."""
    for name in names:
        if name.partition(".")[0] not in tables:
            raise UnknownName(
                f"No column {shown(name)}.", allowed="of several tables: table.column"
            )


def _require_once(
    dataset: Dataset,
    parent: str,
) -> None:
    """Raises WrongUse if the first table can have several rows of a unit."""
    unit = dataset.row_unit(parent)
    if unit is None or not unit.once:
        raise WrongUse(
            f"The table {shown(parent)} can have several rows of a unit.",
            allowed="first a table with one row a unit, then those with more",
            remedy='Declare it with sf.Unit("patient_id", max_rows_total=1), or name it later.',
        )


def _axes(
    dataset: Dataset,
    table: str,
    columns: Sequence[str] | None,
    bins: Mapping[str, Bins],
    texts: Texts,
) -> tuple[Axis, ...]:
    """Returns the axes of one table, without its id columns."""
    keys = _keys(dataset)
    found = axes_of(dataset, table, columns, bins, keys, texts)
    taken = [one.name for one in found if one.name in keys]
    if taken:
        raise WrongUse(f"The id {shown(taken[0])}.", allowed="other columns: ids are made anew")
    return found


def _require_one_unit(
    dataset: Dataset,
    tables: Sequence[str],
) -> str:
    """Returns the column of the unit that all tables share; raises WrongUse if there is none."""
    for name in tables:
        if not isinstance(name, str) or name not in dataset.tables:
            raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(dataset.tables))
    units = {dataset.unit_name(name) for name in tables}
    (parent, *_) = tables
    unit = dataset.row_unit(parent)
    if len(units) > 1 or unit is None or unit.via or len(unit.columns) > 1:
        raise WrongUse(
            f"The tables {', '.join(tables)} do not share the id of a unit.",
            allowed="private tables of one unit; the first has its id in one column",
        )
    if len(set(tables)) < len(tables):
        raise WrongUse("A table twice.", allowed="each table once")
    return unit.columns[0]


def _keys(dataset: Dataset) -> frozenset[str]:
    """Returns the columns that other tables refer to; these ids are generated anew."""
    found: set[str] = set()
    for table in dataset.tables.values():
        if isinstance(table.unit, Unit):
            found.update(table.unit.columns)
            found.update([table.unit.key] if table.unit.key else [])
    return frozenset(found)


def _stated_for(
    table: str,
    stated: Mapping[str, T],
) -> dict[str, T]:
    """Returns the settings for columns of one table, by the column's name there."""
    start = f"{table}."
    found = {}
    for name, each in stated.items():
        if name.startswith(start):
            found[name.removeprefix(start)] = each
    return found


def _order_column(
    axes: Sequence[Axis],
    table: str,
    wanted: str | None,
) -> str:
    """Returns the column that orders the rows of a child; empty if none does."""
    names = [one.name for one in axes]
    if wanted is not None:
        if wanted and wanted not in names:
            raise UnknownName(f"No column {shown(wanted)} of {table}.", allowed=", ".join(names))
        return wanted
    dated = [one.name for one in axes if isinstance(one.kind, Date | Timestamp)]
    return dated[0] if dated else ""


def _row_limit(
    dataset: Dataset,
    table: str,
) -> int:
    """Returns the largest number of rows of a unit in a child."""
    unit, limits = whose(Scan(table, owner=owner_of(dataset, table)), dataset)
    most = rows_in_all(unit, limits, _DROPPED)
    if unit is None:
        raise MissingDeclaration(f"The table {shown(table)} has no unit.")
    if most > MOST_CHILDREN:
        raise WrongUse(
            f"Up to {most:,} rows of a unit in {shown(table)}.",
            allowed=f"a limit of at most {MOST_CHILDREN}",
            remedy=f"Declare a smaller max_rows_total; {_DROPPED}",
        )
    return most


def _table_above(
    dataset: Dataset,
    table: str,
    tables: Sequence[str],
) -> tuple[str, str, str]:
    """Returns the table that a child refers to, if it is synthesised before it.

    The result is that table, the child's column that refers to it, and the referenced column.
    """
    unit = dataset.row_unit(table)
    before = tables[1 : tables.index(table)]
    if unit is None or unit.target is None or unit.target[0] not in before:
        return "", "", ""
    return unit.target[0], unit.columns[0], unit.key or unit.columns[0]


def is_declared(dataset: Dataset, family: Family) -> bool:
    """Whether the dataset's declarations of columns, limits and keys are still those of this family
    of tables.
    """
    columns = []
    texts: dict[str, str] = {}
    for table, axes in zip(family.tables, family.own, strict=True):
        columns += [f"{table}.{one.name}" for one in axes]
        for one in axes:
            if isinstance(one, TextAxis):
                texts[f"{table}.{one.name}"] = one.rest
    order = {child.table: child.order for child in family.children}
    declared = family_of(dataset, family.tables, columns, order=order, texts=texts)
    return _without_bins(declared) == _without_bins(family)


def _without_bins(family: Family) -> Family:
    """Returns the family with one cell per declared value."""
    children = []
    for child in family.children:
        children.append(replace(child, axes=_with_all_codes(child.axes)))
    return replace(family, axes=_with_all_codes(family.axes), children=tuple(children))


def _with_all_codes(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    return tuple(replace(one, starts=None) for one in axes)


def rows_of(
    dataset: Dataset,
    family: Family,
) -> BoundedRows:
    """Returns the plan that reads all tables as one list of rows, with the columns of every table.

    Columns of other tables are missing in a row. The rows of a unit are in the order of a keyed
    hash.
    """
    listed = [_place_of_table(family)]
    for name, axes in zip(family.tables, family.own, strict=True):
        listed += [Column(f"{name}.{one.name}", one.read.type) for one in axes]
    scans, values = [], []
    for place, (name, axes) in enumerate(zip(family.tables, family.own, strict=True)):
        prefix = f"{place}."
        columns = [Column(f"{prefix}{one.name}", one.read.type) for one in axes]
        scans.append(Scan(name, prefix, tuple(columns), owner_of(dataset, name)))
        row: list[Scalar] = [Constant(None)] * len(listed)
        row[0] = Constant(place)
        start = family.start(place)
        row[start : start + len(columns)] = [Field(column) for column in columns]
        values.append(tuple(row))
    union = Union(tuple(scans), tuple(values), tuple(listed))
    return compile_rows(RowList(union, _values_read(family)), dataset, most=MOST_READ)


def read_by(
    rows: BoundedRows,
    family: Family,
) -> BoundedRows:
    """Returns the same plan of joint rows for a family with other axes (cells) of the same
    columns.
    """
    return replace(rows, rows=replace(rows.rows, values=_values_read(family)))


def _values_read(family: Family) -> tuple[Value, ...]:
    """Returns what is read of a row: its table, then each column; of a text the index of its
    key.
    """
    values = [Value.of(_place_of_table(family))]
    for name, axes in zip(family.tables, family.own, strict=True):
        for one in axes:
            column = Column(f"{name}.{one.name}", one.read.type)
            if isinstance(one, TextAxis):
                place = place_of(column, one.keys)
                values.append(Value(column.name, one.column.type, place))
            else:
                values.append(Value.of(column))
    return tuple(values)


def _place_of_table(family: Family) -> Column:
    """Returns the column that holds the index of a row's table."""
    return Column("table", Integer(0, max(len(family.tables) - 1, 1)))

# SPDX-License-Identifier: Apache-2.0
"""The columns of a table as axes of few cells: declared values, declared bins, and missing
values.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.interpolate import PchipInterpolator

from sfumato.errors import MissingDeclaration, UnknownName, WrongUse, shown
from sfumato.exact.rational import to_fraction
from sfumato.metadata.column import (
    Array,
    Boolean,
    Category,
    Column,
    Date,
    Integer,
    Real,
    Text,
    date_code,
)
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube, Cube, axis
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Field,
    FloorDivide,
    IsNull,
    Operation,
    Scalar,
)
from sfumato.plan.value import GroupKey, Value
from sfumato.query.pipeline import compile_cube
from sfumato.synthetic.counts import Plan
from sfumato.synthetic.text_keys import place_of

Floats: TypeAlias = npt.NDArray[np.float64]

# An ordered column with more values than this has bins; and how many, if none are declared.
MOST_VALUES, DEFAULT_BINS = 256, 64
# The most bins of a column, and the most columns of a table.
MOST_BINS, MOST_COLUMNS = 4096, 1000
# The most declared values of a Category: each is a word of a statement, 8 kB of memory.
MOST_WORDS = 2**17
# How finely a curve is inverted inside a bin.
_STEPS = 16


@dataclass(frozen=True, slots=True)
class Quantiles:
    """About ``bins`` bins with similar numbers of rows, found privately (at quantiles).

    A frequent value gets a bin of its own, and so do the values beyond all others.

    Raises:
        WrongUse: a number that is not from 2 to 256.

    >>> Quantiles(32).bins
    32
    """

    bins: int

    def __post_init__(self) -> None:
        if type(self.bins) is not int or not 2 <= self.bins <= MOST_VALUES:
            raise WrongUse(f"Quantiles({shown(self.bins)}).", allowed=f"from 2 to {MOST_VALUES}")


# A number of equally wide bins, bins at quantiles, or the first value of each bin but the first.
Bins: TypeAlias = int | Quantiles | Sequence[Any]
# The placeholder of each text whose frequent values are released.
Texts: TypeAlias = Mapping[str, str]

# Types of columns whose values are declared.
Declared: TypeAlias = Integer | Real | Date | Timestamp | Category | Boolean


def declared(column: Column) -> Declared:
    """Returns the type of a column whose values are declared.

    Raises:
        MissingDeclaration: it is a ``Text`` or an ``Array``.
    """
    if isinstance(column.type, Text | Array):
        raise MissingDeclaration(
            f"The values of {shown(column.name)} are not declared.",
            remedy="Declare it as sf.Category with its values, or leave it out of columns=.",
        )
    return column.type


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of a synthetic table as cells: one for each bin of its codes, and the last for
    missing.

    ``starts`` are the first codes of the bins; None means that each declared code is a cell.

    Guarantees:
        every code is in one bin

    Raises:
        WrongUse: fewer than two bins, or starts that do not ascend from the least declared code
            within the declared range.

    >>> age = Axis(Column("age", Integer(0, 99)), (0, 18, 65))
    >>> age.cells, age.limits.tolist()
    (4, [0, 18, 65, 100])
    """

    column: Column
    starts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.starts is None:
            return
        ascending = all(low < high for low, high in zip(self.starts, self.starts[1:], strict=False))
        kind = self.kind
        is_within = self.starts[0] == kind.lower_code and self.starts[-1] <= kind.upper_code
        if len(self.starts) < 2 or not ascending or not is_within:
            raise WrongUse(
                f"Bins of {shown(self.column.name)} that do not ascend within its bounds.",
                allowed="two bins or more: the first value of each but the first, (18, 65)",
            )

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def kind(self) -> Declared:
        """The type of the column."""
        return declared(self.column)

    @property
    def is_nullable(self) -> bool:
        """Whether the column is declared to have missing values."""
        return self.column.type.missing is not None

    @property
    def bins(self) -> int:
        """The number of cells, without the cell of missing values."""
        if self.starts is None:
            return self.kind.size
        return len(self.starts)

    @property
    def cells(self) -> int:
        """The number of cells, including that of missing values."""
        return self.bins + 1

    @property
    def limits(self) -> Integers:
        """The first code of each bin, and the code after the last bin's."""
        kind = self.kind
        if self.starts is None:
            return np.arange(kind.lower_code, kind.upper_code + 2)
        return np.array([*self.starts, kind.upper_code + 1])

    @property
    def read(self) -> Column:
        """The column of the private table that the axis reads."""
        return self.column

    @property
    def key(self) -> GroupKey:
        """The axis of the cube that engines count by."""
        if self.starts is None:
            return axis(Value.of(self.column))
        kind = Integer(0, self.bins - 1)
        return axis(Value(self.name, kind, _bin_of(self.column, self.starts)))

    def codes(
        self,
        cells: Integers,
        spread: Floats,
        weights: Floats,
        reach: tuple[int, int] | None = None,
    ) -> Integers:
        """Returns a code for each row in its bin; a code beyond the last limit means missing.

        Args:
            cells: the cell of each row.
            spread: uniform numbers, one a row, that place the row inside its bin.
            weights: how many rows each cell has; a monotone curve through their cumulative sums
                is the distribution inside the bins.
            reach: codes between which the rows lie, in bins that are partly outside.
        """
        limits = self.limits
        if self.starts is None:
            return limits[cells]
        masses = np.maximum(weights[: self.bins], 0.0) + 1e-9
        curve = PchipInterpolator(limits, np.concatenate([[0.0], np.cumsum(masses)]))
        firsts, ends = _cut_to_reach(limits, reach)
        fine = np.linspace(firsts, ends, _STEPS + 1, axis=1)
        heights = curve(fine)
        codes = np.full(len(cells), limits[-1])
        for place in np.unique(cells[cells < self.bins]):
            chosen = cells == place
            low, high = heights[place, 0], heights[place, -1]
            values = np.interp(low + spread[chosen] * (high - low), heights[place], fine[place])
            codes[chosen] = np.clip(np.floor(values), firsts[place], ends[place] - 1)
        return codes

    def values(self, codes: Integers) -> pa.Array:
        """Returns the values of codes as an Arrow array; a code beyond the last limit is
        missing.
        """
        kind = self.kind
        is_missing = codes > kind.upper_code
        found, places = np.unique(codes[~is_missing], return_inverse=True)
        decoded = pa.array([kind.decode(int(code)) for code in found], _arrow_type(kind))
        rows = np.zeros(len(codes), np.int64)
        rows[~is_missing] = places
        return decoded.take(pa.array(rows, mask=is_missing))


def _cut_to_reach(limits: Integers, reach: tuple[int, int] | None) -> tuple[Integers, Integers]:
    """Clips the first and the past-the-end codes of bins to a range of codes.

    A bin that is entirely outside is unchanged.
    """
    firsts, ends = limits[:-1], limits[1:]
    if reach is None:
        return firsts, ends
    low, high = reach
    cut_firsts = np.where(ends > low, np.maximum(firsts, low), firsts)
    cut_ends = np.where(firsts < high, np.minimum(ends, high), ends)
    return cut_firsts, cut_ends


def _arrow_type(kind: Declared) -> pa.DataType:
    """Returns the Arrow type of a column, whichever of its values occur."""
    return pa.array([kind.decode(kind.lower_code)]).type


def _bin_of(column: Column, starts: Sequence[int]) -> Scalar:
    """Returns the expression for the bin number of a column."""
    field = Field(column)
    widths = set(np.diff(starts).tolist())
    last = declared(column).upper_code + 1 - starts[-1]
    if len(widths) == 1 and last <= max(widths):
        above = Arithmetic(Operation.SUBTRACT, field, Constant(starts[0]))
        return FloorDivide(above, widths.pop())
    branches: list[tuple[Scalar, Scalar]] = [(IsNull(field), Constant(None))]
    for place, start in enumerate(starts[1:]):
        branches.append((Compare(Comparison.LT, field, Constant(start)), Constant(place)))
    return Case(tuple(branches), Constant(len(starts) - 1))


@dataclass(frozen=True, slots=True)
class TextAxis(Axis):
    """A text column as cells: one for each released string, one for all others, one for missing.

    Guarantees:
        every string is in one cell

    >>> found = TextAxis(Column("city", Category("Bonn", "Ulm", "(other)")))
    >>> found.cells, found.keys
    (4, ('Bonn', 'Ulm'))
    """

    @property
    def read(self) -> Column:
        """The text column of the private table."""
        return Column(self.name, Text(missing=self.column.type.missing))

    @property
    def keys(self) -> tuple[str, ...]:
        """The strings that were released privately, which have a cell each."""
        assert isinstance(self.column.type, Category), "a text has released values"
        return self.column.type.values[:-1]

    @property
    def rest(self) -> str:
        """The placeholder that stands for all other strings."""
        return str(self.kind.decode(self.bins - 1))

    @property
    def key(self) -> GroupKey:
        """The axis of the cube that engines count by."""
        return axis(Value(self.name, self.column.type, place_of(self.read, self.keys)))


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a synthetic table as axes, and the plan by which its marginals are counted."""

    table: str
    axes: tuple[Axis, ...]
    plan: Plan

    @classmethod
    def over(cls, dataset: Dataset, table: str, axes: Sequence[Axis]) -> "Schema":
        """Returns the schema of some axes of a declared table."""
        columns = tuple(one.read for one in axes)
        scan = Scan(table, columns=columns, owner=owner_of(dataset, table))
        plan = compile_cube(Cube(scan, tuple(one.key for one in axes)), dataset)
        return cls(table, tuple(axes), plan)

    def with_axes(self, axes: Sequence[Axis]) -> "Schema":
        """Returns the schema with other axes (bins) for the same columns."""
        if not isinstance(self.plan, BoundedCube):
            return replace(self, axes=tuple(axes), plan=self.plan.with_axes(axes))
        cube = replace(self.plan.cube, axes=tuple(one.key for one in axes))
        return replace(self, axes=tuple(axes), plan=replace(self.plan, cube=cube))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(one.name for one in self.axes)

    @property
    def declarations(self) -> Dataset:
        """The table with these columns only, for SQL on synthetic rows."""
        columns = {one.name: one.column.type for one in self.axes}
        return Dataset("synthetic", {self.table: Table("synthetic.parquet", columns=columns)})

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of each axis of the cube."""
        return tuple(one.cells for one in self.axes)

    def place(self, name: str) -> int:
        """Returns the index of an axis; raises UnknownName if there is none."""
        if name not in self.names:
            raise UnknownName(f"No column {shown(name)}.", allowed=", ".join(self.names))
        return self.names.index(name)


def schema_of(
    dataset: Dataset,
    table: str,
    columns: Sequence[str] | None = None,
    bins: Mapping[str, Bins] | None = None,
    texts: Texts | None = None,
) -> Schema:
    """Returns the columns of a declared table as axes; reads declarations only.

    By default takes every column whose values are declared, except id columns of a unit, and a
    ``Text`` only if ``texts`` has a placeholder for it.

    Raises:
        UnknownName: no such table or column.
        MissingDeclaration: a ``Text`` is named, or no limit bounds the rows of a unit.
        WrongUse: no columns or more than 1,000, one twice, or bins that cannot be.

    >>> import sfumato as sf
    >>> people = sf.Table("people.csv", columns={"age": sf.Integer(0, 999), "job": sf.Text()})
    >>> found = schema_of(Dataset("survey", {"people": people}), "people", bins={"age": 10})
    >>> found.names, found.cells
    (('age',), (11,))
    """
    return Schema.over(dataset, table, axes_of(dataset, table, columns, bins, texts=texts))


def axes_of(
    dataset: Dataset,
    table: str,
    columns: Sequence[str] | None = None,
    bins: Mapping[str, Bins] | None = None,
    keys: Set[str] = frozenset(),
    texts: Texts | None = None,
) -> tuple[Axis, ...]:
    """Returns the axes of ``schema_of``; ``keys`` are further columns to leave out by default."""
    rests = dict(texts or {})
    if table not in dataset.tables:
        raise UnknownName(f"No table {shown(table)}.", allowed=", ".join(dataset.tables))
    types_by_name = dataset.tables[table].columns
    chosen_names = _chosen_columns(dataset, table, columns, keys, rests)
    bins_by_column = dict(bins or {})
    unknown = [name for name in bins_by_column if name not in chosen_names]
    if unknown:
        raise UnknownName(f"Bins of {shown(unknown[0])}.", allowed=", ".join(chosen_names))
    axes: list[Axis] = []
    for name in chosen_names:
        column = Column(name, types_by_name[name])
        if name in rests:
            axes.append(_text_axis(column, rests.pop(name)))
        else:
            axes.append(Axis(column, _bin_starts(column, bins_by_column.get(name))))
    if rests:
        raise UnknownName(f"texts= of {shown(next(iter(rests)))}.", allowed=", ".join(chosen_names))
    return tuple(axes)


def _text_axis(column: Column, placeholder: object) -> TextAxis:
    """Returns the axis of a text of which no string is released yet."""
    kind = column.type
    if not isinstance(kind, Text) or not isinstance(placeholder, str) or not placeholder:
        raise WrongUse(
            f"texts={{{shown(column.name)}: {shown(placeholder)}}}.",
            allowed="a column that is declared as sf.Text, and a placeholder for rare values",
            remedy='texts={"city": "(other)"}',
        )
    return TextAxis(Column(column.name, Category(placeholder, missing=kind.missing)))


def _chosen_columns(
    dataset: Dataset,
    table: str,
    columns: Sequence[str] | None,
    keys: Set[str],
    texts: Texts,
) -> list[str]:
    """Returns the names of the columns to synthesise, in the order of their declarations."""
    types_by_name = dataset.tables[table].columns
    unit = dataset.row_unit(table)
    ids = keys | set(() if unit is None else unit.columns)
    if columns is None:
        names = []
        for name, kind in types_by_name.items():
            is_open = isinstance(kind, Text) and name not in texts
            if not is_open and name not in ids:
                names.append(name)
    else:
        names = list(columns)
    for name in names:
        if name not in types_by_name:
            raise UnknownName(f"No column {shown(name)}.", allowed=", ".join(types_by_name))
    if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
        more = ", ".join(names[MOST_COLUMNS : MOST_COLUMNS + 3])
        raise WrongUse(
            f"{len(names):,} columns of {shown(table)}.",
            allowed=f"from 1 to {MOST_COLUMNS:,} columns with declared values, each once",
            remedy=f"Name the columns that matter in columns=; drop {more or 'repeats'}.",
        )
    return names


def _bin_starts(column: Column, bins: Bins | None) -> tuple[int, ...] | None:
    """Returns the first codes of the bins of a column; None if each value is a cell."""
    kind = declared(column)
    if isinstance(kind, Category) and kind.size > MOST_WORDS:
        raise WrongUse(
            f"{shown(column.name)} has {kind.size:,} declared values.",
            allowed=f"at most {MOST_WORDS:,} values of a Category",
            remedy="Declare it as sf.Text with texts=, or leave it out of columns=.",
        )
    if bins is None:
        if isinstance(kind, Category) or kind.size <= MOST_VALUES:
            return None
        return _equal_bins(column, DEFAULT_BINS)
    if isinstance(kind, Category):
        raise WrongUse(
            f"Bins of {shown(column.name)}, a Category.", allowed="bins of ordered columns"
        )
    if isinstance(bins, Quantiles):
        return _equal_bins(column, min(bins.bins, kind.size))
    if isinstance(bins, int):
        return _equal_bins(column, bins)
    if not isinstance(bins, Sequence):
        raise WrongUse(
            f"Bins of {shown(column.name)}: {shown(bins)}.",
            allowed="a whole number of bins, sy.Quantiles(32), or the first value of each but "
            "the first: [18, 65]",
        )
    inner = [_code(column, edge) for edge in bins]
    if len(inner) >= MOST_BINS or any(code is None for code in inner):
        raise WrongUse(
            f"Bins of {shown(column.name)}: {shown(bins)}.",
            allowed=f"at most {MOST_BINS:,} values of the column",
        )
    return (kind.lower_code, *(code for code in inner if code is not None))


def _equal_bins(column: Column, bins: int) -> tuple[int, ...]:
    """Returns the first codes of ``bins`` bins of equal width; the last bin may be narrower."""
    kind = declared(column)
    if isinstance(bins, bool) or not 2 <= bins <= MOST_BINS:
        raise WrongUse(
            f"{shown(bins)} bins of {shown(column.name)}.", allowed=f"from 2 to {MOST_BINS:,}"
        )
    width = -(-kind.size // bins)
    return tuple(range(kind.lower_code, kind.upper_code + 1, width))


def _code(column: Column, value: Any) -> int | None:
    """Returns the code of a value of an ordered column; None if it has none."""
    kind = column.type
    if isinstance(kind, Integer | Real):
        return round(to_fraction("bins", value) / kind.step)
    return date_code(value)

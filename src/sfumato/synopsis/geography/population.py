# SPDX-License-Identifier: Apache-2.0
"""The population of a census: the rows of a table that have an area and a cell on each axis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from sfumato.errors import (
    InvalidDeclaration,
    UnknownName,
    WrongUse,
    shown,
)
from sfumato.metadata.column import (
    Category,
    Column,
    Integer,
    Text,
)
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.cube import MAX_CELLS, BoundedCube, Cube, axis
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.value import GroupKey, Value
from sfumato.query.pipeline import compile_cube
from sfumato.sql.lower import understand
from sfumato.synopsis.geography.spine import Spine

Label: TypeAlias = object


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the tables: a declared column, or an SQL expression over columns."""

    key: GroupKey

    @property
    def name(self) -> str:
        """The name of the axis."""
        return self.key.value.name

    @property
    def labels(self) -> tuple[Label, ...]:
        """The label of each cell; None for missing values, if they are counted."""
        kind = self.key.value.type
        assert not isinstance(kind, Text), "an axis has declared values"
        found = [kind.decode(code) for code in self.key.codes or ()]
        return (*found, None) if self.key.missing else tuple(found)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.places)

    @property
    def places(self) -> tuple[int, ...]:
        """For each cell, its index on the axis of the counted cube, which has every code of the
        column's type.
        """
        kind = self.key.value.type
        assert not isinstance(kind, Text), "an axis has declared values"
        found = [code - kind.lower_code for code in self.key.codes or ()]
        # missing values come behind all codes
        return (*found, kind.size) if self.key.missing else tuple(found)


@dataclass(frozen=True, eq=False)
class Population:
    """The counted table of a census: a bounded cube whose first axes are the location of a row,
    followed by the ``axes``.

    ``areas`` has, for each cell of the place, the area of the lowest level, or -1 for none. A row
    is counted if it has an area and a cell on every axis, so all tables are about the same rows.
    """

    table: str
    cube: BoundedCube
    axes: tuple[Axis, ...]
    areas: Integers


def population(
    dataset: Dataset,
    table: str,
    spine: Spine,
    axes: Sequence[str],
    recodes: Mapping[str, str],
) -> Population:
    """Returns the plan that counts the rows of a table by the areas of a spine and by some axes.

    An axis is a column, or the name of an SQL expression in ``recodes``. Missing or undeclared
    values have a cell only if ``missing=`` declares them, or if the expression can be NULL.

    Raises:
        UnknownName: no such table, column or value.
        InvalidDeclaration: an area that the column of the place does not declare, or a declared
            category without an area.
        WrongUse: too many cells.
        MissingDeclaration, UnsupportedSql, SqlSyntaxError: an axis without declared values.
    """
    if table not in dataset.tables:
        raise UnknownName(
            f"No table {shown(table)}.",
            allowed=", ".join(dataset.tables),
        )
    declared = dataset.tables[table].columns
    columns = {name: Column(name, kind) for name, kind in declared.items()}
    places = [_column(columns, name) for name in spine.columns]
    keys = []
    for name in axes:
        if name in recodes:
            keys.append(_recoded(dataset, table, name, recodes[name]))
        else:
            keys.append(_column(columns, name, others=tuple(recodes)))
    owner = owner_of(dataset, table)
    scan = Scan(table, columns=tuple(columns.values()), owner=owner)
    cube = Cube(scan, tuple(axis(key.value) for key in (*places, *keys)))
    _require_cells(cube)
    bounded = compile_cube(cube, dataset)
    found = tuple(map(Axis, keys))
    return Population(table, bounded, found, _areas(spine, places))


def _column(
    columns: Mapping[str, Column],
    name: str,
    *,
    others: tuple[str, ...] = (),
) -> GroupKey:
    """Returns a declared column as a key; missing values are a cell if they are declared."""
    if name not in columns:
        known = ", ".join((*columns, *others))
        raise UnknownName(f"There is no axis {shown(name)}.", allowed=known)
    key = axis(Value.of(columns[name]))
    return replace(key, missing=bool(columns[name].type.missing))


def _recoded(dataset: Dataset, table: str, name: str, expression: str) -> GroupKey:
    """Returns an expression of SQL as a key of this name.

    Raises:
        UnsupportedSql, SqlSyntaxError, UnknownName, MissingDeclaration: as a key of GROUP BY.
        WrongUse: it is more than one expression, or has the name of a column.
    """
    if name in dataset.tables[table].columns:
        raise WrongUse(
            f"The recode {shown(name)} has the name of a column.",
            remedy="Name it otherwise.",
        )
    sql = f"SELECT {expression}, COUNT(*) FROM {_quoted(table)} GROUP BY {expression}"
    raw = understand(sql, dataset).raw
    if len(raw.keys) != 1 or not isinstance(raw.relation, Scan):
        raise WrongUse(
            f"The recode {shown(expression)}.",
            allowed="one expression of columns",
        )
    (key,) = raw.keys
    return replace(key, value=replace(key.value, name=name))


def _quoted(name: str) -> str:
    """Returns a name as an identifier of SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _require_cells(cube: Cube) -> None:
    """Raises WrongUse if the cells of all areas of the lowest level are too many."""
    cells = math.prod(key.size or 1 for key in cube.axes)
    if cells > MAX_CELLS:
        sizes = ", ".join(f"{key.value.name} {key.size:,}" for key in cube.axes)
        raise WrongUse(
            f"A census of {cells:,} cells: {sizes}, with one for missing values each.",
            allowed=f"at most {MAX_CELLS:,}: a row is read by its place and all axes together",
            remedy="Name fewer axes, coarser ones by recodes=, or areas that are larger.",
        )


def _areas(spine: Spine, places: Sequence[GroupKey]) -> Integers:
    """Returns the area of each cell of the place, or -1.

    Raises:
        InvalidDeclaration: an area without a declared value, or the reverse.
    """
    codes = [
        _codes(column, key, texts)
        for column, key, texts in zip(spine.columns, places, spine.keys, strict=True)
    ]
    shape = [len(key.codes or ()) + 1 for key in places]
    areas = np.full(shape, -1, np.int64)
    areas[tuple(codes)] = np.arange(len(spine.codes[-1]))
    kind = places[0].value.type
    if len(places) == 1 and isinstance(kind, Category):
        nowhere = np.flatnonzero(areas[:-1] < 0)
        if len(nowhere):
            raise InvalidDeclaration(
                f"The {spine.columns[0]} {kind.decode(int(nowhere[0]))!r} is declared, "
                "and is in no area of the spine.",
                remedy="Add it to the spine, or leave it out of the Category.",
            )
    return areas.ravel()


def _codes(column: str, key: GroupKey, texts: Sequence[str]) -> Integers:
    """Returns the place, among the declared values of a column, of each string of the spine.

    Raises:
        InvalidDeclaration: one is not declared, or two mean one value.
    """
    known = _known(key)
    whole = isinstance(key.value.type, Integer)
    places = []
    for text in texts:
        named = _as_number(text) if whole else text
        if named not in known:
            raise InvalidDeclaration(
                f"The area {text!r} of the spine is no declared value of {column!r}.",
                allowed=f"{len(known):,} declared values, such as {shown(next(iter(known)))}",
                remedy="Declare it, or leave it out of the spine.",
            )
        places.append(known[named])
    return np.array(places, np.int64)


def _as_number(text: str) -> str:
    """Returns a whole number without leading zeros; any other string as it is."""
    return str(int(text)) if text.strip().lstrip("-").isdecimal() else text


def _known(key: GroupKey) -> dict[str, int]:
    """The strings that name the declared values of a column: those of the data, then labels."""
    kind = key.value.type
    assert not isinstance(kind, Text), "an axis has declared values"
    found = {str(kind.decode(code)): place for place, code in enumerate(key.codes or ())}
    if isinstance(kind, Category):
        for place, value in enumerate(kind.values):
            found.setdefault(value, place)
    return found

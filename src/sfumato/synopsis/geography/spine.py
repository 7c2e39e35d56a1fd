# SPDX-License-Identifier: Apache-2.0
"""The spine of a geography: the public table of the areas of each level."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.errors import (
    InvalidDeclaration,
    InvalidSource,
    WrongUse,
    shown,
)
from sfumato.metadata.side_file import side_text
from sfumato.noise import Integers
from sfumato.synopsis.geography.tree import Tree

Texts: TypeAlias = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Spine:
    """The areas of a geography, level by level, the widest level first.

    Args:
        levels: the names of the levels, each a column of the table: "nation > state > county".
        table: a public table with a row for each area of the lowest level: the path of a CSV or
            Parquet file, an Arrow table, or a frame of pandas or polars. It is read as strings.
        column: the column of the private table that says in which area of the lowest level a row
            lies, by default the one with the name of that level. Several columns together are
            looked up in the columns of the same names of the spine's table.

    Attributes:
        levels: the names of the levels.
        codes: the codes of the areas of each level; the children of an area are neighbours.
        tree: which area lies in which.
        columns: the columns of the private table.
        keys: for each of them, its value in each area of the lowest level.

    Raises:
        WrongUse: fewer than two levels, or a name twice.
        InvalidSource: the table cannot be read, or has no rows.
        InvalidDeclaration: a column is missing, an area has no code, an area lies in two, a level
            below the first has one area only, or two areas of the lowest level have one key.

    >>> table = pa.table({"state": ["A", "A", "B"], "county": ["a1", "a2", "b1"]})
    >>> Spine("state > county", table)
    Spine('state > county': 2 > 3 areas)
    """

    levels: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    tree: Tree
    columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]

    def __init__(
        self,
        levels: str,
        table: object,
        *,
        column: str | Sequence[str] = (),
    ) -> None:
        names = _levels(levels)
        columns = (column,) if isinstance(column, str) else tuple(column)
        columns = columns or (names[-1],)
        read = _read(table)
        codes_by_level = {name: _strings(read, name) for name in names}
        codes, places = _sorted(names, codes_by_level)
        _require_areas(names, codes)
        parents = []
        for above, below in pairwise(places):
            first = np.unique(below, return_index=True)[1]
            parents.append(above[first])
        tree = Tree(len(codes[0]), tuple(parents))
        keys = _keys(read, columns, codes_by_level[names[-1]], places[-1])
        object.__setattr__(self, "levels", names)
        object.__setattr__(self, "codes", tuple(tuple(each.tolist()) for each in codes))
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "keys", keys)

    def place(self, level: str) -> int:
        """Returns the index of a level by its name (WrongUse if there is none)."""
        if level not in self.levels:
            raise WrongUse(
                f"There is no level {shown(level)}.",
                allowed=", ".join(self.levels),
            )
        return self.levels.index(level)

    def __repr__(self) -> str:
        sizes = " > ".join(f"{size:,}" for size in self.tree.sizes)
        return f"Spine({' > '.join(self.levels)!r}: {sizes} areas)"


def _levels(levels: object) -> tuple[str, ...]:
    """Returns the names of the levels."""
    if not isinstance(levels, str):
        raise WrongUse(
            f"levels={shown(levels)}.",
            allowed='"nation > state > county"',
        )
    names = tuple(name.strip() for name in levels.split(">"))
    if len(names) < 2:
        raise WrongUse(
            f"A spine of one level, {levels!r}.",
            allowed='at least two: "nation > state"',
            remedy="Without a geography, ask session.marginals or sf.synopsis.measure.",
        )
    if len(set(names)) < len(names) or "" in names:
        raise WrongUse(f"The levels {levels!r}.", allowed="names, each once")
    return names


def _read(table: Any) -> pa.Table:
    """Returns the public table as Arrow."""
    if isinstance(table, str | Path):
        return _file(Path(table))
    if isinstance(table, pa.Table):
        return table
    try:
        return pa.table(table)
    except (TypeError, ValueError, pa.ArrowException):
        raise WrongUse(
            f"A spine from {shown(table)}.",
            allowed="the path of a CSV or Parquet file, an Arrow table, a frame",
        ) from None


def _file(path: Path) -> pa.Table:
    """Returns the rows of a file; of a CSV all as strings."""
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pa.parquet.read_table(path)
        rows = pa.py_buffer(side_text(path).encode())
        with pa.csv.open_csv(pa.BufferReader(rows)) as reader:
            names = reader.schema.names
        texts = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return pa.csv.read_csv(pa.BufferReader(rows), convert_options=texts)
    except (OSError, pa.ArrowInvalid):
        raise InvalidSource(
            f"The spine {shown(path)} cannot be read.",
            allowed="a CSV or Parquet file",
        ) from None


def _strings(table: pa.Table, name: str) -> Texts:
    """Returns a column as an array of strings."""
    if name not in table.column_names:
        raise InvalidDeclaration(
            f"The table of the spine has no column {shown(name)}.",
            allowed=", ".join(table.column_names),
        )
    column = table[name]
    if not len(column):
        raise InvalidSource(
            "A spine without rows.",
            remedy="Give the table of its areas.",
        )
    texts = np.array([str(value) for value in column.to_pylist()])
    if column.null_count or (texts == "").any():
        raise InvalidDeclaration(
            f"A row of the spine has no {name}.",
            remedy="Give every area a code.",
        )
    return texts


def _sorted(
    names: Sequence[str], codes_by_level: dict[str, Texts]
) -> tuple[list[Texts], list[Integers]]:
    """The codes of each level by place, and for each row the place of its area at each level.

    Areas are ordered by their parents, then by their codes.

    Raises:
        InvalidDeclaration: an area lies in two areas of the level above.
    """
    codes, places = [], []
    above: Integers | None = None
    for depth, name in enumerate(names):
        areas, number = np.unique(codes_by_level[name], return_inverse=True)
        order = np.arange(len(areas))
        if above is not None:
            parents = above[np.unique(number, return_index=True)[1]]
            twice = np.flatnonzero(above != parents[number])
            if len(twice):
                raise _two_parents(names, codes_by_level, depth, row=twice[0])
            order = np.lexsort((order, parents))
        rank = np.empty(len(areas), np.int64)
        rank[order] = np.arange(len(areas))
        above = rank[number]
        codes.append(areas[order])
        places.append(above)
    return codes, places


def _two_parents(
    names: Sequence[str],
    codes_by_level: dict[str, Texts],
    depth: int,
    *,
    row: int,
) -> InvalidDeclaration:
    """Returns the refusal of an area that lies in two areas of the level above."""
    name, above = names[depth], names[depth - 1]
    code = codes_by_level[name][row]
    parents = np.unique(codes_by_level[above][codes_by_level[name] == code])
    return InvalidDeclaration(
        f"The {name} {str(code)!r} lies in {len(parents)} areas of level {above!r}: "
        f"{', '.join(map(repr, parents[:3].tolist()))}.",
        allowed="one parent for each area",
        remedy="Make its code unique, for example by putting that of its parent before it.",
    )


def _require_areas(names: Sequence[str], codes: Sequence[Texts]) -> None:
    """Refuses a level, below the first, that has one area."""
    for name, found in zip(names[1:], codes[1:], strict=True):
        if len(found) == 1:
            raise InvalidDeclaration(
                f"The level {name!r} has one area only, {str(found[0])!r}.",
                allowed="at least two areas in each level below the first",
                remedy="Leave the level out: its tables are those of the level above.",
            )


def _keys(
    table: pa.Table,
    columns: Sequence[str],
    lowest: Texts,
    places: Integers,
) -> tuple[tuple[str, ...], ...]:
    """The key of each area of the lowest level: its value in each column of the private table.

    Raises:
        InvalidDeclaration: an area has two keys, or two areas have one.
    """
    first = np.unique(places, return_index=True)[1]
    keys = []
    for column in columns:
        is_its_own = len(columns) == 1 and column not in table.column_names
        key = lowest if is_its_own else _strings(table, column)
        other = np.flatnonzero(key != key[first][places])
        if len(other):
            raise InvalidDeclaration(
                f"The area {str(lowest[other[0]])!r} has two values of {column!r}.",
                allowed="one for each area of the lowest level",
            )
        keys.append(tuple(key[first].tolist()))
    seen: dict[tuple[str, ...], int] = {}
    for place, joined in enumerate(zip(*keys, strict=True)):
        if seen.setdefault(joined, place) != place:
            raise InvalidDeclaration(
                f"Two areas of the lowest level have the key {', '.join(joined)!r}.",
                allowed="one area for each key",
            )
    return tuple(keys)

# SPDX-License-Identifier: Apache-2.0
"""A bounded cube as DuckDB SQL: a table of small integers, and the marginals of it. Proof: cube.proof.md.

The table has a column for each axis, the place of the row's cell on it, and the weight of the row where that can be
below one: no unit, no value. What is asked of it afterwards are sums over cells alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import names_read, split
from sfumato.engines.relation import Tables, rows
from sfumato.engines.value_sql import Source
from sfumato.errors import WrongUse
from sfumato.metadata.column import Text
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube, Places
from sfumato.plan.value import GroupKey

# No unit has more rows: so many count in full where more are declared, and a product with a weight fits 64 bits.
_MOST = 2**40
_WIDTHS = (("UTINYINT", 2**8), ("USMALLINT", 2**16))


def coded(plan: BoundedCube, sources: Mapping[str, Source], *, windows: bool = False) -> str:
    """The SELECT of the table of codes. ``windows``: in SQL that Spark has, too.

    Guarantees:
        no row can make a cube fail
    """
    raw = plan.cube.raw
    relation, tests = split(raw.relation, sources)
    read = names_read(replace(raw, relation=relation))
    tables = replace(Tables.of(relation, sources), tests=tests, read=read, windows=windows)
    places = [f"{_place(key, windows=windows)} AS {_name(at)}" for at, key in enumerate(raw.keys)]
    found = rows(relation, tables)
    if not plan.is_weighed:
        return f"SELECT {', '.join(places)} FROM ({found})"
    most, fine = min(plan.most, _MOST), plan.refinement
    units = "SELECT unit, count(*) AS n FROM (SELECT * FROM found) GROUP BY unit"
    light = f"SELECT unit, {fine * most} // n AS weight FROM ({units}) WHERE n > {most}"
    shown = ", ".join(f"f.{_name(at)}" for at in range(len(raw.keys)))
    return (
        f"WITH found AS MATERIALIZED (SELECT unit, {', '.join(places)} FROM ({found}))\n"
        f"SELECT {shown}, TRY_CAST(coalesce(weight, {fine}) AS INTEGER) AS weight "
        f"FROM found AS f LEFT JOIN ({light}) AS u ON f.unit = u.unit"
    )


def names(plan: BoundedCube) -> list[str]:
    """The columns of the table of codes."""
    return [*map(_name, range(len(plan.cube.axes))), *["weight"] * plan.is_weighed]


def counted(plan: BoundedCube, table: str, clique: Places) -> str:
    """The SELECT of a marginal: the cells that have a row, and their weights."""
    by = ", ".join(map(_name, clique))
    total = "coalesce(sum(weight), 0)" if plan.is_weighed else f"count(*) * {plan.refinement}"
    total = f"TRY_CAST({total} AS BIGINT)"
    if not by:
        return f"SELECT {total} AS total FROM {table}"
    return f"SELECT {by}, {total} AS total FROM {table} GROUP BY {by}"


def dense(found: Sequence[Integers], shape: tuple[int, ...]) -> Integers:
    """All cells of a marginal, from those that have a row."""
    cells: Integers = np.zeros(shape, np.int64)
    *places, totals = found
    cells[tuple(places)] = totals if shape else totals[0]
    return cells


class Coded:
    """A table of codes that is open; nothing but marginals comes out, and of itself it says nothing.

    ``ask`` gives the columns of a SELECT of one of them.
    """

    __slots__ = ("_ask", "_plan", "_table")

    def __init__(
        self, plan: BoundedCube, table: str, ask: Callable[[str], Sequence[Integers]]
    ) -> None:
        self._plan, self._table, self._ask = plan, table, ask

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """The exact marginals, one after the other; see ``Marginals``."""
        cube = self._plan.cube
        return [
            dense(self._ask(counted(self._plan, self._table, each)), cube.shape(each))
            for each in cube.places(cliques)
        ]

    def __reduce__(self) -> NoReturn:
        raise WrongUse("An open table of codes is not pickled.", remedy="Open it where it is used.")


def _name(place: int) -> str:
    return f"a{place}"


def _place(key: GroupKey, *, windows: bool) -> str:
    """The cell of a row on an axis, in the narrowest type: NULL is the last."""
    kind = key.value.type
    assert not isinstance(kind, Text), "an axis has declared values"
    held = (
        "INTEGER"
        if windows
        else next((name for name, cells in _WIDTHS if kind.size < cells), "INTEGER")
    )
    return f"TRY_CAST(coalesce({typed(key.value)} - ({kind.lower_code}), {kind.size}) AS {held})"

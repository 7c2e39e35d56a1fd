# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for a bounded cube: a table of small integers and its marginals. Proof: cube.proof.md.

The table has a column for each axis, the index of the row's cell on it, and the weight of the row
where that can be below one. It has no unit and no value. Later statements only add up cells.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import pushed_down
from sfumato.engines.relation import rows
from sfumato.engines.value_sql import Source
from sfumato.errors import WrongUse
from sfumato.metadata.column import Text
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube, Places
from sfumato.plan.value import GroupKey

# No unit has more rows than this. A larger declared limit is cut to it, so that its product with a
# weight fits 64 bits.
_MOST = 2**40
_WIDTHS = (("UTINYINT", 2**8), ("USMALLINT", 2**16))


def coded(
    plan: BoundedCube,
    sources: Mapping[str, Source],
    *,
    windows: bool = False,
) -> str:
    """Returns the SELECT of the table of codes; ``windows`` as in ``Tables``.

    Guarantees:
        no row can make a cube fail
    """
    raw, tables = pushed_down(plan.cube.raw, sources, windows=windows)
    source = rows(raw.relation, tables)
    items = [f"{_place(key, windows=windows)} AS {_name(at)}" for at, key in enumerate(raw.keys)]
    if not plan.is_weighed:
        return f"SELECT {', '.join(items)} FROM ({source})"
    most = min(plan.most, _MOST)
    fine = plan.refinement
    units = "SELECT unit, count(*) AS n FROM (SELECT * FROM found) GROUP BY unit"
    light = f"SELECT unit, {fine * most} // n AS weight FROM ({units}) WHERE n > {most}"
    shown = ", ".join(f"f.{_name(at)}" for at in range(len(raw.keys)))
    return (
        f"WITH found AS MATERIALIZED (SELECT unit, {', '.join(items)} FROM ({source}))\n"
        f"SELECT {shown}, TRY_CAST(coalesce(weight, {fine}) AS INTEGER) AS weight "
        f"FROM found AS f LEFT JOIN ({light}) AS u ON f.unit = u.unit"
    )


def names(plan: BoundedCube) -> list[str]:
    """Returns the column names of the table of codes."""
    columns = [_name(place) for place in range(len(plan.cube.axes))]
    if plan.is_weighed:
        columns.append("weight")
    return columns


def counted(
    plan: BoundedCube,
    table: str,
    clique: Places,
) -> str:
    """Returns the SELECT of a marginal: the cells that have a row, and their total weights."""
    by = ", ".join(map(_name, clique))
    total = "coalesce(sum(weight), 0)" if plan.is_weighed else f"count(*) * {plan.refinement}"
    total = f"TRY_CAST({total} AS BIGINT)"
    if not by:
        return f"SELECT {total} AS total FROM {table}"
    return f"SELECT {by}, {total} AS total FROM {table} GROUP BY {by}"


def dense(columns: Sequence[Integers], shape: tuple[int, ...]) -> Integers:
    """Returns all cells of a marginal, given the indices and totals of those that have a row."""
    cells: Integers = np.zeros(shape, np.int64)
    *places, totals = columns
    cells[tuple(places)] = totals if shape else totals[0]
    return cells


class Coded:
    """An open table of codes; it releases nothing but marginals, and its repr shows nothing.

    ``ask`` runs a SELECT over the table and returns its columns.
    """

    __slots__ = ("_ask", "_plan", "_table")

    def __init__(
        self, plan: BoundedCube, table: str, ask: Callable[[str], Sequence[Integers]]
    ) -> None:
        self._plan = plan
        self._table = table
        self._ask = ask

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """Returns the exact marginals, computed one after the other; see ``Marginals``."""
        return [self._marginal(clique) for clique in self._plan.cube.places(cliques)]

    def _marginal(self, clique: Places) -> Integers:
        cells = self._ask(counted(self._plan, self._table, clique))
        return dense(cells, self._plan.cube.shape(clique))

    def __reduce__(self) -> NoReturn:
        raise WrongUse("An open table of codes is not pickled.", remedy="Open it where it is used.")


def _name(place: int) -> str:
    return f"a{place}"


def _place(key: GroupKey, *, windows: bool) -> str:
    """Returns the cell index of a row on an axis, in the narrowest type; NULL is the last cell."""
    kind = key.value.type
    assert not isinstance(kind, Text), "an axis has declared values"
    stored = "INTEGER" if windows else _narrowest(kind.size)
    cell = f"{typed(key.value)} - ({kind.lower_code})"
    return f"TRY_CAST(coalesce({cell}, {kind.size}) AS {stored})"


def _narrowest(size: int) -> str:
    """Returns the narrowest type of the indices from 0 to ``size``."""
    for name, cells in _WIDTHS:
        if size < cells:
            return name
    return "INTEGER"

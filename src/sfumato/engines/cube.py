# SPDX-License-Identifier: Apache-2.0
"""SQL trees for a bounded cube: a table of small integers and its marginals. Proof: cube.proof.md.

The table has a column for each axis, with the index of the row's cell, and a column for the weight
of the row if weights can be below one. It has no unit and no values. The DuckDB and Spark engines
build it once; later statements only add up cells.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from sfumato.engines import sql_tree as sql
from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import pushed_down
from sfumato.engines.linear_aggregates import or_zero, shifted
from sfumato.engines.relation import UNIT, rows
from sfumato.engines.value_sql import Source
from sfumato.errors import WrongUse
from sfumato.metadata.column import Text
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube, Places
from sfumato.plan.value import GroupKey

# No unit has more rows than this. A larger declared limit is cut to it, so that its product with a
# weight fits 64 bits.
_MOST = 2**40
_WIDTHS = ((sql.SqlType.UTINYINT, 2**8), (sql.SqlType.USMALLINT, 2**16))
_WEIGHT = sql.Column("weight")


def coded(
    plan: BoundedCube,
    sources: Mapping[str, Source],
    *,
    windows: bool = False,
) -> sql.Query:
    """Returns the SELECT that computes a cube's table of codes: one column for each axis, and the
    weight if rows are weighted. ``windows`` as in ``Tables``.

    Guarantees:
        no row can make a cube fail
    """
    raw, tables = pushed_down(plan.cube.raw, sources, windows=windows)
    source = sql.Item(rows(raw.relation, tables))
    items = []
    for at, key in enumerate(raw.keys):
        items.append(_place(key, windows=windows).named(_column(at)))
    if not plan.is_weighed:
        return sql.Select(tuple(items), source)
    found = sql.Named("found", sql.Select((UNIT, *items), source), materialized=True)
    shown = [replace(_column(at), table="f") for at in range(len(raw.keys))]
    weight = sql.call("coalesce", _WEIGHT, plan.refinement)
    stored = sql.TryCast(weight, sql.SqlType.INTEGER).named(_WEIGHT)
    same = sql.Column("unit", "f").equals(sql.Column("unit", "u"))
    joined = sql.Join("LEFT JOIN", sql.Item(_light(plan), "u"), same)
    rows_of = sql.Item(sql.Table("found"), "f")
    return sql.With((found,), sql.Select((*shown, stored), rows_of, (joined,)))


def _light(plan: BoundedCube) -> sql.Query:
    """Selects the units with more rows than the limit, and the weight of each of their rows."""
    most = min(plan.most, _MOST)
    size = sql.Column("n")
    every = sql.Select((sql.Star(),), sql.Item(sql.Table("found")))
    count = sql.aggregate("count").named(size)
    units = sql.Select((UNIT, count), sql.Item(every), group=(UNIT,))
    share = sql.Constant(plan.refinement * most) // size
    is_heavy = size > most
    return sql.Select((UNIT, share.named(_WEIGHT)), sql.Item(units), where=is_heavy)


def names(plan: BoundedCube) -> list[str]:
    """Returns the column names of a cube's table of codes, as ``coded`` selects them."""
    columns = [_column(place).name for place in range(len(plan.cube.axes))]
    if plan.is_weighed:
        columns.append("weight")
    return columns


def counted(
    plan: BoundedCube,
    table: str,
    clique: Places,
) -> sql.Query:
    """Returns the SELECT of a marginal: the non-empty cells and their total weights."""
    total: sql.Expression = sql.aggregate("count") * plan.refinement
    if plan.is_weighed:
        total = or_zero(sql.aggregate("sum", _WEIGHT))
    by = tuple(map(_column, clique))
    shown = sql.TryCast(total, sql.SqlType.BIGINT).named("total")
    return sql.Select((*by, shown), sql.Item(sql.Table(table)), group=by)


def dense(columns: Sequence[Integers], shape: tuple[int, ...]) -> Integers:
    """Returns all cells of a marginal, from the indices and totals of its non-empty cells."""
    cells: Integers = np.zeros(shape, np.int64)
    *places, totals = columns
    cells[tuple(places)] = totals if shape else totals[0]
    return cells


class Coded:
    """A cube that is open as a table of codes in an engine. It returns marginals only, and its repr
    shows no data.

    ``ask`` runs a query over the table and returns its columns.
    """

    __slots__ = ("_ask", "_plan", "_table")

    def __init__(
        self, plan: BoundedCube, table: str, ask: Callable[[sql.Query], Sequence[Integers]]
    ) -> None:
        self._plan = plan
        self._table = table
        self._ask = ask

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """Returns the exact counts for each set of columns in ``cliques``; see ``Marginals``."""
        return [self._marginal(clique) for clique in self._plan.cube.places(cliques)]

    def _marginal(self, clique: Places) -> Integers:
        cells = self._ask(counted(self._plan, self._table, clique))
        return dense(cells, self._plan.cube.shape(clique))

    def __reduce__(self) -> NoReturn:
        raise WrongUse("An open table of codes is not pickled.", remedy="Open it where it is used.")


def _column(place: int) -> sql.Column:
    return sql.Column(f"a{place}")


def _place(key: GroupKey, *, windows: bool) -> sql.Expression:
    """Returns the cell index of a row on an axis, in the narrowest type; NULL is the last cell."""
    kind = key.value.type
    assert not isinstance(kind, Text), "an axis has declared values"
    stored = sql.SqlType.INTEGER if windows else _narrowest(kind.size)
    cell = shifted(typed(key.value), kind.lower_code)
    return sql.TryCast(sql.call("coalesce", cell, kind.size), stored)


def _narrowest(size: int) -> sql.SqlType:
    """Returns the narrowest type of the indices from 0 to ``size``."""
    for narrow, cells in _WIDTHS:
        if size < cells:
            return narrow
    return sql.SqlType.INTEGER

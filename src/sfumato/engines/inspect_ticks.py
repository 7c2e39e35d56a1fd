# SPDX-License-Identifier: Apache-2.0
"""Counts the rows of units by ticks of a stream: for the owner, not private.

The counts show how much limits of a stream leave out. No question uses this module (see
``inspect_units``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.engines import sql_tree as sql
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.expression import alias
from sfumato.engines.relation import UNIT, Tables, rows, stored_columns
from sfumato.engines.value_sql import Source
from sfumato.metadata.column import Column, Date, Integer
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.relation import Relation

_TICK = sql.Column("tick")
_ROWS = sql.Column("n")
_RANK = sql.Column("r")


@dataclass(frozen=True, slots=True)
class TickFacts:
    """How the rows of all units are spread over ticks.

    ``pairs`` maps (i, r) to the number of units that have r rows in their i-th tick, counted from
    1.

    >>> TickFacts({(1, 3): 10, (2, 1): 4}).left_out(participations=1, most=2)
    14
    """

    pairs: Mapping[tuple[int, int], int]

    @property
    def rows(self) -> int:
        """The number of rows that have a unit and a time."""
        return sum(size * units for (_, size), units in self.pairs.items())

    def left_out(self, participations: int, most: int) -> int:
        """Counts the rows beyond the first ``participations`` ticks, or ``most`` a tick."""
        lost = 0
        for (rank, size), units in self.pairs.items():
            lost += units * (size if rank > participations else max(0, size - most))
        return lost

    def limits_for(self, share: float) -> tuple[int, int]:
        """Returns the smallest limits (ticks, rows a tick) that leave out at most a share of rows.

        Each of the two limits leaves out at most half of the share.
        """
        allowed = share * self.rows / 2
        ranks = sorted({rank for rank, _ in self.pairs} | {1})
        sizes = sorted({size for _, size in self.pairs} | {1})
        ticks = next(rank for rank in ranks if self.left_out(rank, sizes[-1]) <= allowed)
        most = next(size for size in sizes if self.left_out(ranks[-1], size) <= allowed)
        return ticks, most


def inspect_ticks(engine: DuckDB, relation: Relation, time: Column, width: int) -> TickFacts:
    """Counts the rows of each unit by ticks of ``width`` time codes, from the lowest time on.

    Raises:
        InvalidSource: a column cannot be read to its end.
    """

    def query(sources: Mapping[str, Source]) -> str:
        return printed(_ranked(relation, Tables.of(relation, sources), time, width))

    found = engine.unprotected(stored_columns(relation), query)
    return TickFacts({(int(rank), int(size)): int(units) for rank, size, units in found})


def _ranked(relation: Relation, tables: Tables, time: Column, width: int) -> sql.Query:
    """Counts the units by the place of a tick among theirs, and by their rows in it."""
    assert isinstance(time.type, Date | Integer | Timestamp), "checked by plan_stream"
    code = alias(time)
    tick = sql.Paren(code - time.type.lower_code) // width
    ticks = sql.Select(
        (UNIT, tick.named(_TICK), sql.aggregate("count").named(_ROWS)),
        sql.Item(rows(relation, tables)),
        where=code.is_present,
        group=(UNIT, tick),
    )
    rank = sql.Window(sql.Aggregate("row_number"), (UNIT,), (sql.Ordered(_TICK),))
    places = sql.Select((rank.named(_RANK), _ROWS), sql.Item(ticks))
    items = (_RANK, _ROWS, sql.aggregate("count"))
    return sql.Select(items, sql.Item(places), group=(_RANK, _ROWS))

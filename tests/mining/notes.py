# SPDX-License-Identifier: Apache-2.0
"""Small tables of notes, and statistics of them, for the tests of this room."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.mining.unit_keys import Key, KeyCounts, UnitKeys
from sfumato.plan.rows import BoundedRows
from sfumato.query.pipeline import compile_rows
from sfumato.query.statistic import BoundedStatistic, Opened
from sfumato.sql.row_list import row_list

Row = Mapping[str, Any]
COLUMNS: Mapping[str, Any] = {
    "note": sf.Text(tokens=sf.Tokens()),
    "ward": sf.Category("eye", "ear"),
    "day": sf.Integer(0, 9),
}
STATEMENT = "SELECT note, ward, day FROM notes"


def plan(
    relation: Any = sf.AddRemove, most: int = 3, statement: str = STATEMENT, unit: bool = True
) -> BoundedRows:
    """The rows of notes, at most ``most`` of a unit."""
    frame = pa.table({"who": ["a"], "note": ["x"], "ward": ["eye"], "day": [1]})
    person = sf.Unit("who", max_rows_total=most) if unit else None
    table = sf.Table(frame, unit=person, columns=COLUMNS)
    data = Dataset("clinic", {"notes": table}, relation)
    return compile_rows(row_list(statement, data), data)


def rows(who: str, *notes: str | tuple[str | None, ...]) -> list[Row]:
    """The rows of a unit: each a note, or a note, a ward and a day."""
    listed = []
    for place, each in enumerate(notes):
        note, ward, day = (each, "eye", place) if isinstance(each, str) else each
        listed.append({"who": who, "note": note, "ward": ward, "day": day})
    return listed


def opened(statistic: BoundedStatistic[Any], table: Sequence[Row]) -> Opened:
    """The data, opened for the plan of a statistic."""
    bounded = statistic.reading.plan  # type: ignore[attr-defined]
    return Opened(bounded, rows=Reference({"notes": list(table)}).rows(bounded, "key"))


def counted(statistic: UnitKeys, table: Sequence[Row]) -> dict[Key, int]:
    """The exact number of units of each key that occurs."""
    data = opened(statistic, table)
    with data:
        counts, keys_at = statistic.exact(data)
        keys = list(keys_at(range(len(counts))))
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, counts.tolist(), strict=True))


def vector(statistic: KeyCounts | BoundedStatistic[Any], table: Sequence[Row]) -> list[int]:
    """The exact counts of public keys."""
    data = opened(statistic, table)
    with data:
        return list(statistic.exact(data).tolist())


def differences(one: Mapping[Key, int], other: Mapping[Key, int]) -> list[int]:
    """How far each key moves that moves at all."""
    moved = Counter(dict(one))
    moved.subtract(other)
    return [abs(each) for each in moved.values() if each]


def together(*units: Iterable[Row]) -> list[Row]:
    """The rows of several units."""
    return [row for unit in units for row in unit]

# SPDX-License-Identifier: Apache-2.0
"""Small tables of scans, and sums of them by group, for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.mining.group_sums import GroupSums
from sfumato.plan.rows import BoundedRows
from sfumato.query.pipeline import compile_rows
from sfumato.query.statistic import Opened
from sfumato.sql.row_list import row_list

Row = Mapping[str, Any]
COLUMNS: Mapping[str, Any] = {
    "scan": sf.Array(2, -3, 3),
    "ward": sf.Category("eye", "ear"),
    "note": sf.Text(tokens=sf.Tokens()),
}
SCAN, WARD, NOTE = range(3)
TERMS = ("red", "eye")
SCALE, WEIGHT, BOUND = 4, 3, 20


def plan(relation: Any = sf.AddRemove, most: int = 2) -> BoundedRows:
    frame = pa.table({"who": ["a"], "scan": [[0, 0]], "ward": ["eye"], "note": ["x"]})
    table = sf.Table(frame, unit=sf.Unit("who", max_rows_total=most), columns=COLUMNS)
    data = Dataset("clinic", {"notes": table}, relation)
    return compile_rows(row_list("SELECT scan, ward, note FROM notes", data), data)


def statistic(
    by: int | None, only: tuple[str, ...] = (), *, relation: Any = sf.AddRemove, bound: int = BOUND
) -> GroupSums:
    return GroupSums(plan(relation), SCAN, by, only, SCALE, (2, -2), WEIGHT, bound)


def rows(who: str, *some: tuple[list[int] | None, str | None, str | None]) -> list[Row]:
    return [{"who": who, "scan": scan, "ward": ward, "note": note} for scan, ward, note in some]


def sums(counted: GroupSums, table: Sequence[Row]) -> Any:
    data = Opened(counted.plan, rows=Reference({"notes": list(table)}).rows(counted.plan, "key"))
    with data:
        return counted.exact(data)

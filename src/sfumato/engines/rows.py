# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for bounded rows, and the temporary file that stores them. Proof: rows.proof.md.

The file has mode 0600 and no name from the moment it is made, so nobody else can open it, and
nothing of it remains when the process is killed.
"""

from collections.abc import Mapping
from typing import IO

import duckdb
import numpy as np

from sfumato.engines.base import UnitRows
from sfumato.engines.duckdb_printer import printed, text
from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import pushed_down
from sfumato.engines.relation import rows
from sfumato.engines.value_sql import Source
from sfumato.noise.law import Integers
from sfumato.plan.rows import MISSING, BoundedRows

# The number of rows that are fetched at once.
_BATCH = 100_000


def listed(
    plan: BoundedRows,
    sources: Mapping[str, Source],
    key: str,
) -> str:
    """Returns the SELECT of the rows: their codes, and whether a row is the first of its unit.

    Guarantees:
        a unit has at most as many rows as the plan says
        the order of rows is a function of key, unit and content
        no row can make rows fail
    """
    raw, tables = pushed_down(plan.rows.raw, sources)
    names = [f"a{at}" for at in range(len(plan.rows.values))]
    unit = [] if plan.unit is None else ["unit"]
    items = [*unit]
    for name, value in zip(names, plan.rows.values, strict=True):
        items.append(f"{printed(typed(value))} AS {name}")
    source = f"SELECT {', '.join(items)} FROM ({printed(rows(raw.relation, tables))})"
    # equal rows of a unit are numbered; otherwise all of them would be kept, or none
    number = f"row_number() OVER (PARTITION BY {', '.join([*unit, *names])}) AS number"
    sorted_names = [f"{name} NULLS FIRST" for name in names]
    within = [_hash(key, [*names, *unit, "number"]), *sorted_names, "number"]
    place = "1"
    order = within
    if unit:
        place = f"row_number() OVER (PARTITION BY unit ORDER BY {', '.join(within)})"
        order = [_hash(key, unit), "CAST(unit AS VARCHAR)", "place"]
    shown = ", ".join(f"coalesce({name}, {MISSING}) AS {name}" for name in names)
    return (
        f"WITH numbered AS (SELECT *, {number} FROM ({source})), "
        f"placed AS (SELECT *, {place} AS place FROM numbered)\n"
        f"SELECT {shown}, place = 1 AS first FROM placed WHERE place <= {plan.most} "
        f"ORDER BY {', '.join(order)}"
    )


def write(
    file: IO[bytes],
    connection: duckdb.DuckDBPyConnection,
    statement: str,
) -> Integers:
    """Writes the codes of ``listed`` to a file, row by row.

    Returns the index of the first row of each unit, then the number of rows.
    """
    starts = [np.zeros(0, np.int64)]
    written = 0
    for batch in connection.sql(statement).to_arrow_reader(_BATCH):
        *codes, first = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        block = np.stack(codes, axis=1).astype(np.int64)
        file.write(block.tobytes())
        starts.append(np.flatnonzero(first) + written)
        written += batch.num_rows
    file.flush()
    return np.concatenate([*starts, np.array([written], np.int64)])


def mapped(
    file: IO[bytes],
    width: int,
    starts: Integers,
) -> UnitRows:
    """Returns the rows in a file, memory-mapped; ``width`` is the number of columns."""
    shape = (int(starts[-1]), width)
    if not shape[0]:
        return UnitRows(np.zeros(shape, np.int64), starts)
    return UnitRows(np.memmap(file, np.int64, "r", shape=shape), starts)


def _hash(key: str, columns: list[str]) -> str:
    """Returns the md5 of a key and of columns as strings, joined by bars."""
    texts = [text(key), *(f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in columns)]
    joined = " || '|' || ".join(texts)
    return f"md5({joined})"

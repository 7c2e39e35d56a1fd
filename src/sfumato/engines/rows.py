# SPDX-License-Identifier: Apache-2.0
"""Bounded rows as DuckDB SQL, and the file that they are in while they are open. Proof: rows.proof.md.

The file has no name from the moment it is made, and mode 0600: nobody else can open it, and
nothing of it is left by a process that is killed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import IO

import duckdb
import numpy as np

from sfumato.engines.base import UnitRows
from sfumato.engines.expression import typed
from sfumato.engines.filter_pushdown import names_read, split
from sfumato.engines.relation import Tables, rows
from sfumato.engines.value_sql import Source, text
from sfumato.noise.law import Integers
from sfumato.plan.rows import MISSING, BoundedRows

# How many rows are fetched at once.
_BATCH = 100_000


def listed(plan: BoundedRows, sources: Mapping[str, Source], key: str) -> str:
    """The SELECT of the rows: the codes, and whether a row is the first of its unit.

    Guarantees:
        a unit has at most as many rows as the plan says
        the order of rows is a function of key, unit and content
        no row can make rows fail
    """
    raw = plan.rows.raw
    relation, tests = split(raw.relation, sources)
    read = names_read(replace(raw, relation=relation))
    tables = replace(Tables.of(relation, sources), tests=tests, read=read)
    names = [f"a{at}" for at in range(len(plan.rows.values))]
    unit = [] if plan.unit is None else ["unit"]
    codes = [f"{typed(each)} AS {name}" for name, each in zip(names, plan.rows.values, strict=True)]
    found = f"SELECT {', '.join([*unit, *codes])} FROM ({rows(relation, tables)})"
    number = f"row_number() OVER (PARTITION BY {', '.join([*unit, *names])}) AS number"
    # equal rows of a unit are numbered, or all of them would be kept or none
    within = [
        _hash(key, [*names, *unit, "number"]),
        *(f"{name} NULLS FIRST" for name in names),
        "number",
    ]
    place = f"row_number() OVER (PARTITION BY unit ORDER BY {', '.join(within)})" if unit else "1"
    order = [_hash(key, unit), "CAST(unit AS VARCHAR)", "place"] if unit else within
    shown = ", ".join(f"coalesce({name}, {MISSING}) AS {name}" for name in names)
    return (
        f"WITH numbered AS (SELECT *, {number} FROM ({found})), placed AS (SELECT *, {place} AS place FROM numbered)\n"
        f"SELECT {shown}, place = 1 AS first FROM placed WHERE place <= {plan.most} ORDER BY {', '.join(order)}"
    )


def write(file: IO[bytes], connection: duckdb.DuckDBPyConnection, statement: str) -> Integers:
    """Writes the codes of a SELECT of ``listed`` to a file, row by row; where units start, and the end."""
    starts, held = [np.zeros(0, np.int64)], 0
    for batch in connection.sql(statement).to_arrow_reader(_BATCH):
        *codes, first = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        file.write(np.stack(codes, axis=1).astype(np.int64).tobytes())
        starts.append(np.flatnonzero(first) + held)
        held += batch.num_rows
    file.flush()
    return np.concatenate([*starts, np.array([held], np.int64)])


def mapped(file: IO[bytes], width: int, starts: Integers) -> UnitRows:
    """The rows in a file, read where they are looked at."""
    shape = (int(starts[-1]), width)
    if not shape[0]:
        return UnitRows(np.zeros(shape, np.int64), starts)
    return UnitRows(np.memmap(file, np.int64, "r", shape=shape), starts)


def _hash(key: str, columns: list[str]) -> str:
    """The md5 of a key and of the texts of columns, with a bar between them."""
    texts = [text(key), *(f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in columns)]
    joined = " || '|' || ".join(texts)
    return f"md5({joined})"

# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for bounded rows, and the temporary file that stores them. Proof: rows.proof.md.

``DuckDB.rows`` uses it. The file is created without a name and with mode 0600, so no other user can
open it, and it disappears when the process ends.
"""

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import duckdb
import numpy as np

from sfumato.engines import sql_tree as sql
from sfumato.engines.base import Names, RowTokens, UnitRows
from sfumato.engines.duckdb_printer import printed, text
from sfumato.engines.expression import narrow, typed
from sfumato.engines.filter_pushdown import pushed_down
from sfumato.engines.relation import rows
from sfumato.engines.row_tokens import TokenReader
from sfumato.engines.value_sql import Source, narrowest
from sfumato.metadata.column import Array, Text
from sfumato.noise.law import Integers
from sfumato.plan.rows import MISSING, BoundedRows, RowList
from sfumato.plan.value import Value

if TYPE_CHECKING:
    import pyarrow

# The number of codes that are fetched at once, and of rows with texts.
_BATCH, _TEXTS = 1_000_000, 16_384


def listed(
    plan: BoundedRows,
    sources: Mapping[str, Source],
    key: str,
) -> str:
    """Returns the SELECT that reads the bounded rows of each unit: their codes, and whether a row
    is the first of its unit.

    If the plan names units, the hash of the unit's name is the last column.

    Guarantees:
        a unit has at most as many rows as the plan says
        the order of rows is a function of key, unit and content
        no row can make rows fail
    """
    raw, tables = pushed_down(plan.rows.raw, sources)
    widths = plan.rows.widths
    names = [f"a{at}" for at in range(len(widths))]
    unit = [] if plan.unit is None else ["unit"]
    items = [*unit]
    for name, value in zip(names, plan.rows.values, strict=True):
        items.append(f"{_cut(printed(_code(value)), value)} AS {name}")
    source = f"SELECT {', '.join(items)} FROM ({printed(rows(raw.relation, tables))})"
    # equal rows of a unit are numbered; otherwise all of them would be kept, or none
    number = "1 AS number"
    if unit:
        number = f"row_number() OVER (PARTITION BY {', '.join([*unit, *names])}) AS number"
    sorted_names = [f"{name} NULLS FIRST" for name in names]
    within = [_hash(key, [*names, *unit, "number"]), *sorted_names, "number"]
    place = "1"
    # of rows that are units none is left out, so their codes alone may order them; lists are
    # compared as texts elsewhere
    order = within if _has_lists(plan) else sorted_names
    if unit:
        place = f"row_number() OVER (PARTITION BY unit ORDER BY {', '.join(within)})"
        order = [_hash(key, unit), "CAST(unit AS VARCHAR)", "place"]
    shown = ", ".join(map(_present, names, plan.rows.values))
    named = f", {_hash(plan.naming, unit)} AS named" if unit and plan.naming else ""
    return (
        f"WITH numbered AS (SELECT *, {number} FROM ({source})), "
        f"placed AS (SELECT *, {place} AS place FROM numbered)\n"
        f"SELECT {shown}, place = 1 AS first{named} FROM placed WHERE place <= {plan.most} "
        f"ORDER BY {', '.join(order)}"
    )


def _has_lists(plan: BoundedRows) -> bool:
    """Whether a value of the rows is an array."""
    return any(isinstance(value.type, Array) for value in plan.rows.values)


def write(
    file: IO[bytes],
    listed_rows: RowList,
    connection: duckdb.DuckDBPyConnection,
    statement: str,
) -> tuple[Integers, Names, dict[int, RowTokens]]:
    """Runs the statement of ``listed`` and writes the codes of the rows to a binary file, row by
    row.

    Returns the index of the first row of each unit, followed by the number of rows; the hashes of
    the units' names, if the statement has them; and the tokens of each text.
    """
    widths = listed_rows.widths
    readers = {}
    for place, value in enumerate(listed_rows.values):
        if isinstance(value.type, Text):
            readers[place] = TokenReader(value.type)
    starts = [np.zeros(0, np.int64)]
    names = [np.zeros(0, "S32")]
    written = 0
    size = max(_BATCH // sum(widths), 1)
    batches = connection.sql(statement).to_arrow_reader(min(size, _TEXTS) if readers else size)
    for batch in batches:
        for place, reader in readers.items():
            reader.read(batch.column(place).to_pylist())
        blocks = map(_block, batch.columns, widths)
        file.write(np.concatenate(list(blocks), axis=1).data)
        first_of_units, *named = batch.columns[len(widths) :]
        first = np.flatnonzero(first_of_units.to_numpy(zero_copy_only=False))
        starts.append(first + written)
        names += [column.to_numpy(zero_copy_only=False)[first].astype("S32") for column in named]
        written += batch.num_rows
    file.flush()
    tokens = {place: reader.tokens() for place, reader in readers.items()}
    return np.concatenate([*starts, np.array([written], np.int64)]), np.concatenate(names), tokens


def mapped(
    file: IO[bytes],
    plan: BoundedRows,
    starts: Integers,
    names: Names,
    tokens: Mapping[int, RowTokens],
) -> UnitRows:
    """Returns the codes in a file as memory-mapped ``UnitRows``; ``names`` are used only if the
    plan asks for the names of units.
    """
    shape = (int(starts[-1]), sum(plan.rows.widths))
    codes = np.memmap(file, np.int64, "r", shape=shape) if shape[0] else np.zeros(shape, np.int64)
    return UnitRows(codes, starts, names if plan.naming else None, tokens)


def _code(value: Value) -> sql.Expression:
    """Returns the code of a value; narrow, as sorting takes time and memory by the byte."""
    if isinstance(value.type, Array):
        return typed(value)
    return narrow(value)


def _cut(code: str, value: Value) -> str:
    """Returns the SQL of a value; of a text only the characters that are split into tokens."""
    if isinstance(value.type, Text) and value.type.tokens is not None:
        return f"left({code}, {value.type.tokens.longest})"
    return code


def _present(name: str, value: Value) -> str:
    """Returns a column; in place of a NULL array there is one whose numbers are NULL."""
    if not isinstance(value.type, Array):
        return name
    # of the type of the codes: a wider one would widen what is sorted
    element = narrowest(value.type.element).value
    return f"coalesce({name}, list_resize([]::{element}[], {value.type.length})) AS {name}"


def _block(column: "pyarrow.Array", width: int) -> Integers:
    """Returns the codes of a column, a row for each of its values; MISSING in place of NULL.

    The code of a string is 0.
    """
    if column.type == "string":
        return np.where(column.is_null().to_numpy(zero_copy_only=False), MISSING, 0).reshape(-1, 1)
    if hasattr(column, "flatten"):
        column = column.flatten()
    # widened before a missing value is filled in: a column with one would become floats in NumPy
    codes: Integers = column.cast("int64").fill_null(MISSING).to_numpy(zero_copy_only=False)
    return codes.reshape(-1, width)


def _hash(key: str, columns: list[str]) -> str:
    """Returns the md5 of a key and of columns as strings, joined by bars."""
    texts = [text(key), *(f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in columns)]
    # one call, since a chain of || copies the text of all columns before it for each
    return f"md5(concat_ws('|', {', '.join(texts)}))"

# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a public table, for outer SQL statements that name it.

The engine that reads them is opened for this table alone, so it holds nothing of any person.
"""

import datetime
from collections.abc import Mapping, Sequence
from contextlib import closing

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.local import Local
from sfumato.engines.relation import Tables, rows
from sfumato.engines.value_sql import Source
from sfumato.metadata.column import Array, Column, Text
from sfumato.metadata.table import Table
from sfumato.plan.relation import Scan

_LIMITS = Local(memory_limit="256MB", threads=1, time_limit=10)


def public_columns(table: Table) -> list[Column]:
    """The columns of a table that SQL over answers can read: all but arrays."""
    return [Column(*item) for item in table.columns.items() if not isinstance(item[1], Array)]


def public_rows(name: str, table: Table, most: int) -> list[tuple[object, ...]]:
    """Returns the first ``most`` rows of a public table as tuples of values, in the order of
    ``public_columns``.

    A value is read as a question reads it: what is not declared is None, and what is beyond a bound
    is moved to it.

    Guarantees:
        no row of a private table is read

    Raises:
        InvalidSource, InvalidDeclaration: it cannot be read, or is not as declared.

    >>> import pyarrow
    >>> from sfumato.metadata.column import Integer
    >>> wards = Table(pyarrow.table({"beds": [12, 30]}), columns={"beds": Integer(0, 99)}, public=True)
    >>> public_rows("wards", wards, 100)
    [(12,), (30,)]
    """
    if not table.public:
        raise ValueError("a private table")
    columns = public_columns(table)
    scan = Scan(name, columns=tuple(columns))

    def query(sources: Mapping[str, Source]) -> str:
        return f"SELECT * FROM ({printed(rows(scan, Tables.of(scan, sources)))}) LIMIT {most}"

    with closing(DuckDB({name: table}, limits=_LIMITS)) as engine:
        codes = engine.unprotected({name: {column.name for column in columns}}, query)
    return [_decoded(columns, row) for row in codes]


def _decoded(columns: Sequence[Column], codes: Sequence[object]) -> tuple[object, ...]:
    """The values of a row of codes; a moment without its offset from UTC."""
    values: list[object] = []
    for column, code in zip(columns, codes, strict=True):
        value: object = code
        if code is not None and not isinstance(column.type, Text | Array):
            assert isinstance(code, int), "the engine gives whole codes"
            value = column.type.decode(code)
        if isinstance(value, datetime.datetime):
            value = value.replace(tzinfo=None)
        values.append(value)
    return tuple(values)

# SPDX-License-Identifier: Apache-2.0
"""Converts reports to rows of bytes: from a list, or from a binary Arrow column without a copy."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import WrongUse, shown
from sfumato.telemetry.oracles.oracle import Payloads

Reports: TypeAlias = Sequence[bytes] | pa.Array | pa.ChunkedArray


def rows_of(reports: Reports, size: int) -> tuple[Payloads, int]:
    """Returns the reports of the right size as an array with a row of bytes for each, and the
    number of other or missing reports.

    Raises:
        WrongUse: neither a list of bytes nor a binary column.

    >>> rows, wrong = rows_of([b"ab", b"c", b"de"], 2)
    >>> rows.tolist(), wrong
    ([[97, 98], [100, 101]], 1)
    """
    if isinstance(reports, pa.Array | pa.ChunkedArray):
        return _of_arrow(reports, size)
    listed = isinstance(reports, Sequence) and not isinstance(reports, str | bytes)
    if listed and all(isinstance(report, bytes) for report in reports):
        good = [report for report in reports if len(report) == size]
        return _rows(b"".join(good), size), len(reports) - len(good)
    raise WrongUse(
        f"Reports in {shown(reports)}.", allowed="a list of bytes, or a binary column of Arrow"
    )


def _of_arrow(column: "pa.Array | pa.ChunkedArray", size: int) -> tuple[Payloads, int]:
    """Returns the rows of a column of Arrow."""
    kind = column.type
    if not (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        raise WrongUse(f"A column of type {kind}.", allowed="binary, or fixed_size_binary")
    fixed = column
    if kind != pa.binary(size) or column.null_count:
        sizes = pc.binary_length(column)
        fixed = column.filter(pc.equal(sizes, size)).cast(pa.binary(size))
    if isinstance(fixed, pa.ChunkedArray):
        fixed = fixed.combine_chunks()
    start = fixed.offset * size
    data = memoryview(fixed.buffers()[1] or b"")[start : start + len(fixed) * size]
    return _rows(data, size), len(column) - len(fixed)


def _rows(data: bytes | memoryview, size: int) -> Payloads:
    return np.frombuffer(data, np.uint8).reshape(-1, size)

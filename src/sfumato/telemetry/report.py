# SPDX-License-Identifier: Apache-2.0
"""The bytes of a report, version 1 (spec/telemetry/format.md).

0       the version, 1
1-8     the first 8 bytes of the SHA-256 of the task
9-12    the period, big-endian
13-28   the id of the report
29-     the payload of the oracle
"""

import struct
from dataclasses import dataclass

import numpy as np

from sfumato.noise import Integers
from sfumato.telemetry.oracles.oracle import Mask, Payloads
from sfumato.telemetry.seen import Ids
from sfumato.telemetry.task import ReportTask

VERSION = 1
_HEADER = struct.Struct(">B8sI16s")
HEADER = _HEADER.size
# Numbers of the header, where they stand; of the id, the first eight bytes.
_NUMBERS = {"version": ("u1", 0), "task": (">u8", 1), "period": (">u4", 9), "id": (">u8", 13)}


@dataclass(frozen=True, slots=True)
class Layout:
    """The byte layout of a task's reports: their size, and the bytes that they all begin with.

    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> layout = Layout.of(task)
    >>> len(layout.report(0, bytes(16), b"\\x01")) == layout.size
    True
    """

    name: bytes
    size: int

    @classmethod
    def of(cls, task: ReportTask) -> "Layout":
        """Returns the layout of a task."""
        return cls(task.hash[:8], HEADER + task.oracle.size)

    def are_ours(self, rows: Payloads) -> Mask:
        """Returns a mask of the rows of bytes that begin as reports of this version and task do."""
        header = headers(rows)
        name = np.uint64(int.from_bytes(self.name, "big"))
        ours: Mask = (header["version"] == VERSION) & (header["task"] == name)
        return ours

    def report(self, period: int, id: bytes, payload: bytes) -> bytes:
        """Returns a report as bytes, made of its period, its id and the oracle's payload."""
        return _HEADER.pack(VERSION, self.name, period, id) + payload


def headers(rows: Payloads) -> np.ndarray:
    """Returns the numbers of reports, one report a row: version, task, period, id.

    >>> from sfumato.telemetry.task import report_task
    >>> layout = Layout.of(report_task("t", "?", ["a"], epsilon=1, start=0, periods=9))
    >>> report = layout.report(3, (7).to_bytes(8, "big") + bytes(8), b"\\x01")
    >>> rows = np.frombuffer(report, np.uint8).reshape(1, -1)
    >>> headers(rows)["period"].tolist(), headers(rows)["id"].tolist()
    ([3], [7])
    """
    formats, offsets = zip(*_NUMBERS.values(), strict=True)
    form = np.dtype(
        {
            "names": list(_NUMBERS),
            "formats": list(formats),
            "offsets": list(offsets),
            "itemsize": rows.shape[1],
        }
    )
    found: np.ndarray = np.ascontiguousarray(rows).view(form).reshape(-1)
    return found


def periods_of(rows: Payloads) -> Integers:
    """Returns the period of each report; ``rows`` has the bytes of one report in each row."""
    return headers(rows)["period"].astype(np.int64)


def ids_of(rows: Payloads) -> Ids:
    """Returns the first eight bytes of each report's id; ``rows`` has the bytes of one report in
    each row.
    """
    return headers(rows)["id"].astype(np.uint64)

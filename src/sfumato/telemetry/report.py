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

from sfumato.telemetry.oracles.oracle import Payloads, unpacked
from sfumato.telemetry.seen import Ids
from sfumato.telemetry.task import ReportTask

VERSION = 1
_HEADER = struct.Struct(">B8sI16s")
HEADER = _HEADER.size
# Where version and task, the period, and the id stand.
PREFIX = slice(0, 9)
PERIOD = slice(9, 13)
ID = slice(13, 29)


@dataclass(frozen=True, slots=True)
class Layout:
    """The bytes that the reports of a task have in common, and their size.

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
        """The layout of a task."""
        return cls(task.hash[:8], HEADER + task.oracle.size)

    @property
    def prefix(self) -> bytes:
        """The bytes with which every report begins."""
        return bytes([VERSION]) + self.name

    def report(self, period: int, id: bytes, payload: bytes) -> bytes:
        """The bytes of a report."""
        return _HEADER.pack(VERSION, self.name, period, id) + payload


def ids_of(rows: Payloads) -> Ids:
    """The first eight bytes of the ids of reports, one report a row.

    >>> from sfumato.telemetry.task import report_task
    >>> layout = Layout.of(report_task("t", "?", ["a"], epsilon=1, start=0, periods=1))
    >>> report = layout.report(0, (7).to_bytes(8, "big") + bytes(8), b"\\x01")
    >>> ids_of(np.frombuffer(report, np.uint8).reshape(1, -1)).tolist()
    [7]
    """
    return unpacked(np.ascontiguousarray(rows[:, ID])[:, :8])

# SPDX-License-Identifier: Apache-2.0
"""The bytes of a report stand where the format says."""

import numpy as np

from sfumato.telemetry import report_task
from sfumato.telemetry.report import HEADER, Layout, ids_of, periods_of


def test_a_report_is_version_task_period_id_and_payload():
    task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=9)
    layout = Layout.of(task)
    name = bytes(range(16))
    report = layout.report(7, name, b"\x01")
    assert report == b"\x01" + task.hash[:8] + b"\0\0\0\x07" + name + b"\x01"
    assert len(report) == layout.size == HEADER + 1
    rows = np.frombuffer(report + layout.report(8, name[::-1], b"\x02"), np.uint8).reshape(2, -1)
    assert periods_of(rows).tolist() == [7, 8]
    assert ids_of(rows).tolist() == [0x0001020304050607, 0x0F0E0D0C0B0A0908]


def test_each_byte_of_version_and_task_makes_a_report_foreign():
    layout = Layout.of(report_task("t", "?", ["a"], epsilon=1, start=0, periods=9))
    good = layout.report(7, bytes(16), b"\x01")
    rows = np.tile(np.frombuffer(good, np.uint8), (layout.size, 1))
    rows[np.arange(layout.size), np.arange(layout.size)] ^= 1
    assert layout.are_ours(rows).tolist() == [False] * 9 + [True] * (layout.size - 9)

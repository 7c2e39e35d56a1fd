# SPDX-License-Identifier: Apache-2.0
"""The bytes of a report stand where the format says."""

from sfumato.telemetry import report_task
from sfumato.telemetry.report import HEADER, ID, PERIOD, PREFIX, Layout


def test_a_report_is_version_task_period_id_and_payload():
    task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=9)
    layout = Layout.of(task)
    name = bytes(range(16))
    report = layout.report(7, name, b"\x01")
    assert report == b"\x01" + task.hash[:8] + b"\0\0\0\x07" + name + b"\x01"
    assert len(report) == layout.size == HEADER + 1
    assert report[PREFIX] == layout.prefix
    assert report[PERIOD] == b"\0\0\0\x07" and report[ID] == name

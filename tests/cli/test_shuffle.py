# SPDX-License-Identifier: Apache-2.0
"""``sfumato shuffle`` as a process before a collector: what it acknowledged arrives, mixed and
sealed, though both are killed.
"""

import signal
import time
from pathlib import Path

from sfumato.cli import shuffle
from sfumato.collector.folder import read
from sfumato.telemetry import Aggregator, opened, report_task, signed_task
from tests.collector.batches import AGGREGATOR, KEY, sealed_batch
from tests.collector.processes import declare, declare_shuffler, sent, started
from tests.contracts.shell import Shell


def test_reports_reach_the_collector_though_both_are_killed(tmp_path: Path) -> None:
    task = report_task(
        "emoji", "?", ["a", "b"], epsilon=2, start=int(time.time()) - 3600, periods=4,
        min_batch=100, aggregator=AGGREGATOR.public_key(),
    )  # fmt: skip
    collector_port = declare(tmp_path, signed_task(task, KEY, signed_at=0))
    port = declare_shuffler(tmp_path, collector_port)
    reports = sealed_batch(task, 150, period=0)
    shuffler = started(tmp_path, port, "shuffle")
    try:
        assert sent(port, b"".join(reports[:90])) == 202
    finally:
        shuffler.send_signal(signal.SIGKILL)
        shuffler.wait()
    # no collector answers yet: nothing is lost
    shuffler = started(tmp_path, port, "shuffle")
    try:
        assert sent(port, b"".join(reports[90:])) == 202
    finally:
        shuffler.send_signal(signal.SIGKILL)
        shuffler.wait()
    assert arrived(tmp_path, task) == []
    collector = started(tmp_path, collector_port)
    shuffler = started(tmp_path, port, "shuffle")
    try:
        for _ in range(200):
            found = arrived(tmp_path, task)
            if found:
                break
            time.sleep(0.05)
    finally:
        for process in (shuffler, collector):
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
    assert sorted(found) == sorted(reports) and found != reports
    sums = Aggregator(task)
    for each in opened(task, AGGREGATOR, found):
        sums.add_many(each)
    assert sums.reports == 150
    said = (tmp_path / "said.log").read_text()
    assert f"shuffling emoji at http://127.0.0.1:{port}" in said and "that waits is st" in said
    assert "POST" not in said


def arrived(folder: Path, task: object) -> list[bytes]:
    """What the collector has on disk."""
    found = []
    for period in range(4):
        for part in read(folder / "reports", task, period):  # type: ignore[arg-type]
            found += part.to_pylist()
    return found


def test_a_collector_that_does_not_answer_has_acknowledged_nothing() -> None:
    assert shuffle._sender("http://127.0.0.1:9")("emoji", b"report") is False


def test_a_shuffler_of_tasks_that_are_not_sealed_does_not_start(shell: Shell) -> None:
    task = report_task("emoji", "?", ["a"], epsilon=2, start=0, periods=1)
    declare(shell.folder, signed_task(task, KEY, signed_at=0))
    declare_shuffler(shell.folder, 9)
    ran = shell.run("shuffle", "-c", str(shell.folder / "telemetry.toml"))
    assert ran.code != 0 and "could read its reports" in ran.err

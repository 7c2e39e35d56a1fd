# SPDX-License-Identifier: Apache-2.0
"""A collector that is killed 200 times while batches are sent: what it acknowledged is there."""

import signal
import threading
import time
from pathlib import Path

import numpy as np

from tests.cli.test_collect import task_now
from tests.collector.batches import batch, stored
from tests.collector.processes import declare, sent, started

ROUNDS = 200


def test_nothing_acknowledged_is_lost_in_many_kills(tmp_path: Path) -> None:
    signed = task_now()
    port = declare(tmp_path, signed)
    random = np.random.default_rng(1)
    acknowledged: set[bytes] = set()
    for _ in range(ROUNDS):
        process = started(tmp_path, port)
        killer = threading.Timer(random.uniform(0, 0.2), process.send_signal, [signal.SIGKILL])
        killer.start()
        while process.poll() is None:
            reports = batch(signed.task, 20, period=0)
            if sent(port, b"".join(reports)) == 202:
                acknowledged.update(reports)
            time.sleep(0.001)
        killer.join()
    found = stored(tmp_path / "reports", signed.task, 0)
    assert acknowledged <= set(found) and len(found) == len(set(found))
    assert len(acknowledged) > ROUNDS

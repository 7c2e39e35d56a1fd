# SPDX-License-Identifier: Apache-2.0
"""A collector, and the server in which it keeps reports, are killed 200 times each while batches are
sent: what was acknowledged is there.
"""

import signal
import threading
import time
from pathlib import Path

import numpy as np

from sfumato.collector import stored_reports
from tests.cli.test_collect import task_now
from tests.collector.batches import batch, stored
from tests.collector.processes import declare, sent, started
from tests.collector.servers import own_server
from tools.postgres import Cluster

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


def test_nothing_acknowledged_is_lost_in_many_kills_of_the_server(tmp_path: Path) -> None:
    with own_server() as server:
        address = server.url("postgres")
        rounds_of_kills(server, tmp_path, address, ROUNDS)


def rounds_of_kills(server: Cluster, folder: Path, address: str, rounds: int) -> None:
    """The server crashes while batches are sent, and starts again; nothing is sent by nobody."""
    signed = task_now()
    port = declare(folder, signed, f'postgres = "{address}"')
    process = started(folder, port)
    random = np.random.default_rng(2)
    acknowledged: set[bytes] = set()
    refused: list[bytes] = []
    for _ in range(rounds):
        killer = threading.Timer(random.uniform(0, 0.1), server.stop, [signal.SIGQUIT])
        killer.start()
        while killer.is_alive():
            # what was refused before comes again
            reports = refused or batch(signed.task, 20, period=0)
            status = sent(port, b"".join(reports))
            assert status in (202, 503)
            refused = reports if status == 503 else []
            acknowledged.update(reports if status == 202 else [])
        killer.join()
        server.start()
    assert sent(port, b"".join(refused)) in (202, 503)
    process.send_signal(signal.SIGTERM)
    process.wait()
    parts = stored_reports(address, signed.task, 0)
    found = [each for part in parts for each in part.to_pylist()]
    assert acknowledged <= set(found) and len(found) == len(set(found))
    assert len(acknowledged) > rounds

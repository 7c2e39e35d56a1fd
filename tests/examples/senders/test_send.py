# SPDX-License-Identifier: Apache-2.0
"""The sender in Python: reports of devices that differ, in batches, which a collector keeps."""

import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.examples.senders import send
from sfumato.telemetry import Aggregator, report_task, signed_task

BATCHES: list[bytes] = []


class Door(BaseHTTPRequestHandler):
    """Takes batches."""

    def do_POST(self) -> None:
        BATCHES.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(202)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_each_device_reports_once_in_batches(tmp_path: Path, capsys) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    task = report_task("t", "?", ["a", "b"], epsilon=8, start=int(time.time()) - 60, periods=1)
    (tmp_path / "t.task").write_bytes(signed_task(task, key, signed_at=0).to_bytes())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (tmp_path / "owner.pem").write_bytes(public)
    (tmp_path / "t.node.tsv").write_text("900\ta\n600\tb\n")
    with HTTPServer(("127.0.0.1", 0), Door) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        row = ["t", "text", task.hash.hex(), str(task.start)]
        address = f"http://127.0.0.1:{door.server_port}/v1/tasks/t/reports"
        (tmp_path / "tasks.tsv").write_text("\t".join([*row, address]) + "\n")
        send.main(tmp_path, "node")
        door.shutdown()
    assert capsys.readouterr().out.startswith("t\t1500\t")
    sums, size = Aggregator(task), 30
    assert [len(batch) // size for batch in BATCHES] == [1000, 500]
    for batch in BATCHES:
        sums.add_many([batch[place : place + size] for place in range(0, len(batch), size)])
    assert (sums.reports, sums.duplicates) == (1500, 0)
    # epsilon 8: nearly all answers are true
    assert 800 < float(sums.estimate(["a"]).estimate[0]) < 1000

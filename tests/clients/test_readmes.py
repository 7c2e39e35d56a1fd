# SPDX-License-Identifier: Apache-2.0
"""The sender of each client's README sends a report of what the shell has signed."""

import contextlib
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.telemetry import Aggregator, report_task, signed_task
from sfumato.telemetry.client import _State
from tests.contracts.require import missing
from tests.contracts.require import program as installed

CLIENTS = Path(__file__).parents[2] / "clients"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
KEY = ec.generate_private_key(ec.SECP256R1())
# yesterday, so that a device that was there before is due today
TASK = report_task(
    "lunch", "Lunch?", ["yes", "no"], epsilon=1, start=int(time.time()) - 43_200, periods=4
)


def code_of(language: str, name: str) -> str:
    """The one block of code of a README."""
    page = (CLIENTS / name / "README.md").read_text("utf-8")
    (found,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return str(found)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """The folder of a device that was there before the task began."""
    signed = signed_task(TASK, KEY, signed_at=TASK.start - 1)
    (tmp_path / "lunch.task").write_bytes(signed.to_bytes())
    (tmp_path / "published.json").write_text(json.dumps([TASK.hash.hex()]))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = KEY.public_key().public_bytes(serialization.Encoding.PEM, public)
    (tmp_path / "owner.pem").write_bytes(pem)
    (tmp_path / "lunch.state").write_bytes(_State(0).to_bytes())
    return tmp_path


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server that acknowledges everything, and what it got."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/tasks/lunch/reports", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sends_once(program: Sequence[str], device: Path) -> None:
    with collector() as (address, got):
        said = [
            subprocess.run(
                [*program, str(device), address, value],
                check=True,
                capture_output=True,
                text=True,
                timeout=60,
            ).stdout
            for value in ("yes", "no")
        ]
    assert said == ["sent\n", "none is due\n"]
    sums = Aggregator(TASK)
    sums.add(got[0])
    assert len(got) == 1 and sums.reports == 1 and len((device / "secret").read_bytes()) == 32


def test_the_sender_for_node(device: Path, tmp_path: Path) -> None:
    for source in (CLIENTS / "typescript").glob("*.js*"):
        shutil.copy(source, tmp_path)
    (tmp_path / "sender.mjs").write_text(code_of("js", "typescript"), "utf-8")
    sends_once([installed("node"), str(tmp_path / "sender.mjs")], device)


def test_the_sender_for_java(device: Path, tmp_path: Path) -> None:
    compiler = shutil.which("javac") or missing("java", "no program 'javac' in PATH")
    (tmp_path / "Sender.java").write_text(code_of("java", "java"), "utf-8")
    classes = tmp_path / "classes"
    sources = [*(CLIENTS / "java").rglob("*.java"), tmp_path / "Sender.java"]
    subprocess.run(
        [compiler, "-J-XX:TieredStopAtLevel=1", "-proc:none", "-d", classes, *sources],
        check=True,
        timeout=120,
    )
    sends_once([installed("java"), *QUICK, "-cp", str(classes), "Sender"], device)

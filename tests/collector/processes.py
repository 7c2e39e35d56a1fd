# SPDX-License-Identifier: Apache-2.0
"""The collector as a process of its own, and batches that are sent to it over HTTP."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from sfumato.telemetry import SignedTask
from tests.collector.batches import KEY


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def declare(folder: Path, signed: SignedTask, where: str = 'folder = "reports"') -> int:
    """A folder with a signed task, the owner's public key and telemetry.toml; its port.

    ``where`` reports are kept is a line of it.
    """
    (folder / "emoji.task").write_bytes(signed.to_bytes())
    public = KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "owner.pem").write_bytes(public)
    port = free_port()
    text = f'[collector]\n{where}\ntasks = ["emoji.task"]\nkey = "owner.pem"\nport = {port}\n'
    (folder / "telemetry.toml").write_text(text, encoding="utf-8")
    return port


def declare_shuffler(folder: Path, collector: int) -> int:
    """A shuffler before the collector of a port, in the same telemetry.toml; its port."""
    port = free_port()
    text = f"""[shuffler]
folder = "waiting"
tasks = ["emoji.task"]
key = "owner.pem"
port = {port}
collector = "http://127.0.0.1:{collector}"
"""
    with (folder / "telemetry.toml").open("a", encoding="utf-8") as file:
        file.write(text)
    return port


def started(folder: Path, port: int, command: str = "collect") -> subprocess.Popen[bytes]:
    """The process, when it answers."""
    with (folder / "said.log").open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", command], cwd=folder, stdout=said, stderr=said
        )
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/tasks/emoji", timeout=5)
            return process
        except OSError:
            assert process.poll() is None, (folder / "said.log").read_text()
            time.sleep(0.05)
    process.kill()
    process.wait()
    raise AssertionError("the collector did not start")


def sent(port: int, body: bytes) -> int | None:
    """The status of a batch; None if the collector died."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/tasks/emoji/reports", data=body, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return None

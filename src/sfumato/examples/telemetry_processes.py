# SPDX-License-Identifier: Apache-2.0
"""The processes of ``sfumato demo telemetry``: collector, shuffler, and clients that send.

All of them listen on 127.0.0.1 only and end with the demo.
"""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import Failed

SENDERS = Path(__file__).parent / "senders"
# The sources of the clients: only a checkout of the repository has them.
CLIENTS = Path(__file__).parents[3] / "clients"
# Seconds until a process counts as stuck.
_PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Sent:
    """The number of telemetry reports that a client program sent, and the seconds that it took."""

    client: str
    reports: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Sender:
    """A client program of the demo that sends telemetry reports. ``note`` says why it replaces
    another client, if it does.
    """

    title: str
    command: tuple[str, ...]
    note: str = ""


def free_port() -> int:
    """Returns an unused port of this machine."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def serving(folder: Path, command: str, port: int, task: str) -> Iterator[None]:
    """Context manager that runs the server ``sfumato collect`` or ``sfumato shuffle`` in a
    folder.
    """
    log = folder / f"{command}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "sfumato", command], cwd=folder, stdout=said, stderr=said
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}/v1/tasks/{task}", log)
        yield
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Waits until the address answers; raises Failed if the process ends instead."""
    limit = time.monotonic() + _PATIENCE
    while time.monotonic() < limit and process.poll() is None:
        # an address of this machine
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):  # noqa: S310
            return
        time.sleep(0.05)
    said = log.read_text(encoding="utf-8", errors="replace").strip()
    raise Failed(f"A process of the demo did not start: {said[-300:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process in order, so that it stores the acknowledged reports."""
    # not SIGINT, which is ignored in what a script runs in the background
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def node_sender(folder: Path) -> Sender:
    """The Node client, or the Python client if Node or its sources are missing."""
    node, client = shutil.which("node"), CLIENTS / "typescript" / "client.js"
    if node is None:
        return _instead(folder, "node", "node is not installed")
    if not client.exists():
        return _instead(folder, "node", "there is no clients/typescript")
    command = (node, str(SENDERS / "send.mjs"), str(client), str(folder))
    return Sender("Node", command)


def java_sender(folder: Path) -> Sender:
    """The Java client, compiled now, or the Python client if a part is missing."""
    java, compiler = shutil.which("java"), shutil.which("javac")
    sources = sorted((CLIENTS / "java" / "sfumato" / "telemetry").glob("*.java"))
    if java is None or compiler is None:
        return _instead(folder, "java", "javac is not installed")
    if not sources:
        return _instead(folder, "java", "there is no clients/java")
    classes = folder / "classes"
    given = [str(path) for path in (*sources, SENDERS / "Send.java")]
    _run([compiler, "--release", "11", "-d", str(classes), *given])
    return Sender("Java", (java, "-cp", str(classes), "Send", str(folder)))


def _instead(folder: Path, name: str, reason: str) -> Sender:
    """The Python client, sending the reports of another client; its note has the reason."""
    command = (sys.executable, str(SENDERS / "send.py"), str(folder), name)
    note = f"{reason}: the Python client sends these reports"
    return Sender("Python", command, note)


@contextlib.contextmanager
def sending(senders: Sequence[Sender]) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Context manager that runs client programs and yields their processes; those still running at
    its end are terminated.
    """
    running: list[subprocess.Popen[str]] = []
    try:
        for sender in senders:
            running.append(
                subprocess.Popen(  # noqa: S603
                    sender.command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                )
            )
        yield running
    finally:
        for process in running:
            # waits, and closes its pipes
            with process:
                process.kill()


def sent_by(sender: Sender, process: subprocess.Popen[str]) -> Sent:
    """Waits for a client program to end; returns the number of its reports and their duration."""
    out, err = process.communicate(timeout=_PATIENCE)
    if process.returncode:
        raise Failed(f"The {sender.title} client failed: {err.strip()[-300:]}")
    rows = [line.split("\t") for line in out.splitlines()]
    reports = sum(int(count) for _, count, _ in rows)
    seconds = sum(float(duration) for _, _, duration in rows)
    return Sent(sender.title, reports, seconds)


def shown(folder: Path, *arguments: str) -> str:
    """Runs a sfumato command in ``folder`` and returns what it prints."""
    return _run([sys.executable, "-m", "sfumato", *arguments], folder)


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    """Returns the output of a program; raises Failed if it fails."""
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=_PATIENCE,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"A program of the demo failed: {done.stderr.strip()[-300:]}")
    return done.stdout

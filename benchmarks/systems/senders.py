# SPDX-License-Identifier: Apache-2.0
"""What the clients for Node and Java are asked: one report, unsealed, whose store is memory.

Each of them times itself, in a process of its own, after its compiler has warmed up.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato as sf
from benchmarks.driver import ROOT
from benchmarks.systems import Call, Make
from sfumato.telemetry import oracles, report_task, signed_task

_PROGRAMS = Path(__file__).parent / "clients"
_CLIENTS = ROOT / "clients"
_VALUES = 1024
NAMES = ("category", "projective", "bit", "hashed")


def languages() -> list[str]:
    """The languages whose tools are here."""
    found = []
    if shutil.which("node"):
        found.append("node")
    if shutil.which("javac"):
        found.append("java")
    return found


def _write_task(folder: Path, name: str, epsilon: float) -> None:
    """A signed task, its hash, and the key of its owner."""
    task = report_task(
        "speed",
        "How fast?",
        sf.Integer(0, _VALUES - 1),
        oracle=getattr(oracles, name)(_VALUES, epsilon),
        # signed before its start, when a new client opens
        start=60,
        period=60,
        periods=1 << 31,
        expires=1 << 41,
    )
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, form)
    (folder / "speed.task").write_bytes(signed_task(task, key, signed_at=0).to_bytes())
    (folder / "owner.pem").write_bytes(pem)
    (folder / "hash").write_text(task.hash.hex(), encoding="utf-8")


def _printed(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def _java(folder: str) -> list[str]:
    """The command of the client for Java, compiled now."""
    sources = [str(path) for path in (_CLIENTS / "java/sfumato/telemetry").glob("*.java")]
    program = str(_PROGRAMS / "Report.java")
    _printed(["javac", "--release", "11", "-d", folder, *sources, program])
    return ["java", "-cp", folder, "Report", folder]


def _seconds(language: str, name: str, epsilon: float, _: int) -> Call:
    """The seconds of one report."""

    def call() -> object:
        with tempfile.TemporaryDirectory() as folder:
            _write_task(Path(folder), name, epsilon)
            if language == "java":
                command = _java(folder)
            else:
                client = str(_CLIENTS / "typescript/client.js")
                command = ["node", str(_PROGRAMS / "report.mjs"), client, folder]
            return float(_printed(command)) / 1e6

    return call


def _works() -> dict[str, Make]:
    """Each work by its name."""
    found: dict[str, Make] = {}
    for language in ("node", "java"):
        for name in NAMES:
            found[f"telemetry {language} {name}"] = partial(_seconds, language, name)
    return found


SENDERS = _works()

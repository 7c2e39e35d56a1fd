# SPDX-License-Identifier: Apache-2.0
"""One process a system, asked in turn, so that what disturbs the machine disturbs all alike."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from benchmarks import slow_disk
from benchmarks.compare import Case, Kind, Sample, Work

ROOT = Path(__file__).resolve().parent.parent
OURS = "sfumato"
# these live in the environment of sfumato itself
_HOME = (
    OURS,
    "numpy",
    "questions",
    "askers",
    "workloads",
    "on-spark",
    "naive_sqlite",
    "ledger_server",
    "networks",
    "models",
)
# after the name of a system: the same, where a flush takes 4 ms
SLOW_DISK = " on a slow disk"
Samples = dict[Work, list[Sample]]


class Unavailable(Exception):
    """A system does not install, does not start or cannot do a work, and why."""


class Asked(Protocol):
    """Who can be asked to do a work once."""

    def ask(self, work: Work, kind: Kind) -> Sample:
        """One repetition; before the first the work is prepared and warm."""
        ...


class Worker:
    """A system in a process of its own."""

    def __init__(self, system: str) -> None:
        name = system.removesuffix(SLOW_DISK)
        command = [_python(name), "-m", "benchmarks.worker", name.replace("-", "_")]
        slowly = slow_disk.slow_disk() if name != system else {}
        if slowly is None:
            raise Unavailable(
                "flushes cannot be slowed down here: no C compiler (cc), or not Linux"
            )
        self._process = subprocess.Popen(  # noqa: S603 - our own worker
            command,
            cwd=ROOT,
            env={**os.environ, **slowly},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.versions: dict[str, str] = self._reply()["versions"]

    def ask(self, work: Work, kind: Kind) -> Sample:
        assert self._process.stdin is not None
        request = {"name": work.name, "scale": work.scale, "n": work.n, "kind": kind.value}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        reply = self._reply()
        return Sample(reply["value"], reply["cpu"])

    def close(self) -> None:
        """The process ends when it hears that nothing more is asked."""
        self._process.communicate()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        reply: dict[str, Any] = json.loads(line) if line else {"error": "its process ended"}
        if "error" in reply:
            raise Unavailable(reply["error"])
        return reply


def _python(system: str) -> str:
    if system in _HOME:
        return sys.executable
    environment = ROOT / ".bench" / system
    if not (environment / ".done").exists():
        raise Unavailable("does not install here")
    return str(environment / "bin" / "python")


def start(systems: list[str]) -> tuple[dict[str, Worker], dict[str, str]]:
    """Those that start, and why the others do not."""
    workers, missing = {}, {}
    for system in systems:
        try:
            workers[system] = Worker(system)
        except Unavailable as reason:
            if system == OURS:
                raise
            missing[system] = str(reason)
    return workers, missing


def measure(case: Case, workers: Mapping[str, Asked]) -> tuple[Samples, dict[Work, str]]:
    """Round robin: each work once in each repetition. Also what could not be done, and why."""
    samples: Samples = {work: [] for work in case.works if work.system in workers}
    failed: dict[Work, str] = {}
    for _ in range(case.repetitions):
        for work, taken in samples.items():
            if work in failed:
                continue
            try:
                taken.append(workers[work.system].ask(work, case.unit.kind))
            except Unavailable as reason:
                if work == case.ours:
                    raise
                failed[work] = str(reason)
    return {work: taken for work, taken in samples.items() if work not in failed}, failed

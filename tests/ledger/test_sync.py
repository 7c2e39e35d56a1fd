# SPDX-License-Identifier: Apache-2.0
"""The system calls of a charge: before each answer, every step of it was written and synced."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contracts.postgres import Cluster
from tests.contracts.require import missing, program

PROGRAM = """
import sys, time
from pathlib import Path
from sfumato.ledger.store import postgres_server
from sfumato.privacy.budget import Budget
from sfumato.ledger import Ledger, head_watch
from sfumato.ledger.head_sinks import sink_at
from tests.contracts.charges import contract, pure

place, mutant, kept = sys.argv[1:]
ledger = Ledger.open(place)
ledger.adopt(contract(Budget(1)), Budget(1))
if mutant == "every step":
    head_watch.HeadWatch.step = head_watch.HeadWatch._publish_all
if kept:
    ledger.heads.begin([sink_at(f"file://{kept}")])
    while not Path(kept).exists() or ledger.heads._steps:
        time.sleep(0.01)
    time.sleep(0.2)  # the folder of the head is synced after its file is there
if mutant == "lazy" and ledger.store.exclusive:
    ledger.store._apart(lambda: ledger.store._connection.execute("PRAGMA synchronous = OFF"))
elif mutant == "lazy":
    postgres_server.FLUSH = "SELECT set_config('synchronous_commit', $1, true)"
print("ANSWER 0", flush=True)
for number in range(1, 4):
    charge = ledger.reserve(pure("0.1", f"q{number}"))
    ledger.execute(charge)
    ledger.commit(charge, b"answer")
    print(f"ANSWER {number}", flush=True)
ledger.close()
"""
STEPS = 3
CALL = re.compile(
    r"(?P<at>\d+\.\d+) (?P<call>pwrite64|write|fdatasync|fsync)\(\d+<(?P<path>[^>]*)>(, \"(?P<text>[^\"]*))?"
)
TRACE = ["-f", "-y", "-ttt", "-e", "trace=pwrite64,write,fdatasync,fsync"]


@dataclass(frozen=True, order=True)
class Call:
    """A write or a sync, and when it began."""

    at: float
    name: str
    path: str
    text: str


def calls_in(trace: Path) -> list[Call]:
    """What a trace tells. A call that another thread's interrupted is written twice.

    Its beginning says what it is.
    """
    found = [
        CALL.search(line)
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    return [
        Call(float(each["at"]), each["call"], each["path"], each["text"] or "")
        for each in found
        if each
    ]


def traced(folder: Path, place: str, mutant: str, kept: str = "") -> list[Call]:
    """The writes and syncs of a program that charges three times, of all its threads.

    ``kept``: the file where the program publishes the heads of its ledger.
    """
    out = folder / "program"
    command = [
        program("strace"),
        *TRACE,
        "-o",
        out,
        sys.executable,
        "-c",
        PROGRAM,
        place,
        mutant,
        kept,
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Operation not permitted" in finished.stderr:
        missing("strace", "strace may not trace here")
    assert finished.returncode == 0, finished.stderr
    return calls_in(out)


@contextmanager
def tracing(folder: Path, server: int) -> Iterator[Path]:
    """Traces a server, those of its processes that run and those that it will start."""
    out = folder / "server"
    children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii").split()
    attach = [word for process in (str(server), *children) for word in ("-p", process)]
    strace = subprocess.Popen(
        [program("strace"), *TRACE, "-o", out, *attach], stderr=subprocess.PIPE, text=True
    )
    assert strace.stderr is not None
    try:
        for _ in range(1 + len(children)):
            line = strace.stderr.readline()
            # attaching to a child that has just ended is refused too, and harmless
            if "not permitted" in line and f", {server})" in line:
                missing("strace", "strace may not attach here")
        yield out
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate()


def unsynced_answers(calls: list[Call], log: str) -> list[str]:
    """The answers before which not every step had been synced to the log."""
    syncs, dirty, found = STEPS, False, []
    for call in calls:
        if call.text.startswith("ANSWER"):
            if syncs < STEPS or dirty:
                found.append(call.text)
            syncs = 0
        elif log in call.path:
            dirty = not call.name.endswith("sync")
            syncs += not dirty
    return found


def answers(calls: list[Call]) -> int:
    """How many answers were seen."""
    return sum(call.text.startswith("ANSWER") for call in calls)


@pytest.mark.parametrize(("mutant", "caught"), [("none", 0), ("lazy", 3)])
def test_sqlite_syncs_its_log_before_each_answer(tmp_path: Path, mutant: str, caught: int) -> None:
    calls = traced(tmp_path, str(tmp_path / "l.db"), mutant)
    assert (answers(calls), len(unsynced_answers(calls, "l.db-wal"))) == (4, caught)


def flushes(calls: list[Call]) -> list[str]:
    """The files that were flushed during the second and the third charge, and the mark that was
    written.
    """
    first = next(at for at, call in enumerate(calls) if call.text.startswith("ANSWER 1"))
    last = next(at for at, call in enumerate(calls) if call.text.startswith("ANSWER 3"))
    during = calls[first:last]
    # the mark is written after each step
    assert sum(call.path.endswith(".open") for call in during) == 2 * STEPS
    return [Path(call.path).name for call in during if call.name.endswith("sync")]


def test_a_charge_with_its_open_mark_and_heads_takes_three_flushes_and_all_of_the_log(
    tmp_path: Path,
) -> None:
    (tmp_path / "elsewhere").mkdir()
    calls = traced(
        tmp_path, str(tmp_path / "l.db"), "none", str(tmp_path / "elsewhere" / "study.head")
    )
    assert flushes(calls) == ["l.db-wal"] * (2 * STEPS)
    # the head was published, before these charges or after them
    assert any("elsewhere" in call.path for call in calls if call.name.endswith("sync"))


def test_heads_that_are_published_by_each_step_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    calls = traced(
        tmp_path, str(tmp_path / "l.db"), "every step", str(tmp_path / "elsewhere" / "study.head")
    )
    assert len(flushes(calls)) > 2 * STEPS


@pytest.mark.parametrize(("mutant", "caught"), [("none", 0), ("lazy", 3)])
def test_postgres_syncs_its_log_before_each_answer(
    tmp_path: Path, postgres: Cluster, database: str, mutant: str, caught: int
) -> None:
    with tracing(tmp_path, postgres.pid) as out:
        own = [
            call for call in traced(tmp_path, database, mutant) if call.text.startswith("ANSWER")
        ]
    # the server may write to its log at any time for reasons of its own: its syncs count, not its
    # writes
    syncs = [call for call in calls_in(out) if call.name == "fdatasync"]
    assert (answers(own), len(unsynced_answers(sorted(own + syncs), "pg_wal"))) == (4, caught)

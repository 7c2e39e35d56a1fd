# SPDX-License-Identifier: Apache-2.0
"""Processes killed while they publish the head of their ledger, which is then rolled back and
opened again.

A point lies before and after each call of a sink; inside a file sink before its sync, before and
after its rename; inside a web sink before each part of the request that is sent, and before the
reply is read; inside the system's log before and after its line. Nothing shipped knows of them.

``python -m tests.contracts.head_kills '{"place": ..., "sink": "file"}'`` prints what was found as
JSON. It
forks, so it runs in a process without other threads.
"""

import http.client
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from sfumato.errors import LedgerIncomplete
from sfumato.ledger import Ledger, head_sinks, head_watch, signed_heads, verify
from sfumato.ledger.head_sinks import Silent, Sink, sink_at
from sfumato.ledger.signed_heads import Head, Signer
from tests.contracts.charges import opened, paid, pure
from tests.contracts.crashes import in_child, program
from tests.contracts.head_server import HeadServer, certificate

FILE, WEB, SYSLOG = "file", "https", "syslog"
SINKS = (FILE, WEB, SYSLOG)
COST = "0.001"


@dataclass(frozen=True)
class Trial:
    """Where everything lies, the kind of sink, and the defect of the code: "", "no comparison" or
    "in place".

    ``rounds``: kills at random while heads are published by the thread that the ledger has for it;
    0: one
    kill at each point of one publication, or at every so many (``every``).
    """

    place: str
    sink: str
    mutant: str = ""
    rounds: int = 0
    seed: int = 0
    every: int = 1

    @property
    def ledger(self) -> Path:
        """The file of the ledger, in a folder of its own."""
        return Path(self.place) / "here" / "l.db"

    @property
    def lines(self) -> Path:
        """What the log of the system has been given."""
        return Path(self.place) / "log"


@dataclass(frozen=True)
class Found:
    """A kill, and what the ledger and an older copy of it met when they were opened again.

    ``kept``, ``here`` and ``older``: the last entry that a published head names, that the ledger
    has, and
    that the copy has. ``problems``: why the ledger was refused; ``refused``: the copy was.
    """

    point: str
    kept: int
    here: int
    older: int
    problems: list[str]
    refused: bool

    @property
    def wrong(self) -> bool:
        """An undamaged ledger was refused, or a copy older than a published head was not."""
        return (
            bool(self.problems)
            or self.refused != (self.kept > self.older)
            or self.here < self.older
        )


class Points:
    """Counts the points that are passed, and kills at one of them."""

    def __init__(self, fatal: int, out: int) -> None:
        self._fatal, self._out = fatal, out
        self._guard = threading.Lock()
        self._passed = 0

    def at(self, name: str) -> None:
        """One point."""
        with self._guard:
            self._passed += 1
            if self._passed == self._fatal:
                os.write(self._out, name.encode())
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: object, name: str, what: str) -> None:
        """Puts points before and after each call of a function."""
        inner: Callable[..., Any] = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.at(f"before {what}")
            result = inner(*arguments, **named)
            self.at(f"after {what}")
            return result

        setattr(owner, name, call)


def logged(trial: Trial) -> None:
    """Lets the log of the system be a file."""

    def write(_: int, line: str) -> None:
        with trial.lines.open("a") as file:
            file.write(f"{line}\n")

    head_sinks.syslog.syslog = write


def sink_of(trial: Trial, address: str) -> Sink:
    """The sink of a trial, as ``ledger_heads`` would name it."""
    if trial.mutant == "in place":

        def put(path: Path, content: bytes) -> None:
            with Path(path).open("wb") as file:
                file.write(content[: len(content) // 2])
                file.flush()
                os.fsync(file.fileno())
                file.write(content[len(content) // 2 :])

        head_sinks.write_durably = put
    logged(trial)
    return sink_at(address)


def with_points(points: Points, sink: Sink) -> None:
    """Puts the points into a sink and into what it calls."""
    points.around(sink, "newest", "the sink is read")
    points.around(sink, "put", "the head is put")
    points.around(Signer, "sign", "the head is signed")
    points.around(os, "fsync", "a sync")
    points.around(signed_heads.Path, "replace", "the rename")
    points.around(http.client.HTTPConnection, "send", "a part of the request")
    points.around(http.client.HTTPConnection, "getresponse", "the reply")
    points.around(head_sinks.syslog, "syslog", "the line")


def publish(trial: Trial, address: str, fatal: int, out: int) -> None:
    """One more charge, and one publication that is killed at the fatal point."""
    ledger, sink = Ledger.open(trial.ledger), sink_of(trial, address)
    paid(ledger, pure(COST, "the second"))
    with_points(Points(fatal, out), sink)
    ledger.heads._sinks = {sink.name: sink}
    ledger.heads._publish_all()
    os._exit(0)


def publish_and_charge(trial: Trial, address: str, first: int, last: int, seconds: float) -> None:
    """Charges whose heads are published now and then by the thread of the ledger.

    The kill comes after the last.
    """
    head_watch.STEPS = 2
    ledger = Ledger.open(trial.ledger)
    # kills that hit a charge count as failures
    ledger.thaw("d")
    ledger.heads.begin([sink_of(trial, address)])
    for number in count(first):
        paid(ledger, pure(COST, f"q{number}"))
        if number == last:
            threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()


def killed_in(work: Callable[[int], None]) -> str:
    """What a child says before it is killed, or ends by itself: then nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        work(writing)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    status = os.waitpid(child, 0)[1]
    if status not in (0, signal.SIGKILL):
        raise RuntimeError("the child failed; its message is above")
    return text if text or status == 0 else "killed"


def entries_in(ledger: Path) -> int:
    """How many entries a copy of the files of a ledger has, by SQLite alone."""
    folder = ledger.parent.with_name("counted")
    shutil.copytree(ledger.parent, folder)
    connection = apsw.Connection(str(folder / ledger.name))
    found = connection.execute("SELECT max(seq) FROM journal WHERE chain = 'd'").fetchone()
    connection.close()
    shutil.rmtree(folder)
    return int(found[0]) if found else 0


def heads_of(trial: Trial, address: str) -> list[Head]:
    """The heads that the sink has; a log has all of them."""
    if trial.sink == SYSLOG:
        lines = trial.lines.read_text().splitlines() if trial.lines.exists() else []
        return [Head.from_text(line.removeprefix("sfumato-head ")) for line in lines]
    with suppress(Silent):
        head = sink_of(trial, address).newest()
        return [] if head is None else [head]
    return []


def refusal(trial: Trial, address: str) -> str:
    """Why the ledger does not charge, as whoever opens it with its sinks is told; "" if it does."""
    if trial.mutant == "no comparison":
        head_watch.HeadWatch._require_newest = lambda *_: None
    heads = heads_of(trial, address)
    ledger = Ledger.open(trial.ledger)
    ledger.thaw("d")
    try:
        if trial.sink == SYSLOG:
            # it cannot be read back: the owner verifies the ledger against its lines
            with_log = [] if trial.mutant == "no comparison" else heads
            return "; ".join(verify(ledger, with_log).problems)
        silent = ledger.heads.compare([sink_of(trial, address)])
        if not silent:
            paid(ledger, pure(COST, f"again {time.monotonic_ns()}"))
        return silent
    except LedgerIncomplete as error:
        return error.problem
    finally:
        ledger.store.close()


def judged(trial: Trial, address: str, point: str) -> Found:
    """Opens the ledger as the kill left it, then the older copy in its place."""
    heads = in_child(lambda: [head.chains["d"][0] for head in heads_of(trial, address)])
    here = entries_in(trial.ledger)
    problem = in_child(partial(refusal, trial, address))
    # a copy of a ledger that was open is refused by its mark: so the ledger itself is moved, and
    # put back
    left = trial.ledger.parent.with_name("left")
    trial.ledger.parent.rename(left)
    shutil.copytree(Path(trial.place) / "older", trial.ledger.parent)
    older = entries_in(trial.ledger)
    refused = bool(in_child(partial(refusal, trial, address)))
    shutil.rmtree(trial.ledger.parent)
    left.rename(trial.ledger.parent)
    return Found(point, max(heads, default=0), here, older, [problem] if problem else [], refused)


def prepared(trial: Trial, address: str) -> None:
    """A ledger with one charge whose head is published, and a copy of its folder."""
    ledger = opened(trial.ledger, 1000)
    paid(ledger, pure(COST, "the first"))
    ledger.heads.begin([sink_of(trial, address)])
    ledger.close()
    shutil.copytree(trial.ledger.parent, Path(trial.place) / "older")


def at_every_point(trial: Trial, address: str) -> list[Found]:
    """A kill at each point of a publication.

    One that is not killed any more has no further point.
    """
    found = []
    for fatal in count(1, trial.every):
        point = killed_in(partial(publish, trial, address, fatal))
        found.append(judged(trial, address, point or "the end"))
        if not point:
            return found
        # the next kill meets the same ledger and the same head
        shutil.rmtree(trial.ledger.parent)
        shutil.copytree(Path(trial.place) / "older", trial.ledger.parent)
        in_child(partial(put_back, trial, address))
    raise AssertionError("unreachable")


def put_back(trial: Trial, address: str) -> None:
    """Lets the sink have the head of the older copy again."""
    trial.lines.unlink(missing_ok=True)
    ledger = Ledger.open(trial.ledger)
    sink_of(trial, address).put(ledger.heads_beside()[0])
    ledger.store.close()


def at_random(trial: Trial, address: str) -> list[Found]:
    """Kills at random moments; after each an older copy is opened, and the ledger goes on."""
    dice, found = random.Random(trial.seed), []
    for number in range(trial.rounds):
        first = number * 10**6
        moments = first, first + dice.randrange(8), dice.random() / 10
        point = killed_in(lambda _, moments=moments: publish_and_charge(trial, address, *moments))
        assert point == "killed"
        found.append(judged(trial, address, f"round {number}"))
        if dice.random() < 0.5:
            shutil.rmtree(Path(trial.place) / "older")
            shutil.copytree(trial.ledger.parent, Path(trial.place) / "older")
    return found


def run(trial: Trial) -> list[Found]:
    """All kills of a trial, over a sink of its own."""
    trial.ledger.parent.mkdir(parents=True)
    server = 0
    address = f"file://{trial.place}/elsewhere" if trial.sink == FILE else "syslog:"
    if trial.sink == WEB:
        made = certificate(Path(trial.place) / "made")
        os.environ["SSL_CERT_FILE"] = str(made.authority)
        keeper = HeadServer(made)
        address = keeper.url()
        server = os.fork()
        if server == 0:
            keeper.serve_forever(poll_interval=0.01)
        keeper.server_close()
    try:
        in_child(partial(prepared, trial, address))
        return at_random(trial, address) if trial.rounds else at_every_point(trial, address)
    finally:
        if server:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)


def head_kills(**trial: object) -> list[Found]:
    """``run`` in a process of its own."""
    return [Found(**each) for each in program("head_kills", **trial)]


if __name__ == "__main__":
    print(json.dumps([asdict(each) for each in run(Trial(**json.loads(sys.argv[1])))]))

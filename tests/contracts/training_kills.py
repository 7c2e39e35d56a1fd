# SPDX-License-Identifier: Apache-2.0
"""Trainings that are killed (SIGKILL) at some event, and others that go on; a witness compares.

``python -m tests.contracts.training_kills '{"folder": ..., "rounds": [[3], [7, 2]], "mutant": "",
"full": false}'`` prints, as JSON, what was found in each round. The numbers of a round are the
events at which its workers die, one after another; the last worker is not killed. An event is the
entry to or the return from a step of the ledger, or a draw of noise.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import SfumatoError
from sfumato.ledger import Ledger
from sfumato.ledger.pieces import Pieces
from sfumato.query.curator import Curator

RELEASES, CHECKPOINTS = 9, 4
SIZES = (3, 2, 2, 2)
RHO = "0.01"
# Two for each step of the ledger and for each draw of a training that nobody disturbs.
EVENTS = 2 * (3 + 2 * CHECKPOINTS + RELEASES)
LEDGER_STEPS = ("reserve", "start", "begin", "append", "commit")
Say = Callable[[dict[str, Any]], None]


class Watch:
    """Counts the events of a worker, kills it at one of them, and says what it draws."""

    def __init__(self, fatal: int, say: Say, *, full: bool) -> None:
        self.left, self.say, self.full = fatal, say, full
        self.place = 0

    def event(self) -> None:
        """One more event."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        """Replaces a step by one that is two events."""
        honest = getattr(owner, name)

        def step(*given: Any, **named: Any) -> Any:
            if name == "begin":
                self.place = given[2]
            if name == "append" and self.full and self.place == 2:
                self._fill()
            if name == "measure":
                self.say({"drawn": self.place})
            self.event()
            found = honest(*given, **named)
            if name == "append":
                self.say({"stored": self.place})
            self.event()
            return found

        setattr(owner, name, step)

    def _fill(self) -> None:
        """From now on the kernel lets no file grow beyond a few bytes, as on a full disk."""
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))


def trained(folder: Path) -> dict[str, Any]:
    """A worker: fits, and says what the model is and what was spent."""
    ages = np.arange(400) % 100
    rows = pa.table({"age": ages, "ill": ages > 50})
    people = sf.Table(rows, columns={"age": sf.Integer(0, 99), "ill": sf.Boolean()})
    with sf.connect(
        {"people": people}, dataset="d", budget=sf.Budget(1, "1e-6"), ledger=folder / "l.db"
    ) as session:
        recipe = ln.Additive(bins=4, steps=RELEASES - 1, checkpoints=CHECKPOINTS)
        try:
            model = ln.fit(session, recipe, "SELECT age, ill FROM people", label="ill", rho=RHO)
            end = model.fingerprint
        except SfumatoError as refused:
            end = type(refused).__name__
        report = session.verify()
        left = str(session.budget.left_rho)
    return {"end": end, "left": left, "charges": report.charges, "problems": len(report.problems)}


def worker(folder: Path, fatal: int, mutant: str, *, full: bool) -> list[dict[str, Any]]:
    """What a worker had said when it ended, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)

        def say(what: dict[str, Any]) -> None:
            os.write(writing, json.dumps(what).encode() + b"\n")

        watch = Watch(fatal, say, full=full)
        if mutant == "draws again":
            Pieces.taken_over = lambda self: Pieces(  # type: ignore[method-assign]
                self.places, self.secret, self.fence + 1, self.last, self.last
            )
        for name in LEDGER_STEPS:
            watch.around(Ledger, name)
        watch.around(Curator, "measure")
        try:
            say(trained(folder))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = [json.loads(line) for line in said]
    os.waitpid(child, 0)
    return lines


def one_round(folder: Path, fatal: list[int], mutant: str, *, full: bool) -> dict[str, Any]:
    """Workers one after another: those that are killed, and one that is not."""
    drawn: list[list[int]] = []
    stored: list[int] = []
    last: dict[str, Any] = {}
    for number, event in enumerate([*fatal, 0]):
        said = worker(folder, event, mutant, full=full and number == 0)
        drawn.append([each["drawn"] for each in said if "drawn" in each])
        stored += [each["stored"] for each in said if "stored" in each]
        ends = [each for each in said if "end" in each]
        if ends:
            last = ends[-1]
    return {"fatal": fatal, "drawn": drawn, "stored": stored, **last}


def wrong(found: dict[str, Any], left: str) -> list[str]:
    """What is wrong in a round; ``left`` is what a training that nobody disturbs leaves."""
    faults = []
    places = [set(each) for each in found["drawn"]]
    if sum(map(len, places)) != len(set().union(*places)):
        faults.append("a piece was drawn by two workers")
    every = [place for each in found["drawn"] for place in each]
    if any(every.count(place) > SIZES[place - 1] for place in set(every)):
        faults.append("a step was drawn twice")
    if len(found["stored"]) != len(set(found["stored"])):
        faults.append("a checkpoint was stored twice")
    if every != sorted(every):
        faults.append("a worker went on before the last checkpoint")
    if found.get("problems") != 0:
        faults.append("the ledger does not verify, or the last worker did not end")
    if found.get("left") != left:
        faults.append("steps that nobody paid for, or that were paid for twice")
    return faults


def spread(count: int) -> list[list[int]]:
    """Rounds: nobody is killed, a kill at each event, then two kills at pairs of events."""
    ones = [[event] for event in range(1, EVENTS + 1)]
    pairs = [[1 + 7 * place % EVENTS, 1 + 5 * place % 23] for place in range(count)]
    return [[], *ones, *pairs][:count]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    results = []
    for number, events in enumerate(asked["rounds"]):
        place = Path(asked["folder"]) / str(number)
        place.mkdir()
        results.append(one_round(place, events, asked["mutant"], full=asked["full"]))
    print(json.dumps(results))

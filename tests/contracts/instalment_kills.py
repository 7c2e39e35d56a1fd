# SPDX-License-Identifier: Apache-2.0
"""A worker on a charge in instalments is killed (SIGKILL) at every point, and another one goes on.

``python -m tests.contracts.instalment_kills '{"place": ..., "mutant": "none"}'`` prints, as JSON,
what
was found after each kill: what the first worker had drawn and shown, and what the second one drew.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import partial
from itertools import count
from pathlib import Path

from sfumato.ledger import Ledger, verify
from sfumato.ledger.pieces import Pieces
from sfumato.ledger.store.open import open_store
from tests.contracts.charges import contract, end_leases, pure
from tests.contracts.crashes import BUDGET, COST, Trial, in_child, program
from tests.contracts.disks import WatchedDisk
from tests.contracts.kill_points import Points, PointStore, fresh

PLACES = 9


class Mutant(Enum):
    """A worker, or a ledger, that does one thing in the wrong order."""

    NONE = "none"
    DRAWS_BEFORE_BEGIN = "draws before begin"
    SHOWS_BEFORE_APPEND = "shows before append"
    DRAWS_AGAIN = "draws again"


@dataclass
class Found:
    """What was drawn and shown before a kill and after it, what is stored at the end, and what
    verify says.
    """

    point: str
    drawn: list[int] = field(default_factory=list)
    shown: list[list[object]] = field(default_factory=list)
    drawn_later: list[int] = field(default_factory=list)
    stored: list[list[object]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Whether a place was drawn twice, or something was shown that is not stored."""
        drawn = self.drawn + self.drawn_later
        return (
            len(drawn) != len(set(drawn))
            or any(each not in self.stored for each in self.shown)
            or bool(self.problems)
        )


class Worker:
    """Draws, appends and shows places; ``say`` tells the witness."""

    def __init__(
        self, ledger: Ledger, charge: str, fence: int, points: Points, mutant: Mutant
    ) -> None:
        self.ledger, self.charge, self.fence, self.points, self.mutant = (
            ledger,
            charge,
            fence,
            points,
            mutant,
        )

    def go(self, first: int, up_to: int) -> None:
        """From one place to another."""
        places = range(first, up_to + 1)
        if self.mutant is Mutant.DRAWS_BEFORE_BEGIN:
            self.points.say({"drawn": list(places)})
        self.ledger.begin(self.charge, up_to, fence=self.fence)
        if self.mutant is not Mutant.DRAWS_BEFORE_BEGIN:
            self.points.say({"drawn": list(places)})
        for place in places:
            body = os.urandom(8).hex()
            if self.mutant is Mutant.SHOWS_BEFORE_APPEND:
                self.points.say({"shown": [place, body]})
            self.ledger.append(self.charge, place, body.encode(), fence=self.fence)
            if self.mutant is not Mutant.SHOWS_BEFORE_APPEND:
                self.points.say({"shown": [place, body]})


def first_worker(trial: Trial, question: str, fatal: int) -> list[dict[str, object]]:
    """Works until the fatal point; what it had said by then, last the point if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        points = Points(fatal, writing)
        disk = WatchedDisk(lambda what: points.at(f"before a {what}")) if trial.files else None
        ledger = Ledger(PointStore(open_store(trial.place), points))  # type: ignore[arg-type]
        charge = ledger.reserve(pure(COST, question))
        fence = ledger.start(charge, PLACES)
        points.begin()
        mutant = Mutant(trial.mutant)
        Worker(ledger, charge, fence, points, mutant).go(1, 2)
        ledger.suspend(charge, fence=fence)
        fence = ledger.resume(charge).fence
        Worker(ledger, charge, fence, points, mutant).go(3, 3)
        del disk
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = [json.loads(line) for line in said]
    os.waitpid(child, 0)
    return lines


def second_worker(trial: Trial, question: str) -> dict[str, object]:
    """Goes on with what was left: as many places as there are."""
    if Mutant(trial.mutant) is Mutant.DRAWS_AGAIN:
        Pieces.taken_over = lambda self: Pieces(
            self.places, self.secret, self.fence + 1, self.last, self.last
        )  # type: ignore[method-assign]
    ledger = Ledger.open(trial.place)
    end_leases(ledger)
    charge, drawn = ledger.suspended(question), []
    pieces = ledger.resume(charge)
    while pieces.begun < PLACES:
        place = pieces.begun + 1
        ledger.begin(charge, place, fence=pieces.fence)
        drawn.append(place)
        ledger.append(charge, place, b"later", fence=pieces.fence)
        pieces = pieces.with_begun(place)
    stored = [[place, body.decode()] for place, body in ledger.instalments(charge)]
    ledger.commit(charge, b"end", fence=pieces.fence)
    problems = [] if Mutant(trial.mutant) is Mutant.DRAWS_AGAIN else list(verify(ledger).problems)
    ledger.thaw("d")
    ledger.close()
    return {"drawn_later": drawn, "stored": stored, "problems": problems}


def prepare(trial: Trial) -> None:
    """An account."""
    ledger = trial.opened()
    ledger.adopt(contract(BUDGET), BUDGET)
    ledger.close()


def run(trial: Trial, stride: int = 1) -> list[Found]:
    """Kills at every point, or every so many; a life that is not killed any more has no further
    point.

    A mutant is caught once.
    """
    in_child(partial(prepare, trial))
    found: list[Found] = []
    for fatal in count(1, stride):
        target, question = fresh(trial, f"{fatal}"), f"question {fatal}"
        said = first_worker(target, question, fatal)
        last = said[-1] if said else {}
        if "point" not in last:
            return found
        drawn = [place for each in said if "drawn" in each for place in each["drawn"]]  # type: ignore[attr-defined]
        shown = [each["shown"] for each in said if "shown" in each]
        left = in_child(partial(second_worker, target, question))
        found.append(Found(str(last["point"]), drawn, shown, **left))  # type: ignore[arg-type]
        if not trial.on_server:
            shutil.rmtree(Path(target.place).parent)
        if found[-1].wrong:
            return found
    raise AssertionError("a life without an end")


def killed(**trial: object) -> list[dict[str, object]]:
    """``run`` in a process of its own."""
    return list(program("instalment_kills", **trial))


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    stride = wanted.pop("stride", 1)
    print(json.dumps([asdict(each) for each in run(Trial(**wanted), stride)]))

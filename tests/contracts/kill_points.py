# SPDX-License-Identifier: Apache-2.0
"""Every point of a charge's life at which something could be lost, and a kill at each.

A point lies before each row that is written, before and after each commit, and, in SQLite,
before each write and each sync of a file. Nothing shipped knows of them: they sit in a
store that wraps the real one, and in a virtual file system.

``python -m tests.contracts.kill_points '{"place": ..., "mutant": "none"}'`` kills a process at
each point of each life in turn and prints, as JSON, what was left.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED, Rows, Store
from sfumato.ledger.store.open import open_store
from tests.contracts.charges import contract, pure
from tests.contracts.crashes import BUDGET, COST, Mutant, Trial, ask, in_child, program
from tests.contracts.disks import WatchedDisk

T = TypeVar("T")
WRITES = ("put_account", "put_charge", "put_answer", "put_key", "append")

# what a charge is found to be after its last durable step
LEFT = {
    "": "none",
    "reserve": VOIDED,
    "execute": FORFEITED,
    "commit": COMMITTED,
    "forfeit": FORFEITED,
}
LEFT |= {"void": VOIDED, "share": COMMITTED, "bind": COMMITTED}


@dataclass(frozen=True)
class Kill:
    """A kill and what was left: ``sure`` is the last step that had returned, ``begun`` the one
    under way.
    """

    life: str
    point: str
    sure: str
    begun: str
    released: list[str]
    state: str
    stored: str
    problems: list[str]

    @property
    def allowed(self) -> set[str]:
        """The states that the charge may be found in."""
        return {LEFT[self.sure], LEFT[self.begun]}

    @property
    def sound(self) -> bool:
        """Whether the state has a meaning, and what was released is stored and paid for."""
        told = not self.released or (
            self.state == COMMITTED and set(self.released) == {self.stored}
        )
        return told and self.state in self.allowed and not self.problems


class Points:
    """Counts the points that are passed, and kills at one of them."""

    def __init__(self, fatal: int, out: int) -> None:
        self.sure = self.begun = ""
        self._fatal, self._out, self._passed = fatal, out, -(10**9)

    def begin(self) -> None:
        """What came before, the opening, was not yet the life."""
        self._passed = 0

    def at(self, name: str) -> None:
        """One point."""
        self._passed += 1
        if self._passed == self._fatal:
            self.say(
                {
                    "point": f"{self._passed} {self.begun}: {name}",
                    "sure": self.sure,
                    "begun": self.begun,
                }
            )
            os.kill(os.getpid(), signal.SIGKILL)

    def say(self, what: object) -> None:
        """Tells the witness, who outlives this process."""
        os.write(self._out, f"{json.dumps(what)}\n".encode())


class PointRows:
    """Rows with a point before each that is written."""

    def __init__(self, rows: Rows, points: Points) -> None:
        self._rows, self._points = rows, points

    def __getattr__(self, name: str) -> Any:
        if name in WRITES or name == "put_instalment":
            self._points.at(f"before {name}")
        return getattr(self._rows, name)


class PointStore:
    """A store with points around each commit."""

    def __init__(self, store: Store, points: Points) -> None:
        self._store, self._points = store, points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, unit: Callable[[Rows], T]) -> T:
        def counted(rows: Rows) -> T:
            result = unit(PointRows(rows, self._points))  # type: ignore[arg-type]
            self._points.at("before the commit")
            return result

        result = self._store.write(counted)
        self._points.at("after the commit")
        return result


class Witnessed:
    """A ledger that says which of its steps is under way and which has returned."""

    def __init__(self, ledger: Ledger, points: Points) -> None:
        self._ledger, self._points = ledger, points

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        if name not in LEFT:
            return method
        return lambda *arguments: self._step(name, lambda: method(*arguments))

    def give(self, name: str, request: Request) -> bytes:
        """A stored answer under a step of its own name."""
        return self._step(name, lambda: self._ledger.recall(request))

    def _step(self, name: str, do: Callable[[], T]) -> T:
        self._points.begun = name
        result = do()
        self._points.sure = name
        return result


def answered(ledger: Witnessed, request: Request, points: Points, mutant: Mutant) -> None:
    """reserve, execute, commit, release; then given again under an idempotency key."""
    ask(ledger, request, lambda _, body: points.say(body), mutant)
    bound = ledger.give("bind", replace(request, key=f"key of {request.question}"))
    points.say(bound.decode())
    points.at("released again")


def failed(ledger: Witnessed, request: Request, _: Points, __: Mutant) -> None:
    """The engine fails."""
    charge = ledger.reserve(request)
    ledger.execute(charge)
    ledger.forfeit(charge, "engine")


def given_back(ledger: Witnessed, request: Request, _: Points, __: Mutant) -> None:
    """Nothing was read."""
    ledger.void(ledger.reserve(request))


def shared(ledger: Witnessed, request: Request, points: Points, _: Mutant) -> None:
    """Another analyst's answer; it was asked and paid for before anything is counted."""
    body = ledger.give("share", replace(request, shared="everybody's"))
    points.say(body.decode())
    points.at("released")


LIVES = {"answered": answered, "failed": failed, "given back": given_back, "shared": shared}


def live(trial: Trial, life: str, request: Request, fatal: int) -> list[Any]:
    """Lives in a child until the fatal point.

    What the child had said by then, last the point if it was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        points = Points(fatal, writing)
        disk = WatchedDisk(lambda what: points.at(f"before a {what}")) if trial.files else None
        store = PointStore(open_store(trial.place), points)
        ledger = Witnessed(Ledger(store, lease=trial.lease), points)  # type: ignore[arg-type]
        points.begin()
        LIVES[life](ledger, request, points, Mutant(trial.mutant))
        del disk
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = [json.loads(line) for line in said]
    status = os.waitpid(child, 0)[1]
    if status not in (0, signal.SIGKILL):
        raise RuntimeError("the child failed; its message is above")
    return lines


def request_of(life: str, number: int) -> Request:
    """A question of its own for each kill."""
    return pure(COST, f"{life} {number}", analyst="ann")


def inspect(trial: Trial, question: str) -> tuple[str, str, list[str]]:
    """The state of a question's charge, its stored answer, and what is wrong with the ledger."""
    ledger = trial.opened()
    try:
        while ledger.sweep():
            pass
        found = ledger.store.read(
            lambda rows: [
                (row.state, a.body.decode() if a else "")
                for row, a in rows.history()
                if row.question == question
            ]
        )
        state, stored = found[0] if found else ("none", "")
        problems = list(verify(ledger).problems)
        problems += ["a charge is stuck"] * ledger.store.read(
            lambda rows: len(rows.overdue(None, 9))
        )
        problems += ["two charges for one question"] * (len(found) > 1)
        ledger.thaw("d")
        return state, stored, problems
    finally:
        ledger.close()


def prepare(trial: Trial) -> None:
    """An account, and an answer that is shared."""
    ledger = trial.opened()
    ledger.adopt(contract(BUDGET), BUDGET)
    ledger.share_answers("d", allowed=True)
    asked = replace(pure(COST, "first", analyst="bob"), shared="everybody's")
    ask(ledger, asked, lambda *_: None, Mutant.NONE)
    ledger.close()


def fresh(trial: Trial, name: str) -> Trial:
    """The prepared ledger as it was: of a file a copy, so that every kill meets the same writes."""
    if trial.on_server:
        return trial
    prepared = Path(trial.place).parent
    copied = prepared.with_name(f"{prepared.name} {name}")
    shutil.copytree(prepared, copied)
    return replace(trial, place=str(copied / Path(trial.place).name))


def run(trial: Trial, stride: int = 1) -> list[Kill]:
    """Kills at every point of every life, or every so many; a life that is not killed any more has
    no further point.

    A mutant is caught once.
    """
    in_child(lambda: prepare(trial))
    kills: list[Kill] = []
    for life in trial.lives or LIVES:
        for fatal in count(1, stride):
            target, request = fresh(trial, f"{life} {fatal}"), request_of(life, fatal)
            said = live(target, life, request, fatal)
            if not said or not isinstance(said[-1], dict):
                break
            *released, last = said
            left = in_child(partial(inspect, target, request.question))
            kills.append(Kill(life, last["point"], last["sure"], last["begun"], released, *left))
            if not trial.on_server:
                shutil.rmtree(Path(target.place).parent)
            if trial.mutant != Mutant.NONE.value and not kills[-1].sound:
                return kills
    return kills


def killed(**trial: object) -> list[Kill]:
    """``run`` in a process of its own."""
    return [Kill(**kill) for kill in program("kill_points", **trial)]


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    stride = wanted.pop("stride", 1)
    print(json.dumps([asdict(kill) for kill in run(Trial(**wanted), stride)]))

# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed while they charge, and a witness who is not.

Run as a program, because it forks: a witness without threads of its own starts workers,
holds every byte that they release, kills them (SIGKILL) at some moment, and then looks at
what they left. ``python -m tests.contracts.crashes '{"place": ..., "rounds": 20}'`` prints
what was found as JSON.
"""

import json
import os
import random
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from sfumato.errors import Failed, LedgerCorrupt, Refused, WrongUse
from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger.store import (
    postgres,  # noqa: F401  # before the forks: an import takes longer than a round
    postgres_server,
)
from sfumato.ledger.store.base import COMMITTED, FORFEITED
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, pure

COST, UNITS = "0.01", 10**10
BUDGET = Budget(10**6)
Release = Callable[[str, str], None]
# In seconds; a worker that has answered nothing by then fails the test, not this wait.
_LONGEST_START = 30


class Mutant(Enum):
    """Ways to answer too early; the first is the right way."""

    NONE = "none"
    BEFORE_RESERVE = "release before reserve"
    BEFORE_COMMIT = "release before commit"


@dataclass(frozen=True)
class Trial:
    """What is done to a ledger."""

    place: str
    rounds: int = 1
    processes: int = 1
    threads: int = 8
    lease_ms: int = 300
    longest_ms: int = 150
    seed: int = 0
    mutant: str = Mutant.NONE.value
    files: bool = False
    lives: tuple[str, ...] = ()
    # so many processes are stopped for a while in each round, and the others have to go on
    stopped: int = 0
    # what the limits of time on a server are in place of 5s: of all, and of waiting for a lock
    patience: str = "5s"
    lock_timeout: str = ""

    @property
    def on_server(self) -> bool:
        """Whether several processes share the ledger."""
        return self.place.startswith("postgresql:")

    @property
    def lease(self) -> timedelta:
        """How long a charge may be open before others close it."""
        return timedelta(milliseconds=self.lease_ms)

    def opened(self) -> Ledger:
        """The ledger, as every process of the trial opens it."""
        return Ledger.open(self.place, lease=self.lease)


@dataclass
class Found:
    """What the witness found; all but the first three must be 0."""

    rounds: int = 0
    released: int = 0
    states: dict[str, int] = field(default_factory=dict)
    unpaid: int = 0
    different: int = 0
    stuck: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.unpaid or self.different or self.stuck or self.faults)


def ask(ledger: Ledger, request: Request, release: Release, mutant: Mutant) -> None:
    """One question, its whole life. The answer is new noise each time that it is computed."""
    stored = ledger.recall(request)
    if stored is not None:
        release(request.question, stored.decode())
        return
    body = secrets.token_hex(8)
    if mutant is Mutant.BEFORE_RESERVE:
        release(request.question, body)
    charge = ledger.reserve(request)
    ledger.execute(charge)
    if mutant is Mutant.BEFORE_COMMIT:
        release(request.question, body)
    ledger.commit(charge, body.encode())
    if mutant is Mutant.NONE:
        release(request.question, body)


def question_of(number: int) -> Request:
    """Question ``number`` of one of four analysts; every other one under an idempotency key."""
    request = pure(COST, f"q{number}", analyst=f"analyst {number % 4}")
    key = f"key {number}" if number % 2 else ""
    return Request(
        request.dataset,
        request.analyst,
        request.question,
        request.statement,
        request.event,
        request.purpose,
        "",
        key,
    )


def hurry(trial: Trial) -> None:
    """Sets the limits of time of this process."""
    for name in ("WRITING", "END_STOPPED"):
        setattr(
            postgres_server,
            name,
            getattr(postgres_server, name).replace("'5s'", f"'{trial.patience}'"),
        )
    if trial.lock_timeout:
        waiting = f"'lock_timeout', '{trial.patience}'"
        assert waiting in postgres_server.WRITING
        postgres_server.WRITING = postgres_server.WRITING.replace(
            waiting, f"'lock_timeout', '{trial.lock_timeout}'"
        )


def work(trial: Trial, seed: int, first: int, out: int) -> None:
    """Asks until it is killed: some questions for the first time, some again."""

    def release(question: str, body: str) -> None:
        os.write(out, f"{question} {body}\n".encode())  # whole lines: shorter than PIPE_BUF

    def loop(number: int) -> None:
        dice = random.Random(seed * 1000 + number)
        while True:
            # an error releases nothing
            try:
                ask(
                    ledger,
                    question_of(dice.randrange(max(0, first - 40), first + 40)),
                    release,
                    Mutant(trial.mutant),
                )
            except LedgerCorrupt as error:
                release(
                    "corrupt", type(error).__name__
                )  # nobody has paid for it: the witness complains
            except (Refused, WrongUse, Failed):
                pass

    hurry(trial)
    ledger = trial.opened()
    for number in range(trial.threads):
        threading.Thread(target=loop, args=(number,), daemon=True).start()
    signal.pause()


def in_child(do: Callable[[], Any]) -> Any:
    """The result of a function that runs in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            json.dump(do(), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as result:
        text = result.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the child failed; its message is above")
    return json.loads(text)


def one_round(trial: Trial, number: int, dice: random.Random) -> list[list[str]]:
    """Starts the workers and kills them; the lines that they had released by then."""
    pipes, children = [], []
    for process in range(trial.processes):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            work(trial, number * 10 + process, number * 20, writing)
        os.close(writing)
        pipes.append(reading)
        children.append(child)
    heard = dict.fromkeys(pipes, b"")
    # a worker needs some time to begin: half of the rounds may end before much is done, and the
    # time of the others begins with a first answer, however busy the machine is
    if number % 2:
        _await_answer(heard)
    _listen(heard, 0.02 + dice.random() * trial.longest_ms / 1000)
    if trial.stopped:
        _stop_some(trial, dict(zip(pipes, children, strict=True)), heard, dice)
    for child in dice.sample(children, len(children)):
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    for pipe in pipes:
        while _hear(heard, [pipe]):
            pass
        os.close(pipe)
    return [line.split() for text in heard.values() for line in text.decode().splitlines()]


def _listen(heard: dict[int, bytes], seconds: float) -> None:
    """Takes what comes in this time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _hear(heard, select.select(list(heard), [], [], left)[0])


def _await_answer(heard: dict[int, bytes]) -> None:
    """Listens until some worker has released something."""
    end = time.monotonic() + _LONGEST_START
    while not any(heard.values()) and time.monotonic() < end:
        _listen(heard, 0.01)


def _stop_some(
    trial: Trial, workers: dict[int, int], heard: dict[int, bytes], dice: random.Random
) -> None:
    """Stops some processes, waits until each of the others has released something more, and lets
    them go on.
    """
    some = dice.sample(
        sorted(workers), trial.stopped
    )  # one after the other, each may hold the others up for 10 s
    for pipe in some:
        os.kill(workers[pipe], signal.SIGSTOP)
    before = {pipe: len(heard[pipe]) for pipe in workers if pipe not in some}
    end = time.monotonic() + 10 * trial.stopped + 5
    while (
        any(len(heard[pipe]) == length for pipe, length in before.items())
        and time.monotonic() < end
    ):
        _listen(heard, 0.02)
    held = [pipe for pipe, length in before.items() if len(heard[pipe]) == length]
    for pipe in some:
        os.kill(workers[pipe], signal.SIGCONT)
    _listen(heard, 0.02 + dice.random() * trial.longest_ms / 1000)
    if held:
        heard[held[0]] += b"stopped others\n"


def _hear(heard: dict[int, bytes], pipes: list[int]) -> bool:
    """Takes what the pipes hold; whether there was anything."""
    texts = {pipe: os.read(pipe, 1 << 16) for pipe in pipes}
    for pipe, text in texts.items():
        heard[pipe] += text
    return any(texts.values())


def inspect(trial: Trial, witnessed: dict[str, list[str]]) -> dict[str, Any]:
    """What is wrong with a ledger, against what was released."""
    ledger, found = trial.opened(), Found()
    try:
        patience = time.monotonic() + 10 + trial.lease_ms / 1000
        while _open_charges(ledger) and time.monotonic() < patience:
            ledger.sweep()
        found.stuck = _open_charges(ledger)
        found.states = dict(
            ledger.store.read(lambda rows: Counter(row.state for row, _ in rows.history()))
        )
        stored = ledger.store.read(
            lambda rows: {
                row.question: a.body.decode()
                for row, a in rows.history()
                if a and row.state == COMMITTED
            }
        )
        for question, bodies in witnessed.items():
            found.different += len(set(bodies)) > 1
            found.unpaid += stored.get(question) not in bodies
            found.different += question in stored and set(bodies) != {stored[question]}
        paid = found.states.get(COMMITTED, 0) + found.states.get(FORFEITED, 0)
        if ledger.balance("d").spent.epsilon != paid * UNITS:
            found.faults.append(
                f"{paid} charges were paid, and the account has spent {ledger.balance('d').spent}"
            )
        found.faults += verify(ledger).problems
        ledger.thaw("d")
    finally:
        ledger.close()
    return asdict(found)


def _open_charges(ledger: Ledger) -> int:
    return ledger.store.read(lambda rows: len(rows.overdue(None, 10**6)))


def _open_account(trial: Trial) -> None:
    ledger = trial.opened()
    ledger.adopt(contract(BUDGET), BUDGET)
    ledger.close()


def run(trial: Trial) -> Found:
    """All rounds; stops at the first that finds something."""
    dice, total, witnessed = random.Random(trial.seed), Found(), dict[str, list[str]]()
    in_child(lambda: _open_account(trial))
    for number in range(trial.rounds):
        for question, body in one_round(trial, number, dice):
            witnessed.setdefault(question, []).append(body)
        found = Found(**in_child(lambda: inspect(trial, witnessed)))
        total = Found(
            number + 1,
            sum(map(len, witnessed.values())),
            found.states,
            found.unpaid,
            found.different,
            found.stuck,
            found.faults,
        )
        if not total.sound:
            break
    return total


def program(module: str, **trial: object) -> Any:
    """What a program of this kind prints.

    It runs in a process without other threads, so that it may fork.
    """
    command = [sys.executable, "-m", f"tests.contracts.{module}", json.dumps(trial)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def crashed(**trial: object) -> Found:
    """``run`` in a process of its own."""
    return Found(**program("crashes", **trial))


if __name__ == "__main__":
    print(json.dumps(asdict(run(Trial(**json.loads(sys.argv[1]))))))

# SPDX-License-Identifier: Apache-2.0
"""A worker on a series is killed (SIGKILL) at every named point, and another one opens the series
again.

``python -m tests.contracts.series_kills '{"folder": ..., "mutant": "", "points": [...]}'`` prints,
as JSON, for each point
what the first worker had drawn and shown, and what the second one drew, paid and found stored.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from sfumato.engines.stop import ENDLESS
from sfumato.ledger import Ledger, verify
from sfumato.ledger.pieces import Pieces
from sfumato.query import series as module
from sfumato.query.series import opened_series
from tests.contracts.crashes import in_child
from tests.contracts.series import STEPS, Middle, worker
from tests.contracts.tasks import opened

# Before and after each step of the second piece, and of the last one.
STEPS_OF_A_PIECE = ("begin", "drawn", "run_task", "append", "commit")
POINTS = ["before reserve", "after reserve", "before start", "after start"]
POINTS += [
    f"{side} {step} {place}"
    for place in (2, STEPS)
    for step in STEPS_OF_A_PIECE
    for side in ("before", "after")
]
POINTS = [each for each in POINTS if each not in ("before commit 2", "after commit 2")]

Say = Callable[[dict[str, object]], None]


def watch(fatal: str, say: Say, mutant: str) -> None:
    """Replaces each step by one that is killed before it or after it; what is drawn is said."""
    place = 0

    def around(owner: object, name: str) -> None:
        honest = getattr(owner, name)

        def step(*given: object, **named: object) -> object:
            nonlocal place
            if name == "begin":
                place = int(given[2])  # type: ignore[call-overload]
                if mutant == "draws before begin":
                    say({"drawn": place})
            point = name if name in ("reserve", "start") else f"{name} {place}"
            if fatal == f"before {point}":
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "drawn" and mutant != "draws before begin":
                say({"drawn": place})
            found = honest(*given, **named)
            if fatal == f"after {point}":
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        setattr(owner, name, step)

    for name in ("reserve", "start", "begin", "append", "commit"):
        around(Ledger, name)
    for name in ("drawn", "run_task"):
        around(module, name)


def work(folder: Path, say: Say) -> None:
    """Opens the series and computes what is left, saying what it shows."""
    ledger = opened(folder)
    found = opened_series(Middle(), worker(ledger), ENDLESS)
    for stored in found:
        say({"shown": [found.places - found.left if found.left else STEPS, stored.body.decode()]})
    ledger.close()


def first_worker(folder: Path, fatal: str, mutant: str) -> list[dict[str, object]]:
    """What it had said when it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)

        def say(what: dict[str, object]) -> None:
            os.write(writing, json.dumps(what).encode() + b"\n")

        watch(fatal, say, mutant)
        work(folder, say)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = [json.loads(line) for line in said]
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), f"it was not killed: {fatal}"
    return lines


def second_worker(folder: Path, mutant: str) -> dict[str, object]:
    """Opens the series again, and finishes it."""
    said: list[dict[str, object]] = []
    if mutant == "draws again":
        Pieces.taken_over = lambda self: Pieces(
            self.places, self.secret, self.fence + 1, self.last, self.last
        )  # type: ignore[method-assign]
    watch("", said.append, mutant)
    ledger = opened(folder)
    found = opened_series(Middle(), worker(ledger), ENDLESS)
    list(found)
    problems = [] if mutant == "draws again" else list(verify(ledger).problems)
    stored = [[place, body.decode()] for place, body in ledger.instalments(found.charge)]
    taken = str(ledger.balance(worker(ledger).asker.dataset.name).spent.epsilon)
    ledger.close()
    drawn = [each["drawn"] for each in said if "drawn" in each]
    return {"drawn_later": drawn, "stored": stored, "problems": problems, "spent": taken}


def run(folder: Path, mutant: str, points: list[str]) -> list[dict[str, object]]:
    """Kills at every point; a mutant is caught once."""
    found: list[dict[str, object]] = []
    for number, fatal in enumerate(points):
        place = folder / str(number)
        place.mkdir()
        said = first_worker(place, fatal, mutant)
        kill: dict[str, object] = {
            "point": fatal,
            "drawn": [each["drawn"] for each in said if "drawn" in each],
            "shown": [each["shown"] for each in said if "shown" in each],
        }
        kill |= in_child(lambda: second_worker(place, mutant))  # noqa: B023 - it has ended before the next one
        found.append(kill)
        if is_wrong(kill):
            break
    return found


def is_wrong(kill: dict[str, object]) -> bool:
    """Whether a place was drawn twice, shown without being stored, or paid for twice."""
    drawn = [*kill["drawn"], *kill["drawn_later"]]  # type: ignore[misc]
    return (
        len(drawn) != len(set(drawn))
        or any(each not in kill["stored"] for each in kill["shown"])  # type: ignore[attr-defined, operator]
        or bool(kill["problems"])
        or kill["spent"] != str(6 * 10**12)
    )


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    print(json.dumps(run(Path(wanted["folder"]), wanted["mutant"], wanted["points"])))

# SPDX-License-Identifier: Apache-2.0
"""A party of a study that is killed (SIGKILL) at some event, and what is left at all sites.

``python -m tests.contracts.federation_kills PARTY FOLDER EVENT`` serves a site or the coordinator
until its parent ends it, or until the event: the entry to or the return from a step of the ledger, a
message, an exchange, or whatever the coordinator stores. Each share that leaves a site is written
down.
"""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from sfumato import federated
from sfumato import learning as ln
from sfumato.errors import StudyFailed, StudyRefused
from sfumato.federated.coordinator import Coordinator
from sfumato.federated.site import Site
from sfumato.federated.study import Study
from sfumato.federated.wire import Wire
from sfumato.ledger import Ledger
from tests.contracts.federation import NAMES, coordinating, serving, write_study

COORDINATOR = "coordinator"
LEDGER_STEPS = ("reserve", "execute", "start", "begin", "append", "commit")
STORED = ("_take_message", "_note", "_take_share", "_store", "_tell")
ROWS = "SELECT age, dose, responded FROM patients"
COUNTS = "SELECT responded, COUNT(*) AS n FROM patients GROUP BY responded"
RHO, PAID = "0.02", 2 * 10**10
# A model has a first step, which counts.
STEPS = 5
PAID_STEPS = STEPS + 1
# The events of a party while a question gets two answers and nobody is killed.
EVENTS = {
    ("anne", "query"): 14,
    ("anne", "model"): 36,
    (COORDINATOR, "query"): 70,
    (COORDINATOR, "model"): 120,
}


class Watch:
    """Writes down the events of a party, and kills it at one of them."""

    def __init__(self, fatal: int, folder: Path) -> None:
        self.left, self.events = fatal, folder / "events"

    def event(self, name: str) -> None:
        """One more event."""
        with self.events.open("a") as file:
            file.write(name + "\n")
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        """Replaces a step by one that is two events."""
        honest = getattr(owner, name)

        def step(*given: Any, **named: Any) -> Any:
            self.event(f"before {name}")
            found = honest(*given, **named)
            self.event(f"after {name}")
            return found

        setattr(owner, name, step)


def write_down_shares(folder: Path) -> pytest.MonkeyPatch:
    """From now on each share that a site of this process sends is written down: site, run, step."""
    honest = Wire.exchanged

    def exchanged(wire: Wire, run: str, step: int, body: bytes, until: float) -> bytes:
        with (folder / "shares").open("a") as file:
            file.write(f"{wire._name} {run} {step} {hashlib.sha256(body).hexdigest()}\n")
        return honest(wire, run, step, body, until)

    patch = pytest.MonkeyPatch()
    patch.setattr(Wire, "exchanged", exchanged)
    return patch


def ask(study: Study, question: str) -> Any:
    """The answer of a query, or the scores of a model, as lists."""
    if question == "query":
        return study.query(COUNTS, rho=RHO, wait_s=10).to_dicts()
    recipe = ln.Additive(steps=STEPS, checkpoints=3)
    return study.fit(recipe, ROWS, label="responded", rho=RHO, wait_s=10).scores.tolist()


@contextmanager
def mortal(party: str, folder: Path, fatal: int) -> Iterator[list[int]]:
    """A party as a process that is killed at an event, and started again whenever it has ended.

    Gives the exit codes of its deaths.
    """
    deaths: list[int] = []
    over = threading.Event()

    def start(at: int) -> subprocess.Popen[bytes]:
        arguments = (party, str(folder), str(at))
        return subprocess.Popen(
            [sys.executable, "-m", "tests.contracts.federation_kills", *arguments]
        )

    def watch() -> None:
        process = start(fatal)
        while not over.wait(0.05):
            if process.poll() is not None:
                deaths.append(process.returncode)
                process = start(0)
        process.terminate()
        process.wait()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield deaths
    finally:
        over.set()
        thread.join()


def killed_round(folder: Path, party: str, question: str, fatal: int) -> dict[str, Any]:
    """A question to three sites, of which a party is killed at an event and comes back.

    It is asked until it has two answers. ``wrong`` says what is not as it must be at any site.
    """
    path = write_study(folder)
    wrong: list[str] = []
    answers: list[Any] = []
    tries = 0
    with ExitStack() as left:
        if party != COORDINATOR:
            left.enter_context(coordinating(path))
        deaths = left.enter_context(mortal(party, folder, fatal))
        left.callback(write_down_shares(folder).undo)
        left.enter_context(serving(path, *(name for name in NAMES if name != party)))
        study = left.enter_context(federated.open(path, key=folder / "analyst.pem"))
        await_all(study)
        while len(answers) < 2 and tries < 12:
            tries += 1
            try:
                answers.append(ask(study, question))
            except (StudyFailed, StudyRefused):
                time.sleep(0.2)
    if len(answers) < 2:
        wrong.append("no answer")
    elif answers[0] != answers[1]:
        wrong.append("a question answered in two ways")
    if any(code != -signal.SIGKILL for code in deaths):
        wrong.append(f"deaths of {deaths}")
    events = (folder / "events").read_text().splitlines()
    sent = sent_shares(folder)
    for name in NAMES:
        with Site(folder / f"{name}.toml") as site:
            problems = list(site.session.verify().problems)
            spent = site.session._ledger.balance(name).taken.rho
        problems += wrong_shares(question, sent[name], spent)
        wrong += [f"{name}: {problem}" for problem in problems]
    return {
        "party": party,
        "question": question,
        "at": events[fatal - 1] if 0 < fatal <= len(events) else f"none of {len(events)}",
        "tries": tries,
        "deaths": len(deaths),
        "wrong": wrong,
    }


def await_all(study: Study, most: float = 30.0) -> None:
    """Waits until the coordinator has heard all sites, or for so many seconds."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        with suppress(StudyFailed):
            if set(NAMES) <= set(study._wire.heard()):
                return
        time.sleep(0.05)


def sent_shares(folder: Path) -> dict[str, dict[tuple[str, str], set[str]]]:
    """The hashes of the shares that each site has sent, by run and step."""
    sent: dict[str, dict[tuple[str, str], set[str]]] = {name: {} for name in NAMES}
    for line in (folder / "shares").read_text().splitlines():
        name, run, step, body = line.split()
        sent[name].setdefault((run, step), set()).add(body)
    return sent


def wrong_shares(
    question: str,
    sent: Mapping[tuple[str, str], set[str]],
    spent: int,
) -> list[str]:
    """What is wrong with the shares that a site has sent for its charges.

    A model is paid once: all its runs together send no more steps than one undisturbed run. Each
    run of a query that has sent a share was paid.
    """
    wrong = [f"step {step} drawn twice" for (_, step), bodies in sent.items() if len(bodies) > 1]
    if question == "model":
        if len(sent) > PAID_STEPS:
            wrong.append(f"{len(sent)} steps sent of {PAID_STEPS} that were paid")
        if not 0 < spent <= PAID:
            wrong.append(f"a model for {spent}")
    else:
        runs = len({run for run, _ in sent})
        # what is planned is a little below what may be spent
        if not runs * PAID * 0.999 <= spent:
            wrong.append(f"{runs} runs for a charge of {spent}")
    return wrong


def main(party: str, folder: str, fatal: str) -> None:
    """Serves a party and kills it at an event; 0 kills it never."""
    # as the command line has it; SIGINT is ignored in what a script runs in the background
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    path = Path(folder)
    watch = Watch(int(fatal), path)
    if party == COORDINATOR:
        study = federated.read_study(path / "study.toml")
        for name in STORED:
            watch.around(Coordinator, name)
        port = int(study.coordinator.rpartition(":")[2])
        uvicorn.run(
            Coordinator(study, path / "rounds"), host="127.0.0.1", port=port, log_config=None
        )
        return
    write_down_shares(path)
    for name in LEDGER_STEPS:
        watch.around(Ledger, name)
    watch.around(Wire, "post")
    watch.around(Wire, "exchanged")
    with suppress(KeyboardInterrupt), Site(path / f"{party}.toml") as site:
        site.serve(threading.Event(), str, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

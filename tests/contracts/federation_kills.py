# SPDX-License-Identifier: Apache-2.0
"""One site of a study that is killed (SIGKILL) at some event, and what is left at all sites.

``python -m tests.contracts.federation_kills SITE.toml EVENT SHARES`` serves a site until its parent
ends it, or until the event: the entry to or the return from a step of the ledger, a message or an
exchange. It writes down each share that it sends.
"""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sfumato import federated
from sfumato import learning as ln
from sfumato.errors import StudyFailed, StudyRefused
from sfumato.federated.site import Site
from sfumato.federated.wire import Wire
from sfumato.ledger import Ledger
from tests.contracts.federation import NAMES, coordinating, serving, write_study

LEDGER_STEPS = ("reserve", "execute", "start", "begin", "append", "commit")
ROWS = "SELECT age, dose, responded FROM patients"
RHO = "0.02"
# Two for each step of the ledger, message and exchange of an undisturbed run, and a few beyond.
EVENTS = 2 * (2 + 2 * 3 + 1 + 3 + 6)


class Watch:
    """Counts the events of a site, and kills it at one of them."""

    def __init__(self, fatal: int) -> None:
        self.left = fatal

    def event(self) -> None:
        """One more event."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        """Replaces a step by one that is two events."""
        honest = getattr(owner, name)

        def step(*given: Any, **named: Any) -> Any:
            self.event()
            found = honest(*given, **named)
            self.event()
            return found

        setattr(owner, name, step)


def written_down(place: Path) -> None:
    """From now on each share that is sent is written down with its run and step."""
    honest = Wire.exchanged

    def exchanged(wire: Wire, run: str, step: int, body: bytes, until: float) -> bytes:
        with place.open("a") as file:
            file.write(f"{run} {step} {hashlib.sha256(body).hexdigest()}\n")
        return honest(wire, run, step, body, until)

    Wire.exchanged = exchanged  # type: ignore[method-assign]


def killed_round(folder: Path, fatal: int) -> dict[str, Any]:
    """A fit of three sites, one of which is killed at an event and comes back; what is left."""
    path = write_study(folder)
    shares = folder / "shares"
    wrong: list[str] = []

    def worker(at: int) -> subprocess.Popen[bytes]:
        arguments = (str(folder / "anne.toml"), str(at), str(shares))
        program = [sys.executable, "-m", "tests.contracts.federation_kills", *arguments]
        return subprocess.Popen(program)

    with ExitStack() as left:
        left.enter_context(coordinating(path))
        sites = left.enter_context(serving(path, *NAMES[1:]))
        study = left.enter_context(federated.open(path, key=folder / "analyst.pem"))
        process = worker(fatal)
        models, tries = [], 0
        try:
            while len(models) < 2 and tries < 12:
                tries += 1
                try:
                    models.append(
                        study.fit(
                            ln.Additive(steps=5, checkpoints=3),
                            ROWS,
                            label="responded",
                            rho=RHO,
                            wait_s=10,
                        )
                    )
                except (StudyFailed, StudyRefused):
                    time.sleep(0.5)
                if process.poll() is not None:
                    process = worker(0)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
        if len(models) < 2:
            wrong.append("no answer")
        elif (models[0].scores != models[1].scores).any():
            wrong.append("a question answered in two ways")
        for name, site in sites.items():
            wrong += [f"{name}: {each}" for each in site.session.verify().problems]
            spent = site.session._ledger.balance(name).taken.rho
            if not 0 < spent <= 2 * 10**10:
                wrong.append(f"{name} spent {spent}")
    with Site(folder / "anne.toml") as anne:
        wrong += [f"anne: {each}" for each in anne.session.verify().problems]
        spent = anne.session._ledger.balance("anne").taken.rho
        if not 0 < spent <= 2 * 10**10:
            wrong.append(f"anne spent {spent}")
    drawn: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in shares.read_text().splitlines() if shares.exists() else []:
        run, step, body = line.split()
        drawn[run, step].add(body)
    wrong += [f"step {step} drawn twice" for (_, step), bodies in drawn.items() if len(bodies) > 1]
    return {"event": fatal, "tries": tries, "wrong": wrong}


def main(path: str, fatal: str, shares: str) -> None:
    """Serves a site and kills it at an event; 0 kills it never."""
    watch = Watch(int(fatal))
    written_down(Path(shares))
    for name in LEDGER_STEPS:
        watch.around(Ledger, name)
    watch.around(Wire, "post")
    watch.around(Wire, "exchanged")
    with Site(path) as site:
        site.serve(threading.Event(), str, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

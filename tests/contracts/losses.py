# SPDX-License-Identifier: Apache-2.0
"""Files that are lost, linked, copied and cut after a kill: each case ends whole or refused."""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, verify

CHARGING = """
import os, signal, sys, threading
from pathlib import Path
from sfumato.ledger import Ledger
from tests.contracts.charges import opened, paid, pure
path, first, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
ledger = Ledger.open(path) if path.exists() else opened(path, 1000)
threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
for number in range(first, 10**9):
    paid(ledger, pure("0.001", f"q{number}"))
    os.write(1, b".")
    if number % 20 == 7:
        ledger.store.checkpoint()
"""

MIGRATING = """
import os, signal, sys
from sfumato.ledger.migrate import migrate
from tests.contracts.disks import WatchedDisk
source, target, fatal = sys.argv[1], sys.argv[2], int(sys.argv[3])
passed = 0
def step(what):
    global passed
    passed += 1
    if passed == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
disk = WatchedDisk(step)
migrate(source, target)
"""


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """A program in a process of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False)


def files(path: Path) -> dict[str, Path]:
    """The three files of a ledger that was killed."""
    return {end: Path(f"{path}{end}") for end in ("", "-wal", ".open")}


def lose(path: Path, dice: random.Random, older: Path) -> str:
    """Does something to the files; what."""
    found = files(path)
    what = dice.choice(
        [
            "nothing",
            "no log",
            "no mark",
            "file alone",
            "cut log",
            "copy",
            "link",
            "older log",
            "older",
        ]
    )
    if what in ("no log", "file alone"):
        found["-wal"].unlink()
    if what in ("no mark", "file alone"):
        found[".open"].unlink()
    if what == "cut log":
        os.truncate(found["-wal"], dice.randrange(0, 60_000))
    if what == "copy":
        for each in found.values():
            shutil.copy(each, f"{each}.copy")
            Path(f"{each}.copy").replace(each)
    if what == "link":
        Path(f"{path}.second").hardlink_to(path)
    if what in ("older log", "older") and files(older)["-wal"].exists():
        for end in ("-wal",) if what == "older log" else ("", "-wal"):
            found[end].write_bytes(files(older)[end].read_bytes())
    return what


def lost(folder: Path, rounds: int, seed: int) -> dict[str, int]:
    """Kills, then losses: how often each was refused, and how often all that was acknowledged was
    there.
    """
    dice, outcomes = random.Random(seed), Counter[str]()
    for number in range(rounds):
        here, older = folder / str(number), folder / f"older {number}"
        here.mkdir(), older.mkdir()
        path = here / "l.db"
        acknowledged = len(run(CHARGING, path, 0, 0.1 + dice.random() / 2).stdout)
        for end, each in files(path).items():
            if each.exists():
                shutil.copy(each, f"{older / 'l.db'}{end}")
        acknowledged += len(run(CHARGING, path, 10**6, 0.1 + dice.random() / 2).stdout)
        what = lose(path, dice, older / "l.db")
        try:
            ledger = Ledger.open(path)
        except LedgerError:
            outcomes[f"{what}: refused"] += 1
        else:
            assert verify(ledger).problems == (), what
            assert ledger.balance("d").spent.epsilon >= acknowledged * 10**9, what
            outcomes[f"{what}: whole"] += 1
            ledger.close()
        shutil.rmtree(here)
        shutil.rmtree(older)
    return dict(sorted(outcomes.items()))


def live(place: Path) -> bool:
    """Whether a ledger with accounts can be opened, and so charges."""
    try:
        ledger = Ledger.open(place, create=False)
    except LedgerError:
        return False
    found = bool(ledger.accounts())
    ledger.close()
    return found

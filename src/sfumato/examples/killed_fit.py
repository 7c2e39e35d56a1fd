# SPDX-License-Identifier: Apache-2.0
"""A training that kills its own process: ``python -m sfumato.examples.killed_fit``.

``demo_learning`` starts it with the path of a ledger and the checkpoint after which it dies.
"""

import os
import signal
import sys
from pathlib import Path

from sfumato.examples.learning_rows import FEATURES, persons
from sfumato.learning.additive import Additive
from sfumato.learning.fit import fit
from sfumato.learning.model import Model
from sfumato.learning.recipe import Progress
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session

BUDGET = Budget(epsilon=2, delta="1e-5")
RECIPE = Additive(bins=16, steps=50)
STATEMENT = f"SELECT {FEATURES} FROM people"
COST = {"epsilon": "1", "delta": "1e-6"}


def opened(ledger: Path) -> Session:
    """Opens a session over the private rows of the demo, with its ledger at ``ledger``."""
    return connect({"people": persons()}, dataset="adult", budget=BUDGET, ledger=ledger)


def trained(session: Session, progress: Progress | None = None) -> Model:
    """Fits the model of the demo; continues from the last checkpoint if there is one."""
    return fit(session, RECIPE, STATEMENT, label="income", progress=progress, **COST)


def main(ledger: str, last: str) -> None:
    """Trains until a checkpoint is stored, then kills the process without any clean-up."""

    def die(place: int, places: int) -> None:
        if place == int(last):
            os.kill(os.getpid(), signal.SIGKILL)

    with opened(Path(ledger)) as session:
        trained(session, die)


if __name__ == "__main__":
    main(*sys.argv[1:])

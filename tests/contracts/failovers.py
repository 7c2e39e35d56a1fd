# SPDX-License-Identifier: Apache-2.0
"""Two servers that take each other's place under callers, again and again."""

import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import LedgerIncomplete
from sfumato.ledger import Head, Ledger, Signer, verify
from sfumato.ledger.failover import accept_server
from tests.contracts.charges import contract, pure
from tests.contracts.crashes import BUDGET, COST
from tests.contracts.postgres import Cluster
from tests.contracts.servers import Callers
from tests.contracts.standbys import caught_up, either, hold_back
from tools.postgres import programs


@dataclass
class Counted:
    """Rounds by how they ended, and answers that were released in all."""

    whole: int = 0
    refused: int = 0
    released: int = 0


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sfumato-failover-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def fail_over(rounds: int, *, seed: int = 0) -> Counted:
    """Each round: two new servers, callers, and a standby that takes over with everything or with
    less.

    What was released is on the new server, or nobody charges there before the owner has accepted
    the loss.
    """
    dice, total = random.Random(seed), Counted()
    for number in range(rounds):
        found = programs()
        assert found is not None, "PostgreSQL is installed"
        with _folder() as one, _folder() as other, _folder() as keys:
            first = Cluster(found, one)
            first.start()
            second: Cluster | None = None
            try:
                second = Cluster(found, other, primary=first)
                second.start()
                _one_round(
                    first, second, Signer(keys / "key"), total, lagging=bool(number % 2), dice=dice
                )
            finally:
                first.stop(signal.SIGQUIT)
                if second is not None:
                    second.stop(signal.SIGQUIT)
    return total


def _one_round(
    first: Cluster,
    second: Cluster,
    signer: Signer,
    total: Counted,
    *,
    lagging: bool,
    dice: random.Random,
) -> None:
    ledger = Ledger.open(either(first, second))
    try:
        ledger.adopt(contract(BUDGET), BUDGET)
        caught_up(first, second)
        with Callers(ledger) as callers:
            callers.wait_for(dice.randrange(10, 40))
            if lagging:
                hold_back(second)
                callers.wait_for(dice.randrange(10, 40))
            head = ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows))
        if not lagging:
            caught_up(first, second)
        first.stop(signal.SIGQUIT)
        second.promote()
        try:
            ledger.reserve(pure(COST, "after"))
            raise AssertionError("it charges on a server that nobody has accepted")
        except LedgerIncomplete:
            pass
        _decide(second, head, lagging=lagging)
        released = {question: set(bodies) for question, bodies in callers.released.items()}
        _compare(second, released, lagging=lagging)
    finally:
        ledger.close()
    total.released += len(released)
    total.refused += lagging
    total.whole += not lagging


def _decide(second: Cluster, head: Head, *, lagging: bool) -> None:
    """The owner looks at the head that was kept elsewhere."""
    place = second.url("postgres")
    try:
        accept_server(place, [head])
        assert not lagging, "a server that lacks charges was accepted"
    except LedgerIncomplete:
        assert lagging, "a server that has everything was not accepted"
        accept_server(place, [head], accept_loss=True)


def _compare(second: Cluster, released: dict[str, set[str]], *, lagging: bool) -> None:
    """What the new server holds of what was released."""
    after = Ledger.open(second.url("postgres"))
    try:
        stored = after.store.read(
            lambda rows: {row.question: a.body.decode() for row, a in rows.history() if a}
        )
        lost = [
            question for question, bodies in released.items() if {stored.get(question)} != bodies
        ]
        frozen = any(each.frozen for each in after.accounts())
        assert (bool(lost), frozen) == (lagging, lagging), (lost, frozen)
        assert verify(after).problems == ()
    finally:
        after.close()

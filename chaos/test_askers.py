# SPDX-License-Identifier: Apache-2.0
"""Thirty-two askers over one session, who cancel now and then: nothing unpaid, nothing lost, nothing over."""

import random
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, Cancelled
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED
from tests.contracts.charges import charges
from tests.contracts.people import session

ROUNDS, ASKERS, EACH = range(20), 32, 4
PRICE, BUDGET = Fraction(1, 100), Fraction(1, 2)
COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
ABOVE = "SELECT COUNT(*) AS n FROM people WHERE hours > {} AND age > (SELECT AVG(age) FROM people WHERE hours > {})"


class Asker:
    """One thread: what it asked, what it got, and how often it was cancelled before and after the read."""

    def __init__(self, asking: sf.Session, seed: int, place: int) -> None:
        self._asking = asking.asking_as(f"a{place % 8}")
        self._random = random.Random(seed * ASKERS + place)  # noqa: S311
        self.answers: dict[tuple[int, str], bytes] = {}
        self.place, self.paid, self.free, self.refused = place % 8, 0, 0, 0
        self.others: list[Exception] = []

    def run(self) -> None:
        for _ in range(EACH):
            number, stop = self._random.randrange(12), sf.Stop()
            sql = self._random.choice([COUNT, ABOVE]).format(number, number)
            if self._random.random() < 0.5:
                threading.Timer(self._random.random() * 0.05, stop.stop).start()
            self._ask(sql, stop)

    def _ask(self, sql: str, stop: sf.Stop) -> None:
        try:
            body = self._asking.query(sql, epsilon=PRICE, stop=stop).bytes
            assert self.answers.setdefault((self.place, sql), body) == body
        except Cancelled as cancelled:
            self.paid += cancelled.paid
            self.free += not cancelled.paid
        except BudgetExceeded:
            self.refused += 1
        except Exception as other:  # noqa: BLE001
            self.others.append(other)


@pytest.mark.parametrize("seed", ROUNDS)
def test_what_was_shown_is_paid_and_what_is_paid_is_kept(
    tmp_path: Path, report: Callable[[str], None], seed: int
) -> None:
    with session(tmp_path, budget=(BUDGET, 0), analyst="owner") as asking:
        askers = [Asker(asking, seed, place) for place in range(ASKERS)]
        threads = [threading.Thread(target=each.run) for each in askers]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [other for each in askers for other in each.others] == []
        # timers that are still there stop nothing any more
        time.sleep(0.1)
        _require_sound(asking, askers)
        rows = charges(asking._ledger)
    states = {state: sum(row.state == state for row in rows) for state in (COMMITTED, FORFEITED, VOIDED)}
    refused = sum(each.refused for each in askers)
    report(f"askers, seed {seed}: {states}, {refused} refused")


def _require_sound(asking: sf.Session, askers: list[Asker]) -> None:
    ledger = asking._ledger
    rows, balance = charges(ledger), ledger.balance("tiny")
    assert asking.verify().problems == ()
    assert {row.state for row in rows} <= {COMMITTED, FORFEITED, VOIDED}
    assert {row.reason for row in rows if row.state == FORFEITED} <= {"cancelled"}
    # nothing over, nothing left behind
    assert balance.taken.epsilon <= balance.gates.epsilon
    assert balance.reserved.epsilon == 0
    # nothing unpaid: every answer that was shown is a committed one, the same for all threads of an analyst
    stored = {ledger.answer(row.question) for row in rows if row.state == COMMITTED}
    shown: dict[tuple[int, str], set[bytes]] = {}
    for each in askers:
        for name, body in each.answers.items():
            shown.setdefault(name, set()).add(body)
    assert all(len(bodies) == 1 and bodies <= stored for bodies in shown.values())
    # one answer a question, and whoever was told that the cost stays spent finds it so
    answered = [row.question for row in rows if row.state == COMMITTED]
    assert len(answered) == len(set(answered))
    assert sum(row.state == FORFEITED for row in rows) == sum(each.paid for each in askers)

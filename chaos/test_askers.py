# SPDX-License-Identifier: Apache-2.0
"""Thirty-two askers over one session, who cancel now and then: nothing unpaid, nothing lost,
nothing over.

A thousand rounds on SQLite and three hundred on PostgreSQL. A share of them: ``make chaos
ARGS='chaos/test_askers.py -k "sqlite and block-0"'``, where a block is twenty rounds.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, Cancelled
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED, ChargeRow
from tests.contracts.charges import charges
from tests.contracts.people import FRAME, table

BLOCK, ASKERS, EACH = 20, 32, 4
BLOCKS = [("sqlite", block) for block in range(50)] + [("postgres", block) for block in range(15)]
PRICE, BUDGET = Fraction(1, 100), Fraction(1, 2)
COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
ABOVE = "SELECT COUNT(*) AS n FROM people WHERE hours > {} AND age > (SELECT AVG(age) FROM people WHERE hours > {})"
# sub-queries of sub-queries, which turn out to be the same now and then, in either order
INNER = "(SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people WHERE hours > {}))"
NESTED = f"SELECT COUNT(*) AS n FROM people WHERE age > {INNER} AND hours < {INNER}"
# long enough that many a question is cancelled while it reads
PEOPLE = pa.concat_tables([FRAME] * 1000)


class Asker:
    """One thread: what it asked, what it got, and how often it was cancelled before and after the
    read.
    """

    def __init__(self, asking: sf.Session, seed: int, place: int) -> None:
        # two purposes of each analyst, which share their answers
        self.place = place % 8, place // 8 % 2
        self._asking = asking.asking_as(f"a{self.place[0]}", f"p{self.place[1]}")
        self._random = random.Random(seed * ASKERS + place)  # noqa: S311
        self.answers: dict[tuple[tuple[int, int], str], bytes] = {}
        self.paid, self.free, self.refused = 0, 0, 0
        self.others: list[Exception] = []
        self.stop_at_read: Callable[[], object] | None = None

    def run(self) -> None:
        for _ in range(EACH):
            number, stop = self._random.randrange(12), sf.Stop()
            sql = self._random.choice([COUNT, ABOVE, NESTED]).format(number, 11 - number)
            moment, delay = (
                self._random.choice(["any", "read", "never", "never"]),
                self._random.random(),
            )
            self.stop_at_read = (
                threading.Timer(delay * 0.01, stop.stop).start if moment == "read" else None
            )
            if moment == "any":
                threading.Timer(delay * 0.05, stop.stop).start()
            self._ask(sql, stop)

    def reads(self) -> None:
        """Now the data is being read for it."""
        stop, self.stop_at_read = self.stop_at_read, None
        if stop is not None:
            stop()

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


@contextmanager
def session(ledger: object, seed: int) -> Iterator[sf.Session]:
    """A session with a dataset of its own."""
    named = {"dataset": f"tiny{seed}", "analyst": "owner", "budget": sf.Budget(BUDGET)}
    with sf.connect({"people": table(PEOPLE)}, ledger=ledger, **named) as asking:
        execute, local = asking._ledger.execute, threading.current_thread

        def executed(charge: str) -> None:
            execute(charge)
            asker = getattr(local(), "asker", None)
            if asker is not None:
                asker.reads()

        asking._ledger.execute = executed
        yield asking


@pytest.mark.parametrize(
    ("store", "block"), BLOCKS, ids=lambda each: each if isinstance(each, str) else f"block-{each}"
)
def test_what_was_shown_is_paid_and_what_is_paid_is_kept(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    report: Callable[[str], None],
    store: str,
    block: int,
) -> None:
    states: Counter[str] = Counter()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        place = (
            tmp_path / f"{seed}.db" if store == "sqlite" else request.getfixturevalue("database")
        )
        states += one_round(place, seed)
    # the cancels fall on both sides of the read
    assert states[VOIDED] + states["free"] and states[FORFEITED]
    report(f"askers, {store}, {BLOCK} rounds from {block * BLOCK}: {dict(states)}")


def one_round(place: object, seed: int) -> Counter[str]:
    """How many charges ended how, how many questions were refused, and how many were cancelled for
    nothing.
    """
    with session(place, seed) as asking:
        askers = [Asker(asking, seed, place) for place in range(ASKERS)]
        threads = [threading.Thread(target=each.run) for each in askers]
        for each, asker in zip(threads, askers, strict=True):
            each.asker = asker
            each.start()
        for each in threads:
            each.join()
        assert [other for each in askers for other in each.others] == []
        # timers that are still there stop nothing any more
        time.sleep(0.06)
        rows = [row for row in charges(asking._ledger) if row.dataset == asking.dataset.name]
        _require_sound(asking, askers, rows)
    found = Counter(row.state for row in rows)
    return found + Counter(
        refused=sum(each.refused for each in askers), free=sum(each.free for each in askers)
    )


def _require_sound(asking: sf.Session, askers: list[Asker], rows: list[ChargeRow]) -> None:
    ledger = asking._ledger
    balance = ledger.balance(asking.dataset.name)
    assert asking.verify().problems == ()
    assert {row.state for row in rows} <= {COMMITTED, FORFEITED, VOIDED}
    assert {row.reason for row in rows if row.state == FORFEITED} <= {"cancelled"}
    # nothing over, nothing left behind
    assert balance.taken.epsilon <= balance.gates.epsilon
    assert balance.reserved.epsilon == 0
    # nothing unpaid: every answer that was shown is a committed one, the same for all threads of an
    # account
    stored = {ledger.answer(row.question) for row in rows if row.state == COMMITTED}
    shown: dict[tuple[tuple[int, int], str], set[bytes]] = {}
    for each in askers:
        for name, body in each.answers.items():
            shown.setdefault(name, set()).add(body)
    assert all(len(bodies) == 1 and bodies <= stored for bodies in shown.values())
    # one answer a question, and whoever was told that the cost stays spent finds it so
    answered = [row.question for row in rows if row.state == COMMITTED]
    assert len(answered) == len(set(answered))
    assert sum(row.state == FORFEITED for row in rows) <= sum(each.paid for each in askers)
    # what one purpose of an analyst paid for, the dataset does not pay for again
    fresh = [
        (row.analyst, row.shared)
        for row in rows
        if row.state == COMMITTED and row.shared and not row.source
    ]
    assert len(fresh) == len(set(fresh))
    assert asking._ledger.turns.names == []

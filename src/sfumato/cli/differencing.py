# SPDX-License-Identifier: Apache-2.0
"""The differencing attack: on plain SQL it reads one person's secret; here it nearly guesses.

A table of five names and a bit. The sum over the first five rows minus the sum over the
first four is the fifth person's bit.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow

from sfumato.engines.reference import Reference, rows_of
from sfumato.metadata.column import Category, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.noise.entropy import SYSTEM
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import ReplaceOne
from sfumato.query.add_noise import cells_of, noisy
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.connect import connect
from sfumato.query.curator import Curator
from sfumato.query.price import price
from sfumato.query.reserved import Reserved, drawn
from sfumato.query.statistic import Opened
from sfumato.sql.lower import understand

NAMES = ("Ross", "Monica", "Joey", "Phoebe", "Chandler")
BITS = (1, 1, 0, 0, 1)
# Each of the two sums costs this; for a changed bit the two together cost E.
EPSILON = Fraction(1, 2)
TRIALS = 1_000


@dataclass(frozen=True, slots=True)
class Attack:
    """What the attacker gets: from plain SQL, from one session, and on average.

    ``bound`` is the most that any attacker with a uniform prior can succeed:
    e^E / (1 + e^E) (RULES 26).
    """

    plain: tuple[int, int]
    noisy: tuple[float, float]
    successes: int
    trials: int
    total_epsilon: Fraction

    @property
    def bound(self) -> float:
        odds = math.exp(self.total_epsilon)
        return odds / (1 + odds)


def sums() -> tuple[str, str]:
    """The two questions of the attacker."""
    listed = [f"'{name}'" for name in NAMES]
    question = "SELECT SUM(diabetes) AS cases FROM patients WHERE name IN ({})"
    return question.format(", ".join(listed)), question.format(", ".join(listed[:-1]))


def patients(bits: tuple[int, ...]) -> Table:
    """The declared table; a replaced person is the neighbour, so a changed bit is one step."""
    return Table(_data(bits), columns={"name": Category(*NAMES), "diabetes": Integer(0, 1)})


def attack(folder: Path, trials: int = TRIALS) -> Attack:
    """Runs the attack once through a session, and ``trials`` times on the mechanism alone."""
    five, four = (_plain(sql) for sql in sums())
    with connect(
        {"patients": patients(BITS)},
        dataset="five-patients",
        budget=Budget(2 * EPSILON),
        relation=ReplaceOne,
        ledger=folder / "attack.db",
    ) as session:
        first, second = (session.query(sql, epsilon=EPSILON).rows[0][0] for sql in sums())
    assert isinstance(first, int) and isinstance(second, int), "sums of an Integer column are whole"
    return Attack(
        (five, four),
        (first, second),
        sum(_guesses_right() for _ in range(trials)),
        trials,
        2 * EPSILON,
    )


def _plain(sql: str) -> int:
    """What a database without protection answers."""
    with duckdb.connect() as connection:
        connection.register("patients", _data(BITS))
        row = connection.execute(sql).fetchone()
    assert row is not None, "a sum has one row"
    return int(row[0])


def _data(bits: tuple[int, ...]) -> pyarrow.Table:
    return pyarrow.table({"name": list(NAMES), "diabetes": list(bits)})


def _guesses_right() -> bool:
    """One fresh budget: the fifth bit is a fair coin, the attacker knows the other four."""
    secret = SYSTEM.bits(1)
    bits = (*BITS[:-1], secret)
    table = patients(bits)
    dataset = Dataset("five-patients", {"patients": table}, ReplaceOne)
    rows = Reference({"patients": rows_of({"name": NAMES, "diabetes": bits})})
    noisy = [
        _release(plan_for_price(understand(sql, dataset), dataset, price(epsilon=EPSILON)), rows)
        for sql in sums()
    ]
    difference = noisy[0] - noisy[1]
    guess = SYSTEM.bits(1) if 2 * difference == 1 else int(2 * difference > 1)
    return guess == secret


def _release(planned: Planned, rows: Reference) -> int:
    """The real mechanism on the real plan, without the durable ledger."""
    opened = Opened(planned.bounded, lambda: rows.run(planned.bounded, "attack"))
    noise = drawn(planned.event, cells_of(planned))
    _, (released,) = noisy(planned, Curator("attack", Reserved(planned.event, noise), opened))
    return released.values[0][0]

# SPDX-License-Identifier: Apache-2.0
"""The differencing attack, which learns a secret bit from plain SQL but hardly from sfumato.

The table has five names, each with a bit. The sum over all five rows minus the sum over the first
four is the bit of the fifth person. ``demo`` runs it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow

from sfumato.engines.reference import Reference, rows_of
from sfumato.metadata.column import Category, ColumnType, Integer
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
# The cost of each of the two sums; E is that of both.
EPSILON = Fraction(1, 2)
TRIALS = 1_000


@dataclass(frozen=True, slots=True)
class Attack:
    """The result of the differencing attack demo, in which the difference of two sums gives one
    patient's value.

    ``plain`` has both sums as plain SQL returns them, ``noisy`` as one session released them.
    ``successes`` of ``trials`` attacks were right; both sums together cost ``total_epsilon``.
    """

    plain: tuple[int, int]
    noisy: tuple[float, float]
    successes: int
    trials: int
    total_epsilon: Fraction

    @property
    def bound(self) -> float:
        """The largest success probability of any attacker with a uniform prior (RULES 26).

        It is e^E / (1 + e^E) for a total epsilon of E.
        """
        odds = math.exp(self.total_epsilon)
        return odds / (1 + odds)


def sums() -> tuple[str, str]:
    """Returns the two SQL questions of the differencing attack: a sum over five patients, and one
    over the first four.
    """
    listed = [f"'{name}'" for name in NAMES]
    question = "SELECT SUM(diabetes) AS cases FROM patients WHERE name IN ({})"
    all_five = question.format(", ".join(listed))
    first_four = question.format(", ".join(listed[:-1]))
    return all_five, first_four


def patients(bits: tuple[int, ...]) -> Table:
    """Returns the declared table; neighbours differ in one person, so in one bit."""
    columns: dict[str, ColumnType] = {"name": Category(*NAMES), "diabetes": Integer(0, 1)}
    return Table(_data(bits), columns=columns)


def attack(folder: Path, trials: int = TRIALS) -> Attack:
    """Runs the differencing attack once through a session, and ``trials`` times on the noise
    mechanism alone; returns both results.
    """
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
    successes = sum(_guesses_right() for _ in range(trials))
    return Attack((five, four), (first, second), successes, trials, 2 * EPSILON)


def _plain(sql: str) -> int:
    """Returns the answer of plain SQL."""
    with duckdb.connect() as connection:
        connection.register("patients", _data(BITS))
        row = connection.execute(sql).fetchone()
    assert row is not None, "a sum has one row"
    return int(row[0])


def _data(bits: tuple[int, ...]) -> pyarrow.Table:
    """Returns the rows of the table."""
    columns = {"name": list(NAMES), "diabetes": list(bits)}
    return pyarrow.table(columns)


def _guesses_right() -> bool:
    """Runs the attack with a fresh budget and a random fifth bit; returns whether it succeeds.

    The attacker knows the other four bits.
    """
    secret = SYSTEM.bits(1)
    bits = (*BITS[:-1], secret)
    table = patients(bits)
    dataset = Dataset("five-patients", {"patients": table}, ReplaceOne)
    rows = Reference({"patients": rows_of({"name": NAMES, "diabetes": bits})})
    released = []
    for sql in sums():
        planned = plan_for_price(understand(sql, dataset), dataset, price(epsilon=EPSILON))
        released.append(_release(planned, rows))
    difference = released[0] - released[1]
    guess = SYSTEM.bits(1) if 2 * difference == 1 else int(2 * difference > 1)
    return guess == secret


def _release(planned: Planned, rows: Reference) -> int:
    """Releases a sum with the real plan and mechanism, without a ledger."""
    opened = Opened(planned.bounded, lambda: rows.run(planned.bounded, "attack"))
    noise = drawn(planned.event, cells_of(planned))
    curator = Curator("attack", Reserved(planned.event, noise), opened)
    _, (released,) = noisy(planned, curator)
    return released.values[0][0]

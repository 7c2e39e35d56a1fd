# SPDX-License-Identifier: Apache-2.0
"""Attacks of somebody who knows everyone but one: small blocks of a census, and who stops to come.

Nobody is right more often than e^epsilon / (1 + e^epsilon) where both cases are as likely. Tables
that are swapped or rounded instead, and a stream that forgets who has taken part, show what the
same guesses reach without a guarantee.
"""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.query.ticks import Ticks

BLOCKS, PERSONS = 4_000, 10
MOST = math.e / (1 + math.e)
# Hoeffding: so far above its mean is a rate of 4,000 independent guesses once in 10^9.
OFF = math.sqrt(math.log(1e9) / (2 * BLOCKS))
RANDOM = np.random.default_rng(17)


def guessed(women: np.ndarray, men: np.ndarray, sexes: np.ndarray) -> float:
    """How often the sex of each block's first person follows from its table and the nine others."""
    others = sexes[:, 1:]
    surplus = (women - (others == 0).sum(1)) - (men - (others == 1).sum(1))
    coin = RANDOM.integers(0, 2, len(sexes))
    said = np.where(surplus == 0, coin, surplus < 0)
    return float((said == sexes[:, 0]).mean())


def test_a_person_of_a_block_of_ten_is_hidden_as_stated_and_swapping_and_rounding_hide_less(
    tmp_path: Path,
) -> None:
    sexes = RANDOM.integers(0, 2, (BLOCKS, PERSONS))
    rows = pa.table(
        {
            "block": np.repeat(np.arange(BLOCKS), PERSONS),
            "sex": [("F", "M")[sex] for sex in sexes.ravel()],
        }
    )
    columns = {"block": sf.Integer(0, BLOCKS - 1), "sex": sf.Category("F", "M")}
    with sf.connect(
        {"t": sf.Table(rows, columns=columns)},
        dataset="d",
        budget=sf.Budget(1),
        ledger=tmp_path / "l.db",
        relation=sf.ReplaceOne,
    ) as session:
        wanted = synopsis.cells("block", "sex")
        found = synopsis.measure(session, "t", wanted, epsilon=1)
        shown = found.query("SELECT block, sex, COUNT(*) AS n FROM t GROUP BY block, sex")
    assert shown["sex"].to_pylist() == ["F", "M"] * BLOCKS
    women, men = shown["n"].to_numpy().reshape(BLOCKS, 2).T
    assert 0.55 < guessed(women, men, sexes) <= MOST + OFF

    # a tenth of the blocks changes one person with another block; the tables are then exact
    swapped = sexes.copy()
    moved = RANDOM.permutation(BLOCKS)[: BLOCKS // 10]
    swapped[moved, 0] = sexes[RANDOM.permutation(moved), 0]
    exact = (swapped == 0).sum(1), (swapped == 1).sum(1)
    assert guessed(*exact, sexes) > 0.9
    # counts are rounded to multiples of 3
    rounded = [3 * np.rint(count / 3) for count in ((sexes == 0).sum(1), (sexes == 1).sum(1))]
    assert guessed(*rounded, sexes) > MOST + OFF


def test_who_stops_to_come_is_hidden_and_a_stream_that_forgets_who_came_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the users come on eight days, half on the first alone; who, is the secret."""
    coins = RANDOM.integers(0, 2, BLOCKS).astype(bool)
    users = np.arange(BLOCKS)
    days = [np.ones(BLOCKS, int)] + [np.full(int(coins.sum()), day) for day in range(2, 9)]
    who = np.concatenate([users, *[users[coins]] * 7])
    rows = pa.table({"user": who, "zone": who, "day": np.concatenate(days)})
    table = sf.Table(
        rows,
        unit=sf.Unit("user"),
        columns={"day": sf.Integer(1, 8), "zone": sf.Integer(0, BLOCKS - 1)},
    )

    def right(folder: Path) -> float:
        with (
            sf.connect(
                {"t": table}, dataset="d", budget=sf.Budget(1), ledger=folder / "l.db"
            ) as session,
            synopsis.stream(
                session, "t", time="day", by=["zone"], horizon=8, epsilon=1,
                wanted=synopsis.Windows(1),
            ) as found,
        ):  # fmt: skip
            for day in range(1, 9):
                found.advance(day)
            later = found.window(7).to_dicts("n")
        shown = {row["zone"]: row["n"] for row in later}
        said = np.array([shown[zone] for zone in range(BLOCKS)]) > 3.5
        return float((said == coins).mean())

    (tmp_path / "honest").mkdir()
    # rows after the first day are dropped: what is left of the secret is nothing at all
    assert right(tmp_path / "honest") <= min(MOST, 0.5) + OFF

    def forgets(ticks: Ticks, state: object, names: np.ndarray, tick: int) -> tuple[object, object]:
        return np.ones(len(names), bool), state

    monkeypatch.setattr(Ticks, "_taking_part", forgets)
    (tmp_path / "mutant").mkdir()
    assert right(tmp_path / "mutant") > MOST + OFF

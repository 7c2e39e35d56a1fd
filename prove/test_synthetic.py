# SPDX-License-Identifier: Apache-2.0
"""What synthetic rows tell about the people they were made from, beside people who were not: the
label of a person from the nearest rows, rows that are real ones; and how often intervals hold.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato import synthetic as sy
from tests.synthetic.towns import session

ADULT = Path(__file__).parents[1] / "benchmarks" / "data" / "adult.parquet"
LABEL = "income"
# A difference of shares passes this many standard errors once in 10^9 times.
SURE = norm.isf(5e-10)
PEOPLE = 5000


@pytest.fixture(scope="module")
def halves() -> tuple[pa.Table, pa.Table]:
    """People whose rows are synthesised, and others of the same kind."""
    whole = parquet.read_table(ADULT).drop(["split"])
    order = np.random.default_rng(1).permutation(len(whole))
    return whole.take(order[:16_000]), whole.take(order[16_000:32_000])


def made(rows: pa.Table, folder: Path) -> pa.Table:
    """Synthetic rows at epsilon 10, at which rows tell the most."""
    columns = {}
    for name in rows.column_names:
        columns[name] = sf.Integer(0, int(pc.max(rows[name]).as_py()))
    with session(folder, rows, columns=columns) as opened:
        return sy.fit(opened, "people", epsilon=10, delta="1e-9").sample()["people"]


def copied(rows: pa.Table, folder: Path) -> pa.Table:
    """The mutant draws rows from the real ones."""
    return rows.take(np.random.default_rng(2).integers(0, len(rows), len(rows)))


def numbers(table: pa.Table) -> np.ndarray:
    names = sorted(table.column_names)
    return np.stack([table[name].to_numpy(zero_copy_only=False) for name in names], axis=1)


def guessed(rows: pa.Table, people: pa.Table) -> np.ndarray:
    """For each person, whether the label of the synthetic row that shares most columns is his."""
    label = sorted(people.column_names).index(LABEL)
    drawn = numbers(rows.select(people.column_names)).astype(np.int32)
    found = []
    for person in numbers(people)[:PEOPLE].astype(np.int32):
        same = (drawn == person).sum(axis=1) - (drawn[:, label] == person[label])
        found.append(drawn[int(same.argmax()), label] == person[label])
    return np.array(found)


def met(rows: pa.Table, people: pa.Table) -> np.ndarray:
    """For each person, whether a synthetic row is his in every column."""
    drawn = {tuple(row) for row in numbers(rows.select(people.column_names)).tolist()}
    return np.array([tuple(row) in drawn for row in numbers(people).tolist()])


def gap(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """How much more often it succeeds for people inside, and what chance alone may make of it."""
    share = np.concatenate([inside, outside]).mean()
    error = math.sqrt(share * (1 - share) * (1 / len(inside) + 1 / len(outside)))
    return float(inside.mean() - outside.mean()), SURE * error


@pytest.mark.parametrize("attack", [guessed, met])
def test_people_inside_are_no_better_known_than_others(
    halves: tuple[pa.Table, pa.Table],
    tmp_path: Path,
    report: Callable[[str], None],
    attack: Callable[[pa.Table, pa.Table], np.ndarray],
) -> None:
    """It notices 5 points more for the label, and 1 point more for rows that are met."""
    inside, outside = halves
    rows = made(inside, tmp_path)
    more, chance = gap(attack(rows, inside), attack(rows, outside))
    wrong, _ = gap(
        attack(copied(inside, tmp_path), inside), attack(copied(inside, tmp_path), outside)
    )
    report(f"{attack.__name__}: {more:+.4f} inside (chance {chance:.4f}); copies {wrong:+.4f}")
    assert more < chance < wrong


def test_intervals_hold_over_many_fits(tmp_path: Path, report: Callable[[str], None]) -> None:
    """Of 200 fits of six columns: counts of single columns and of pairs that were measured."""
    random = np.random.default_rng(1)
    size = 5000
    first, third = random.integers(0, 5, size), random.integers(0, 4, size)
    second = (first + random.integers(0, 2, size)) % 6
    fourth = (second + third + random.integers(0, 3, size)) % 7
    fifth = random.choice(3, size, p=[0.7, 0.25, 0.05])
    sixth = (fifth * 2 + random.integers(0, 2, size)) % 8
    named = dict(zip("abcdef", (first, second, third, fourth, fifth, sixth), strict=True))
    columns = {name: sf.Integer(0, int(each.max())) for name, each in named.items()}
    held: dict[str, list[bool]] = {"measured": [], "unmeasured": [], "naive": []}
    for place in range(200):
        folder = tmp_path / str(place)
        folder.mkdir()
        with session(folder, pa.table(named), columns=columns) as opened:
            model = sy.fit(opened, "people", rho="0.05")
            # a tree: ten of the fifteen pairs are not measured
            tree = sy.fit(opened, "people", rho="0.05", options=sy.Options(rounds=5))
        measured = {each.columns for each in tree.released.pairs}
        pairs = [(x, y) for x in range(6) for y in range(x + 1, 6)]
        others = [pair for pair in pairs if pair not in measured]
        other = others[random.integers(len(others))]
        asked = [("measured", ("a",), model), ("unmeasured", _names(other), tree)]
        asked.append(("measured", _names(model.released.pairs[0].columns), model))
        for kind, by, found in asked:
            keys = ", ".join(by)
            sql = f"SELECT {keys}, COUNT(*) AS n FROM people GROUP BY {keys}"
            for row in found.query(sql).to_pylist():
                true = np.logical_and.reduce([named[key] == row[key] for key in by]).sum()
                held[kind].append(bool(row["n_low"] - 0.5 <= true <= row["n_high"] + 0.5))
                if kind == "measured":
                    far = 1.96 * math.sqrt(row["n"])
                    held["naive"].append(bool(abs(row["n"] - true) <= far))
    shares = {kind: float(np.mean(each)) for kind, each in held.items() if each}
    report(f"95% intervals of model.query over 200 fits hold: {shares}")
    assert shares["measured"] >= 0.93 > shares["naive"]


def _names(columns: tuple[int, ...]) -> tuple[str, ...]:
    return tuple("abcdef"[at] for at in columns)

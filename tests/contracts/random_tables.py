# SPDX-License-Identifier: Apache-2.0
"""Random declarations and rows, and the same rows in plain DuckDB."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

import duckdb
import pyarrow as pa

import sfumato as sf
from sfumato.metadata.dataset import Dataset

LETTERS = ("a", "b", "c")
FIRST_DAY, LAST_DAY = date(1999, 3, 1), date(2004, 2, 29)
# Numbers of a date, and their largest size.
DATED = {
    "EXTRACT(MONTH FROM d)": 12, "EXTRACT(DOW FROM d)": 6, "YEAR(d)": 2004, "DATE_DIFF('day', DATE '2001-12-31', d)": 1100,
    "DATE_DIFF('month', d, DATE '2003-06-15')": 60,
}  # fmt: skip
# A float holds sums and products of so many bits.
_FLOAT = 2.0**48


@dataclass(frozen=True)
class Number:
    """A number in both languages: its largest size, its finest digit, and whether a test of it is
    exact.
    """

    ours: str
    plain: str
    size: float
    digit: float
    exact: bool = True
    ratio: bool = False
    null: bool = True

    @property
    def tested(self) -> bool:
        """Whether a float tells it from all its neighbours."""
        return self.exact and self.size / self.digit < _FLOAT


@dataclass(frozen=True)
class World:
    """Tables with their declarations, and the same rows in DuckDB."""

    columns: Mapping[str, object]
    numbers: Mapping[str, Number]
    dataset: Dataset
    plain: duckdb.DuckDBPyConnection


def world(random: Random, rows: int = 60) -> World:
    """A random table ``t`` of units ``who``, or of rows that are units.

    Of units, ``u`` has a row for some of them.
    """
    wide, high = 10 ** random.randint(1, 6), 10 ** random.randint(1, 6)
    low = random.choice([0, 0, 1, -5, -high])
    step = 2.0 ** -random.randint(0, 3)
    columns = {
        "i": sf.Integer(0, wide),
        "j": sf.Integer(low, high),
        "r": sf.Real(-8 * step, 100 * step, step=step),
        "x": sf.Real(-100, 900),
        "p": sf.Real(0, 50, step="0.1"),
        "z": sf.Real(0, 50),
        "c": sf.Category(*LETTERS),
        "b": sf.Boolean(),
        "d": sf.Date("1999-03-01", "2004-02-29"),
    }
    drawn: dict[str, Callable[[], object]] = {
        "i": lambda: random.choice([random.randint(0, min(wide, 9)), random.randint(0, wide)]),
        "j": lambda: random.choice(
            [random.randint(low, min(low + 9, high)), random.randint(low, high)]
        ),
        "r": lambda: random.randint(-8, 100) * step,
        "x": lambda: random.randint(-800, 7200) / 8,
        "p": lambda: random.randint(0, 500) / 10,
        "z": lambda: random.randint(0, 500) / 10,
        "c": lambda: random.choice(LETTERS),
        "b": lambda: random.random() < 0.5,
        "d": lambda: FIRST_DAY + timedelta(random.randint(0, (LAST_DAY - FIRST_DAY).days)),
    }
    held = {
        name: [None if random.random() < 0.04 else draw() for _ in range(rows)]
        for name, draw in drawn.items()
    }
    kinds = {"c": pa.string(), "b": pa.bool_(), "d": pa.date32()}
    arrays = {
        name: pa.array(values, kinds.get(name, pa.float64())) for name, values in held.items()
    }
    arrays["who"] = pa.array([random.randint(1, rows // 4) for _ in range(rows)], pa.int64())
    frame = pa.table(arrays)
    limits = random.choice([None, {"max_rows": 500, "max_groups": 20}, {"max_rows_total": 1000}])
    people = [who for who in range(1, rows // 3) if random.random() < 0.7]
    others = pa.table({"who": people, "g": [random.randint(0, 50) for _ in people]})
    if limits is None:
        tables = {"t": sf.Table(frame, columns=columns)}
    else:
        tables = {
            "t": sf.Table(frame, columns=columns, unit=sf.Unit("who", name="who", **limits)),
            "u": sf.Table(
                others,
                columns={"g": sf.Integer(0, 50)},
                unit=sf.Unit("who", name="who", max_rows_total=1),
            ),
        }
    plain = duckdb.connect()
    for name, each in (("t", frame), ("u", others)):
        plain.register("frame", each)
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    numbers = {
        "i": Number("i", "i", wide, 1),
        "j": Number("j", "j", max(-low, high), 1),
        "r": Number("r", "r", 100 * step, step),
        "x": Number("x", "x", 900, 1 / 8),
    }
    numbers |= {each: Number(each, each, size, 1) for each, size in DATED.items()}
    return World(columns, numbers, Dataset("d", tables), plain)

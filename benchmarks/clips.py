# SPDX-License-Identifier: Apache-2.0
"""How true the means of a clipped column are: a part of ``make bench-query``.

The income question of the census demo, 40 cells by area and sex, is answered many times with fresh
noise: with the full range declared, with a clip of 200,000, and with a clip that is learnt.
"""

import math
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import duckdb

import sfumato as sf
from benchmarks.compare import Row
from benchmarks.driver import ROOT
from benchmarks.report import write_measured
from sfumato.examples.census import SOURCE, census
from sfumato.metadata.column import Category, ColumnType, Integer
from sfumato.query.session import Session

RESULTS = ROOT / "benchmarks" / "results" / "clips.json"
SQL = "SELECT PUMA, SEX, AVG(PINCP) AS mean FROM people GROUP BY PUMA, SEX"
AGES = "SELECT PUMA, SEX, AVG(AGEP) AS mean FROM people GROUP BY PUMA, SEX"
EPSILON = "0.2"
RELEASES = 200
# The range of incomes of the codebook, and the bound that the demo declared before.
LOWEST, POSSIBLE, FIXED = -9_000, 1_341_000, 200_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One released mean beside the mean of the table."""

    point: float
    low: float
    high: float
    truth: float

    @property
    def covers(self) -> bool:
        """Whether the interval holds the mean of the table."""
        return self.low <= self.truth <= self.high

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return (self.high - self.low) / 2


def truths(column: str) -> Mapping[tuple[str, str], float]:
    """The mean of each cell of the file, by plain SQL."""
    number = f"TRY_CAST({column} AS DOUBLE)"
    rows = duckdb.connect().execute(
        f"SELECT PUMA, SEX, avg({number}) FROM read_csv('{SOURCE}', all_varchar = true) GROUP BY ALL"
    )
    labels = census().columns
    area = _labels(labels["PUMA"])
    sex = _labels(labels["SEX"])
    return {(area[puma], sex[code]): mean for puma, code, mean in rows.fetchall()}


def _labels(kind: ColumnType) -> dict[str, str]:
    """The label of each value of a Category."""
    assert isinstance(kind, Category), "declared so"
    return dict(zip(kind.values, kind.labels, strict=True))


def released(
    sql: str, truth: Mapping[tuple[str, str], float], columns: Mapping[str, ColumnType], **how: Any
) -> list[Cell]:
    """All cells of many releases, each with noise of its own."""
    cells = []
    with tempfile.TemporaryDirectory() as folder, opened(columns, Path(folder)) as session:
        for release in range(RELEASES):
            answer = session.asking_as(f"asker {release}").query(sql, epsilon=EPSILON, **how)
            for row, errors in zip(answer.to_dicts(), answer.error(), strict=True):
                error = cast(dict[str, float], errors["mean"])
                key = (str(row["PUMA"]), str(row["SEX"]))
                low, high = error["low"], error["high"]
                point = cast(float | None, row["mean"])
                cells.append(
                    Cell((low + high) / 2 if point is None else point, low, high, truth[key])
                )
    return cells


def opened(columns: Mapping[str, ColumnType], folder: Path) -> Session:
    """A session over the census extract with some columns declared otherwise."""
    people = census()
    people = replace(people, columns={**people.columns, **columns})
    return sf.connect(
        {"people": people}, dataset="census", budget=sf.Budget(10**4), ledger=folder / "l.db"
    )


def width(cells: Sequence[Cell]) -> float:
    """The median half-width."""
    return statistics.median(cell.half_width for cell in cells)


def error(cells: Sequence[Cell]) -> float:
    """The root of the mean squared error of the points."""
    return math.sqrt(statistics.fmean((cell.point - cell.truth) ** 2 for cell in cells))


def measured() -> Iterator[Row]:
    """Every figure with its bar."""
    truth = truths("PINCP")

    def of(clip: Any, **how: Any) -> list[Cell]:
        income = Integer(LOWEST, POSSIBLE, clip=clip, missing="N")
        return released(SQL, truth, {"PINCP": income}, **how)

    full = of(None)
    fixed = of(FIXED)
    covered = statistics.fmean(cell.covers for cell in fixed)
    yield value("the table's own interval holds its mean, clip 200,000", "share", covered, 0.95)
    yield ratio("median half-width, clip 200,000", width(fixed), width(full), 1.5)
    learnt = of(sf.AUTO)
    covered = statistics.fmean(cell.covers for cell in learnt)
    yield value("the table's own interval holds its mean, clip AUTO", "share", covered, 0.95)
    yield ratio("median half-width, clip AUTO", width(learnt), width(full), 1.5)
    alone = of(sf.AUTO, values=sf.Clipped)
    yield ratio("root mean square error, AUTO alone", error(alone), error(full), 1, "USD")
    clipped = of(FIXED, values=sf.Clipped)
    name = "200,000 alone"
    yield ratio("root mean square error, AUTO alone", error(alone), error(clipped), 1, "USD", name)
    ages = truths("AGEP")
    plain = released(AGES, ages, {"AGEP": Integer(0, 120)})
    bound = released(AGES, ages, {"AGEP": Integer(0, 120, clip=100)})
    case = "median half-width, a clip that never binds (age, 100 of 120)"
    yield ratio(case, width(bound), width(plain), 1.1, "years")


def value(case: str, metric: str, ours: float, least: float) -> Row:
    """A figure of ours that must be at least its bar."""
    return Row(case, metric, ours, None, None, None, None, f">= {least:g}", ours >= least, RELEASES)


def ratio(
    case: str,
    ours: float,
    other: float,
    most: float,
    metric: str = "USD",
    name: str = "the full range",
) -> Row:
    """A figure of ours that must be at most so many times another one."""
    bar = f"<= {most:g} x"
    holds = ours <= most * other
    return Row(case, metric, ours, other, name, other / ours, None, bar, holds, RELEASES)


def main() -> None:
    """Measures, prints and writes."""
    write_measured(measured(), RESULTS)


if __name__ == "__main__":
    main()

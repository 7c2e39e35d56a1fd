# SPDX-License-Identifier: Apache-2.0
"""A study of three tables: asked in SQL, and computed from synthetic rows, at the same cost.

The study's questions are asked of made-up hospitals, all together at epsilon 2, each with its share
of the cost. Then the three tables are fitted at epsilon 2, and the same questions are computed from
the rows. The error of a question is the root of the mean square, over runs and groups, of the
difference from the truth.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import sfumato as sf
from benchmarks.compare import Row, rounded
from sfumato import synthetic
from sfumato.errors import Failed, Refused
from sfumato.examples.census import Asked
from sfumato.examples.hospitals_data import write_hospitals
from sfumato.examples.hospitals_study import STUDY, hospitals

TABLES = ["patients", "visits", "prescriptions"]
EPSILON, DELTA = 2, "1e-7"
WORST = 3
# The number that a question gives, by the values of its keys.
Found: TypeAlias = dict[tuple[object, ...], float]


def read(raw: duckdb.DuckDBPyConnection, asked: Asked) -> Found:
    """What plain SQL gives, by its first columns; LIMIT could drop groups."""
    sql, _, _ = asked.sql.partition(" LIMIT ")
    found: Found = {}
    for *key, value in raw.execute(sql).fetchall():
        if value is not None:
            found[tuple(key)] = float(value)
    return found


def opened(tables: Mapping[str, pa.Table], drugs: Path) -> duckdb.DuckDBPyConnection:
    """A database of the tables, where whether a drug worked is a number."""
    raw = duckdb.connect()
    raw.read_parquet(str(drugs)).create_view("drugs")
    for name, rows in tables.items():
        raw.register(f"given_{name}", rows)
    for name in ("patients", "visits"):
        raw.execute(f"CREATE VIEW {name} AS SELECT * FROM given_{name}")
    joined = "given_prescriptions r JOIN given_visits v ON r.visit_id = v.visit_id"
    raw.execute(
        "CREATE VIEW prescriptions AS SELECT r.* EXCLUDE (patient_id) "
        f"REPLACE (response::INTEGER AS response), v.patient_id FROM {joined}"
    )
    return raw


def answered(session: sf.Session, asked: Asked, share: Fraction) -> Found:
    """What the session gives for a question at its share of the cost."""
    price: dict[str, Any] = dict(asked.price)
    price["epsilon"] = str(round(float(Fraction(price["epsilon"]) * share), 6))
    answer = session.query(asked.sql, **price)
    found: Found = {}
    for *key, value in answer.rows:
        if isinstance(value, int | float):
            found[tuple(key)] = float(value)
    return found


def error(runs: list[Found], truth: Found) -> float:
    """The root of the mean square of the errors; a group that is not there counts as 0."""
    squares = []
    for found in runs:
        for key, value in truth.items():
            squares.append((found.get(key, 0.0) - value) ** 2)
    return math.sqrt(sum(squares) / len(squares))


def valid(rows: Mapping[str, pa.Table]) -> float:
    """The share of keys that lead to a row."""
    links = [("visits", "patient_id", "patients"), ("prescriptions", "visit_id", "visits")]
    links.append(("prescriptions", "patient_id", "patients"))
    shares = []
    for child, key, parent in links:
        known = pc.is_in(rows[child][key], value_set=rows[parent][key])
        shares.append(float(pc.mean(known).as_py()))
    return min(shares)


def figures(folder: Path, runs: int, say: Callable[[str], None] = print) -> Iterator[Row]:
    """The ratio of the errors of each question that the rows have the columns for."""
    paths = write_hospitals(folder)
    tables = hospitals(paths)
    real: dict[str, Any] = {}
    with duckdb.connect() as files:
        for name in TABLES:
            real[name] = files.read_parquet(str(paths[name])).to_arrow_table()
    visits = real["visits"].select(["visit_id", "patient_id"])
    real["prescriptions"] = real["prescriptions"].join(visits, "visit_id")
    study = [asked for asked in STUDY if "indication" not in asked.sql]
    whole = sum((Fraction(dict(asked.price)["epsilon"]) for asked in STUDY), Fraction(0))
    with opened(real, paths["drugs"]) as raw:
        truths = [read(raw, asked) for asked in study]
    from_rows: list[list[Found]] = [[] for _ in study]
    from_sql: list[list[Found]] = [[] for _ in study]
    keys = 1.0
    for run in range(runs):
        ledger = folder / f"ledger{run}.db"
        budget = sf.Budget(epsilon=100, delta="1e-3")
        with sf.connect(tables, dataset="h", budget=budget, ledger=ledger) as session:
            model = synthetic.fit(session, TABLES, epsilon=EPSILON, delta=DELTA)
            for place, asked in enumerate(study):
                try:
                    from_sql[place].append(answered(session, asked, EPSILON / whole))
                except (Refused, Failed) as refusal:
                    say(f"{asked.title}: {refusal}")
        rows = model.sample()
        keys = min(keys, valid(rows))
        with opened(rows, paths["drugs"]) as raw:
            for place, asked in enumerate(study):
                from_rows[place].append(read(raw, asked))
    for place, asked in enumerate(study):
        ours = error(from_rows[place], truths[place])
        beside = error(from_sql[place], truths[place])
        ratio = ours / beside
        yield Row(
            f"hospitals: {asked.title}",
            "error of rows, of SQL",
            rounded(ours),
            rounded(beside),
            "sfumato SQL",
            rounded(beside / ours),
            None,
            f"<= {WORST}x",
            ratio <= WORST,
            runs,
        )
    yield Row(
        "hospitals: foreign keys", "valid", keys, None, None, None, None, "1", keys == 1, runs
    )


def main() -> None:
    """Prints the figures of two runs."""
    with tempfile.TemporaryDirectory() as folder:
        for row in figures(Path(folder), 2):
            print(row, flush=True)


if __name__ == "__main__":
    main()

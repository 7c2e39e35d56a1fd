# SPDX-License-Identifier: Apache-2.0
"""Questions of a session: how long until they are understood, previewed and answered."""

import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from itertools import count
from pathlib import Path

import duckdb

import sfumato as sf
from benchmarks.events import AGES, REGIONS, events
from benchmarks.systems import Call, in_a_row
from benchmarks.systems.areas import AREAS, GROUPS, MOST, ROWS, amounts, rank_error
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand

PACKAGES = ("sfumato", "duckdb", "sqlglot")
FOLDER = Path(__file__).resolve().parents[2] / ".bench" / "data"
UNIT = sf.Unit("user_id", max_rows=10, max_groups=5)
# fresh constants, so that no answer is one that is stored
_FRESH = count(1)

STATEMENTS = (
    "SELECT COUNT(*) FROM events",
    "SELECT SUM(amount), AVG(amount), COUNT(*), COUNT(amount) FROM events",
    "SELECT region, COUNT(*) AS n, AVG(amount) AS m FROM events GROUP BY region HAVING COUNT(*) > 1000 ORDER BY n DESC",
    "SELECT product, COUNT(*) AS n FROM events GROUP BY product ORDER BY n DESC LIMIT 10",
    "SELECT DATE_TRUNC('month', day) AS m, SUM(amount) FROM events GROUP BY 1",
    "SELECT region, QUANTILE_CONT(amount, 0.5), QUANTILE_CONT(amount, 0.9) FROM events GROUP BY region",
    "SELECT COUNT(*) FILTER (WHERE amount > 50), VAR_SAMP(amount) FROM events",
    "SELECT COUNT(*) FROM events WHERE day BETWEEN DATE '2024-06-01' AND DATE '2024-06-30' AND region IN ('R01', 'R02')",
    "SELECT u.age_band, AVG(e.amount) FROM events e JOIN users u ON e.user_id = u.user_id GROUP BY u.age_band",
    (
        "WITH p AS (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) "
        "SELECT LEAST(n, 20) AS n, COUNT(*) AS users FROM p GROUP BY 1"
    ),
    "SELECT COUNT(*) FROM events WHERE user_id IN (SELECT user_id FROM users WHERE age_band = '18-24')",
    "SELECT WIDTH_BUCKET(amount, 0, 200, 20) AS b, COUNT(*) FROM events GROUP BY b",
    "SELECT region, COUNT(*) FROM events GROUP BY ROLLUP(region)",
)


def tables(folder: Path) -> dict[str, sf.Table]:
    """The declarations of the workloads."""
    columns: dict[str, ColumnType] = {
        "region": sf.Category(*(f"R{index:02}" for index in range(REGIONS))),
        "product": sf.Text(),
        "day": sf.Date("2024-01-01", "2024-12-30"),
        "amount": sf.Real(0, 200),
    }
    users: dict[str, ColumnType] = {"age_band": sf.Category(*AGES)}
    return {
        "events": sf.Table(folder / "events.parquet", unit=UNIT, columns=columns),
        "users": sf.Table(
            folder / "users.parquet", unit=sf.Unit("user_id", max_rows=1), columns=users
        ),
    }


@cache
def dataset() -> Dataset:
    """The declarations alone."""
    return Dataset("bench", tables(FOLDER))


@cache
def _session(rows: int) -> sf.Session:
    ledger = tempfile.mkdtemp(prefix="sfumato-bench-")
    budget = sf.Budget(10**6, "0.1")
    return sf.connect(
        tables(events(FOLDER, rows)),
        dataset=f"bench-{rows}",
        budget=budget,
        ledger=f"{ledger}/l.db",
    )


def _stored(rows: int) -> str:
    """The events and users as a DuckDB file, made once."""
    place = events(FOLDER, rows)
    stored = place / "events.duckdb"
    if not stored.exists():
        with duckdb.connect(stored.with_suffix(".part")) as made:
            for name in ("events", "users"):
                made.execute(f"CREATE TABLE {name} AS FROM '{place / name}.parquet'")
        stored.with_suffix(".part").rename(stored)
    return str(stored)


@cache
def _session_of_tables(rows: int) -> sf.Session:
    ledger, declared = (
        tempfile.mkdtemp(prefix="sfumato-bench-"),
        tables(events(FOLDER, rows)).items(),
    )
    stored = {
        name: sf.Table(_stored(rows), table=name, unit=each.unit, columns=each.columns)
        for name, each in declared
    }
    return sf.connect(
        stored, dataset="bench", budget=sf.Budget(10**6, "0.1"), ledger=f"{ledger}/l.db"
    )


def _compiled(sql: str) -> float:
    """Seconds from a text to the SQL of the engine; the least of five, all caches of constants warm."""
    engine, found = _session(10**6)._engine, []
    for _ in range(5):
        start = time.perf_counter()
        question = understand(sql, dataset())
        engine.statement(compile_plan(question.raw, dataset(), Norm.L1))
        found.append(time.perf_counter() - start)
    return min(found)


def _compile(choose: Callable[[list[float]], float], scale: float, n: int) -> Call:
    return lambda: choose([_compiled(sql) for sql in STATEMENTS])


def _filter() -> str:
    """A small part of the rows, never the same."""
    number = next(_FRESH)
    month = number % 12 + 1
    return (
        f"region = 'R{number % REGIONS:02}' AND day BETWEEN DATE '2024-{month:02}-01' AND DATE '2024-{month:02}-28' "
        f"AND amount > {number % 100}.{number}"
    )


def _small(scale: float, n: int, of: Callable[[int], sf.Session] = _session) -> Call:
    """Filtered counts, answered, the three syncs of the ledger of each included."""
    session = of(n)
    return in_a_row(
        lambda: session.query(f"SELECT COUNT(*) AS n FROM events WHERE {_filter()}", rho="1e-9"), n
    )


def _plain(scale: float, n: int) -> Call:
    """The same count, as anyone would ask it."""
    connection, path = duckdb.connect(), events(FOLDER, n) / "events.parquet"
    return in_a_row(
        lambda: connection.execute(f"SELECT COUNT(*) FROM '{path}' WHERE {_filter()}").fetchall(), n
    )


def _plain_stored(scale: float, n: int) -> Call:
    connection = duckdb.connect(_stored(n), read_only=True)
    return in_a_row(
        lambda: connection.execute(f"SELECT COUNT(*) FROM events WHERE {_filter()}").fetchall(), n
    )


def _preview(scale: float, n: int) -> Call:
    session = _session(n)
    return lambda: session.preview(STATEMENTS[2], rho="0.01")


@cache
def _session_of_areas(rows: int) -> sf.Session:
    ledger = tempfile.mkdtemp(prefix="sfumato-bench-")
    columns: dict[str, ColumnType] = {
        "area": sf.Integer(0, AREAS - 1),
        "amount": sf.Real(0, MOST),
    }
    unit = sf.Unit("person", max_rows=ROWS, max_groups=GROUPS)
    return sf.connect(
        {"people": sf.Table(amounts(rows), unit=unit, columns=columns)},
        dataset="areas",
        budget=sf.Budget(10**4),
        ledger=f"{ledger}/l.db",
    )


def _medians(n: int) -> dict[int, float]:
    """The median of every area, for a fresh price, so that no answer is one that is stored."""
    session = _session_of_areas(n)
    epsilon = Fraction("0.2") + Fraction(next(_FRESH), 10**9)
    answer = session.query(
        "SELECT area, MEDIAN(amount) AS m FROM people GROUP BY area", epsilon=epsilon
    )
    return {int(str(area)): float(str(middle)) for area, middle in answer.rows}


WORKS = {
    "compile, median": partial(_compile, statistics.median),
    "compile, widest": partial(_compile, max),
    "small query": _small,
    "small query of a stored table": partial(_small, of=_session_of_tables),
    "plain": _plain,
    "plain of a stored table": _plain_stored,
    "preview": _preview,
    "medians": lambda scale, n: partial(_medians, n),
    "medians error": lambda scale, n: lambda: rank_error(n, _medians(n)),
}

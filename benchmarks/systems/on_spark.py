# SPDX-License-Identifier: Apache-2.0
"""The questions of the workloads on a local Spark: privately, and as plain aggregates by unit and key, in one application."""

import tempfile
import time
from functools import cache, partial
from shutil import which
from typing import Any

from pyspark.sql import SparkSession

import sfumato as sf
from benchmarks.events import events
from benchmarks.systems import Call, Make
from benchmarks.systems.questions import FOLDER, tables
from benchmarks.systems.workloads import QUESTIONS, few, price

if which("java") is None:
    raise ImportError("Java, which Spark runs on, is not there")

PACKAGES = ("sfumato", "pyspark")
# for each question: the key, and what a plain aggregate adds up of the rows of a user and key, then of a key
_SUMS = "sum(n), sum(m), sum(s)", "count(*) AS n, count(amount) AS m, sum(amount) AS s"
_PLAIN = {
    "W1": ("", *_SUMS),
    "W2": ("region", *_SUMS),
    "W3": ("product", "count(*), sum(n)", "count(*) AS n"),
    "W4": ("day", "count(*)", "count(*) AS n"),
}


@cache
def _session(rows: int) -> sf.Session:
    """The application, which a plain aggregate is asked of as well."""
    place, ledger = events(FOLDER, rows), tempfile.mkdtemp(prefix="sfumato-bench-")
    session = sf.connect(
        tables(place),
        dataset=f"bench-{rows}",
        budget=sf.Budget(10**6, "0.1"),
        ledger=f"{ledger}/l.db",
        engine=sf.Spark("local[2]", options={"spark.driver.memory": "4g"}),
    )
    _spark().read.parquet(f"{place}/events.parquet").createOrReplaceTempView(f"events_{rows}")
    return session


def _spark() -> SparkSession:
    return SparkSession.builder.getOrCreate()


def _private(name: str, scale: float, n: int) -> Call:
    session, pays = _session(n), {"delta": "1e-6"} if name == "W3" else {}
    return lambda: session.query(QUESTIONS[name], **price(), **pays)  # type: ignore[arg-type]


def _plain(name: str, scale: float, n: int) -> Call:
    _session(n)
    key, found, added = _PLAIN[name]
    keys = ", ".join(["user_id", *[key] * bool(key)])
    text = f"SELECT {found} FROM (SELECT {keys}, {added} FROM events_{n} GROUP BY {keys})"
    return lambda: _spark().sql(f"{text} GROUP BY {key}" if key else text).collect()


def _private_few(scale: float, n: int) -> Call:
    session = _session(n)
    return lambda: session.query(few(), epsilon="0.001")


def _plain_few(scale: float, n: int) -> Call:
    _session(n)
    return lambda: _spark().sql(few().replace("events", f"events_{n}")).collect()


def clock() -> float:
    """The seconds that the processors worked for this process and for Java."""
    machine: Any = _spark().sparkContext._jvm
    worked = machine.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toNanos()
    return time.process_time() + float(worked) / 1e9


def _works() -> dict[str, Make]:
    works: dict[str, Make] = {"W7": _private_few, "W7 plain": _plain_few}
    for name in _PLAIN:
        works |= {name: partial(_private, name), f"{name} plain": partial(_plain, name)}
    return works


WORKS = _works()

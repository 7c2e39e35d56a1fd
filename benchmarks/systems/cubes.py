# SPDX-License-Identifier: Apache-2.0
"""Exact marginals of one bounded table on one core: 15 columns of 2 to 100 values, of people with three rows each.

What is timed is what a charge would wait for: the table of codes, then the marginals; no noise.
"""

import resource
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.systems import Call, Make
from benchmarks.systems.questions import FOLDER
from sfumato.engines.base import Marginals
from sfumato.engines.duckdb import DuckDB
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import Cube, axis
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.value import Value
from sfumato.query.pipeline import compile_cube

PACKAGES = ("sfumato", "duckdb")
SMALL = {f"c{place}": 2 + 7 * place for place in range(15)}
LARGE = {"first": 999, "second": 999}
PAIRS = tuple(combinations(SMALL, 2))
_OPEN = ExitStack()


def people(rows: int) -> Path:
    """The data, made once; a fixed seed gives the same on every machine."""
    place = FOLDER / f"marginals-{rows}.parquet"
    if not place.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(2026)
        codes = {
            name: generator.integers(0, size, rows).astype(np.int32)
            for name, size in (SMALL | LARGE).items()
        }
        pq.write_table(pa.table({"person": generator.integers(0, rows // 3, rows), **codes}), place)
    return place


@contextmanager
def _opened(rows: int, sizes: dict[str, int]) -> Iterator[Marginals]:
    columns = {name: sf.Integer(0, size - 1) for name, size in sizes.items()}
    tables = {
        "people": sf.Table(people(rows), unit=sf.Unit("person", max_rows_total=3), columns=columns)
    }
    dataset, listed = (
        Dataset("bench", tables),
        tuple(Column(name, kind) for name, kind in columns.items()),
    )
    scan = Scan("people", columns=listed, owner=owner_of(dataset, "people"))
    plan = compile_cube(Cube(scan, tuple(axis(Value.of(each)) for each in listed)), dataset)
    with closing(DuckDB(tables, limits=sf.Local(threads=1))) as engine, engine.cube(plan) as opened:
        yield opened


def _whole(sizes: dict[str, int], cliques: Sequence[Sequence[str]], scale: float, n: int) -> Call:
    """From the file to the last marginal."""
    people(n)

    def call() -> object:
        with _opened(n, sizes) as opened:
            return opened.marginals(cliques)

    return call


@cache
def _kept(n: int, *names: str) -> Marginals:
    """A table that stays open as long as the process does."""
    return _OPEN.enter_context(_opened(n, {name: (SMALL | LARGE)[name] for name in names}))


def _later(names: Sequence[str], cliques: Sequence[Sequence[str]], scale: float, n: int) -> Call:
    """Of a table that is open already."""
    return partial(_kept(n, *names).marginals, cliques)


def _grown(names: Sequence[str], cliques: Sequence[Sequence[str]], scale: float, n: int) -> Call:
    """By how many MB the process grows, of a table that is open already."""

    def call() -> float:
        opened = _kept(n, *names)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        opened.marginals(cliques)
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000

    return call


_LARGE = (tuple(LARGE),)
WORKS: dict[str, Make] = {
    "all pairs": partial(_whole, SMALL, PAIRS),
    "20 more": partial(_later, tuple(SMALL), PAIRS[-20:]),
    "10^6 cells": partial(_later, tuple(LARGE), _LARGE),
    "10^6 cells, grown": partial(_grown, tuple(LARGE), _LARGE),
}

# SPDX-License-Identifier: Apache-2.0
"""Plans over one table, by an engine; and the suite that every engine owes."""

from collections.abc import Iterable
from contextlib import ExitStack, closing

import duckdb
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows, CountValues, Sum
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.value import Value
from tests.contracts.conformance import TELLING, EngineContract, differing
from tests.contracts.examples import EXAMPLES
from tests.contracts.world import declared, plan


class Asker:
    """One source under one declaration: plans over it, by both engines."""

    def __init__(self, source, columns, unit=None, **options):
        self.table = sf.Table(source, unit=unit, columns=columns, **options)
        self.tables = {"people": self.table}
        listed = tuple(Column(name, kind) for name, kind in columns.items())
        self.scan = Scan("people", "", listed, owner_of(Dataset("data", self.tables), "people"))

    def value(self, name):
        """A column as it is read."""
        return Value.of(Column(name, self.table.columns[name]))

    def plan(self, *aggregates, source=None, **options):
        return plan(source or self.scan, *aggregates, **options)

    def counts(self):
        """COUNT(*), COUNT(each column), and SUM of the first."""
        values = [self.value(name) for name in self.table.columns]
        return self.plan(CountRows(), *map(CountValues, values), Sum(values[0]))

    def duckdb(self, plan):
        with closing(DuckDB(self.tables)) as engine:
            return flat(plan, engine.run(plan, "key"))

    def reference(self, plan, rows):
        return flat(plan, Reference({"people": rows}).run(plan, "key"))

    def agree(self, plans, rows):
        """Whether both engines give the same; DuckDB is opened once for all plans."""
        with closing(DuckDB(self.tables)) as engine:
            return all(
                flat(plan, engine.run(plan, "key")) == self.reference(plan, rows) for plan in plans
            )


def flat(plan, exact) -> dict[tuple[object, ...], tuple[int, ...]]:
    """The integers of all parts of each group, one after the other."""
    groups: Iterable = dict.fromkeys(group for part in exact for group in part)
    sizes = [part.aggregate.width for part in plan.parts]
    return {
        group: tuple(
            each
            for part, size in zip(exact, sizes, strict=True)
            for each in part.get(group, (0,) * size)
        )
        for group in groups
    }


class Suite(EngineContract):
    """The conformance suite on DuckDB, to be run by hand: on an engine that was made wrong."""

    def open_engine(self, tables):
        return DuckDB(tables)


@pytest.fixture(scope="session")
def asker():
    return Asker


@pytest.fixture(scope="session")
def suite():
    return Suite()


@pytest.fixture(scope="module")
def telling():
    """DuckDB over the rows of the telling examples, for mutants of what it runs: opened before any
    mutant is in place, and right when none is there any more.
    """
    with ExitStack() as stack:
        engines = {}
        for rows in (EXAMPLES[name][1] for name in TELLING):
            if id(rows) not in engines:
                engines[id(rows)] = stack.enter_context(closing(DuckDB(declared(rows))))
        yield engines
        assert not list(differing(DuckDB, TELLING, engines))


@pytest.fixture
def shop(tmp_path):
    """A DuckDB file with two tables, a view and a computed column."""
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE \"my events\" AS SELECT * FROM (VALUES (1, 'x'), (2, NULL), (4, 'y')) AS t(a, b)"
        )
        connection.execute("CREATE TABLE users AS SELECT 1 AS id")
        connection.execute('CREATE VIEW seen AS SELECT a, b FROM "my events"')
        connection.execute(
            "CREATE TABLE computed(b VARCHAR, a INTEGER GENERATED ALWAYS AS (CAST(b AS INTEGER)))"
        )
    return path

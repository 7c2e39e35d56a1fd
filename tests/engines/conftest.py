# SPDX-License-Identifier: Apache-2.0
"""A question to rows, by an engine."""

import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql import understand


class Asker:
    """One source under one declaration: its plans, and both engines."""

    def __init__(self, source, columns, unit=None):
        self.table = sf.Table(source, unit=unit, columns=columns)
        self.dataset = Dataset("data", {"people": self.table})

    def plan(self, text, norm=Norm.L1):
        return compile_plan(understand(text, self.dataset).raw, self.dataset, norm)

    def duckdb(self, text, norm=Norm.L1):
        engine = DuckDB({"people": self.table})
        try:
            return engine.run(self.plan(text, norm), "key")
        finally:
            engine.close()

    def reference(self, text, rows, norm=Norm.L1):
        return Reference({"people": rows}).run(self.plan(text, norm), "key")


@pytest.fixture(scope="session")
def asker():
    return Asker

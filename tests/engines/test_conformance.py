# SPDX-License-Identifier: Apache-2.0
"""DuckDB passes the conformance suite: only then is its version named in ``PASSED``."""

from sfumato.engines.duckdb import DuckDB
from tests.contracts.conformance import EngineContract


class TestDuckDB(EngineContract):
    def open_engine(self, tables):
        return DuckDB(tables)

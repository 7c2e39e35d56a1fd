# SPDX-License-Identifier: Apache-2.0
"""Spark passes the conformance suite, in an application whose settings are against it; and how it fails."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engines.spark import SparkEngine
from tests.contracts import world
from tests.contracts.conformance import EngineContract

CANARY = "canary-4711"


def interpreted(engine):
    """The engine without generated code: Spark's other way to evaluate, and the quicker one for a few rows."""
    engine._session.conf.set("spark.sql.codegen.wholeStage", "false")
    engine._session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return engine


class TestSpark(EngineContract):
    @pytest.fixture(autouse=True)
    def _with_spark(self, spark):
        self.spark = spark
        self.prepared = lambda engine: engine

    def open_engine(self, tables):
        return self.prepared(SparkEngine(tables, self.spark))

    @settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
    @given(st.data(), world.data(), st.text(max_size=3))
    def test_the_engine_gives_the_integers_of_the_reference(self, data, rows, key):
        self.prepared = interpreted
        EngineContract.test_the_engine_gives_the_integers_of_the_reference.hypothesis.inner_test(self, data, rows, key)

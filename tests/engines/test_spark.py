# SPDX-License-Identifier: Apache-2.0
"""Spark passes the conformance suite, in an application whose settings are against it; and how it fails.

Everything that needs Spark is in this file, so that one test run starts one of it.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engines.spark import SparkEngine
from tests.contracts import world
from tests.contracts.conformance import EngineContract
from tests.contracts.require import program

CANARY = "canary-4711"
# What an application may be set to, and what no statement of ours may depend on.
HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Pacific/Auckland",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
}
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss16m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """Where Java writes what others see as stderr."""
    return tmp_path_factory.mktemp("java") / "stderr"


@pytest.fixture(scope="module")
def spark(errors):
    """One application for all, its tasks tried up to four times."""
    program("java")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]")
    for name, value in (HOSTILE | QUICK).items():
        builder = builder.config(name, value)
    before = os.dup(2)
    with errors.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        session = builder.getOrCreate()
    finally:
        os.dup2(before, 2)
        os.close(before)
    yield session
    session.stop()


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

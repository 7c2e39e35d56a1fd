# SPDX-License-Identifier: Apache-2.0
"""One Spark application for the whole session of tests, set up against what statements mean."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from sfumato.engines.spark import SparkEngine
from sfumato.engines.spark_printer import Rows, printed
from tests.contracts.require import program
from tests.contracts.sql_text import Parsed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Both", "both", "interpreted", "java_errors", "on_spark", "spark"]

# What an application may be set to, and what no statement of ours may depend on.
HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Pacific/Auckland",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
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


@pytest.fixture(scope="session")
def java_errors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Java writes what others see as stderr."""
    return tmp_path_factory.mktemp("java") / "stderr"


@pytest.fixture(scope="session")
def spark(java_errors: Path, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session on two cores, whose tasks are tried up to four times."""
    program("java")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]")
    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    for name, value in (HOSTILE | QUICK | warehouse).items():
        builder = builder.config(name, value)
    before = os.dup(2)
    with java_errors.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        session = builder.getOrCreate()
    finally:
        os.dup2(before, 2)
        os.close(before)
    yield session
    session.stop()


def interpreted(engine: SparkEngine) -> SparkEngine:
    """The engine without generated code: Spark's other way to evaluate, and the quicker one for a
    few rows.
    """
    engine._session.conf.set("spark.sql.codegen.wholeStage", "false")
    engine._session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return engine


def on_spark(
    sql: str,
    tables: Mapping[str, Rows] | None = None,
    *,
    narrow: bool = False,
    gathered: bool = False,
) -> str:
    """DuckDB text as Spark SQL."""
    parsed = Parsed(sql)
    known = parsed.tables | dict(tables or {})
    return printed(parsed.query, known, narrow=narrow, gathered=gathered)


class Both:
    """Statements of the emitter's, on DuckDB and on Spark."""

    def __init__(self, session: "SparkSession") -> None:
        self.session = session

    def rows(self, sql: str, *, narrow: bool = False) -> tuple[list[Any], list[Any]]:
        """What each gives, in the order of texts."""
        with duckdb.connect() as connection:
            expected = connection.execute(sql).fetchall()
        found = self.session.sql(on_spark(sql, narrow=narrow)).collect()
        return tuple(
            sorted((tuple(map(_plain, row)) for row in rows), key=repr)
            for rows in (expected, found)
        )  # type: ignore[return-value]

    def odd(self, expressions: list[str], table: str) -> list[str]:
        """Those of many expressions over a table that differ in any row."""
        items = ", ".join(f"{each} AS e{place}" for place, each in enumerate(expressions))
        expected, found = self.rows(f"SELECT place, {items} FROM {table}")
        columns = zip(zip(*expected, strict=True), zip(*found, strict=True), strict=True)
        differ = [one != other for one, other in columns]
        assert not differ[0], "the rows are numbered"
        return [each for each, odd in zip(expressions, differ[1:], strict=True) if odd]

    def on_spark(
        self, sql: str, tables: Mapping[str, Rows], *, gathered: bool = False
    ) -> list[Any]:
        """What a statement over tables gives on Spark."""
        text = on_spark(sql, tables, gathered=gathered)
        return [tuple(row) for row in self.session.sql(text).collect()]


def _plain(value: object) -> object:
    """A value by its text, with its type unless both are whole numbers."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    return repr(value)


@pytest.fixture(scope="session")
def both(spark: "SparkSession") -> Iterator[Both]:
    """Both engines, Spark as ours is settled."""
    with closing(interpreted(SparkEngine({}, spark))) as engine:
        yield Both(engine._session)

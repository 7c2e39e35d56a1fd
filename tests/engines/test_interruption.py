# SPDX-License-Identifier: Apache-2.0
"""Interruptions are told from failures by what the engine raises, never by what the data is."""

import duckdb
import pytest

from sfumato.engines.interruption import is_cancelled_job, is_interrupt, is_stopped

FRAME = "Invalid Input Error: offering a filter to the source registered as 'source_t' failed: {}"
ENDS = [
    (RuntimeError("Query interrupted"), True),
    (duckdb.InvalidInputException(FRAME.format("KeyboardInterrupt: ")), True),
    (duckdb.InvalidInputException(FRAME.format("ValueError: 4711")), False),
    (duckdb.ConversionException("Could not convert string 'failed: KeyboardInterrupt: '"), False),
]


@pytest.mark.parametrize(("failure", "stopped"), ENDS, ids=repr)
def test_an_interruption_is_no_failure_of_the_engine(failure: Exception, stopped: bool) -> None:
    assert is_stopped(failure) == stopped


def raised_while(handled: BaseException) -> BaseException:
    """An error that was raised while another was handled."""
    try:
        try:
            raise handled
        finally:
            raise ConnectionError
    except ConnectionError as failure:
        return failure


@pytest.mark.parametrize(
    ("failure", "interrupt"),
    [
        (KeyboardInterrupt(), True),
        (raised_while(KeyboardInterrupt()), True),
        (raised_while(raised_while(KeyboardInterrupt())), True),
        (raised_while(ValueError()), False),
        (ConnectionError("KeyboardInterrupt"), False),
    ],
    ids=repr,
)
def test_what_is_raised_while_an_interrupt_is_handled_is_one(
    failure: BaseException, interrupt: bool
) -> None:
    assert is_interrupt(failure) == interrupt


class Java:
    """An exception of the JVM, as PySpark shows it."""

    def __init__(self, name: str, condition: str | None, cause: "Java | None" = None) -> None:
        self.name, self.condition, self.cause = name, condition, cause

    def getClass(self) -> "Java":
        return self

    def getName(self) -> str:
        return self.name

    def getCondition(self) -> str | None:
        return self.condition

    def getCause(self) -> "Java | None":
        return self.cause


SPARK = "org.apache.spark.SparkException"
JOBS = [
    (Java(SPARK, "SPARK_JOB_CANCELLED"), True),
    (Java(SPARK, None, Java(SPARK, "SPARK_JOB_CANCELLED")), True),
    (Java(SPARK, "CAST_INVALID_INPUT"), False),
    (Java("java.lang.RuntimeException", "SPARK_JOB_CANCELLED"), False),
    (None, False),
]


@pytest.mark.parametrize(("cause", "cancelled"), JOBS)
def test_a_job_is_cancelled_only_where_spark_says_so(cause: Java | None, cancelled: bool) -> None:
    failure = ValueError("SPARK_JOB_CANCELLED")
    failure.java_exception = cause
    assert is_cancelled_job(failure) == cancelled

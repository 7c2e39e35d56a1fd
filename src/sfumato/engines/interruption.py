# SPDX-License-Identifier: Apache-2.0
"""What engines raise when they are interrupted, as opposed to a failure, which counts towards a freeze."""

import re
from collections.abc import Mapping
from contextlib import suppress

import duckdb

# What a statement raises on Ctrl-C, and one that asks a frame of this process for its rows.
_STOPPED: Mapping[type[Exception], re.Pattern[str]] = {
    RuntimeError: re.compile("Query interrupted"),
    duckdb.InvalidInputException: re.compile(
        r"Invalid Input Error: [a-z ]+ registered as '[^']*' failed: KeyboardInterrupt: ?"
    ),
}
# What Spark raises in a job that was cancelled.
_SPARK_FAILURE, _INTERRUPTED = "org.apache.spark.SparkException", "SPARK_JOB_CANCELLED"


def is_stopped(failure: Exception) -> bool:
    """Whether DuckDB was stopped by Ctrl-C, whose signal it swallows.

    >>> is_stopped(RuntimeError("Query interrupted")), is_stopped(RuntimeError("Out of memory"))
    (True, False)
    """
    found = _STOPPED.get(type(failure))
    return found is not None and found.fullmatch(str(failure)) is not None


def is_cancelled_job(failure: Exception) -> bool:
    """Whether Spark failed because its job was cancelled: any other failure is one of the engine."""
    cause = getattr(failure, "java_exception", None)
    with suppress(Exception):
        while cause is not None:
            if (
                cause.getClass().getName() == _SPARK_FAILURE
                and cause.getCondition() == _INTERRUPTED
            ):
                return True
            cause = cause.getCause()
    return False

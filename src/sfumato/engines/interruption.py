# SPDX-License-Identifier: Apache-2.0
"""Recognises engine errors that mean an interruption (Ctrl-C or a cancelled job).

The session does not count interruptions towards a freeze of the account; other failures count.
"""

import re
from collections.abc import Mapping
from contextlib import suppress

import duckdb

# The errors of a statement on Ctrl-C, in general and while it reads a frame of this process.
_STOPPED: Mapping[type[Exception], re.Pattern[str]] = {
    RuntimeError: re.compile("Query interrupted"),
    duckdb.InvalidInputException: re.compile(
        r"Invalid Input Error: [a-z ]+ registered as '[^']*' failed: KeyboardInterrupt: ?"
    ),
}
# The error of Spark for a job that was cancelled.
_SPARK_FAILURE = "org.apache.spark.SparkException"
_INTERRUPTED = "SPARK_JOB_CANCELLED"


def is_stopped(failure: Exception) -> bool:
    """Whether a DuckDB error means Ctrl-C: DuckDB consumes the signal and raises its own error.

    >>> is_stopped(RuntimeError("Query interrupted")), is_stopped(RuntimeError("Out of memory"))
    (True, False)
    """
    pattern = _STOPPED.get(type(failure))
    return pattern is not None and pattern.fullmatch(str(failure)) is not None


def is_interrupt(failure: BaseException) -> bool:
    """Whether an error is Ctrl-C, or was raised while Ctrl-C was handled.

    On Ctrl-C py4j closes its connection, so PySpark may fail with other errors while it cleans up.

    >>> is_interrupt(KeyboardInterrupt()), is_interrupt(ConnectionError())
    (True, False)
    """
    handled: BaseException | None = failure
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    return handled is not None


def is_cancelled_job(failure: Exception) -> bool:
    """Whether a Spark error, or one of its causes, says that the job was cancelled."""
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

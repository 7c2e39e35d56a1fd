# SPDX-License-Identifier: Apache-2.0
"""Silences PySpark's log while a statement runs, because its error messages may quote values."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# The loggers through which PySpark prints the text of an error.
PRINTERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
TALKERS = ("py4j.clientserver", "py4j.java_gateway")
_ASKING = threading.local()


@contextmanager
def quiet() -> Iterator[None]:
    """Inside the ``with`` block, PySpark logs no error of this thread."""
    from pyspark.logger import PySparkLogger

    for name in PRINTERS:
        PySparkLogger.getLogger(name).addFilter(may_be_printed)
    for name in TALKERS:
        logging.getLogger(name).addFilter(may_be_printed)
    _ASKING.now = True
    try:
        yield
    finally:
        _ASKING.now = False


def may_be_printed(_: logging.LogRecord) -> bool:
    """Log filter: whether the current thread is outside of ``quiet``."""
    return not getattr(_ASKING, "now", False)

# SPDX-License-Identifier: Apache-2.0
"""PySpark prints the text of a failure, which may quote values: not while we ask."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# PySpark prints the text of a failure through these.
PRINTERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
TALKERS = ("py4j.clientserver", "py4j.java_gateway")
_ASKING = threading.local()


@contextmanager
def quiet() -> Iterator[None]:
    """PySpark prints no failure of this thread while it lasts."""
    from pyspark.logger import PySparkLogger

    for each in (*map(PySparkLogger.getLogger, PRINTERS), *map(logging.getLogger, TALKERS)):
        each.addFilter(may_be_printed)
    _ASKING.now = True
    try:
        yield
    finally:
        _ASKING.now = False


def may_be_printed(_: logging.LogRecord) -> bool:
    """Whether a failure in Spark is one of somebody else's questions."""
    return not getattr(_ASKING, "now", False)

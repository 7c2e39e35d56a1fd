# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C as a terminal sends it, also where the tests were started without one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt; what a shell starts in the background is born deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

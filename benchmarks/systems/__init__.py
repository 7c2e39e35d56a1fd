# SPDX-License-Identifier: Apache-2.0
"""What each system is asked to do, one file a system: ``PACKAGES`` and ``WORKS``.

A work is a maker ``(scale, n) -> call``; only the calls are measured. A file imports only its
system, ``scores``, ``problems``, ``fresh`` and ``truth``, because it runs in the environment of that system.
"""

from collections.abc import Callable
from typing import TypeAlias

Call: TypeAlias = Callable[[], object]
Make: TypeAlias = Callable[[float, int], Call]

# small questions come in rows, as from a page of charts: one alone would be timed with everything cold
ROW = 20


def in_a_row(call: Call) -> Call:
    """So many calls, one after the other."""

    def calls() -> object:
        return [call() for _ in range(ROW)]

    return calls

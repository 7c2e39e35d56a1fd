# SPDX-License-Identifier: Apache-2.0
"""What each system is asked to do, one file a system: ``PACKAGES`` and ``WORKS``.

A work is a maker ``(scale, n) -> call``; only the calls are measured. A file imports only its
system, ``scores``, ``problems``, ``fresh``, ``areas`` and ``truth``, because it runs in the environment of that system.
"""

from collections.abc import Callable
from typing import TypeAlias

Call: TypeAlias = Callable[[], object]
Make: TypeAlias = Callable[[float, int], Call]


def row(n: int) -> int:
    """How many small questions are asked in a row: 200, of many rows fewer, for they take long."""
    return 200 if n <= 10**6 else 20


def in_a_row(call: Call, n: int) -> Call:
    """So many calls, one after the other; one alone would be timed with everything cold."""

    def calls() -> object:
        return [call() for _ in range(row(n))]

    return calls

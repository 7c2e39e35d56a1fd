# SPDX-License-Identifier: Apache-2.0
"""What each system is asked to do, one file a system: ``PACKAGES`` and ``WORKS``.

A work is a maker ``(scale, n) -> call``; only the calls are measured. A file imports only its
system, ``scores``, ``problems``, ``fresh`` and ``truth``, because it runs in the environment of that system.
"""

from collections.abc import Callable
from typing import TypeAlias

Call: TypeAlias = Callable[[], object]
Make: TypeAlias = Callable[[float, int], Call]

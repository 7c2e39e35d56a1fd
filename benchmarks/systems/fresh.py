# SPDX-License-Identifier: Apache-2.0
"""How long a program takes that has nothing loaded yet."""

import subprocess
import sys

from benchmarks.systems import Call


def fresh(statements: str) -> Call:
    """Seconds of these statements in a new Python, without its own start."""
    program = f"import time; start = time.perf_counter(); {statements}; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", program]
    return lambda: float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603

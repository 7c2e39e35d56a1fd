# SPDX-License-Identifier: Apache-2.0
"""How long a program takes that has nothing loaded yet."""

import os
import subprocess
import sys

from benchmarks.systems import Call


def fresh(statements: str) -> Call:
    """Seconds of these statements in a new Python, without its own start.

    All is compiled, as where a package is installed: a first run, which is not counted, leaves its byte code.
    """
    program = f"import time; start = time.perf_counter(); {statements}; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", program]
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }

    def seconds() -> float:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
        return float(done.stdout)

    def call() -> float:
        seconds()
        return seconds()

    return call

# SPDX-License-Identifier: Apache-2.0
"""Another process that has a ledger file open."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Holds a ledger file until its input ends.
HOLD = """
import sys
from sfumato.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
ledger.close()
"""


@contextmanager
def held(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has a ledger open; it closes it when its input is closed."""
    command = [sys.executable, "-c", HOLD, str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()

# SPDX-License-Identifier: Apache-2.0
"""A ledger whose process was killed (SIGKILL) in the middle of its work."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.contracts.charges import opened, paid, pure
from sfumato.ledger import Ledger

path, script = Path(sys.argv[1]), sys.argv[2]
ledger = Ledger.open(path) if path.exists() else opened(path)
exec(script)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(path: Path, script: str) -> None:
    """Runs a script over ``ledger`` at ``path`` in a process of its own, which is then killed."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, path, script], capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr

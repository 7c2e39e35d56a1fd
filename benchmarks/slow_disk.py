# SPDX-License-Identifier: Apache-2.0
"""A disk whose flushes take 4 ms, as on many a machine: ``slow_disk.c``, loaded before the C library.

Nothing else of a program is slowed down, as a tracer would, and its children inherit it.
"""

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


@cache
def slow_disk() -> dict[str, str] | None:
    """What to add to the environment of a program; None where there is no C compiler, or another system."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    folder = Path(tempfile.mkdtemp(prefix="sfumato-slow-disk-"))
    atexit.register(shutil.rmtree, folder)
    # the user of the server has to read it
    folder.chmod(0o755)
    library = folder / "slow_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
    made = subprocess.run(command, capture_output=True).returncode == 0  # noqa: S603 - our own source
    return {"LD_PRELOAD": str(library)} if made else None

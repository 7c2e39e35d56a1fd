# SPDX-License-Identifier: Apache-2.0
"""A disk whose flushes take 4 ms, as on many a machine: strace holds each one back, and nothing else."""

import shutil
import subprocess
from functools import cache

# what strace itself needs for a flush comes on top, some tenths of a millisecond
_HELD_BACK_US = 3500
_SYNCS = "fdatasync,fsync"


def slowed() -> tuple[str, ...]:
    """What stands before a command whose flushes, and those of all its children, are held back."""
    held_back = f"inject={_SYNCS}:delay_enter={_HELD_BACK_US}"
    # all other calls of the system pass the filter without a stop
    return ("strace", "-D", "-f", "--seccomp-bpf", "-e", f"trace={_SYNCS}", "-e", held_back, "-o", "/dev/null")


@cache
def works() -> bool:
    """Whether there is a strace that may do this here."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run([*slowed(), "true"], capture_output=True).returncode == 0  # noqa: S603 - our own words

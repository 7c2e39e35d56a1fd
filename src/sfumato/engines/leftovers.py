# SPDX-License-Identifier: Apache-2.0
"""Lists copies of rows on disk: prepared layouts, and files left by crashed processes.

The owner's commands report them.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

# The name of a spill folder begins with this, then the process id and a random suffix.
SPILL = "sfumato-rows-"


@dataclass(frozen=True, slots=True)
class Held:
    """A copy of rows on disk: ``what`` says of which kind, with its path and its size in bytes."""

    what: str
    path: Path
    size: int


def spill_prefix() -> str:
    """Returns the prefix that names of this process's spill folders begin with."""
    return f"{SPILL}{os.getpid()}-"


def held_rows(prepared: str | Path | None) -> list[Held]:
    """Returns the files with personal data that are left on disk: the prepared layouts in a folder,
    and spill folders of terminated processes.

    Spill folders are searched there and in the temporary folder. The spill folder of a running
    process is not listed: it is deleted with its session. An empty folder is not listed, because it
    has no row.
    """
    places = [Path(tempfile.gettempdir())]
    listed = []
    if prepared is not None:
        folder = Path(prepared).absolute()
        places.append(folder)
        for path in sorted(folder.glob("*.parquet")):
            listed.append(Held("layout", path, _size(path)))
    for place in places:
        for path in sorted(place.glob(f"{SPILL}*")):
            if path.is_dir() and not _is_running(path) and _size(path):
                listed.append(Held("spilled rows of a process that has ended", path, _size(path)))
    return listed


def _is_running(spill: Path) -> bool:
    """Whether the process that made a spill folder is running."""
    number = spill.name.removeprefix(SPILL).partition("-")[0]
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _size(path: Path) -> int:
    """Returns the number of bytes in a file, or below a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())

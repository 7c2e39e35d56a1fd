# SPDX-License-Identifier: Apache-2.0
"""What still holds rows of the data, besides the data: prepared layouts, and what crashes have left."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

# The folder of what an engine spills: then the id of its process, and a random end.
SPILL = "sfumato-rows-"


@dataclass(frozen=True, slots=True)
class Held:
    """Rows at a path: ``what`` holds them, in ``size`` bytes."""

    what: str
    path: Path
    size: int


def spill_prefix() -> str:
    """How the folders begin in which this process spills rows."""
    return f"{SPILL}{os.getpid()}-"


def held_rows(prepared: str | Path | None) -> list[Held]:
    """The layouts in a folder, and what processes that have ended have left there or in the temporary folder.

    What a running process spills is not listed: it goes with its session.
    """
    folder = Path(prepared).absolute() if prepared is not None else None
    layouts = sorted(folder.glob("*.parquet")) if folder is not None else []
    places = [Path(tempfile.gettempdir()), *([folder] if folder is not None else [])]
    spills = [path for place in places for path in sorted(place.glob(f"{SPILL}*")) if path.is_dir()]
    return [Held("layout", path, _size(path)) for path in layouts] + [
        Held("spilled rows of a process that has ended", path, _size(path))
        for path in spills
        if not _is_running(path)
    ]


def _is_running(spill: Path) -> bool:
    """Whether the process of a folder is there."""
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
    """The bytes in a file, or below a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files)

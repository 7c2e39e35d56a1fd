# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves of an open ledger file."""

import shutil
from dataclasses import replace
from pathlib import Path

from sfumato.ledger.store.open_mark import mark_path, read_mark

ENDS = ("", "-wal", ".open")


def crash_image(ledger: Path, target: Path) -> Path:
    """The files as a crash would leave them now, at another place as if it had happened there."""
    for end in ENDS:
        shutil.copy(f"{ledger}{end}", f"{target}{end}")
    mark = read_mark(str(target))
    assert mark is not None
    mark_path(str(target)).write_bytes(replace(mark, inode=target.stat().st_ino).to_bytes())
    return target

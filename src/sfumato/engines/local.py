# SPDX-License-Identifier: Apache-2.0
"""``sf.Local``: the resources that DuckDB may use on this machine."""

import re
from dataclasses import dataclass, field

from sfumato.engines.stop import is_duration
from sfumato.engines.time_limit import Progress
from sfumato.errors import InvalidDeclaration, shown

_HOUR = 3600.0
_SIZE = re.compile(r"[1-9][0-9]{0,5} ?[KMGT]i?B", re.ASCII)


@dataclass(frozen=True, slots=True)
class Local:
    """Runs DuckDB in this process, with limits: for ``sf.connect(..., engine=sf.Local(...))``.

    ``memory_limit`` is a size as DuckDB writes it (default: 80% of the machine's memory; data that
    does not fit is spilled to disk), ``threads`` a number (default: one for each core) and
    ``time_limit`` seconds for one question (default: an hour). ``lanes`` is the number of questions
    that run at once (default: 1); they share memory and threads, and stored answers never wait for
    a lane. A question that needs more memory, in spite of spilling, or more time fails, and its
    cost stays spent. No limit changes an answer.

    ``progress`` is called now and then while a statement runs, in a thread of its own, with the
    fraction that is done, from 0 to 1. It depends on the data: it is for the owner only, and must
    not reach whoever gets the answers (RULES 24).

    Raises:
        InvalidDeclaration: a limit that is not valid.

    >>> Local(memory_limit="8GB", threads=2)
    Local(memory_limit='8GB', threads=2, time_limit=3600.0, lanes=1)
    """

    memory_limit: str | None = None
    threads: int | None = None
    time_limit: float = _HOUR
    lanes: int = 1
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        size = self.memory_limit
        threads = self.threads
        if size is not None and (not isinstance(size, str) or not _SIZE.fullmatch(size)):
            raise InvalidDeclaration(
                f"memory_limit={shown(size)}.", allowed='a size with its unit: "8GB", "500MB"'
            )
        if threads is not None and not _is_count(threads, 1024):
            raise InvalidDeclaration(
                f"threads={shown(threads)}.", allowed="an integer from 1 to 1024"
            )
        if not _is_count(self.lanes, 64):
            raise InvalidDeclaration(
                f"lanes={shown(self.lanes)}.", allowed="an integer from 1 to 64"
            )
        if not is_duration(self.time_limit):
            raise InvalidDeclaration(
                f"time_limit={shown(self.time_limit)}.", allowed="seconds, more than 0"
            )
        if self.progress is not None and not callable(self.progress):
            raise InvalidDeclaration(
                f"progress={shown(self.progress)}.", allowed="a function of the share that is done"
            )


def _is_count(number: object, most: int) -> bool:
    """Whether a value is an integer from 1 to ``most``."""
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= most

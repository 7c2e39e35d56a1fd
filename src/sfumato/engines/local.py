# SPDX-License-Identifier: Apache-2.0
"""What DuckDB may use of this machine."""

import re
from dataclasses import dataclass, field

from sfumato.engines.time_limit import Progress
from sfumato.errors import InvalidDeclaration, shown

_HOUR = 3600.0
_SIZE = re.compile(r"[1-9][0-9]{0,5} ?[KMGT]i?B", re.ASCII)


@dataclass(frozen=True, slots=True)
class Local:
    """DuckDB in this process, its limits, and who is told how far it is: for ``sf.connect(..., engine=sf.Local(memory_limit="8GB"))``.

    ``memory_limit`` as DuckDB writes it (by default 80% of the machine's; what does not fit is
    spilled), ``threads`` (by default one a core) and ``time_limit`` in seconds for one question
    (by default an hour). ``lanes`` are the questions that run at once (by default 1): they share
    memory and threads, and stored answers never wait for one. A question that needs more memory
    than there is, with what can be spilled, or more time, fails, and its cost stays spent. No
    limit changes an answer.

    ``progress`` is called now and then while a statement runs, in a thread of its own, with the
    share that is done, from 0 to 1. It depends on the data: it is for the owner's eyes, and must
    not reach whoever gets the answers (RULES 24).

    Raises:
        InvalidDeclaration: a limit that is none.

    >>> Local(memory_limit="8GB", threads=2)
    Local(memory_limit='8GB', threads=2, time_limit=3600.0, lanes=1)
    """

    memory_limit: str | None = None
    threads: int | None = None
    time_limit: float = _HOUR
    lanes: int = 1
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        size, threads, seconds = self.memory_limit, self.threads, self.time_limit
        if size is not None and (not isinstance(size, str) or not _SIZE.fullmatch(size)):
            raise InvalidDeclaration(
                f"memory_limit={shown(size)}.", allowed='a size with its unit: "8GB", "500MB"'
            )
        if threads is not None and (
            isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024
        ):
            raise InvalidDeclaration(
                f"threads={shown(threads)}.", allowed="an integer from 1 to 1024"
            )
        if (
            isinstance(self.lanes, bool)
            or not isinstance(self.lanes, int)
            or not 1 <= self.lanes <= 64
        ):
            raise InvalidDeclaration(
                f"lanes={shown(self.lanes)}.", allowed="an integer from 1 to 64"
            )
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)
            or not 0 < seconds < 1e9
        ):
            raise InvalidDeclaration(
                f"time_limit={shown(seconds)}.", allowed="seconds, more than 0"
            )
        if self.progress is not None and not callable(self.progress):
            raise InvalidDeclaration(
                f"progress={shown(self.progress)}.", allowed="a function of the share that is done"
            )

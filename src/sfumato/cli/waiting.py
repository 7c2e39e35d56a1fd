# SPDX-License-Identifier: Apache-2.0
"""How far a long question is, for the owner at the terminal: on stderr, and nowhere else (RULES 24)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from sfumato.engines.local import Local

# Who waits less is not told.
PATIENCE = 2.0


@contextmanager
def waiting(console: Console | None = None) -> Iterator[Local]:
    """Limits of the engine that show a bar where stderr is a terminal, once a question has taken two seconds."""
    shown = console or Console(stderr=True)
    if not shown.is_terminal:
        yield Local()
        return
    words = TextColumn("asking the data")
    with Progress(
        words, BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), console=shown, transient=True
    ) as bar:
        task, start = bar.add_task("", total=1.0, visible=False), time.monotonic()

        def told(share: float) -> None:
            bar.update(task, completed=share, visible=time.monotonic() - start >= PATIENCE)

        yield Local(progress=told)

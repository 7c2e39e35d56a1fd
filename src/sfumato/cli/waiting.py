# SPDX-License-Identifier: Apache-2.0
"""A progress bar for long questions, on stderr of the owner's terminal alone (RULES 24)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from sfumato.engines.local import Local

# Shorter questions show no bar, in seconds.
PATIENCE = 2.0


@contextmanager
def waiting(console: Console | None = None) -> Iterator[Local]:
    """Yields settings of a local engine that report progress.

    A bar appears once a question has taken two seconds, if stderr is a terminal.
    """
    shown = console or Console(stderr=True)
    if not shown.is_terminal:
        yield Local()
        return
    columns = (
        TextColumn("asking the data"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=shown, transient=True) as bar:
        task = bar.add_task("", total=1.0, visible=False)
        start = time.monotonic()

        def report(share: float) -> None:
            is_long = time.monotonic() - start >= PATIENCE
            bar.update(task, completed=share, visible=is_long)

        yield Local(progress=report)

# SPDX-License-Identifier: Apache-2.0
"""Progress bars for long questions, only on the stderr of the owner's terminal (RULES 24)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from sfumato.engines.local import Local

# Shorter questions show no bar, in seconds.
PATIENCE = 2.0


class Tell(Protocol):
    """The type of the function by which a long command reports progress: the current step as text,
    and the share of the work that is done (0 to 1).
    """

    def __call__(self, line: str, share: float = 0.0, /) -> None:
        """Shows a line beside the bar."""


@contextmanager
def waiting(console: Console | None = None) -> Iterator[Local]:
    """Yields engine settings with which a question shows its progress.

    A bar appears once a question has taken two seconds, if stderr is a terminal.
    """
    with watching("asking the data", console) as (local, _):
        yield local


@contextmanager
def watching(what: str, console: Console | None = None) -> Iterator[tuple[Local, Tell]]:
    """Yields engine settings that show progress, and a function that names the current step.

    A bar appears after two seconds, if stderr is a terminal. It shows the progress of one statement
    at a time, and before it the share of all work that was passed to the function.
    """
    shown = console or Console(stderr=True)
    if not shown.is_terminal:
        yield Local(), lambda line, share=0.0: None
        return
    with Progress(*_columns(), console=shown, transient=True) as bar:
        task = bar.add_task(what, total=1.0, visible=False)
        start = time.monotonic()

        def report(share: float) -> None:
            is_long = time.monotonic() - start >= PATIENCE
            bar.update(task, completed=share, visible=is_long)

        def tell(line: str, share: float = 0.0) -> None:
            bar.update(task, description=f"{what}: {line}")
            report(share)

        yield Local(progress=report), tell


@contextmanager
def counting(what: str, console: Console | None = None) -> Iterator[Callable[[int, int], None]]:
    """Context manager that yields a function (done, total), which shows the progress of a command
    as a number of finished steps.

    A bar appears after two seconds, if stderr is a terminal.
    """
    shown = console or Console(stderr=True)
    if not shown.is_terminal:
        yield lambda done, steps: None
        return
    with Progress(*_columns(), console=shown, transient=True) as bar:
        task = bar.add_task(what, total=1.0, visible=False)
        start = time.monotonic()

        def count(done: int, steps: int) -> None:
            is_long = time.monotonic() - start >= PATIENCE
            line = f"{what}: {done} of {steps}"
            bar.update(task, description=line, completed=done / steps, visible=is_long)

        yield count


def _columns() -> tuple[ProgressColumn, ...]:
    """The columns of a progress bar."""
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )

# SPDX-License-Identifier: Apache-2.0
"""A wrapper that adds the label and tables of a fit to the description of its task in the
ledger.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.metadata.dataset import Dataset
from sfumato.privacy.event import Event
from sfumato.query.curator import Curator
from sfumato.query.statistic import NoPlan, Plan
from sfumato.query.task import Task


@dataclass(frozen=True, slots=True)
class DescribedTask:
    """A wrapper of a task that adds the text ``about`` to its line in the ledger; cache key,
    privacy event and answer are the task's own.

    >>> from sfumato.learning.described_task import line_about
    >>> line_about("decision tree of depth 3", "income from people")
    'decision tree of depth 3; income from people'
    """

    task: Task
    about: str

    @property
    def line(self) -> str:
        """The wrapped task's line in the ledger, followed by ``about``."""
        return line_about(self.task.line, self.about)

    @property
    def kind(self) -> str:
        """The wrapped task's kind."""
        return self.task.kind

    @property
    def form(self) -> str:
        """The wrapped task's canonical string, from which the answer's cache key is computed."""
        return self.task.form

    @property
    def event(self) -> Event:
        """The wrapped task's privacy event."""
        return self.task.event

    @property
    def cells(self) -> Sequence[int | None]:
        """The number of noisy integers in each release of the wrapped task."""
        return self.task.cells

    @property
    def size(self) -> int | None:
        """The largest size of the wrapped task's answer, in bytes."""
        return self.task.size

    def ready(self, declarations: Dataset) -> Plan | NoPlan:
        """Returns the plan of the private rows that the wrapped task reads."""
        return self.task.ready(declarations)

    def run(self, curator: Curator) -> bytes:
        """Runs the wrapped task and returns its answer."""
        return self.task.run(curator)


def line_about(line: str, about: str) -> str:
    """Returns a task's line in the ledger, with the description ``about`` of the rows that it reads
    appended.
    """
    return f"{line}; {about}" if about else line

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
    """A task whose ledger line ends with ``about``; its key, event and answer are unchanged.

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
        """The wrapped task's form, which is part of its cache key."""
        return self.task.form

    @property
    def event(self) -> Event:
        """The wrapped task's privacy event."""
        return self.task.event

    @property
    def cells(self) -> Sequence[int | None]:
        """The wrapped task's number of integers in each release."""
        return self.task.cells

    @property
    def size(self) -> int | None:
        """The wrapped task's largest number of bytes of its answer."""
        return self.task.size

    def ready(self, declarations: Dataset) -> Plan | NoPlan:
        """Returns the wrapped task's plan."""
        return self.task.ready(declarations)

    def run(self, curator: Curator) -> bytes:
        """Runs the wrapped task and returns its answer."""
        return self.task.run(curator)


def line_about(line: str, about: str) -> str:
    """Returns a line of the ledger followed by what the task reads."""
    return f"{line}; {about}" if about else line

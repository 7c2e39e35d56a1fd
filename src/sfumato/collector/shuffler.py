# SPDX-License-Identifier: Apache-2.0
"""Forwards sealed reports to a collector in large batches and in random order.

The shuffler cannot open a report. The collector and the aggregator learn of a report only which
batch it is in. Both hold unless shuffler and collector collude.
"""

from collections.abc import Callable, Iterable

import pyarrow as pa

from sfumato.collector.app import MOST
from sfumato.collector.folder import Folder, rows_of_part
from sfumato.errors import InvalidDeclaration
from sfumato.telemetry.sealing import sent_size
from sfumato.telemetry.task import ReportTask

# Sends some reports of the task of an id to the collector; whether they were acknowledged.
Sender = Callable[[str, bytes], bool]
# All reports wait in one period: a batch may be of two.
PERIOD = 0


class Shuffler:
    """A shuffler, which forwards to the collector the reports that wait in a ``Folder`` opened with
    ``holds``, in shuffled batches.

    A batch has at least ``min_batch`` reports of one task. It is shuffled once, when it is
    complete, and sent until the collector has acknowledged all of it, always with the same reports:
    new reports wait for the next batch. A report that is sent twice counts once, since the
    aggregator drops duplicates.

    Guarantees:
        fewer than the smallest batch are never forwarded
        what was acknowledged is forwarded after a crash

    Raises:
        InvalidDeclaration: a task whose reports are not sealed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, Folder(place, holds=True) as folder:
    ...     Shuffler(folder, [], lambda task, reports: True).turn()
    0
    """

    def __init__(self, folder: Folder, tasks: Iterable[ReportTask], send: Sender) -> None:
        self._folder, self._tasks, self._send = folder, tuple(tasks), send
        for task in self._tasks:
            if not task.aggregator:
                raise InvalidDeclaration(
                    f"The task {task.id!r} is not sealed, so a shuffler could read its reports.",
                    allowed="tasks with aggregator=, the public key of the aggregator",
                )

    def turn(self) -> int:
        """Forwards all complete batches; returns how many reports were acknowledged.

        A batch that is not acknowledged completely is sent again in the next turn.
        """
        return sum(map(self._forward, self._tasks))

    def _forward(self, task: ReportTask) -> int:
        """Forwards the complete batches of a task, the oldest first."""
        done = 0
        for part in self._folder.complete(task, PERIOD):
            rows = rows_of_part(part)
            if not self._sent(task, rows):
                break
            part.unlink()
            done += len(rows)
        return done

    def _sent(self, task: ReportTask, rows: pa.Array) -> bool:
        """Sends a batch; returns whether the collector acknowledged all of its reports."""
        size = sent_size(task)
        data = memoryview(rows.buffers()[1])[rows.offset * size :][: len(rows) * size]
        step = MOST // size * size
        return all(
            self._send(task.id, bytes(data[at : at + step])) for at in range(0, len(data), step)
        )

# SPDX-License-Identifier: Apache-2.0
"""Decides which reports of a batch are stored.

A report must belong to the task and to an open period, be complete, and be new. ``app`` passes
every batch to an intake.
"""

from collections.abc import Callable

import numpy as np

from sfumato.collector.store import ReportStore
from sfumato.telemetry.report import HEADER, Layout, periods_of
from sfumato.telemetry.sealing import sent_size
from sfumato.telemetry.signing import SignedTask

# A clock of a device may be ahead by so many seconds.
AHEAD = 3600


class Intake:
    """The collector's intake of unsealed reports of one task, in batches.

    A period is open from its beginning (an hour earlier, for clocks that are ahead) until one more
    period has passed, for devices that were offline. The period is the only time that is stored.

    Guarantees:
        what was acknowledged is kept, once

    Raises:
        StoreFailed: no report of the batch may be acknowledged; the same batch may come again.

    >>> import tempfile
    >>> from sfumato.collector.folder import Folder
    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.signing import signed_task
    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> signed = signed_task(task, ec.generate_private_key(ec.SECP256R1()))
    >>> place = tempfile.TemporaryDirectory()
    >>> with Folder(place.name) as folder:
    ...     Intake(signed, folder, lambda: 60.0).take(b"no report")
    0
    >>> place.cleanup()
    """

    def __init__(
        self,
        signed: SignedTask,
        store: ReportStore,
        clock: Callable[[], float],
    ) -> None:
        self.signed = signed
        self._task = signed.task
        self._store = store
        self._clock = clock
        self._layout = Layout.of(signed.task)
        # periods of which reports came
        self._begun: set[int] = set()

    def take(self, body: bytes) -> int:
        """Stores the valid reports of a batch, given one after the other in ``body``; returns the
        number of those that are new.
        """
        size = self._layout.size
        if len(body) % size:
            return 0
        rows = np.frombuffer(body, np.uint8).reshape(-1, size)
        rows = rows[self._layout.are_ours(rows)]
        rows = rows[self._task.oracle.valid(rows[:, HEADER:])]
        periods = periods_of(rows)
        new_reports = 0
        for period in filter(self._is_open, np.unique(periods).tolist()):
            self._begun.add(period)
            new_reports += self._store.append(self._task, period, rows[periods == period])
        self._finish()
        return new_reports

    def _is_open(self, period: int) -> bool:
        """Whether reports of a period are accepted now."""
        task, now = self._task, self._clock()
        begins = task.start + period * task.period
        is_known = 0 <= period < task.periods
        return is_known and begins - AHEAD <= now < min(begins + 2 * task.period, task.expires)

    def _finish(self) -> None:
        """Tells the store which periods have closed."""
        for period in [each for each in self._begun if not self._is_open(each)]:
            self._begun.remove(period)
            self._store.finish(self._task, period)


class SealedIntake:
    """The collector's intake of sealed (encrypted) reports of one task, in batches.

    It checks only their size; the aggregator drops reports that cannot be opened, and duplicates.
    They are stored under the period in which they came; with ``apart=False``, all under the first.

    Raises:
        StoreFailed: no report of the batch may be acknowledged; the same batch may come again.

    >>> import tempfile
    >>> from sfumato.collector.folder import Folder
    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.signing import signed_task
    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1())
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1,
    ...                    aggregator=key.public_key())
    >>> with tempfile.TemporaryDirectory() as place, Folder(place) as folder:
    ...     SealedIntake(signed_task(task, key), folder, lambda: 60.0).take(b"another size")
    0
    """

    def __init__(
        self,
        signed: SignedTask,
        store: ReportStore,
        clock: Callable[[], float],
        *,
        apart: bool = True,
    ) -> None:
        self.signed = signed
        self._store = store
        self._clock = clock
        self._apart = apart
        self._last = 0

    def take(self, body: bytes) -> int:
        """Stores the reports of a batch, given one after the other in ``body``; returns the number
        that was stored.
        """
        task, now = self.signed.task, self._clock()
        size = sent_size(task)
        # what a shuffler held back may come one period late
        is_open = task.start - AHEAD <= now < task.expires + task.period
        if not body or len(body) % size or not is_open:
            return 0
        period = min(max(task.period_at(now), 0), task.periods - 1) if self._apart else 0
        rows = np.frombuffer(body, np.uint8).reshape(-1, size)
        kept = self._store.append(task, period, rows)
        if period > self._last:
            self._store.finish(task, self._last)
            self._last = period
        return kept


def intake_of(
    signed: SignedTask,
    store: ReportStore,
    clock: Callable[[], float],
) -> Intake | SealedIntake:
    """Returns the intake for a task: a ``SealedIntake`` if its reports are sealed.

    >>> import tempfile
    >>> from sfumato.collector.folder import Folder
    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> from sfumato.telemetry.signing import signed_task
    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1())
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1,
    ...                    aggregator=key.public_key())
    >>> with tempfile.TemporaryDirectory() as place, Folder(place) as folder:
    ...     intake_of(signed_task(task, key), folder, lambda: 60.0).take(bytes(sent_size(task)))
    1
    """
    if signed.task.aggregator:
        return SealedIntake(signed, store, clock)
    return Intake(signed, store, clock)

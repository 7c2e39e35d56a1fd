# SPDX-License-Identifier: Apache-2.0
"""A store of reports on disk: for each task and period Parquet parts and one growing file.

Reports survive a crash once ``append`` has returned. A part is in random order, and all files have
the time of their period as timestamp: neither reveals when a report came.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse, shown
from sfumato.noise.uniform import permutation
from sfumato.telemetry.oracles.oracle import Payloads
from sfumato.telemetry.report import ids_of
from sfumato.telemetry.rows import rows_of
from sfumato.telemetry.sealing import sent_size
from sfumato.telemetry.seen import Seen
from sfumato.telemetry.task import ReportTask

# The file that grows becomes a part when it has so many reports.
PART = 1 << 20
COLUMN = "report"
# Reports that are read at a time.
_ROWS = 1 << 18


class Folder:
    """A store of the reports of several tasks in a folder, which one process at a time may write.

    A report with an id that is stored already is dropped; sealed reports show no id, and are all
    kept. A growing file becomes a part when it is large, when its period ends and when the folder
    is closed. With ``holds`` (for the shuffler) only ``complete`` makes parts, of at least the
    smallest batch of the task.

    Guarantees:
        what was acknowledged is read again after a crash
        a full disk loses nothing that was acknowledged

    Raises:
        WrongUse: another process writes there, or the folder cannot be made.

    >>> import tempfile
    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> place = tempfile.TemporaryDirectory()
    >>> with Folder(place.name) as folder:
    ...     folder.append(task, 0, np.zeros((2, sent_size(task)), np.uint8))
    1
    >>> [len(part) for part in read(place.name, task, 0)]
    [1]
    >>> place.cleanup()
    """

    def __init__(self, place: str | Path, *, holds: bool = False) -> None:
        self.place = Path(place)
        self._holds = holds
        self._busy = Lock()
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.place / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WrongUse(f"{shown(str(place))} cannot be made ({error.strerror}).") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise WrongUse(f"Another collector writes into {shown(str(place))}.") from None
        self._growing: dict[tuple[ReportTask, int], _Growing] = {}

    def append(self, task: ReportTask, period: int, rows: Payloads) -> int:
        """Stores the reports that are not stored yet, durably; returns their number.

        Raises:
            StoreFailed: nothing was stored; the same reports may be sent again.
        """
        with self._busy:
            try:
                new_reports = self._file(task, period).append(rows)
            except BaseException as error:
                # what is not stored is no duplicate when it comes again
                self._leave(task, period)
                if not isinstance(error, OSError):
                    raise
                raise StoreFailed(f"The store of reports failed ({error.strerror}).") from None
            if not self._holds and self._file(task, period).count >= PART:
                self._roll(task, period)
            return new_reports

    def finish(self, task: ReportTask, period: int) -> None:
        """Turns the growing file of a period that has ended into a part, and forgets the ids of its
        reports.
        """
        with self._busy:
            growing = self._growing.get((task, period))
            if growing is not None and not self._holds:
                growing.settle()
            self._leave(task, period)

    def _roll(self, task: ReportTask, period: int) -> None:
        """Makes a part of the growing file; if the disk is full, that is left for later.

        All its reports are on disk already.
        """
        try:
            self._file(task, period).roll()
        except OSError:
            # what a part that was half made left behind is put in order when it is opened again
            self._leave(task, period)

    def _leave(self, task: ReportTask, period: int) -> None:
        """Closes the growing file of a period; it is opened again if it is needed."""
        found = self._growing.pop((task, period), None)
        if found is not None:
            found.close()

    def complete(self, task: ReportTask, period: int) -> list[Path]:
        """Returns the finished Parquet parts of a task and period, the oldest first.

        If the growing file has a full batch of reports, it is first turned into a part.

        Raises:
            OSError: a part could not be written; no report is lost.
        """
        with self._busy:
            growing = self._file(task, period)
            if growing.count >= task.min_batch:
                growing.roll()
            folder = where(self.place, task, period)
            return sorted(folder.glob("part-*.parquet"), key=_number)

    def _file(self, task: ReportTask, period: int) -> "_Growing":
        """The growing file of a period, opened if necessary."""
        key = (task, period)
        if key not in self._growing:
            self._growing[key] = _Growing(where(self.place, task, period), task, period)
        return self._growing[key]

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Turns the growing files into Parquet parts (not with ``holds``), and releases the
        lock.
        """
        for growing in self._growing.values():
            if not self._holds:
                growing.settle()
            growing.close()
        self._growing.clear()
        os.close(self._lock)


class _Growing:
    """The file of a period to which new reports are appended."""

    def __init__(
        self,
        folder: Path,
        task: ReportTask,
        period: int,
    ) -> None:
        self._folder, self._size = folder, sent_size(task)
        self._time = task.start + period * task.period
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _flush(folder.parent)
        number = _clean_up(folder)
        # sealed reports show no id
        self._seen = None if task.aggregator else _stored_ids(folder, self._size)
        self._open(number)

    def _open(self, number: int) -> None:
        """Opens the file with a number; cuts off an incomplete last report, never acknowledged."""
        self._number = number
        self._path = self._folder / f"growing-{number}.rows"
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
        length = os.fstat(self._file).st_size
        self._length = length - length % self._size
        os.ftruncate(self._file, self._length)
        os.fsync(self._file)
        _flush(self._folder)

    def append(self, rows: Payloads) -> int:
        """Appends the reports that are new and flushes them to disk; returns how many.

        If that fails no report is added, and the file must be closed, since their ids are marked as
        known.
        """
        if self._seen is not None:
            rows = rows[self._seen.fresh(ids_of(rows))]
        if not len(rows):
            return 0
        data = memoryview(np.ascontiguousarray(rows).tobytes())
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._length)
            raise
        self._length += rows.size
        self._forget_time(self._path)
        return len(rows)

    @property
    def count(self) -> int:
        """The number of reports in the file."""
        return self._length // self._size

    def roll(self) -> None:
        """Makes a part of the file, and starts the next file."""
        self.seal()
        os.close(self._file)
        self._open(self._number + 1)

    def settle(self) -> None:
        """Makes a part of the file; if the disk is full, the file stays and is read as it is."""
        with suppress(OSError):
            self.seal()

    def seal(self) -> None:
        """Writes the reports to a Parquet part in random order, and deletes the file."""
        if not self._length:
            return
        rows = np.fromfile(self._path, np.uint8).reshape(-1, self._size)
        data = rows[permutation(len(rows))].tobytes()
        column = pa.Array.from_buffers(pa.binary(self._size), len(rows), [None, pa.py_buffer(data)])
        part = self._folder / f"part-{self._number}.parquet"
        unfinished = part.with_suffix(".unfinished")
        table = pa.table({COLUMN: column})
        parquet.write_table(table, unfinished, compression="none", use_dictionary=False)
        _flush(unfinished)
        unfinished.replace(part)
        self._forget_time(part)
        _flush(self._folder)
        self._path.unlink()
        _flush(self._folder)
        self._length = 0

    def _forget_time(self, path: Path) -> None:
        """Sets the timestamps of a file and its folder to the start of the period."""
        for each in (path, self._folder):
            os.utime(each, (self._time, self._time))

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


def where(place: Path, task: ReportTask, period: int) -> Path:
    """The folder of a task and period; its name contains the hash of the task.

    A task never changes, so another hash is another task.
    """
    return place / f"{task.id}-{task.hash[:8].hex()}" / f"period={period}"


def read(place: str | Path, task: ReportTask, period: int) -> Iterator[pa.Array]:
    """Yields the stored reports of a period part by part, for ``Aggregator.add_many``."""
    return _read(where(Path(place), task, period), sent_size(task))


def _read(folder: Path, size: int) -> Iterator[pa.Array]:
    """Yields the reports in the folder of a period part by part."""
    parts = sorted(folder.glob("part-*.parquet"), key=_number)
    for path in parts:
        with parquet.ParquetFile(path) as part:
            for rows in part.iter_batches(_ROWS, columns=[COLUMN]):
                yield rows.column(0)
    numbers = {_number(path) for path in parts}
    for path in folder.glob("growing-*.rows"):
        # a part of the same number has the same reports
        if _number(path) not in numbers:
            data = path.read_bytes()
            count = len(data) // size
            yield pa.Array.from_buffers(pa.binary(size), count, [None, pa.py_buffer(data)])


def rows_of_part(path: Path) -> pa.Array:
    """Returns the reports in a Parquet part, as an Arrow column of bytes."""
    return parquet.read_table(path)[COLUMN].combine_chunks()


def _stored_ids(folder: Path, size: int) -> Seen:
    """The ids of the reports in the folder of a period."""
    seen = Seen()
    for part in _read(folder, size):
        rows, _ = rows_of(part, size)
        seen.fresh(ids_of(rows))
    return seen


def _number(path: Path) -> int:
    """The number of a part, or of a growing file."""
    return int(path.stem.rpartition("-")[2])


def _clean_up(folder: Path) -> int:
    """Cleans up what a crash left behind; returns the number of the growing file."""
    for path in folder.glob("*.unfinished"):
        path.unlink()
    parts = {_number(path) for path in folder.glob("part-*.parquet")}
    left = []
    for path in folder.glob("growing-*.rows"):
        if _number(path) in parts:
            path.unlink()
        elif path.stat().st_size:
            left.append(_number(path))
    # parts that were forwarded are gone, so their numbers tell nothing
    return max([*left, *(number + 1 for number in parts)], default=0)


def _flush(path: Path) -> None:
    """Flushes a file or folder to disk."""
    found = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(found)
    finally:
        os.close(found)

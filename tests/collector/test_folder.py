# SPDX-License-Identifier: Apache-2.0
"""Reports on disk: what was acknowledged survives, and neither order nor time is kept."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sfumato.collector import folder as module
from sfumato.collector.folder import Folder, rows_of_part, where
from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse
from sfumato.telemetry.report import Layout
from tests.collector.batches import PERIOD, START, asked, batch, counted, rows, stored

TASK = asked().task
SIZE = Layout.of(TASK).size


def test_what_was_appended_is_read_before_and_after_it_is_sealed(tmp_path: Path) -> None:
    first, second = batch(TASK, 5), batch(TASK, 7)
    with Folder(tmp_path) as folder:
        folder.append(TASK, 1, rows(first))
        assert stored(tmp_path, TASK) == first
        folder.append(TASK, 1, rows(second))
        folder.append(TASK, 2, rows(batch(TASK, 3, period=2)))
    assert sorted(stored(tmp_path, TASK)) == sorted(first + second)
    assert len(stored(tmp_path, TASK, 2)) == 3
    with Folder(tmp_path) as folder:
        assert folder.append(TASK, 1, rows(first + batch(TASK, 2))) == 2
    assert len(stored(tmp_path, TASK)) == 14


def test_a_full_file_becomes_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 10)
    reports = batch(TASK, 25)
    with Folder(tmp_path) as folder:
        for start in range(0, 25, 5):
            folder.append(TASK, 1, rows(reports[start : start + 5]))
        names = {path.name for path in where(tmp_path, TASK, 1).iterdir()}
        assert names == {"part-0.parquet", "part-1.parquet", "growing-2.rows"}
        assert sorted(stored(tmp_path, TASK)) == sorted(reports)


def test_a_part_is_in_random_order_and_has_the_time_of_its_period(tmp_path: Path) -> None:
    reports = batch(TASK, 50)
    with Folder(tmp_path) as folder:
        folder.append(TASK, 1, rows(reports))
        (growing,) = where(tmp_path, TASK, 1).glob("growing-*")
        assert growing.stat().st_mtime == START + PERIOD
    found = stored(tmp_path, TASK)
    # the same order has a probability of 1/50!
    assert found != reports and sorted(found) == sorted(reports)
    (part,) = where(tmp_path, TASK, 1).glob("part-*")
    assert part.stat().st_mtime == START + PERIOD


def test_a_part_that_keeps_the_order_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "permutation", np.arange)
    reports = batch(TASK, 50)
    with Folder(tmp_path) as folder:
        folder.append(TASK, 1, rows(reports))
    assert stored(tmp_path, TASK) == reports


def test_what_was_acknowledged_is_read_again_after_a_crash(
    tmp_path: Path,
) -> None:
    first = batch(TASK, 4)
    with Folder(tmp_path) as folder:
        folder.append(TASK, 1, rows(first))
    inside = where(tmp_path, TASK, 1)
    # the crash was after the part took its name, and before its rows were deleted
    (inside / "growing-0.rows").write_bytes(b"".join(first))
    (inside / "part-1.unfinished").write_bytes(b"half")
    # and the newest file ends within a report
    (inside / "growing-1.rows").write_bytes(first[0] + b"torn")
    assert len(stored(tmp_path, TASK)) == 5
    with Folder(tmp_path) as folder:
        folder.append(TASK, 1, rows(batch(TASK, 2)))
        assert len(stored(tmp_path, TASK)) == 7
    assert not list(inside.glob("*.unfinished")) and len(stored(tmp_path, TASK)) == 7


@pytest.mark.parametrize("broken", ["write", "fsync"])
def test_a_disk_that_fails_keeps_nothing_of_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    first = batch(TASK, 4)
    with Folder(tmp_path) as folder:
        folder.append(TASK, 1, rows(first))

        def full(*given: object) -> int:
            if broken == "write":
                os.pwrite(given[0], bytes(given[1])[:20], 0)  # type: ignore[arg-type]
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(module.os, broken, full)
            with pytest.raises(StoreFailed, match="No space left"):
                folder.append(TASK, 1, rows(batch(TASK, 3)))
        assert stored(tmp_path, TASK) == first
        folder.append(TASK, 1, rows(batch(TASK, 2)))
    assert len(stored(tmp_path, TASK)) == 6


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The kernel writes no file beyond a size, as on a full disk: a part of a batch is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART", 8)
    first, second = batch(TASK, 7), batch(TASK, 5)
    folder = Folder(tmp_path)
    assert folder.append(TASK, 1, rows(first)) == 7
    with files_of_at_most(10 * SIZE + 3):
        for _ in range(2):
            with pytest.raises(StoreFailed, match="too large"):
                folder.append(TASK, 1, rows(second))
        assert sorted(stored(tmp_path, TASK)) == sorted(first)
        # there is room for these, and none for the part: they wait where they are
        assert folder.append(TASK, 1, rows(second[:2])) == 2
        assert folder.append(TASK, 1, rows(second[:2])) == 0
        folder.close()
        assert sorted(stored(tmp_path, TASK)) == sorted(first + second[:2])
    with Folder(tmp_path) as folder:
        assert folder.append(TASK, 1, rows(first + second)) == 3
    assert sorted(stored(tmp_path, TASK)) == sorted(first + second)
    assert [path.suffix for path in where(tmp_path, TASK, 1).glob("part-*")] == [".parquet"]


def test_one_process_writes(tmp_path: Path) -> None:
    with Folder(tmp_path), pytest.raises(WrongUse, match="Another collector"):
        Folder(tmp_path)
    with pytest.raises(WrongUse, match="cannot be made"):
        Folder("/proc/nowhere/reports")


def test_a_folder_that_holds_makes_a_part_of_a_whole_batch_alone(tmp_path: Path) -> None:
    task = asked(min_batch=5).task
    with Folder(tmp_path, holds=True) as folder:
        folder.append(task, 0, rows(batch(task, 4, period=0)))
        assert folder.complete(task, 0) == []
        folder.append(task, 0, rows(batch(task, 3, period=0)))
        (first,) = folder.complete(task, 0)
        folder.append(task, 0, rows(batch(task, 6, period=0)))
        both = folder.complete(task, 0)
        assert both[0] == first and [len(rows_of_part(part)) for part in both] == [7, 6]
        folder.append(task, 0, rows(batch(task, 2, period=0)))
    assert counted(tmp_path, task, 0) == 15
    # what waits goes on waiting, after parts are gone too
    for part in both:
        part.unlink()
    for count, found in ((2, []), (1, [5])):
        with Folder(tmp_path, holds=True) as folder:
            folder.append(task, 0, rows(batch(task, count, period=0)))
            parts = folder.complete(task, 0)
            assert [len(rows_of_part(part)) for part in parts] == found

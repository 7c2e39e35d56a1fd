# SPDX-License-Identifier: Apache-2.0
"""The shuffler: whole batches in random order, each until it is acknowledged; what it holds is not
what it could read.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from sfumato.collector import Folder, SealedIntake, Shuffler
from sfumato.collector import folder as folders
from sfumato.collector import shuffler as module
from sfumato.errors import InvalidDeclaration
from sfumato.telemetry import Aggregator, ReportTask, opened, sealed, sent_size
from tests.collector.batches import (
    AGGREGATOR,
    NOW,
    asked,
    batch,
    rows,
    sealed_batch,
    sealed_task,
)

SIGNED = sealed_task(min_batch=50)
TASK = SIGNED.task


class Collected:
    """A collector: what it got, request by request; it fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.requests: list[bytes] = []
        self.failures = failures

    def __call__(self, task: str, reports: bytes) -> bool:
        if self.failures:
            self.failures -= 1
            return False
        assert task == TASK.id
        self.requests.append(reports)
        return True

    @property
    def reports(self) -> list[bytes]:
        body, size = b"".join(self.requests), sent_size(TASK)
        return [body[at : at + size] for at in range(0, len(body), size)]


def turned(place: Path, sent: list[bytes], collected: Collected) -> int:
    """Some reports arrive, and the shuffler has one turn."""
    with Folder(place, holds=True) as folder:
        if sent:
            intake = SealedIntake(SIGNED, folder, lambda: NOW, apart=False)
            assert intake.take(b"".join(sent)) == len(sent)
        return Shuffler(folder, [TASK], collected).turn()


def test_fewer_than_the_smallest_batch_are_never_forwarded(tmp_path: Path) -> None:
    sent, collected = sealed_batch(TASK, 120), Collected()
    assert turned(tmp_path, sent[:30], collected) == 0
    assert turned(tmp_path, sent[30:49], collected) == 0
    assert collected.requests == []
    assert turned(tmp_path, sent[49:90], collected) == 90
    assert turned(tmp_path, sent[90:], collected) == 0
    assert sorted(collected.reports) == sorted(sent[:90])


def test_a_shuffler_that_forwards_a_batch_of_one_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(place: Path) -> int:
        return turned(place, sealed_batch(TASK, 1), Collected())

    assert alone(tmp_path / "ours") == 0
    honest = Folder.complete

    def eager(self: Folder, task: ReportTask, period: int) -> list[Path]:
        self._file(task, period).roll()
        return honest(self, task, period)

    monkeypatch.setattr(Folder, "complete", eager)
    assert alone(tmp_path / "mutant") == 1


def is_in_order(sent: list[bytes], found: list[bytes]) -> bool:
    """Whether reports that came one after the other left so more often than 13 times of 119.

    In a random order each pair does with probability 1/120: 14 or more have one below 1e-11.
    """
    places = {each: place for place, each in enumerate(found)}
    steps = pairwise(sent)
    return sum(places[after] == places[before] + 1 for before, after in steps) > 13


def test_a_batch_leaves_in_random_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, collected = sealed_batch(TASK, 120), Collected()
    turned(tmp_path / "mixed", sent, collected)
    assert not is_in_order(sent, collected.reports)
    # a shuffler that keeps the order is noticed
    monkeypatch.setattr(folders, "permutation", lambda count: slice(None))
    kept = Collected()
    turned(tmp_path / "kept", sent, kept)
    assert is_in_order(sent, kept.reports)


def test_a_batch_that_is_not_acknowledged_is_sent_again_as_it_was(tmp_path: Path) -> None:
    sent, collected = sealed_batch(TASK, 110), Collected(failures=1)
    assert turned(tmp_path, sent[:60], collected) == 0
    # what came meanwhile is a batch of its own
    assert turned(tmp_path, sent[60:], collected) == 110
    size = sent_size(TASK)
    assert [len(each) // size for each in collected.requests] == [60, 50]
    assert sorted(collected.reports[:60]) == sorted(sent[:60])
    assert turned(tmp_path, [], collected) == 0


def test_a_batch_of_several_requests_is_sent_again_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sent_size(TASK)
    monkeypatch.setattr(module, "MOST", 25 * size + 3)
    sent, collected = sealed_batch(TASK, 60), Collected()
    answers = iter([True, False, True, True, True])
    honest = collected.__call__

    def send(task: str, reports: bytes) -> bool:
        return next(answers) and honest(task, reports)

    with Folder(tmp_path, holds=True) as folder:
        folder.append(TASK, module.PERIOD, rows(sent))
        shuffler = Shuffler(folder, [TASK], send)
        assert [shuffler.turn(), shuffler.turn(), shuffler.turn()] == [0, 60, 0]
    assert [len(each) // size for each in collected.requests] == [25, 25, 25, 10]
    # the aggregator counts each once
    sums = Aggregator(TASK)
    for reports in opened(TASK, AGGREGATOR, collected.reports):
        sums.add_many(reports)
    assert (sums.reports, sums.duplicates) == (60, 25)


def test_what_was_acknowledged_is_forwarded_after_a_crash(tmp_path: Path) -> None:
    sent, collected = sealed_batch(TASK, 100), Collected()
    dead = Folder(tmp_path, holds=True)
    dead.append(TASK, module.PERIOD, rows(sent[:40]))
    # killed: nothing is closed but the lock
    folders.os.close(dead._lock)
    assert turned(tmp_path, sent[40:], collected) == 100
    assert sorted(collected.reports) == sorted(sent)


def test_a_shuffler_takes_no_task_that_it_could_read(tmp_path: Path) -> None:
    with Folder(tmp_path, holds=True) as folder, pytest.raises(InvalidDeclaration, match="read"):
        Shuffler(folder, [asked().task], Collected())


def test_neither_shuffler_nor_collector_holds_anything_of_a_report(tmp_path: Path) -> None:
    task: ReportTask = TASK
    plain = batch(task, 60)
    collected = Collected()
    turned(tmp_path, [sealed(task, each) for each in plain], collected)
    bodies = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    bodies += collected.requests
    assert not [each for each in plain for body in bodies if each[9:] in body]

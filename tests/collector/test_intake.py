# SPDX-License-Identifier: Apache-2.0
"""What is kept of a batch: reports of the task, of an open period, whole, and once."""

import os
from pathlib import Path

import numpy as np
import pytest

from sfumato.collector import Intake, SealedIntake, intake_of
from sfumato.collector.folder import Folder
from sfumato.collector.store import StoreFailed
from sfumato.telemetry.report import Layout
from tests.collector.batches import (
    NOW,
    PERIOD,
    START,
    asked,
    batch,
    counted,
    intake,
    sealed_batch,
    sealed_task,
    stored,
)

SIGNED = asked()
TASK = SIGNED.task


def taken(place: Path, reports: list[bytes], now: float = NOW) -> int:
    with Folder(place) as folder:
        return intake(folder, SIGNED, now).take(b"".join(reports))


def test_what_was_acknowledged_is_kept_once(tmp_path: Path) -> None:
    reports = batch(TASK, 20)
    with Folder(tmp_path) as folder:
        one = intake(folder, SIGNED)
        assert one.take(b"".join(reports[:12])) == 12
        assert one.take(b"".join(reports)) == 8
        assert one.take(b"".join(reports[:1] * 3)) == 0
    assert counted(tmp_path, TASK) == 20
    # a new process knows the ids from the files
    assert taken(tmp_path, reports) == 0 and counted(tmp_path, TASK) == 20


def test_replayed_reports_of_a_mutant_without_memory_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.collector.folder.Seen.fresh", lambda self, ids: ids == ids)
    reports = batch(TASK, 5)
    with Folder(tmp_path) as folder:
        one = intake(folder, SIGNED)
        one.take(b"".join(reports))
        one.take(b"".join(reports))
    assert len(stored(tmp_path, TASK)) == 10


def test_foreign_forged_and_truncated_reports_are_dropped(tmp_path: Path) -> None:
    other = asked("other").task
    layout = Layout.of(TASK)
    good = batch(TASK, 3)
    bad = [
        *batch(other, 2),
        b"\x02" + good[0][1:],
        layout.report(1, os.urandom(16), b"\xff" * TASK.oracle.size),
    ]
    assert taken(tmp_path, good + bad) == 3
    assert taken(tmp_path, [good[0][:-1]]) == 0
    assert taken(tmp_path, [os.urandom(layout.size * 4)]) == 0
    assert taken(tmp_path, []) == 0
    assert counted(tmp_path, TASK) == 3


def kept_wrong(place: Path) -> list[str]:
    """Which wrong reports a collector keeps."""
    layout = Layout.of(TASK)
    wrong = {
        "foreign": batch(asked("other").task, 1)[0],
        "forged": layout.report(1, os.urandom(16), b"\xff" * TASK.oracle.size),
        "late": batch(TASK, 1, period=0)[0],
        "truncated": batch(TASK, 1)[0][:-1],
    }
    late = START + 2 * PERIOD + 1
    return [name for name, report in wrong.items() if taken(place, [report], late)]


def all_of(*given: object) -> object:
    """The mutant takes every row, or period."""
    return np.ones(len(given[-1]), np.bool_) if isinstance(given[-1], np.ndarray) else True


@pytest.mark.parametrize(
    ("place", "name", "noticed"),
    [
        (Layout, "are_ours", "foreign"),
        (type(TASK.oracle), "valid", "forged"),
        (Intake, "_is_open", "late"),
    ],
)
def test_a_collector_that_does_not_look_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: type, name: str, noticed: str
) -> None:
    assert kept_wrong(tmp_path) == []
    monkeypatch.setattr(place, name, all_of)
    assert kept_wrong(tmp_path) == [noticed]


@pytest.mark.parametrize(
    ("period", "now", "kept"),
    [
        (1, START + PERIOD, 1),
        (1, START + PERIOD - 3600, 1),
        (1, START + PERIOD - 3601, 0),
        (1, START + 3 * PERIOD - 1, 1),
        (1, START + 3 * PERIOD, 0),
        (4, START + 4 * PERIOD, 0),
        (2**32 - 1, START + PERIOD, 0),
        (3, TASK.expires, 0),
    ],
)
def test_only_open_periods_are_taken(tmp_path: Path, period: int, now: float, kept: int) -> None:
    assert taken(tmp_path, batch(TASK, 1, period=period), now) == kept


def test_reports_that_could_not_be_stored_may_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = batch(TASK, 4)
    with Folder(tmp_path) as folder:
        one = intake(folder, SIGNED)
        assert one.take(b"".join(reports[:2])) == 2
        honest = Folder.append

        def failing(self: Folder, *given: object) -> None:
            raise StoreFailed("The store of reports failed.")

        monkeypatch.setattr(Folder, "append", failing)
        with pytest.raises(StoreFailed):
            one.take(b"".join(reports))
        monkeypatch.setattr(Folder, "append", honest)
        assert one.take(b"".join(reports)) == 2
    assert counted(tmp_path, TASK) == 4


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        (START - 3601, 0), (START - 3600, 3), (START + 4 * PERIOD, 3),
        (START + 5 * PERIOD - 1, 3), (START + 5 * PERIOD, 0),
    ],
)  # fmt: skip
def test_sealed_reports_are_taken_by_their_size_until_a_period_after_the_end(
    tmp_path: Path, now: float, kept: int
) -> None:
    signed = sealed_task()
    sent = b"".join(sealed_batch(signed.task, 3))
    with Folder(tmp_path) as folder:
        taken = intake_of(signed, folder, lambda: now)
        assert isinstance(taken, SealedIntake)
        assert [taken.take(sent), taken.take(sent[:-1]), taken.take(b"")] == [kept, 0, 0]
    assert sum(len(stored(tmp_path, signed.task, period)) for period in range(4)) == kept


def test_a_task_that_is_not_sealed_has_an_intake_that_looks(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        assert isinstance(intake_of(asked(), folder, lambda: NOW), Intake)

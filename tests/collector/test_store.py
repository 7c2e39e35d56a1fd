# SPDX-License-Identifier: Apache-2.0
"""What both stores have in common: a report is kept once, and closing a period loses nothing."""

from pathlib import Path

import pytest

from sfumato.collector import open_store, stored_reports
from tests.collector.batches import asked, batch, rows

TASK = asked().task


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("database"))
    return str(tmp_path / "reports")


def found(place: str, period: int) -> list[bytes]:
    parts = stored_reports(place, TASK, period)
    return sorted(each for part in parts for each in part.to_pylist())


def test_reports_are_kept_once_through_the_end_of_a_period_and_of_the_store(place: str) -> None:
    first, second = batch(TASK, 5), batch(TASK, 3)
    store = open_store(place)
    assert store.append(TASK, 1, rows(first[:3])) == 3
    assert store.append(TASK, 1, rows(first)) == 2
    assert found(place, 1) == sorted(first)
    store.finish(TASK, 1)
    assert found(place, 1) == sorted(first)
    # a clock that goes back
    assert store.append(TASK, 1, rows(first + second)) == 3
    assert store.append(TASK, 2, rows(first)) == 5
    store.finish(TASK, 3)
    store.close()
    assert found(place, 1) == sorted(first + second) and found(place, 2) == sorted(first)
    again = open_store(place)
    assert again.append(TASK, 1, rows(second)) == 0
    again.close()

# SPDX-License-Identifier: Apache-2.0
"""Trainings that are killed at every point, two times over, and on a full disk."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.contracts.crashes import program
from tests.contracts.training_kills import CHECKPOINTS, EVENTS, SIZES, spread, wrong

ROUNDS = 200


def killed(
    folder: Path, rounds: list[list[int]], mutant: str = "", *, full: bool = False
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = program(
        "training_kills", folder=str(folder), rounds=rounds, mutant=mutant, full=full
    )
    return found


def test_a_training_killed_at_every_point_releases_no_step_twice_and_none_unpaid(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    rounds = spread(ROUNDS)
    assert [[event] for event in range(1, EVENTS + 1)] == rounds[1 : EVENTS + 1]
    found = killed(tmp_path, rounds)
    whole = found[0]
    # undisturbed, every step is drawn: the events of all other rounds are counted on it
    assert Counter(whole["drawn"][0]) == dict(zip(range(1, CHECKPOINTS + 1), SIZES, strict=True))
    assert [each for each in found if wrong(each, whole["left"])] == []
    later = sum(bool(each["drawn"][0] and any(each["drawn"][1:])) for each in found)
    assert later > ROUNDS / 3
    report(f"trainings: {len(found)} rounds of kills, {later} gone on with, all sound")


def test_a_training_that_draws_a_lost_piece_again_is_caught(tmp_path: Path) -> None:
    whole, *found = killed(tmp_path, spread(EVENTS), "draws again")
    assert wrong(whole, whole["left"]) == []
    assert any("two workers" in " ".join(wrong(each, whole["left"])) for each in found)


def test_a_full_disk_at_a_checkpoint_is_a_crash_inside_that_piece(tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    (whole,) = killed(tmp_path / "sound", [[]])
    (found,) = killed(tmp_path, [[10**6]], full=True)
    assert wrong(found, whole["left"]) == []
    # the second worker has a disk: it goes on after the piece that was lost
    assert found["drawn"] == [[1, 1, 1, 2, 2], [3, 3, 4, 4]]
    assert found["stored"] == [1, 3, 4]

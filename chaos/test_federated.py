# SPDX-License-Identifier: Apache-2.0
"""A site of a study that is killed at every step of its ledger, message and exchange."""

from collections.abc import Callable
from pathlib import Path

from tests.contracts.federation_kills import EVENTS, killed_round

ROUNDS = 200


def test_a_killed_site_leaves_nothing_unpaid_nothing_twice_and_one_answer(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    found = []
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(killed_round(folder, 1 + number % EVENTS))
    assert [each for each in found if each["wrong"]] == []
    later = sum(each["tries"] > 2 for each in found)
    assert later > ROUNDS / 4
    report(f"studies: {len(found)} kills of a site, {later} runs gone on with, all sound")

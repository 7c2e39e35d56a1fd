# SPDX-License-Identifier: Apache-2.0
"""A site or the coordinator of a study that is killed at every step of its ledger, message, exchange
and file.
"""

from collections.abc import Callable
from pathlib import Path

from tests.contracts.federation_kills import (
    COORDINATOR,
    EVENTS,
    PAID,
    PAID_STEPS,
    killed_round,
    wrong_shares,
)

ROUNDS = 200


def test_a_killed_party_leaves_nothing_unpaid_nothing_twice_and_one_answer(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    points = [
        (party, question, event)
        for (party, question), events in EVENTS.items()
        for event in range(1, events + 1)
    ]
    site = [point for point in points if point[0] != COORDINATOR]
    others = points[len(site) :]
    # every event of the site, and events of the coordinator from beginning to end
    left = ROUNDS - len(site)
    chosen = site + [others[place * len(others) // left] for place in range(left)]
    rounds = []
    for number, point in enumerate(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        rounds.append(killed_round(folder, *point))
    assert [each for each in rounds if each["wrong"]] == []
    deaths = sum(each["deaths"] for each in rounds)
    assert deaths > ROUNDS / 2
    places = {(each["party"], each["at"]) for each in rounds if each["deaths"]}
    report(
        f"studies: {deaths} kills of a site or the coordinator at {len(places)} points, all sound"
    )


def test_a_second_draw_and_a_share_that_was_not_paid_are_seen() -> None:
    two = {("run", "1"): {"share", "another"}}
    assert wrong_shares("query", two, PAID) == ["step 1 drawn twice"]
    runs = {("run", "1"): {"share"}, ("again", "1"): {"share"}}
    assert wrong_shares("query", runs, 2 * PAID) == []
    assert wrong_shares("query", runs, PAID) == [f"2 runs for a charge of {PAID}"]
    steps = {("run", str(place)): {"share"} for place in range(PAID_STEPS)}
    assert wrong_shares("model", steps, PAID) == []
    assert wrong_shares("model", steps, 0) == ["a model for 0"]
    assert wrong_shares("model", steps | runs, PAID) != []

# SPDX-License-Identifier: Apache-2.0
"""What is opened: read once, for one plan, and kept to itself."""

import copy
import pickle

import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.query.statistic import BoundedStatistic, Opened
from tests.contracts.tasks import plan_of

EXACT = ({(0,): (8_675_309,), (1,): (1,)},)


def test_only_the_plan_that_was_opened_is_read() -> None:
    plan, reads = plan_of(), []
    opened = Opened(plan, lambda: reads.append(1) or EXACT)
    with pytest.raises(InvalidDeclaration):
        opened.integers(plan_of("SELECT sex, SUM(age) AS n FROM people GROUP BY sex"))
    assert reads == []
    assert opened.integers(plan) is opened.integers(plan_of()) is EXACT
    assert reads == [1]


def test_what_is_opened_shows_and_hands_on_nothing() -> None:
    opened = Opened(plan_of(), lambda: EXACT)
    opened.integers(plan_of())
    assert "8675309" not in repr(opened)
    for hand_on in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            hand_on(opened)


def test_a_statistic_says_its_distance_and_its_integers() -> None:
    class Silent(BoundedStatistic[list[int]]):
        def exact(self, opened: Opened) -> list[int]:
            return []

    with pytest.raises(TypeError):
        Silent()

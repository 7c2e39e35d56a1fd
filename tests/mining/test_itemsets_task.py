# SPDX-License-Identifier: Apache-2.0
"""The task of itemsets: candidates from released numbers, bounds stated before anything is read."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.accounting.account import account
from sfumato.mining.baskets import BasketCounts
from sfumato.mining.itemsets_task import ItemsetsTask, _joined
from sfumato.mining.recipe import Asked
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import row_list


class Scripted:
    """A curator that releases made-up numbers, and remembers what was asked."""

    charge = "0" * 32

    def __init__(self, items: dict[Any, int]) -> None:
        self.items = items
        self.asked: list[Any] = []

    def threshold(self, counted: Any, mechanism: Any) -> dict[Any, int]:
        return self.items

    def measure(self, statistic: Any, mechanism: Any) -> Any:
        self.asked.append(statistic)
        if isinstance(statistic, BasketCounts):
            return np.arange(len(statistic.candidates)) + 50
        return np.full(len(statistic.keys), 100)


def task(session: sf.Session, recipe: mn.Itemsets) -> ItemsetsTask:
    plan = compile_rows(row_list("SELECT note FROM notes", session.dataset), session.dataset)
    return recipe.planned(plan, Asked(None, 1, "1e-6"))


ITEMS = {(0, word): n for word, n in zip("abcdef", (90, 80, 70, 60, 50, 1), strict=True)}


def test_candidates_come_from_released_numbers_alone(session: sf.Session) -> None:
    curator = Scripted(ITEMS)
    body = task(session, mn.Itemsets(size=3)).run(curator)  # type: ignore[arg-type]
    _, pairs, threes = curator.asked
    # f is below the support of 2 of 100 people
    assert [key[1] for key in pairs.items] == list("abcde") and len(pairs.candidates) == 10
    assert len(threes.candidates) == 10
    assert json.loads(body)["levels"][1]["n"] == list(range(50, 60))


def test_candidates_from_exact_supports_are_noticed(
    session: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same released numbers the same sets are counted, whoever else is in the data."""

    def counted_sets(people: list[set[str]]) -> set[Any]:
        exact: list[set[str]] = people

        def by_exact(self: Any, frequent: Any, counted: Any, size: int) -> Any:
            words = [str(key[1]) for key in frequent]
            every = combinations(range(len(words)), size)
            return [each for each in every if any({words[i] for i in each} <= p for p in exact)]

        with monkeypatch.context() as patch:
            if people:
                patch.setattr(ItemsetsTask, "_candidates", by_exact)
            curator = Scripted(ITEMS)
            task(session, mn.Itemsets(size=2)).run(curator)  # type: ignore[arg-type]
        return {tuple(item[1] for item in curator.asked[1].items)}

    assert counted_sets([]) == {tuple("abcde")}
    assert counted_sets([set("abc")]) != counted_sets([set("abc"), set("de")])


def test_few_candidates_are_those_whose_rarest_part_is_most_frequent(session: sf.Session) -> None:
    curator = Scripted(ITEMS)
    narrow = task(session, mn.Itemsets(size=2, keep=10, width=3))
    narrow.run(curator)  # type: ignore[arg-type]
    (_, pairs) = curator.asked
    named = {"".join(str(pairs.items[item][1]) for item in each) for each in pairs.candidates}
    assert named == {"ab", "ac", "bc"} and pairs.most == 3


def test_the_event_states_the_bounds_of_every_candidate_set(session: sf.Session) -> None:
    planned = task(session, mn.Itemsets(size=4, keep=12))
    whole = account(planned.event)
    assert 0.99 < whole.rho <= 1 and 0.5e-6 < whole.delta <= 1e-6
    curator = Scripted(ITEMS)
    planned.run(curator)  # type: ignore[arg-type]
    for statistic in curator.asked[1:]:
        mechanism = planned.noise(statistic.size)
        event = mechanism.event(statistic.distance(mechanism.norm))
        assert event in planned.event.events  # type: ignore[union-attr]


@pytest.mark.parametrize("items", [{}, {(0, "a"): 90}])
def test_nothing_frequent_is_no_failure(session: sf.Session, items: dict[Any, int]) -> None:
    body = task(session, mn.Itemsets()).run(Scripted(items))  # type: ignore[arg-type]
    assert [len(level["n"]) for level in json.loads(body)["levels"]] == [len(items), 0, 0, 0]


def test_sets_are_joined_from_those_with_one_beginning() -> None:
    assert list(_joined([(0, 1), (0, 2), (1, 2), (1, 3)])) == [(0, 1, 2), (1, 2, 3)]

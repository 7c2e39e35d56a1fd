# SPDX-License-Identifier: Apache-2.0
"""A ledger of an earlier version is opened: every question asked again is recalled for nothing."""

import json
from typing import Any

import pytest

from sfumato import synthetic as sy
from sfumato.plan.show import form
from sfumato.plan.stored import restore_output
from tests.stored import numbers, parts, questions
from tests.stored.world import World

EVERY = [(dataset, name) for dataset, every in questions.QUESTIONS.items() for name in every]


def pinned(dataset: str, name: str) -> Any:
    """What was stored of a question."""
    return parts.read(f"forms/{dataset}.json")[name]


@pytest.mark.parametrize(("dataset", "name"), EVERY)
def test_a_question_of_before_is_recalled(stored_world: World, dataset: str, name: str) -> None:
    again = stored_world.asked(dataset, name)
    assert again.before == again.after
    assert again.stored.to_json() == pinned(dataset, name)


def test_every_question_is_pinned() -> None:
    for dataset, every in questions.QUESTIONS.items():
        assert list(parts.read(f"forms/{dataset}.json")) == list(every)


def test_a_question_that_was_not_asked_is_charged(stored_world: World) -> None:
    """So that what is unchanged above is not what no question changes."""
    session = stored_world.session("auto")
    before = stored_world.taken("auto")
    session.query("SELECT COUNT(*) FROM t WHERE b > 1", epsilon=1)
    assert stored_world.taken("auto") != before


@pytest.mark.parametrize("name", ["stream", "stream of some rows", "stream with square roots"])
def test_a_series_of_before_goes_on(stored_world: World, name: str) -> None:
    assert len(stored_world.asked("room", name).answer.ends) == 1
    before = stored_world.taken("room")
    ask = questions.QUESTIONS["room"][name]
    stream = ask(stored_world.session("room"), days=["2026-11-15", "2026-11-20"])
    assert len(stream.ends) == 2
    assert stored_world.taken("room") == before


def test_a_fit_of_before_goes_on_where_it_was_interrupted(stored_world: World) -> None:
    again = stored_world.asked("room", questions.INTERRUPTED)
    assert stored_world.pieces == [2, 3]
    assert again.before == again.after


@pytest.mark.parametrize("name", numbers.COUNTS)
def test_a_synthetic_fit_of_before_gives_equal_numbers(stored_world: World, name: str) -> None:
    dataset, *_ = numbers.COUNTS[name]
    model = stored_world.asked(dataset, name).answer
    loaded = sy.load(stored_world.session(dataset), model.charge_id)
    assert numbers.of_fit(name, loaded) == parts.read("numbers.json")[name]


@pytest.mark.parametrize("dataset", questions.QUESTIONS)
def test_the_output_of_a_stored_answer_is_read_back(dataset: str) -> None:
    for stored in parts.read(f"forms/{dataset}.json").values():
        for place, text in stored["texts"].items():
            if place.startswith("output"):
                assert form(restore_output(json.loads(text))) == text

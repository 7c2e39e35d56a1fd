# SPDX-License-Identifier: Apache-2.0
"""A question has one answer: the first one in the coordinator's order, by a site of its run."""

from base64 import b64encode

import pytest

from sfumato.federated.answers import Answered, Answers, question_of
from sfumato.federated.messages import ANALYST, Message
from sfumato.federated.study import Study
from tests.contracts.federation import NAMES, write_study
from tests.contracts.federation_world import Life, study_of

FOUR = (*NAMES, "westend")
QUESTION = "f e"


def proposed(run, form="f", sites=NAMES):
    return Message("proposed", run, ANALYST, {"form": form, "event": "e", "sites": list(sites)})


def answered(run, author, body):
    return Message("answered", run, author, {"answer": b64encode(body).decode()})


def test_a_question_has_one_answer():
    answers = Answers()
    for message in (
        answered("1", "anne", b"before its proposal"),
        proposed("1"),
        proposed("2"),
        proposed("3", form="another"),
        Message("answered", "2", "anne", {"answer": "no base64"}),
        Message("answered", "2", "anne", {}),
        answered("2", "westend", b"of no site of the run"),
        answered("3", "anne", b"to another question"),
        answered("2", "northgate", b"first"),
        answered("1", "anne", b"second"),
    ):
        answers.hear(message)
    assert answers.to(QUESTION) == Answered("2", b"first")
    assert answers.to("another e") == Answered("3", b"to another question")
    assert answers.to("g e") is None
    assert question_of(proposed("1").body) == QUESTION


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, FOUR, more="least = 3")
    return study_of(folder)


def asked_by_all(world, declared, keys):
    """The answers of a question to three of four sites, and to all of them by another analyst."""
    first = world.ask()
    # these are busy, so that the first site is the first to answer
    for name in FOUR[1:]:
        world.books[name].state = "executing"
    world.begin("anne")
    world.analyst = Study(declared, keys["analyst"])
    return first, world.ask()


def away_with_an_answer(folder, four, patch):
    """A world whose first site has stored an answer, and is away; the others have lost it."""
    world = Life(patch, *four, folder, away_at_first="anne")
    world.books["anne"].store(7)
    return world


def test_a_stored_answer_that_comes_late_is_no_second_one(four, tmp_path, monkeypatch):
    world = away_with_an_answer(tmp_path, four, monkeypatch)
    first, second = asked_by_all(world, *four)
    assert first == second == 1110
    assert [book.paid for book in world.books.values()] == [1, 1, 1, 1]
    world.stop()


def test_without_the_first_answer_there_are_two(four, tmp_path, monkeypatch):
    """The mutant: an answer is one to its own run alone."""

    def hear(self, message):
        if message.kind == "proposed":
            self._first.clear()
        honest(self, message)

    honest = Answers.hear
    monkeypatch.setattr(Answers, "hear", hear)
    read = Study._new_messages
    monkeypatch.setattr(Study, "_new_messages", lambda own, wait: read(own, wait) if wait else [])
    world = away_with_an_answer(tmp_path, four, monkeypatch)
    assert asked_by_all(world, *four) == (1110, 7)
    world.stop()


def test_who_has_lost_an_answer_takes_that_of_the_others_free(four, tmp_path, monkeypatch):
    world = Life(monkeypatch, *four, tmp_path)
    for name in FOUR[1:]:
        world.books[name].loses = True
    assert world.ask() == 1111
    paid = [book.paid for book in world.books.values()]
    for name in FOUR[1:]:
        world.books[name].loses = False
    # an analyst who reads nothing before he asks
    monkeypatch.setattr(
        Study, "_new_messages", lambda own, wait, read=Study._new_messages: read(own, wait or 1)
    )
    world.analyst = Study(four[0], four[1]["analyst"])
    assert world.ask() == 1111
    assert [book.paid for book in world.books.values()] == paid == [1, 1, 1, 1]
    world.stop()

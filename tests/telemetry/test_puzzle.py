# SPDX-License-Identifier: Apache-2.0
"""Fragments are joined to the texts that devices hold, and to no others."""

import numpy as np
import pytest

from sfumato.errors import InvalidDeclaration, TooFewReports, WrongUse
from sfumato.telemetry import Aggregator, Words, puzzle, report_task, simulate
from sfumato.telemetry.oracles import fragments, prefixes, sketch
from sfumato.telemetry.oracles.fragments import FragmentsOracle
from sfumato.testing import Replay

WORDS = Words("covfeytriz", 5)
HELD = {"covfe": 60_000, "yeet": 40_000, "rizz": 30_000, "": 20_000, "fever": 9000}
# sketches that are fast to search
PARTS = (sketch(3, rows=64, buckets=256), sketch(2, rows=64, buckets=256))
SMALL = FragmentsOracle(11, 5, 2, PARTS)


def task(words, oracle):
    return report_task("words", "Which words are new?", words, oracle=oracle, start=0, periods=1)


def test_texts_that_nobody_listed_are_joined():
    sums = simulate(task(WORDS, SMALL), HELD, entropy=Replay(6))
    found = sums.discover(kept=8)
    assert found.reports == sums.reports == sum(HELD.values())
    assert list(found.values[:4]) == found.found("0.999999")[:4] == ["covfe", "yeet", "rizz", ""]
    assert set(found.found("0.999999")) <= set(HELD)
    assert len(found.values) == len(set(found.values))
    for place, text in enumerate(found.values[:4]):
        assert abs(found.estimate[place] - HELD[text]) < 6 * found.standard_error[place]


def sure_places(texts):
    """For each place the marked fragments of texts, all with estimates by their order."""
    numbers = [WORDS.number(text) for text in texts]
    places = []
    for place in range(SMALL.places):
        marked = {SMALL.marked(SMALL.piece(n), SMALL.fragment(n, place)): n for n in numbers}
        least = [float(len(numbers) - numbers.index(n)) for n in marked.values()]
        places.append(puzzle._Joined(np.array(list(marked), np.uint64), np.array(least)))
    return places


def joined_by(places):
    parts = [puzzle._texts(SMALL, places, piece) for piece in range(256)]
    return {WORDS.text(number) for part in parts for number in part.numbers.tolist()}


def test_a_piece_joins_its_own_fragments_alone():
    # texts that share fragments: only pieces say which belong together
    texts = ["covfe", "coeet", "yevfe", "yeet", "co", ""]
    assert joined_by(sure_places(texts)) == set(texts)


def test_without_pieces_false_texts_are_joined(monkeypatch):
    monkeypatch.setattr(FragmentsOracle, "piece", lambda self, value: 7)
    monkeypatch.setattr(
        FragmentsOracle, "pieces_of", lambda self, values: np.full(len(values), 7, np.uint64)
    )
    found = joined_by(sure_places(["covfe", "coeet", "yevfe", "yeet"]))
    assert {"yevfe", "coeetfe"} & found and len(found) > 4


def test_where_a_place_has_no_fragment_nothing_is_joined():
    sums = simulate(task(WORDS, SMALL), {"covfe": 3000}, entropy=Replay(8))
    found = sums.discover(kept=1)
    # four fragments a place: those of the text, and lies of other pieces
    assert found.values == ("covfe",)


def test_texts_that_are_joined_are_at_most_so_many(monkeypatch):
    monkeypatch.setattr(puzzle, "_MOST_JOINED", 2)
    sums = simulate(task(WORDS, SMALL), HELD, entropy=Replay(6))
    assert sums.discover(kept=8).values == ("covfe", "yeet")


def test_the_task_its_oracle_and_its_questions_fit():
    for domain, oracle in (
        (WORDS, fragments(12, 5, 1)),
        (WORDS, fragments(11, 4, 1)),
        (["a"], fragments(11, 5, 1)),
    ):
        with pytest.raises(InvalidDeclaration):
            task(domain, oracle)
    made = task(WORDS, SMALL)
    with pytest.raises(TooFewReports):
        Aggregator(made, period=0).discover()
    sums = simulate(made, {"covfe": 2000})
    for ask in (sums.estimate, sums.mean, lambda: sums.texts(["covfe"])):
        with pytest.raises(WrongUse, match="discover"):
            ask()
    for kept in (0, True, 2.0, 1 << 20):
        with pytest.raises(WrongUse, match="kept"):
            sums.discover(kept=kept)
    assert Aggregator.from_bytes(sums.to_bytes()).reports == 2000
    assert (
        task(WORDS, prefixes(11, 5, 1)).life_epsilon < task(WORDS, fragments(11, 5, 2)).life_epsilon
    )

# SPDX-License-Identifier: Apache-2.0
"""Texts that nobody listed: found where devices hold them, and honest about their error."""

import numpy as np
import pytest

from sfumato.errors import InvalidDeclaration, TooFewReports, UnknownName, WrongUse
from sfumato.telemetry import Aggregator, Texts, report_task, simulate
from sfumato.telemetry.oracles import category, rappor
from sfumato.testing import Replay

WORDS = [f"word {number}" for number in range(20)]
ABSENT = [f"absent {number}" for number in range(20)]


def task(oracle=None, **fields):
    usual = {"oracle": oracle or rappor(), "start": 0, "periods": 2, "memory": 1}
    return report_task("words", "Which words are new?", Texts(), **(usual | fields))


def test_estimates_are_unbiased_and_their_errors_are_the_stated_ones():
    counts = {word: 4000 - 200 * place for place, word in enumerate(WORDS)}
    true = np.array([*counts.values(), *[0] * 20])
    scores = []
    for seed in range(30):
        sums = simulate(task(), counts, entropy=Replay(seed))
        found = sums.texts([*WORDS, *ABSENT])
        scores.append((found.estimate - true) / found.standard_error)
    scores = np.array(scores)
    assert abs(scores.mean()) < 6.2 / 30**0.5 and 0.85 < scores.std() < 1.15


def test_frequent_words_are_found_and_absent_ones_are_not():
    counts = {word: 100_000 // (place + 1) for place, word in enumerate(WORDS)}
    found = simulate(task(), counts, entropy=Replay(1)).texts([*WORDS, *ABSENT])
    listed = found.found("0.999")
    assert set(WORDS[:6]) <= set(listed) <= set(WORDS)
    row = found.to_dicts()[0]
    assert found.to_dicts() == found.to_arrow().to_pylist()
    assert row["value"] == "word 0" and row["low"] < 100_000 < row["high"] and row["p_value"] < 1e-9


def test_what_no_candidate_explains_does_not_look_like_one():
    others = {f"rare {number}": 10 for number in range(5000)}
    found = simulate(task(), {"word 0": 30_000} | others, entropy=Replay(3)).texts(
        [*WORDS, *ABSENT]
    )
    assert found.found("0.999") == ["word 0"]


def test_texts_are_compared_in_one_unicode_form():
    texts = Texts()
    assert texts.number("caf\u00e9") == texts.number("cafe\u0301") != texts.number("cafe")
    assert texts.number(None) == texts.number(7) == texts.number("")
    assert 0 <= texts.number("\ud800") < 1 << 64
    with pytest.raises(UnknownName):
        texts.known(7)


def test_candidates_are_fewer_than_bits_and_each_comes_once():
    sums = simulate(task(rappor(bits=8, cohorts=4)), {"a": 2000})
    for wrong in ([str(number) for number in range(32)], ["a", "a"]):
        with pytest.raises(WrongUse, match="candidate"):
            sums.texts(wrong)
    assert len(sums.texts(["a"]).estimate) == 1


def test_the_task_and_its_oracle_fit():
    for wrong in (
        lambda: task(memory=0),
        lambda: task(category(3, 1)),
        lambda: report_task("t", "?", ["a"], oracle=rappor(), start=0, periods=1, memory=1),
        lambda: report_task("t", "?", Texts(), epsilon=1, start=0, periods=1, memory=1),
    ):
        with pytest.raises(InvalidDeclaration):
            wrong()
    made = task()
    assert made.first_epsilon < made.life_epsilon / 2
    with pytest.raises(TooFewReports):
        Aggregator(made, period=0).texts(["a"])
    with pytest.raises(WrongUse, match="whose oracle is"):
        simulate(made, {"a": 2000}).estimate()
    with pytest.raises(WrongUse, match="by value"):
        simulate(made, [3])

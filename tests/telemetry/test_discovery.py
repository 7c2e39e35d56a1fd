# SPDX-License-Identifier: Apache-2.0
"""Texts of sketches: unbiased, with honest errors; texts of which nobody had a list are found."""

import itertools

import numpy as np
import pytest

from sfumato.errors import InvalidDeclaration, TooFewReports, UnknownName, WrongUse
from sfumato.telemetry import Aggregator, Texts, Words, report_task, simulate
from sfumato.telemetry.discovery import SketchSums, _continued
from sfumato.telemetry.oracles import count_mean, hadamard_count_mean, prefixes, sketch
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.testing import Replay

COUNTS = {f"word {place}": 4000 // (place + 1) for place in range(20)}
ABSENT = [f"absent {place}" for place in range(20)]


def task(domain, oracle, **fields):
    usual = {"oracle": oracle, "start": 0, "periods": 1}
    return report_task("words", "Which words are new?", domain, **(usual | fields))


def small(symbols, length, step):
    """Prefixes whose sketches are fast to search."""
    parts = (sketch(4, rows=64, buckets=256),) * (-(-length // step) + 1)
    return PrefixesOracle(symbols, length, step, parts)


def scores(oracle, runs, sums_of=SketchSums):
    """The errors of estimates over many draws, each over its standard error."""
    texts = Texts()
    names = [*COUNTS, *ABSENT]
    true = np.array([COUNTS.get(name, 0) for name in names])
    numbers = np.array([texts.number(name) for name in names], np.uint64)
    held = np.repeat(numbers[: len(COUNTS)], list(COUNTS.values()))
    found = []
    for seed in range(runs):
        tally = oracle.tally(oracle.encode_many(held, Replay(seed)))
        estimate, error = sums_of(oracle, tally).estimates(numbers)
        found.append((estimate - true) / error)
    return np.array(found)


# the words come from Replay: these figures are the same in each run
@pytest.mark.parametrize("make", [sketch, count_mean, hadamard_count_mean])
def test_estimates_of_a_sketch_are_unbiased_over_its_rows(make):
    found = scores(make(2, rows=64, buckets=64), 8)
    assert abs(found.mean()) < 0.25
    assert 0.8 < found.std() < 1.2


class WithoutCollisions(SketchSums):
    """The error of the coins alone."""

    def _same_text(self, per_row, buckets):
        return 0.0


def test_the_error_of_a_sketch_includes_its_collisions():
    oracle = sketch(6, rows=8, buckets=16)
    assert 0.6 < scores(oracle, 8).std() < 1.4
    assert scores(oracle, 8, WithoutCollisions).std() > 1.5


def test_candidates_are_found_and_absent_ones_are_not():
    counts = {name: 10 * count for name, count in COUNTS.items()}
    sums = simulate(task(Texts(), sketch(4)), counts, entropy=Replay(5))
    found = sums.texts([*COUNTS, *ABSENT]).found("0.999")
    assert set(list(COUNTS)[:6]) <= set(found) <= set(COUNTS)
    for wrong in ([], ["a", "a"]):
        with pytest.raises(WrongUse, match="candidate"):
            sums.texts(wrong)


def test_texts_that_nobody_listed_are_found():
    words = Words("covfeytriz", 6)
    held = {"covfef": 60_000, "yeet": 40_000, "rizz": 30_000, "": 20_000, "yeetye": 9000}
    sums = simulate(task(words, small(11, 6, 2)), held, entropy=Replay(6))
    found = sums.discover(kept=8)
    assert found.found("0.999999")[:4] == ["covfef", "yeet", "rizz", ""]
    assert set(found.found("0.999999")) <= set(held)
    assert len(found.values) == len(set(found.values)) == 8
    for place, text in enumerate(found.values[:4]):
        assert abs(found.estimate[place] - held[text]) < 6 * found.standard_error[place]
    assert sums.discover(kept=1).values == ("covfef",)


def test_devices_without_texts_give_no_text_that_is_significant():
    sums = simulate(task(Words("ab", 3), small(3, 3, 3)), {"": 3000}, entropy=Replay(7))
    assert sums.discover(kept=1).values == ("",)
    assert sums.discover().found("0.999999") == [""]


@pytest.mark.parametrize("done", [0, 1])
def test_prefixes_go_on_with_every_text_and_no_letter_after_the_end(done):
    starts = [0] if done == 0 else [0, 1, 2]
    found = _continued(np.array(starts, np.uint64), 3, 2, done).tolist()
    wanted = []
    for digits in itertools.product(range(3), repeat=done + 2):
        spelled = "".join(map(str, digits)).rstrip("0")
        if "0" not in spelled:
            wanted.append(int("".join(map(str, digits)), 3))
    assert sorted(found) == wanted


def test_the_empty_text_that_is_alone_does_not_go_on():
    assert _continued(np.zeros(1, np.uint64), 3, 1, 2).tolist() == [0]


def test_the_number_of_kept_prefixes_is_a_number():
    sums = simulate(task(Words("ab", 3), prefixes(3, 3, 4)), {"ab": 2000})
    for kept in (0, -1, True, 2.0, 1 << 20, None):
        with pytest.raises(WrongUse, match="kept"):
            sums.discover(kept=kept)


def test_the_task_its_oracle_and_its_questions_fit():
    words = Words("ab", 3)
    for domain, oracle in (
        (words, sketch(1)),
        (Texts(), prefixes(3, 3, 1)),
        (["a"], sketch(1)),
        (["a"], prefixes(3, 3, 1)),
        (words, prefixes(3, 4, 1)),
        (words, prefixes(4, 3, 1)),
    ):
        with pytest.raises(InvalidDeclaration):
            task(domain, oracle)
    with pytest.raises(InvalidDeclaration):
        report_task("t", "?", words, epsilon=1, start=0, periods=1)
    made = task(words, prefixes(3, 3, 1))
    with pytest.raises(TooFewReports):
        Aggregator(made, period=0).discover()
    sums = simulate(made, {"ab": 2000})
    for ask in (sums.estimate, sums.mean, lambda: sums.texts(["ab"])):
        with pytest.raises(WrongUse):
            ask()
    with pytest.raises(WrongUse, match="discover"):
        simulate(task(Texts(), sketch(1)), {"a": 2000}).discover()
    with pytest.raises(UnknownName):
        simulate(made, {"abc": 2000})

# SPDX-License-Identifier: Apache-2.0
"""Sketches: all reports of small ones in exact fractions, the collisions, and the fast form."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration
from sfumato.telemetry.oracles import (
    bit,
    category,
    count_mean,
    hadamard_count_mean,
    hashed,
    projective,
    sketch,
)
from sfumato.telemetry.oracles.category import CategoryOracle
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.sketch import SketchOracle
from sfumato.telemetry.oracles.unary import UnaryOracle
from sfumato.testing import Replay, assert_counts_follow
from tests.contracts.oracles import dearest, steps, supports
from tests.telemetry.oracles import test_bit as bit_law
from tests.telemetry.oracles import test_unary as unary_law

WHOLE = 1 << 64
TEXTS = [0, 1, 5, 1 << 32, (1 << 63) + 12345, WHOLE - 1]


def law(oracle, value):
    """The exact probability of each report, of a part that draws one word."""
    found = {}
    rows = steps(lambda word: oracle.encode(0, [word, 0])[:2])
    for row, words in rows.items():
        top = -(-WHOLE * int.from_bytes(row, "big") // oracle.rows)
        inner = steps(lambda word, top=top: oracle.encode(value, [top, word]))
        for report, counts in inner.items():
            assert report[:2] == row
            found[report] = Fraction(words * counts, WHOLE**2)
    return found


@pytest.mark.parametrize("part", [category(4, 1), projective(4, 1)], ids=lambda part: part.kind)
def test_a_row_is_drawn_without_the_value(part):
    oracle = SketchOracle(3, part)
    laws = [law(oracle, value) for value in TEXTS]
    assert all(sum(each.values()) == 1 for each in laws)
    assert dearest(laws) == oracle.event.odds == part.event.odds
    for row in range(3):
        first, last = -(-WHOLE * row // 3), -(-WHOLE * (row + 1) // 3)
        for each in laws:
            share = sum(chance for report, chance in each.items() if report[1] == row)
            assert share == Fraction(last - first, WHOLE)


class RowOfTheText(SketchOracle):
    """Draws the row by the text."""

    __slots__ = ()

    def encode(self, value, words):
        return SketchOracle.encode(self, value, [words[0] >> (value & 1), *words[1:]])


class TwoBuckets(SketchOracle):
    """Draws the bucket with less noise than its part states."""

    __slots__ = ()

    def encode(self, value, words):
        return SketchOracle.encode(self, value, [words[0], words[1] // 2])


@pytest.mark.parametrize("mutant", [RowOfTheText, TwoBuckets])
def test_another_law_of_a_sketch_is_noticed(mutant):
    bad = mutant(3, category(4, 1))
    with pytest.raises((AssertionError, KeyError)):
        assert dearest([law(bad, value) for value in TEXTS]) == bad.event.odds


def runs(draw, low=0, high=WHOLE - 1):
    """The runs of words that give the same, each by its first word, its length and its result."""
    first = draw(low)
    if first == draw(high):
        return [(low, high - low + 1, first)]
    middle = (low + high) // 2
    left, right = runs(draw, low, middle), runs(draw, middle + 1, high)
    (start, words, result), (_, more, same) = left[-1], right[0]
    if result == same:
        return [*left[:-1], (start, words + more, result), *right[1:]]
    return left + right


def law_of_all_words(oracle, value):
    """The exact probability of each report; in a row, no run ends where another word says."""
    found = Counter()
    rest = [0] * (oracle.draws - 1)
    for top, words, _ in runs(lambda word: oracle.encode(value, [word, *rest])[:2]):
        places = [
            runs(lambda word, at=at, top=top: oracle.encode(value, one(top, rest, at, word)))
            for at in range(len(rest))
        ]
        for chosen in itertools.product(*places):
            report = oracle.encode(value, [top, *(first for first, _, _ in chosen)])
            found[report] += words * math.prod(length for _, length, _ in chosen)
    return {report: Fraction(words, WHOLE**oracle.draws) for report, words in found.items()}


def one(top, rest, place, word):
    """The words of a row, one of which is given."""
    return [top, *rest[:place], word, *rest[place + 1 :]]


def check_sketch(oracle):
    """Each row is as likely as stated, and supports the bucket of the text as often, exactly."""
    texts = TEXTS[2:5]
    laws = [law_of_all_words(oracle, value) for value in texts]
    assert dearest(laws) == oracle.event.odds
    cuts = [-(-WHOLE * row // oracle.rows) for row in range(oracle.rows + 1)]
    for value, each in zip(texts, laws, strict=True):
        found = np.full((oracle.rows, oracle.part.values), Fraction(0))
        for report, chance in each.items():
            found[report[1]] += [chance * held for held in supports(oracle.part, report[2:])]
        for row in range(oracle.rows):
            share = Fraction(cuts[row + 1] - cuts[row], WHOLE)
            wanted = [share * oracle.part.other] * oracle.part.values
            wanted[oracle.bucket(value, row)] = share * oracle.part.own
            assert found[row].tolist() == wanted


SMALL = [
    sketch(1, rows=3, buckets=4),
    count_mean(1, rows=3, buckets=2),
    hadamard_count_mean(1, rows=3, buckets=2),
    SketchOracle(3, category(4, 1)),
]


@pytest.mark.parametrize("oracle", SMALL, ids=lambda oracle: oracle.part.kind)
def test_every_report_of_every_text_is_as_likely_as_stated(oracle):
    check_sketch(oracle)


class RowTooWide(SketchOracle):
    """The first row has a word too many."""

    __slots__ = ()

    def encode(self, value, words):
        return SketchOracle.encode(self, value, [max(words[0] - 1, 0), *words[1:]])


class Other(CategoryOracle):
    """Tells the truth as often as it should lie."""

    __slots__ = ()

    def encode(self, value, words):
        return CategoryOracle.encode(self, (value + 1) % self.values, words)


class Inverted(UnaryOracle):
    """Keeps as seldom as it should add, and adds as often as it should keep."""

    __slots__ = ()

    def encode(self, value, words):
        return bytes([UnaryOracle.encode(self, value, words)[0] ^ (1 << self.values) - 1])


_BITS = count_mean(1, rows=3, buckets=2).part
_SIGN = bit(4, 1).truth


@pytest.mark.parametrize(
    "mutant",
    [
        SketchOracle(3, Inverted(2, _BITS.kept, _BITS.added)),
        SketchOracle(3, unary_law.OneWordMore(2, _BITS.kept, _BITS.added)),
        SketchOracle(3, bit_law.Swapped(4, _SIGN)),
        SketchOracle(3, bit_law.OneWordMore(4, _SIGN)),
        SketchOracle(3, Other(4, category(4, 1).truth, category(4, 1).other_weight)),
        RowTooWide(3, category(4, 1)),
    ],
    ids=["unary p and q", "unary edge", "bit p and q", "bit edge", "category p and q", "row edge"],
)
def test_one_wrong_probability_is_noticed(mutant):
    with pytest.raises(AssertionError):
        check_sketch(mutant)


@pytest.mark.parametrize("buckets", [2, 16])
def test_two_texts_share_a_bucket_of_a_random_row_as_often_as_stated(buckets):
    # the hash functions are fixed: this count is the same in each run
    oracle = SketchOracle(4096, category(buckets, 1))
    for one, other in ((0, 1), (7, 7 + (1 << 32)), (0, 1 << 63), (12, 13)):
        alike = sum(oracle.bucket(one, row) == oracle.bucket(other, row) for row in range(4096))
        mean = 4096 / buckets
        assert abs(alike - mean) < 4 * mean**0.5


class OneRow(SketchOracle):
    """All rows with the hash function of the first."""

    __slots__ = ()

    def bucket(self, value, row):
        return SketchOracle.bucket(self, value, 0)


def test_rows_that_hash_alike_are_noticed():
    oracle = OneRow(4096, category(16, 1))
    alike = sum(oracle.bucket(0, row) == oracle.bucket(1, row) for row in range(4096))
    assert alike in (0, 4096)


MADE = [
    sketch(2, rows=3, buckets=8),
    count_mean(2, rows=3, buckets=8),
    hadamard_count_mean(2, rows=3, buckets=8),
    SketchOracle(3, category(8, 2)),
]


@pytest.mark.parametrize("oracle", MADE, ids=lambda oracle: oracle.part.kind)
def test_reports_of_many_devices_have_the_law_of_one(oracle):
    value = 987_654_321_012_345
    held = np.full(20_000, value, np.uint64)
    payloads = oracle.encode_many(held, Replay(4))
    assert payloads.shape == (20_000, oracle.size) and oracle.valid(payloads).all()
    tally = oracle.tally(payloads)
    assert len(tally) == oracle.cells
    reports, buckets = oracle.split(tally)
    assert_counts_follow(reports, [1 / 3] * 3, notices=[0.3, 0.3, 0.4])
    own, other = float(oracle.own), float(oracle.part.other)
    for row in range(3):
        for place, found in enumerate(buckets[row].tolist()):
            hit = place == oracle.bucket(value, row)
            chance, wrong = (own, other) if hit else (other, own)
            counts = [found, int(reports[row]) - found]
            assert_counts_follow(counts, [chance, 1 - chance], notices=[wrong, 1 - wrong])
    row_sums = [buckets[row, oracle.bucket(value, row)] for row in range(3)]
    assert oracle.supported(buckets, held[:2]).tolist() == [sum(row_sums)] * 2
    parts = oracle.tally(payloads[:7000]) + oracle.tally(payloads[7000:])
    assert parts.tolist() == tally.tolist()
    assert oracle.support(tally, 20_000).tolist() == buckets.ravel().tolist()


@pytest.mark.parametrize("oracle", MADE, ids=lambda oracle: oracle.part.kind)
def test_a_lone_report_has_the_size_of_many_and_the_form_gives_the_same(oracle):
    for value in TEXTS:
        payload = oracle.encode(value, [Replay(value % 97).bits(64)] * oracle.draws)
        assert len(payload) == oracle.size
        assert oracle.valid(np.frombuffer(payload, np.uint8).reshape(1, -1)).all()
    assert oracle_from_json(oracle_to_json(oracle)) == oracle
    beyond = np.zeros((1, oracle.size), np.uint8)
    beyond[0, 1] = 3
    assert not oracle.valid(beyond).any()


@pytest.mark.parametrize("make", [sketch, count_mean, hadamard_count_mean])
@pytest.mark.parametrize("epsilon", ["1e-3", "1", "4"])
def test_it_costs_at_most_what_was_asked_and_hardly_less(make, epsilon):
    cost = account(make(epsilon).event).epsilon
    assert Fraction(epsilon) * Fraction(999, 1000) < cost <= Fraction(epsilon)


def test_sketches_that_cannot_be_are_refused():
    for rows, part in (
        (0, category(4, 1)),
        (1 << 17, category(4, 1)),
        (True, category(4, 1)),
        (3, category(5, 1)),
        (3, hashed(4, 1)),
        (1 << 16, bit(1 << 16, 1)),
        (3, sketch(1)),
    ):
        with pytest.raises(InvalidDeclaration):
            SketchOracle(rows, part)

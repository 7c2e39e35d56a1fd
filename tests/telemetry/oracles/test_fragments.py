# SPDX-License-Identifier: Apache-2.0
"""Fragments: every report of every pair of texts in fractions; place, piece and digits."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.telemetry.oracles import category, fragments
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.fragments import FragmentsOracle
from sfumato.telemetry.oracles.sketch import SketchOracle
from sfumato.testing import Replay
from tests.contracts.oracles import dearest, steps

WHOLE = 1 << 64
# three digits in fragments of two and one, of one row each: words are place, row, bucket, row, text
FEW, LAST = SketchOracle(1, category(2, 1)), SketchOracle(1, category(2, "0.5"))
SMALL = FragmentsOracle(2, 3, 2, (FEW, LAST))
END = 1 + FEW.size


def law(oracle, value):
    """The exact probability of each report; fragment and text must not share a word."""
    found = {}
    for place, words in steps(lambda word: oracle.encode(value, [word, 0, 0, 0, 0])[0]).items():
        top = -(-WHOLE * place // oracle.places)
        few = steps(lambda word, top=top: oracle.encode(value, [top, 0, word, 0, 0]))
        last = steps(lambda word, top=top: oracle.encode(value, [top, 0, 0, 0, word]))
        # the other half of the report stays as it is
        assert len({report[END:] for report in few}) == 1
        assert len({report[:END] for report in last}) == 1
        for first, one in few.items():
            for second, other in last.items():
                chance = Fraction(words * one * other, WHOLE**3)
                found[first[:END] + second[END:]] = chance
    return found


def laws(oracle):
    return [law(oracle, value) for value in range(oracle.values)]


def test_every_report_of_every_text_is_as_likely_as_stated():
    every = laws(SMALL)
    assert all(sum(each.values()) == 1 and len(each) == 8 for each in every)
    odds = FEW.event.odds * LAST.event.odds
    assert dearest(every) == SMALL.event.odds == odds


class ByTheText(FragmentsOracle):
    """Draws the place by the text."""

    __slots__ = ()

    def encode(self, value, words):
        return FragmentsOracle.encode(self, value, [words[0] >> (value & 1), *words[1:]])


class WithOneWord(FragmentsOracle):
    """Draws fragment and text with the same word."""

    __slots__ = ()

    def encode(self, value, words):
        return FragmentsOracle.encode(self, value, [*words[:4], words[2]])


class TextTwice(FragmentsOracle):
    """Reports the text in both parts, at the epsilon of the first."""

    __slots__ = ()

    @property
    def event(self):
        return self.parts[0].event


def mutant(kind):
    return kind(2, 3, 2, SMALL.parts)


def test_a_place_is_drawn_without_the_text():
    # half of the odd texts have no place but the first
    with pytest.raises((AssertionError, KeyError)):
        assert dearest(laws(mutant(ByTheText))) == SMALL.event.odds


def test_fragment_and_whole_text_are_drawn_with_words_of_their_own():
    with pytest.raises(AssertionError):
        laws(mutant(WithOneWord))


def test_a_cost_that_forgets_the_whole_text_is_noticed():
    bad = mutant(TextTwice)
    assert dearest(laws(bad)) > bad.event.odds


def test_a_fragment_has_its_digits_and_a_piece_its_hash():
    oracle = fragments(27, 5, 2)
    text = [3, 1, 26, 0, 7]
    value = sum(digit * 27**place for place, digit in enumerate(reversed(text)))
    wanted = [3 * 27 + 1, 26 * 27, 7]
    assert [oracle.fragment(value, place) for place in range(3)] == wanted
    many = np.array([value, 0], np.uint64)
    assert [oracle.fragment(many, place).tolist() for place in range(3)] == [
        [each, 0] for each in wanted
    ]
    digest = hashlib.sha256(b"sfumato telemetry sketch 1" + (1 << 16).to_bytes(4, "big")).digest()
    a, b, c = (int.from_bytes(digest[start : start + 8], "big") for start in (0, 8, 16))
    large = (1 << 64) - 3
    for number in (value, large):
        mixed = (a * (number >> 32) + b * (number & 0xFFFFFFFF) + c) % WHOLE
        assert oracle.piece(number) == mixed >> 56
        assert oracle.pieces_of(np.array([number], np.uint64)).tolist() == [mixed >> 56]
    assert oracle.marked(oracle.piece(value), wanted[0]) == oracle.piece(value) * 729 + wanted[0]


def test_the_fast_form_has_the_reports_of_one():
    # at epsilon 44 a report lies less often than once in 10^18
    sure = SketchOracle(2, category(4, 44))
    oracle = FragmentsOracle(3, 3, 2, (sure, sure))
    values = np.arange(300, dtype=np.uint64) % 27
    rows = oracle.encode_many(values, Replay(2))
    assert oracle.valid(rows).all()
    for value, row in zip(values.tolist(), rows.tolist(), strict=True):
        marked = oracle.marked(oracle.piece(value), oracle.fragment(value, row[0]))
        assert row[3] == sure.bucket(marked, row[2])
        assert row[6] == sure.bucket(value, row[5])
    # the words come from Replay: these numbers are the same in each run
    drawn = np.bincount(rows[:, 0])
    assert len(drawn) == 2 and drawn.min() > 120


def test_tallies_add_up_place_by_place():
    oracle = FragmentsOracle(3, 3, 2, (FEW, LAST))
    rows = oracle.encode_many(np.arange(200, dtype=np.uint64) % 27, Replay(3))
    both = oracle.tally(rows[:80]) + oracle.tally(rows[80:])
    tally = oracle.tally(rows)
    assert both.tolist() == tally.tolist() and len(tally) == oracle.cells
    sums, whole = oracle.split(tally)
    assert [int(each[0]) for each in sums] == np.bincount(rows[:, 0]).tolist()
    assert int(whole[0]) == 200
    # a place, a row, a bucket, and a row of the whole text that do not exist
    for place, wrong in ((0, 2), (2, 1), (3, 2), (4, 1)):
        bad = rows[:1].copy()
        bad[0, place] = wrong
        assert not oracle.valid(bad).any()


def test_it_costs_what_was_asked_and_its_form_gives_the_same():
    oracle = fragments(27, 10, 2, whole="0.4")
    assert Fraction(1999, 1000) < account(oracle.event).epsilon <= 2
    assert oracle.parts[1].event.epsilon < Fraction(4, 5) + Fraction(1, 1000)
    assert oracle_from_json(oracle_to_json(oracle)) == oracle
    assert fragments(91, 3, 1).step == fragments(3, 1, 1).step == 1
    assert fragments(90, 3, 1).step == 2


@pytest.mark.parametrize(
    ("symbols", "length"),
    [(1, 3), (257, 3), (True, 3), (3, 0), (3, 41), (2, 65), (2, 10**12), (2.0, 3), (2, "3")],
)
def test_texts_that_cannot_be_numbered_are_refused(symbols, length):
    with pytest.raises(InvalidDeclaration):
        fragments(symbols, length, 1)


def test_parts_that_are_not_those_of_fragments_are_refused():
    for parts in ((FEW,), (FEW, LAST, LAST), (category(4, 1), LAST)):
        with pytest.raises(InvalidDeclaration):
            FragmentsOracle(2, 3, 2, parts)
    for symbols, length, step in ((91, 3, 2), (2, 3, 4), (2, 3, 0)):
        with pytest.raises(InvalidDeclaration):
            FragmentsOracle(symbols, length, step, (FEW, LAST))
    for share in (0, 1, -1, "1.5"):
        with pytest.raises((InvalidDeclaration, InvalidNumber)):
            fragments(27, 5, 1, whole=share)
    for epsilon in (0, -1, "nan", "1e-25"):
        with pytest.raises((InvalidDeclaration, InvalidNumber)):
            fragments(27, 5, epsilon)

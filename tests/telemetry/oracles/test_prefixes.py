# SPDX-License-Identifier: Apache-2.0
"""Prefixes: the length is drawn without the text, and the fast form reports the same prefix."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.telemetry.oracles import category, prefixes
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.telemetry.oracles.sketch import SketchOracle
from sfumato.testing import Replay
from tests.contracts.oracles import dearest, steps

WHOLE = 1 << 64
SMALL = PrefixesOracle(2, 3, 2, (SketchOracle(2, category(2, 1)),) * 3)


def law(oracle, value):
    """The exact probability of each report."""
    found = {}
    places = steps(lambda word: oracle.encode(0, [word, 0, 0])[0])
    for place, words in places.items():
        top = -(-WHOLE * place // len(oracle.parts))
        rows = oracle.parts[place].rows
        for row in range(rows):
            first, last = -(-WHOLE * row // rows), -(-WHOLE * (row + 1) // rows)
            inner = steps(
                lambda word, top=top, first=first: oracle.encode(value, [top, first, word])
            )
            for report, counts in inner.items():
                found[report] = Fraction(words * (last - first) * counts, WHOLE**3)
    return found


def test_every_report_of_every_text_is_as_likely_as_stated():
    laws = [law(SMALL, value) for value in range(SMALL.values)]
    assert all(sum(each.values()) == 1 for each in laws)
    assert dearest(laws) == SMALL.event.odds == category(2, 1).event.odds


class ByTheText(PrefixesOracle):
    """Draws the length by the text."""

    __slots__ = ()

    def encode(self, value, words):
        return PrefixesOracle.encode(self, value, [words[0] >> (value & 1), *words[1:]])


def test_a_length_that_depends_on_the_text_is_noticed():
    bad = ByTheText(2, 3, 2, SMALL.parts)
    with pytest.raises((AssertionError, KeyError)):
        laws = [law(bad, value) for value in range(bad.values)]
        assert dearest(laws) == bad.event.odds


def test_each_part_has_its_prefix():
    oracle = prefixes(17, 12, 4)
    assert oracle.lengths == (3, 6, 9, 12, 12)
    value = 17**12 - 2
    many = np.array([value, 3], np.uint64)
    for place, length in enumerate(oracle.lengths):
        wanted = value // 17 ** (12 - length)
        assert oracle.node(value, place) == wanted
        assert oracle.node(many, place).tolist() == [wanted, 3 // 17 ** (12 - length)]


def test_the_fast_form_has_the_reports_of_one():
    sure = SketchOracle(2, category(4, 44))
    oracle = PrefixesOracle(2, 3, 2, (sure,) * 3)
    for row in oracle.encode_many(np.full(300, 6, np.uint64), Replay(2)):
        part, inner = int(row[0]), row[1:]
        # at epsilon 44 a report lies less often than once in 10^18
        assert inner[2] == sure.bucket(oracle.node(6, part), int(inner[1]))


def test_it_costs_what_was_asked_and_its_form_gives_the_same():
    oracle = prefixes(27, 10, 2)
    assert Fraction(1999, 1000) < account(oracle.event).epsilon <= 2
    assert oracle_from_json(oracle_to_json(oracle)) == oracle


@pytest.mark.parametrize(
    ("symbols", "length"),
    [(1, 3), (257, 3), (True, 3), (3, 0), (3, 41), (2, 65), (2, 10**12), (2.0, 3), (2, "3")],
)
def test_texts_that_cannot_be_numbered_are_refused(symbols, length):
    with pytest.raises(InvalidDeclaration):
        prefixes(symbols, length, 1)


def test_parts_that_are_not_the_prefixes_are_refused():
    for parts in (SMALL.parts[:2], (category(4, 1),) * 3):
        with pytest.raises(InvalidDeclaration):
            PrefixesOracle(2, 3, 2, parts)
    with pytest.raises(InvalidDeclaration):
        PrefixesOracle(200, 3, 2, SMALL.parts)
    with pytest.raises((InvalidDeclaration, InvalidNumber)):
        prefixes(27, 10, 0)

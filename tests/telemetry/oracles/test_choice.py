# SPDX-License-Identifier: Apache-2.0
"""Of what is drawn of a value, the choice is public and independent of the value."""

from fractions import Fraction

import pytest

from sfumato.telemetry.oracles.attributes import AttributesOracle, attributes
from sfumato.telemetry.oracles.category import category
from sfumato.telemetry.oracles.levels import LevelsOracle
from tests.contracts.oracles import dearest, steps

WHOLE = 1 << 64
CHOICES = [
    LevelsOracle(8, 4, (category(8, 1), category(2, 2))),
    attributes([category(2, 1), category(2, "0.5"), category(2, 2)]),
]


def law(oracle, value):
    """The exact probability of each report, of parts that draw one word."""
    found = {}
    first = steps(lambda word: oracle.encode(0, [word, 0])[0])
    for place, words in first.items():
        top = -(-WHOLE * place // len(oracle.parts))
        counts = steps(lambda word, top=top: oracle.encode(value, [top, word]))
        for report, inner in counts.items():
            assert report[0] == place
            found[report] = Fraction(inner * words, WHOLE**2)
    return found


@pytest.mark.parametrize("oracle", CHOICES, ids=lambda oracle: oracle.kind)
def test_a_part_is_drawn_without_the_value_and_costs_no_more_than_the_dearest(oracle):
    laws = [law(oracle, value) for value in range(8)]
    assert all(sum(each.values()) == 1 for each in laws)
    assert dearest(laws) == oracle.event.odds == max(part.event.odds for part in oracle.parts)
    for place, weight in enumerate(oracle.event.weights):
        for each in laws:
            share = sum(chance for report, chance in each.items() if report[0] == place)
            assert share == Fraction(weight, WHOLE)


class ByTheValue(AttributesOracle):
    """Draws the part by the value."""

    __slots__ = ()

    def encode(self, value, words):
        return AttributesOracle.encode(self, value, [words[0] >> (value & 1), *words[1:]])


def test_a_choice_that_depends_on_the_value_is_noticed():
    bad = ByTheValue(CHOICES[1].parts)
    with pytest.raises((AssertionError, KeyError)):
        assert dearest([law(bad, value) for value in range(8)]) == bad.event.odds

# SPDX-License-Identifier: Apache-2.0
"""The oracles that count values keep to one interface."""

from fractions import Fraction

from sfumato.telemetry.oracles import Oracle, bit, category, hashed, projective, unary
from sfumato.telemetry.oracles.frequency import FREQUENCY


def test_each_states_how_often_a_report_supports_a_value():
    made: list[Oracle] = [make(10, 1) for make in (category, projective, bit, hashed, unary)]
    assert {type(oracle) for oracle in made} == set(FREQUENCY)
    for oracle in made:
        assert 0 < oracle.other < oracle.own < 1 and isinstance(oracle.own, Fraction)

# SPDX-License-Identifier: Apache-2.0
"""The cost of a section: one that is given replaces all of it."""

import pytest

from sfumato.config.cost import COST, cost_of
from sfumato.config.section import read

STATED = {"epsilon": "1", "delta": 1e-6}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"epsilon": "1", "delta": "1e-06"}),
        ({"epsilon": None, "rho": None}, {"epsilon": "1", "delta": "1e-06"}),
        ({"rho": "0.1", "delta": None}, {"rho": "0.1"}),
        ({"epsilon": "2"}, {"epsilon": "2"}),
    ],
)
def test_a_cost_that_is_given_replaces_the_whole(given, expected):
    assert cost_of(read(STATED, "models.m", COST), given) == expected


def test_a_section_without_a_cost_has_none():
    assert cost_of({}, {"epsilon": None}) == {}

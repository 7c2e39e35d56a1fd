# SPDX-License-Identifier: Apache-2.0
"""How well the permanent answer of an epoch links the reports of a device: a published number.

Whoever sees one report of a device, and later a report that is of the same device or of another
one with another value, is right if it says "the same" where they are equal. The advantage is the
probability of that for the same device (1) less that for another (docs/telemetry.md).
"""

import pytest

from sfumato.telemetry.oracles import bit, category, hashed, projective, unary
from tests.contracts.oracles import law_of_one_word


def meet(one, other):
    """The probability that two devices with these laws answer alike."""
    return sum(chance * other[report] for report, chance in one.items())


def advantage(oracle):
    """One less the probability that two devices with different values answer alike."""
    one, other = (law_of_one_word(oracle, value) for value in (0, 1))
    return 1 - float(meet(one, other))


@pytest.mark.parametrize(
    ("oracle", "published"),
    [
        (category(2, 1), 0.607),
        (category(10, 1), 0.902),
        (category(1000, 1), 0.999),
        (projective(10, 1), 0.925),
        pytest.param(projective(1000, 1), 0.999, marks=pytest.mark.long),
    ],
)
def test_the_advantage_is_the_published_one(oracle, published):
    assert round(advantage(oracle), 3) == published


def test_a_row_and_a_bit_meet_as_seldom_as_both_together():
    # over the rows another column agrees in half of them: p^2 + q^2 there, 2 p q elsewhere
    for values, rows in ((2, 2), (1000, 1024)):
        oracle = bit(values, 1)
        own, lie = oracle.own, 1 - oracle.own
        alike = (own**2 + lie**2 + 2 * own * lie) / 2
        assert oracle.cells == rows and float(1 - alike / rows) == 1 - 1 / (2 * rows)


def test_seeds_and_many_bits_link_always():
    # local hashing sends 128 random bits of its own; unary bits of 100 values seldom all agree
    assert hashed(1000, 1).size == 17
    wide = unary(100, 1)
    alike = wide.other**2 + (1 - wide.other) ** 2
    assert float(alike**98) < 1e-20

# SPDX-License-Identifier: Apache-2.0
"""How well the permanent answer of an epoch links the reports of a device: a published number.

Whoever sees one report of a device, and later a report that is of the same device or of another
one with another value, is right if it says "the same" where they are equal. The advantage is the
probability of that for the same device (1) less that for another (docs/telemetry.md).
"""

import math
from fractions import Fraction

import pytest

from sfumato.telemetry.oracles import (
    bit,
    category,
    count_mean,
    fragments,
    hadamard_count_mean,
    hashed,
    prefixes,
    projective,
    rappor,
    sketch,
    unary,
)
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


def likeliest(part):
    """The probability of the likeliest report of an oracle of the buckets of a sketch."""
    if part.kind == "bit":
        return part.own / part.cells
    if part.kind == "unary":
        return part.own * (1 - part.other) ** (part.values - 1)
    return Fraction(part.near, 1 << 64)


@pytest.mark.parametrize("make", [sketch, count_mean, hadamard_count_mean])
def test_sketches_and_prefixes_link_always(make):
    # whoever answers, no report is likelier than this: another device seldom gives the same
    made = make(1)
    assert likeliest(made.part) / made.rows < Fraction(1, 60_000)
    parts = prefixes(27, 10, 1).parts
    shares = [likeliest(part.part) / part.rows / len(parts) for part in parts]
    assert sum(shares) < Fraction(1, 60_000)
    few, whole = (likeliest(part.part) / part.rows for part in fragments(27, 10, 1).parts)
    assert few * whole < Fraction(1, 60_000) ** 2


def agreement(chance, count):
    """The law of the number of bits that agree, each with the same probability."""
    return [math.comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]


def linked(cohorts):
    """The advantage of the best rule by the cohorts and the number of bits that agree.

    It is one less what the laws of the same and of another device have in common. All permanent
    bits are taken as those of a text that the device does not hold, which are 31 of 32.
    """
    oracle = rappor(cohorts=cohorts)
    whole = 1 << 64
    one, zero, added = (Fraction(w, whole) for w in (oracle.one, oracle.zero, oracle.added))
    ones = added
    # the bits of one device are blurred twice from one answer, those of two from two
    same = ones * (one**2 + (1 - one) ** 2) + (1 - ones) * (zero**2 + (1 - zero) ** 2)
    said = ones * one + (1 - ones) * zero
    other = said**2 + (1 - said) ** 2
    pairs = zip(agreement(same, 32), agreement(other, 32), strict=True)
    return float(1 - sum(min(alike, apart / cohorts) for alike, apart in pairs))


def test_the_cohorts_of_rappor_link_its_reports():
    # blurred bits alone tell little of two reports; with 64 cohorts few devices share one
    assert round(linked(1), 2) == 0.41
    assert round(linked(64), 3) == 0.984

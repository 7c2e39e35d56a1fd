# SPDX-License-Identifier: Apache-2.0
"""Own deltas: independent failures, exactly while numbers are short, outward beyond."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import own_delta
from sfumato.accounting.own_delta import OwnDelta
from sfumato.exact.bracket import Bounds, Bracket

CHANCES = st.lists(st.fractions(0, 1, max_denominator=10**6), min_size=1, max_size=8)


def joined(chances: list[Fraction]) -> OwnDelta:
    total = OwnDelta()
    for chance in chances:
        total = total.either(OwnDelta.of(chance))
    return total


@given(CHANCES)
@settings(deadline=None)
def test_own_deltas_are_those_of_independent_failures(chances: list[Fraction]) -> None:
    found = joined(chances)
    assert found.lower == found.upper == 1 - math.prod(1 - chance for chance in chances)


@given(st.fractions(0, 1, max_denominator=1000), st.integers(0, 40))
@settings(deadline=None)
def test_many_equal_ones_are_one_after_the_other(chance: Fraction, count: int) -> None:
    assert OwnDelta.of(chance).times(count) == joined([chance] * count if count else [Fraction(0)])


@pytest.mark.parametrize("power", [3, 12, 300])
def test_long_numbers_are_rounded_outward_by_next_to_nothing(power: int) -> None:
    one = Fraction(1, 10**power - 1)
    found = OwnDelta.of(one).times(10**5)
    assert found.lower < found.upper <= found.lower * (1 + Fraction(1, 2**280))
    # 1 - (1 - d)^n is between n d - (n d)^2 / 2 and n d
    assert found.lower <= 10**5 * one and found.upper >= min(
        10**5 * one - (10**5 * one) ** 2 / 2, Fraction(1, 2)
    )


def test_what_is_left_is_what_the_losses_may_spend() -> None:
    own = OwnDelta.of(Fraction(1, 10))
    assert own.left(Fraction(19, 100)) == (Fraction(1, 10), Fraction(1, 10))
    assert own.added(Bracket(0.1, 0.1)).upper == pytest.approx(0.19)
    assert own.added(Bounds(None, 1.0)) == Bounds(None, 1.0)


def test_deltas_that_were_taken_as_sums_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        own_delta.OwnDelta,
        "either",
        lambda self, other: OwnDelta(self.lower + other.lower, self.upper + other.upper),
    )
    with pytest.raises(AssertionError):
        test_own_deltas_are_those_of_independent_failures.hypothesis.inner_test(
            [Fraction(1, 2), Fraction(1, 2)]
        )

# SPDX-License-Identifier: Apache-2.0
"""The search finds the smallest integer, wherever it starts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.noise.search import smallest

INTEGERS = st.integers(-(10**30), 10**30)


@given(INTEGERS, INTEGERS)
@settings(deadline=None)
def test_the_smallest_is_found_from_any_guess(threshold: int, guess: int) -> None:
    assert smallest(lambda x: x >= threshold, below=guess) == threshold


@given(st.integers(-50, 50), st.integers(-50, 50))
@settings(deadline=None)
def test_the_smallest_is_found_near_the_guess(threshold: int, guess: int) -> None:
    assert smallest(lambda x: x >= threshold, below=guess) == threshold


@given(INTEGERS)
@settings(deadline=None)
def test_the_search_asks_a_logarithmic_number_of_times(threshold: int) -> None:
    asked: list[int] = []

    def holds(x: int) -> bool:
        asked.append(x)
        return x >= threshold

    smallest(holds)
    assert len(asked) <= 3 * threshold.bit_length() + 10

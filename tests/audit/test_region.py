# SPDX-License-Identifier: Apache-2.0
"""The chosen sets are those that tell, whatever the outputs are."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit.outcome import Raised
from sfumato.audit.region import VIEWS, Among, Within, best_region
from sfumato.noise import DiscreteLaplace
from sfumato.testing import Replay

EVIDENCE = math.log(4e9)


def chosen(one, other, delta=0.0):
    return best_region(one, other, delta, EVIDENCE)[0]


def shares(region, *samples):
    return [sum(each in region for each in sample) / len(sample) for sample in samples]


@dataclass(frozen=True)
class Code:
    name: str


COMMON, RARE = 900, 100
KINDS = {
    "text": ("no", "yes"),
    "none": (None, 1),
    "numbers": (0.25, 7.5),
    "lists": ([1, 2], [1, 3]),
    "arrays": (np.array([0.0, 1.0]), np.array([0.0, 2.0])),
    "mappings": ({"a": 1}, {"b": 1}),
    "errors": (1, Raised("ValueError")),
    "own types": (Code("a"), Code("b")),
    "numbers of another type": (1, 1.0),
    "huge numbers": (10**400, -(10**400)),
    "numbers that are none": (math.nan, math.inf),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_that_is_likelier_is_chosen(kind):
    usual, telling = KINDS[kind]
    one = [usual] * RARE + [telling] * COMMON
    other = [usual] * COMMON + [telling] * RARE
    assert shares(chosen(one, other), one, other) == [0.9, 0.1]


def laplace(center, size, seed):
    """Noise on a fine grid: nearly every value is its own."""
    return (center + DiscreteLaplace(2**30).sample(size, Replay(seed)) / 2**30).tolist()


def test_a_tail_is_chosen_where_every_value_is_its_own():
    one, other = laplace(1, 4000, 1), laplace(0, 4000, 2)
    region = chosen(one, other)
    assert isinstance(region, Within) and region.above
    p, q = shares(region, one, other)
    assert 2.2 < p / q < 3.5 and q > 0.1


def test_the_cell_that_differs_is_chosen_in_vectors():
    one = list(zip(laplace(0, 3000, 1), laplace(3, 3000, 2), strict=True))
    other = list(zip(laplace(0, 3000, 3), laplace(0, 3000, 4), strict=True))
    p, q = shares(chosen(one, other), one, other)
    assert p > 0.4 and p / q > 5


def test_noise_that_two_cells_share_is_seen_in_their_difference():
    noise = laplace(0, 2000, 1)
    one, other = [(x + 1, x) for x in noise], [(x, x) for x in noise]
    region = chosen(one, other)
    assert region.view == "entry 0 - entry 1" and shares(region, one, other) == [1, 0]


def test_a_delta_is_looked_beyond():
    # a value that is impossible on the other side, but rarer than delta, proves nothing
    one = ["a"] * 500 + ["b"] * 495 + ["c"] * 5
    other = ["a"] * 100 + ["b"] * 900
    assert shares(chosen(one, other, 0.02), one, other)[1] == 0.1
    rare = chosen(["a"] * 998 + ["c"] * 2, ["a"] * 1000, 0.01)
    assert isinstance(rare, Among) and shares(rare, ["c"], ["a"]) == [1, 0]


def test_the_choice_reads_as_words():
    looks = dict(VIEWS)
    region = Within("the output", looks["the output"], 2.5, above=True)
    assert (
        str(region) == "the output >= 2.5" and 3 in region and 2 not in region and "x" not in region
    )
    assert np.float32(3) in region and math.nan not in region and True not in region
    assert (
        str(Among("the keys", looks["the keys"], frozenset({None})))
        == "the keys is one of 1 values"
    )


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
MIXED = ANY | st.lists(ANY, max_size=3) | st.dictionaries(st.text(max_size=2), ANY, max_size=2)


@given(st.lists(MIXED, min_size=1, max_size=30), st.lists(MIXED, min_size=1, max_size=30))
@settings(deadline=None)
def test_any_outputs_have_a_choice(one, other):
    region, considered = best_region(one, other, 0.0, EVIDENCE)
    p, q = shares(region, one, other)
    assert 0 <= q <= p <= 1 or considered == 0 or p - q >= -1


def test_unlike_outputs_without_a_number_have_an_empty_choice():
    texts = [str(number) for number in range(100)]
    region, considered = best_region(texts, texts[::-1], 0.0, EVIDENCE)
    assert considered == 0 and shares(region, texts) == [0]

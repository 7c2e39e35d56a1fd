# SPDX-License-Identifier: Apache-2.0
"""Float sums on a lattice: neighbours against their distance, with broken versions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.learning import lattice as module
from sfumato.learning.lattice import DOUBLE, SINGLE, Lattice, clip_factors, product_error
from sfumato.privacy import Relation

ADD = Relation.ADD_REMOVE


def clipped(vectors: Any, clip: float) -> Any:
    """Each row at most ``clip`` long."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (vectors.astype(np.float64) ** 2).sum(axis=1)
        factors = clip_factors(
            squares, np.zeros(len(vectors)), terms=vectors.shape[1], clip=clip, amount=1.0
        )
        return np.where(factors[:, np.newaxis] > 0, factors[:, np.newaxis] * vectors, 0.0)


def released(lattice: Lattice, examples: Any, size: int, dtype: Any = np.float64) -> Any:
    """The integers of the sum, in chunks of ``size`` examples."""
    total = np.zeros(lattice.size, np.int64)
    for first in range(0, len(examples), size):
        total += lattice.chunk(examples[first : first + size].astype(dtype).sum(axis=0))
    return lattice.rounded(total)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_sums_of_neighbours_are_as_near_as_their_distance_says(
    seed: int, size: int, chunk: int
) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(12, size)) * 10.0 ** random.integers(-3, 4)
    error = product_error(12, 12, Fraction(3), DOUBLE)
    lattice = Lattice.of(size, Fraction(1), multiplier=Fraction(1), error=error * size, chunks=12)
    examples = clipped(vectors, 1.0)
    with_one = released(lattice, examples, chunk)
    # another grouping of the rest: the neighbour has one example less in front
    without = released(lattice, examples[1:], chunk)
    replaced = released(lattice, np.concatenate([-examples[:1], examples[1:]]), chunk)
    moved = float(((with_one - without) ** 2).sum())
    assert moved <= lattice.distance(ADD).value
    moved = float(((with_one - replaced) ** 2).sum())
    assert moved <= lattice.distance(Relation.REPLACE_ONE).value


def farthest(lattice: Lattice, examples: Any, dtype: Any = np.float64) -> float:
    """How far one example moves the integers, in L2."""
    whole = released(lattice, examples, len(examples), dtype)
    return max(
        float(np.sqrt(((whole - released(lattice, np.delete(examples, k, 0), 99_999, dtype)) ** 2).sum()))
        for k in (0, len(examples) - 1)
    )  # fmt: skip


def test_an_example_that_is_not_clipped_is_noticed() -> None:
    lattice = Lattice.of(4, Fraction(1), multiplier=Fraction(1))
    assert farthest(lattice, np.full((3, 4), 0.6)) ** 2 > lattice.distance(ADD).value
    assert farthest(lattice, clipped(np.full((3, 4), 0.6), 1.0)) ** 2 <= lattice.distance(ADD).value


def test_a_float32_sum_of_many_examples_errs_by_at_most_its_bound() -> None:
    examples = np.full((2**17 + 1, 1), 2.0**-20)
    examples[0] = 200.0
    single = examples.astype(np.float32).cumsum(axis=0, dtype=np.float32)[-1]
    wrong = abs(float(single[0]) - float(examples.sum()))
    # everything after the first example is lost: far more than float64 would lose
    assert wrong > 0.1
    assert wrong > product_error(2**17 + 1, 2**17 + 1, Fraction(200), DOUBLE)
    assert wrong <= product_error(2**17 + 1, 2**17 + 1, Fraction(200), SINGLE)


def test_a_distance_that_forgets_the_rounding_is_noticed() -> None:
    # entries just above and below a half: each of 400 moves a whole step for a tiny example
    lattice = Lattice(400, Fraction(1, 100), Fraction(1))
    examples = np.stack([np.full(400, 0.4999), np.full(400, 0.0004)])
    moved = farthest(lattice, examples)
    assert moved == 20 and moved**2 <= lattice.distance(ADD).value
    assert moved > lattice.clip / lattice.step


@given(
    st.lists(st.floats(width=64) | st.sampled_from([1e30, 1e-320, 1e308]), min_size=3, max_size=3),
    st.floats(1e-6, 1e6),
)
def test_a_clipped_example_is_no_longer_than_the_clip(vector: list[float], clip: float) -> None:
    found = clipped(np.array([vector]), clip)[0]
    exact = sum(Fraction(float(entry)) ** 2 for entry in found)
    assert np.isfinite(found).all() and exact <= Fraction(clip) ** 2


def test_a_short_example_stays() -> None:
    assert clipped(np.array([[0.3, 0.4]]), 1.0).tolist() == [[0.3, 0.4]]
    tiny = np.array([[1e-200, 0.0]])
    assert clipped(tiny, 1.0).tolist() == tiny.tolist()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300])
def test_an_example_that_is_not_finite_counts_as_nothing(odd: float) -> None:
    vectors = np.array([[odd, 1.0], [0.5, 0.5]])
    assert clipped(vectors, 1.0).tolist() == [[0.0, 0.0], [0.5, 0.5]]
    amounts = np.array([odd if odd != 1e300 else np.inf, 1.0])
    factors = clip_factors(np.ones(2), amounts, terms=2, clip=1.0, amount=0.5)
    assert factors[0] == 0 and 0.49 < factors[1] <= 0.5


def test_a_factor_that_rounds_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.sqrt
    monkeypatch.setattr(module.np, "sqrt", lambda values: right(values) * (1 - 1e-12))
    with pytest.raises(AssertionError):
        test_a_clipped_example_is_no_longer_than_the_clip.hypothesis.inner_test(
            [3.0, 4.0, 5.0], 1.0
        )


def test_chunks_that_are_not_numbers_are_no_error() -> None:
    lattice = Lattice.of(3, Fraction(1), multiplier=Fraction(1))
    assert lattice.chunk(np.array([np.nan, np.inf, 1e300])).tolist() == [0, 0, 2**60]


def test_the_rounding_adds_at_most_a_hundredth() -> None:
    for size, multiplier in ((10, 1), (670_000, 1), (10**8, "0.5")):
        lattice = Lattice.of(size, Fraction(1), multiplier=Fraction(multiplier))
        length = float(lattice.distance(ADD).value) ** 0.5 * float(lattice.step)
        assert 1 <= length <= 1.0101


@pytest.mark.parametrize(
    "make",
    [
        lambda: Lattice(3, Fraction(0), Fraction(1)),
        lambda: Lattice(3, Fraction(1), Fraction(1, 3)),
        lambda: Lattice(0, Fraction(1), Fraction(1)),
        lambda: Lattice.of(3, Fraction(-1), multiplier=Fraction(1)),
        lambda: product_error(2**23, 1, Fraction(1), SINGLE),
    ],
)
def test_what_is_no_lattice_is_refused(make: Any) -> None:
    with pytest.raises(WrongUse):
        make()

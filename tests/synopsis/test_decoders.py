# SPDX-License-Identifier: Apache-2.0
"""Decoders against the inverse of the matrix, and their variances against its rows."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.mechanisms.additive import gaussian
from sfumato.mechanisms.encoder import Encoder, SquareRoot, Tree
from sfumato.privacy.distance import Distance, Norm
from sfumato.synopsis.decoders import (
    Blocks,
    block_counts,
    buffered,
    decoder_of,
    inverse,
    levels,
    tree,
)
from sfumato.testing import assert_follows
from tests.mechanisms.test_encoder import matrix, rows

STEPS = 12
SQUARE = [SquareRoot(STEPS, STEPS), SquareRoot(STEPS, 4), SquareRoot(STEPS, 1), buffered(STEPS)]
EVERY: list[Encoder] = [*SQUARE, Tree(STEPS, 2, (2, 1, 3, 1)), Tree(STEPS, 3, (1, 1, 4))]
RANGES = [(after, upto) for upto in range(1, STEPS + 1) for after in range(upto)]


@pytest.mark.parametrize("encoder", EVERY, ids=repr)
def test_exact_rows_give_the_counts_of_every_range(encoder):
    inputs = np.arange(2 * STEPS).reshape(STEPS, 2) ** 2
    found = iter(rows(encoder, inputs.tolist()))
    decoder = decoder_of(encoder, 2)
    for tick in range(1, STEPS + 1):
        row = [float(next(found)) for _ in range(2 * encoder.numbers(tick))]
        decoder.push(np.array(row))
    for after, upto in RANGES:
        exact = inputs[after:upto].sum(axis=0)
        near = 1e-9 + decoder.rounding(after, upto)
        assert np.allclose(decoder.total(after, upto), exact, rtol=1e-6, atol=near)


@pytest.mark.parametrize("encoder", SQUARE, ids=repr)
def test_variances_are_those_of_the_inverse_matrix(encoder):
    inverted = np.linalg.inv(matrix(encoder).astype(float))
    decoder = decoder_of(encoder)
    for after, upto in RANGES:
        weights = inverted[after:upto].sum(axis=0)
        (squared,) = decoder.squared(np.array([after]), np.array([upto]))
        assert squared == pytest.approx((weights**2).sum(), rel=1e-5)
        assert np.abs(weights).max() <= decoder.largest(after, upto) * (1 + 1e-6)


def test_variances_of_many_ranges_are_those_of_each():
    after, upto = (np.array(each) for each in zip(*RANGES, strict=True))
    for encoder in EVERY:
        decoder = decoder_of(encoder)
        each = [
            float(decoder.squared(*map(np.array, ([one], [other])))[0]) for one, other in RANGES
        ]
        assert decoder.squared(after, upto) == pytest.approx(each)


@pytest.mark.parametrize("encoder", EVERY[4:], ids=repr)
def test_the_blocks_of_a_range_fill_it_and_are_counted(encoder):
    decoder = Blocks(encoder, 1)
    for after, upto in RANGES:
        covered: list[int] = []
        counts = [0] * len(encoder.weights)
        for level, last in decoder.blocks(after, upto):
            counts[level] += 1
            covered += range(last - encoder.base**level, last)
        assert sorted(covered) == list(range(after, upto))
        assert block_counts(encoder, np.array([after]), np.array([upto]))[0].tolist() == counts


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
@settings(deadline=None)
def test_a_series_times_its_inverse_is_one(rest):
    series = np.array([1.0, *rest])
    product = np.convolve(series, inverse(series))[: len(series)]
    scale = float(np.abs(inverse(series)).max())
    assert np.allclose(product, [1.0, *([0.0] * len(rest))], atol=1e-9 * scale)


def test_the_buffers_are_near_the_square_root():
    """The coefficients, and the error, beside those of the square root."""
    near = buffered(4096)
    square = SquareRoot(4096, 4096)
    assert len(near.rates) <= 14
    assert np.abs(near.heights / near.unit - square.coefficients / square.unit).max() < 0.04
    ends = np.arange(1, 4097)
    means = []
    for encoder in (near, square):
        squared = decoder_of(encoder).squared(np.zeros_like(ends), ends)
        means.append(squared.mean() * (encoder.sensitivity(1, 1) + encoder.slack))
    assert means[0] < 1.005 * means[1]


def test_the_weights_of_levels_are_the_best_of_their_neighbours():
    needs = np.array([3.0, 1.0, 0.2])

    def cost(weights):
        return sum(weights) ** 2 * sum(needs / np.array(weights, float) ** 2)

    found = tree(27, 3, needs).weights
    for level in range(3):
        for step in (-3, 3):
            other = list(found)
            other[level] += step
            assert cost(found) < cost(other)


def test_levels_are_those_whose_blocks_fit():
    assert [levels(steps, 2) for steps in (1, 2, 7, 8)] == [1, 2, 3, 4]


@pytest.mark.parametrize("encoder", SQUARE, ids=repr)
def test_running_totals_have_the_stated_standard_error(encoder):
    """60,000 cells without rows, each a release of its own; a seventh more error is noticed."""
    noise = gaussian(Distance(Norm.L2, Fraction(encoder.sensitivity(1, 1))), "0.5").noise
    decoder = decoder_of(encoder, 60_000)
    for _ in range(STEPS):
        decoder.push(noise.sample(60_000).astype(float))
    (squared,) = decoder.squared(np.array([0]), np.array([STEPS]))
    error = math.sqrt(float(noise.variance.upper) * float(squared))
    thousandths = np.floor(1_000 * decoder.total(0, STEPS) / error).astype(int)

    def law(spread):
        return lambda number: float(norm.cdf((number + 1) / 1_000, scale=spread))

    assert_follows(thousandths.tolist(), law(1), notices=law(1.15))

# SPDX-License-Identifier: Apache-2.0
"""Decoders: estimates of sums over ticks from a stream's noisy rows, and their exact variance.

``Stream`` decodes with them; ``stream_plan`` compares encoders by their variances. A decoder reads
released rows only, so what it computes is post-processing.
"""

import math
from functools import lru_cache
from typing import Protocol

import numpy as np

from sfumato.mechanisms.buffered import Buffered
from sfumato.mechanisms.encoder import Encoder, SquareRoot, Tree
from sfumato.noise import Integers
from sfumato.synopsis.workload import Floats

# Rates and weights of buffers are rounded to so many digits, the same on every machine.
_DIGITS = 16
_ONE = 2**48
# The buffers stand this far apart in the logarithm of their age, from ages of exp(-2.5) on.
_STRIDE, _FIRST, _BEYOND = 1.5, -2.5, 2


class Decoder(Protocol):
    """The interface of a decoder, which estimates sums of a stream's inputs from noisy rows. A
    range of ticks (after, upto] is given by its two ends.
    """

    def push(self, row: Floats) -> None:
        """Adds the noisy integers that were released for the next tick."""
        ...

    def total(
        self,
        after: int,
        upto: int,
    ) -> Floats:
        """Returns, for each cell, the estimate of the sum of the inputs over a range of past
        ticks.
        """
        ...

    def squared(
        self,
        after: Integers,
        upto: Integers,
    ) -> Floats:
        """Returns, for the estimate of each range of ticks, the sum of the squared weights of the
        noise: its variance for noise of variance 1.
        """
        ...

    def largest(
        self,
        after: int,
        upto: int,
    ) -> float:
        """Returns the largest weight of the noise of any released integer in the estimate of a
        range.
        """
        ...

    def rounding(
        self,
        after: int,
        upto: int,
    ) -> float:
        """Returns an upper bound of the error of a range's estimate that is due to rounding in the
        encoder.
        """
        ...


def decoder_of(encoder: Encoder, cells: int = 1) -> Decoder:
    """Returns the decoder for an encoder, in its state before the first tick."""
    if isinstance(encoder, Tree):
        return Blocks(encoder, cells)
    assert isinstance(encoder, SquareRoot | Buffered), "there is no other"
    return Toeplitz(encoder, cells)


class Toeplitz:
    """The decoder of Toeplitz encoders: each row is the same weighted sum of past inputs.

    The inverse is such a weighted sum too. It is the only unbiased linear estimate, as there is one
    row for each input.

    >>> found = Toeplitz(SquareRoot(4, 4), 1)
    >>> for row in (1.0, 1.5, 1.875):
    ...     found.push(np.array([row * 2**18]))
    >>> found.total(0, 3), found.squared(np.array([0]), np.array([3])) * 2**36
    (array([3.]), array([1.390625]))
    """

    def __init__(
        self,
        encoder: SquareRoot | Buffered,
        cells: int,
    ) -> None:
        self._encoder = encoder
        self._totals = [np.zeros(cells)]
        self._inverse = _inverse_of(encoder, cells)

    @property
    def _sums(self) -> Floats:
        """The weights of the rows in a running total, by age."""
        return _sums(self._encoder)

    def push(self, row: Floats) -> None:
        """Subtracts the estimated contributions of older inputs from a row."""
        newest = self._inverse.input(row / self._encoder.unit)
        self._totals.append(self._totals[-1] + newest)

    def total(
        self,
        after: int,
        upto: int,
    ) -> Floats:
        """Returns the difference of two running totals."""
        return self._totals[upto] - self._totals[after]

    def squared(
        self,
        after: Integers,
        upto: Integers,
    ) -> Floats:
        """Uses prefix sums for running totals and windows of one width, else single sums."""
        if not after.any():
            return _squares(self._encoder, self._encoder.steps)[upto - 1]
        widths = np.unique(upto - after)
        if len(widths) == 1:
            return _squares(self._encoder, int(widths[0]))[upto - 1]
        ends = zip(after.tolist(), upto.tolist(), strict=True)
        return np.array([_squares(self._encoder, last - first)[last - 1] for first, last in ends])

    def largest(
        self,
        after: int,
        upto: int,
    ) -> float:
        """Returns an upper bound: the weight of the newest row."""
        return float(self._sums[0])

    def rounding(
        self,
        after: int,
        upto: int,
    ) -> float:
        """Returns the bound for two steps of error in each row of a buffered encoder (Cauchy)."""
        if not self._encoder.slack:
            return 0.0
        (squared,) = self.squared(np.array([after]), np.array([upto]))
        return 2 * math.sqrt(upto * float(squared))


class _Inverse(Protocol):
    """Finds the input of the next tick from its row, in units of coefficient 1."""

    def input(self, row: Floats) -> Floats: ...


def _inverse_of(encoder: SquareRoot | Buffered, cells: int) -> _Inverse:
    if isinstance(encoder, Buffered):
        return _Buffers(encoder, cells)
    return _Bands(encoder, cells)


class _Bands:
    """The inverse of a banded encoder: it remembers as many estimates as there are bands."""

    def __init__(
        self,
        encoder: SquareRoot,
        cells: int,
    ) -> None:
        self._weights = encoder.coefficients / encoder.unit
        self._inputs = np.zeros((0, cells))

    def input(self, row: Floats) -> Floats:
        """Returns the row without the older inputs."""
        older = self._weights[1 : 1 + len(self._inputs)]
        found: Floats = row - older[::-1] @ self._inputs
        kept = np.concatenate([self._inputs, found[None]])
        self._inputs = kept[max(len(kept) + 1 - len(self._weights), 0) :]
        return found


class _Buffers:
    """The inverse of a buffered encoder: the same buffers, of estimates."""

    def __init__(
        self,
        encoder: Buffered,
        cells: int,
    ) -> None:
        self._rates = np.array(encoder.rates, float)[:, None] / _ONE
        self._weights = np.array(encoder.weights, float) / _ONE
        self._buffers = np.zeros((len(encoder.rates), cells))

    def input(self, row: Floats) -> Floats:
        """Returns the row without the older inputs."""
        faded = self._buffers * self._rates
        found: Floats = (row - self._weights @ faded) / self._weights.sum()
        self._buffers = faded + found
        return found


class Blocks:
    """The decoder of tree encoders: a range is the sum of the largest blocks that fit in it.

    >>> Blocks(Tree(8, 2, (1, 1, 1)), 1).blocks(0, 7)
    [(0, 7), (1, 6), (2, 4)]
    """

    def __init__(
        self,
        encoder: Tree,
        cells: int,
    ) -> None:
        self._encoder = encoder
        self._cells = cells
        self._rows: list[Floats] = []

    def push(self, row: Floats) -> None:
        """Stores the blocks that end with this tick, from single ticks upwards."""
        self._rows.append(row)

    def blocks(
        self,
        after: int,
        upto: int,
    ) -> list[tuple[int, int]]:
        """Returns the blocks that add up to a range, each as (level, last tick)."""
        found = []
        while after < upto:
            level = self._level(after, upto)
            found.append((level, upto))
            upto -= self._encoder.base**level
        return found

    def _level(
        self,
        after: int,
        upto: int,
    ) -> int:
        """Returns the level of the largest block that ends with a tick and begins in the range."""
        fitting = [
            level
            for level in self._encoder.complete(upto)
            if upto - self._encoder.base**level >= after
        ]
        return max(fitting)

    def total(
        self,
        after: int,
        upto: int,
    ) -> Floats:
        """Returns the sum of the blocks."""
        total = np.zeros(self._cells)
        for level, tick in self.blocks(after, upto):
            place = self._encoder.complete(tick).index(level) * self._cells
            block = self._rows[tick - 1][place : place + self._cells]
            total += block / self._encoder.weights[level]
        return total

    def squared(
        self,
        after: Integers,
        upto: Integers,
    ) -> Floats:
        """Returns the number of blocks of each level, times the level's squared weight, summed."""
        counts = block_counts(self._encoder, after, upto)
        weights: Floats = 1 / np.array(self._encoder.weights, float) ** 2
        found: Floats = counts @ weights
        return found

    def largest(
        self,
        after: int,
        upto: int,
    ) -> float:
        """Returns one over the smallest weight of the levels that a range uses."""
        return max(1 / self._encoder.weights[level] for level, _ in self.blocks(after, upto))

    def rounding(
        self,
        after: int,
        upto: int,
    ) -> float:
        """Returns 0: a tree does not round."""
        return 0.0


def block_counts(
    tree: Tree,
    after: Integers,
    upto: Integers,
) -> Floats:
    """Returns the number of blocks of each tree level that make up a range of ticks, for many
    ranges.

    Range i begins after the tick ``after[i]`` and ends with the tick ``upto[i]``.
    """
    base = tree.base
    low, high = after.copy(), upto.copy()
    counts = np.zeros((len(low), len(tree.weights)))
    for level in range(len(tree.weights) - 1):
        left = np.minimum(-low % base, high - low)
        low += left
        right = np.minimum(high % base, high - low)
        high -= right
        counts[:, level] = left + right
        low //= base
        high //= base
    counts[:, -1] = high - low
    return counts


def buffered(steps: int) -> Buffered:
    """Returns the buffered encoder whose coefficients approximate the square root of the matrix of
    running totals.

    C(2k, k) / 4^k is the mean of rate^k under the arcsine law. The integral over the logarithm of
    the rate's age is taken at equidistant points, with an error of exp(-pi^2 / 1.5). Ages beyond
    the stream's length do not decay; ages below a tick decay at once.
    """
    ages = np.arange(_FIRST, math.log(steps) + _BEYOND, _STRIDE)
    fading = 1 / (1 + np.exp(ages))
    shares = _STRIDE / math.pi * np.sqrt(fading * (1 - fading))
    lasting = 2 / math.pi * math.exp(-(ages[-1] + _STRIDE / 2) / 2)
    rates = [_ONE - _rounded(each) for each in fading]
    weights = [_rounded(each) for each in (*shares, lasting)]
    gone = _ONE - sum(weights)
    return Buffered(steps, (*rates, _ONE, 0), (*weights, gone))


def tree(
    steps: int,
    base: int,
    needs: Floats,
) -> Tree:
    """Returns the tree encoder with the level weights of least variance, given how often queries
    use the blocks of each level.

    ``needs`` is the number of blocks of each level that the queries use. At a given sum of weights,
    the sum of needs / weight^2 is smallest for weights proportional to the cube roots.
    """
    roots = np.cbrt(np.maximum(needs, needs.max() / 1000))
    weights = np.maximum(np.round(roots / roots.max() * 2**8), 1)
    return Tree(steps, base, tuple(int(weight) for weight in weights))


def levels(steps: int, base: int) -> int:
    """Returns the number of tree levels whose blocks fit in the stream."""
    count = 1
    while base**count <= steps:
        count += 1
    return count


def _rounded(value: float) -> int:
    """Returns a number from 0 to 1 in steps of 2^-48, rounded to 16 binary digits."""
    fine = round(value * _ONE)
    spare = max(fine.bit_length() - _DIGITS, 0)
    return (fine >> spare) << spare


@lru_cache(maxsize=2)
def _sums(encoder: SquareRoot | Buffered) -> Floats:
    """The power series of 1 / ((1 - z) C(z)), for the encoder's coefficients C, in steps."""
    steps = encoder.steps
    coefficients = np.zeros(steps)
    if isinstance(encoder, SquareRoot):
        coefficients[: encoder.bands] = encoder.coefficients
    else:
        coefficients = _faded(encoder)
    return np.cumsum(inverse(coefficients / encoder.unit)) / encoder.unit


@lru_cache(maxsize=2)
def _squares(encoder: SquareRoot | Buffered, width: int) -> Floats:
    """The sum of the squared weights of the rows in a window, by its end: it begins at 0."""
    sums = _sums(encoder)
    moved = sums.copy()
    moved[width:] -= sums[: len(sums) - width]
    return np.cumsum(moved**2)


def _faded(encoder: Buffered) -> Floats:
    """Returns the coefficients of a buffered encoder, as floats."""
    ages = np.arange(encoder.steps)
    coefficients = np.zeros(encoder.steps)
    for rate, weight in zip(encoder.rates, encoder.weights, strict=True):
        coefficients += weight / _ONE * (rate / _ONE) ** ages
    return coefficients * encoder.unit


def inverse(series: Floats) -> Floats:
    """Returns the inverse of a power series, by Newton's iteration with fast Fourier transforms.

    >>> inverse(np.array([2.0, 1.0, 0.0]))
    array([ 0.5  , -0.25 ,  0.125])
    """
    terms = np.array([1 / series[0]])
    while len(terms) < len(series):
        done, size = len(terms), min(2 * len(terms), len(series))
        # what wraps around in a product of this length lands on the terms that are known
        points = 1 << (size - 1).bit_length()
        known = np.fft.rfft(terms, points)
        product = np.fft.rfft(series[:size], points)
        product *= known
        left = np.fft.irfft(product, points)[done:size]
        product = np.fft.rfft(left, points)
        product *= known
        terms = np.concatenate([terms, -np.fft.irfft(product, points)[: size - done]])
    return terms

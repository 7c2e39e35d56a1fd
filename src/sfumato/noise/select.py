# SPDX-License-Identifier: Apache-2.0
"""Exact selection of one candidate by score: the exponential mechanism and permute-and-flip.

Rejection sampling: a candidate is proposed with a power of two that is at least its weight, then
accepted with the exact ratio of the two. Floats only compute these powers, and may only make them
too large; every decision is made with integers. Source: McSherry and Talwar (FOCS 2007); McKenna
and Sheldon (NeurIPS 2020). Proof: select.proof.md.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rational import positive
from sfumato.exact.rounding import float_down, log_up
from sfumato.noise.entropy import SYSTEM, Entropy, below
from sfumato.noise.law import Integers
from sfumato.noise.lazy_uniform import Bounds, is_below

Vector: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
Scores: TypeAlias = Vector | Sequence[int] | Sequence[float] | Sequence[Fraction]
Weights: TypeAlias = NDArray[np.int64] | Sequence[int]

# 128 KiB of int64: arrays of this size stay in the cache, and the allocator reuses them.
_BLOCK = 1 << 14
_MOST = 1 << 40
# The largest power of the exponential mechanism is 2^_TOP, so that a block's sum fits an int64.
_TOP = 48
# The coins of permute-and-flip are first drawn with a power of two >= 2^-16: 16 bits a candidate.
_FLIPS = 16
_FAR = 1 << 62
_ADDABLE = 1 << 61
# A lower bound of log2(e).
_BITS_A_NAT = 1 / log_up(Fraction(2))
_SLACK = 1 - Fraction(1, 2**50)
_HUGE = 2.0**500


def exponential(
    scores: Scores,
    rate: Fraction,
    entropy: Entropy = SYSTEM,
    *,
    weights: Weights | None = None,
) -> int:
    """Draws the index i of a candidate with probability proportional to w_i exp(rate u_i), exactly.

    ``scores`` are the u_i: an array of integers or floats (their exact binary values), or a
    sequence of ints, floats or Fractions. ``weights`` are the w_i, integers >= 1, by default 1.

    Guarantees:
        candidates are drawn in proportion to their exponential weights

    Raises:
        InvalidDeclaration: there are no candidates, more than 2^40, or a wrong number of weights.
        InvalidNumber: a score is not finite, a weight is below 1, or the rate is not above 0.

    >>> exponential([0, 10**6, 3], Fraction(1))
    1
    """
    majorant = _Majorant.over(_gaps(scores, rate), weights)
    blocks = _blocks(majorant.gaps.count)
    sums = (int(majorant.powers(block).sum()) for block in blocks)
    ends = list(accumulate(sums))
    while True:
        at, rest = _locate(ends, below(ends[-1], entropy))
        powers = majorant.powers(blocks[at])
        offset = int(np.searchsorted(np.cumsum(powers), rest, side="right"))
        index = at * _BLOCK + offset
        ratio = majorant.ratio(index, int(powers[offset]))
        if is_below(ratio, entropy):
            return index


def permute_and_flip(scores: Scores, rate: Fraction, entropy: Entropy = SYSTEM) -> int:
    """Draws a candidate: the first in random order whose coin, exp(rate (u_i - max u)), is heads.

    Implemented as a uniform choice among all candidates whose coin is heads, which has the same
    distribution. Scores and errors are those of ``exponential``.

    Guarantees:
        candidates are drawn as by permuting and flipping

    >>> permute_and_flip([0, 10**6, 3], Fraction(1))
    1
    """
    gaps = _gaps(scores, rate)
    blocks = _blocks(gaps.count)
    heads = []
    for block in blocks:
        flips = _halvings(gaps.bits(block, _FLIPS), entropy)
        heads.append(np.packbits(flips))
    counts = [int(np.bitwise_count(packed).sum()) for packed in heads]
    while True:
        at, rank = _locate(list(accumulate(counts)), below(sum(counts), entropy))
        flags = np.unpackbits(heads[at])
        offset = int(np.flatnonzero(flags)[rank])
        index = at * _BLOCK + offset
        halvings = int(gaps.bits(slice(index, index + 1), _FLIPS)[0])
        ratio = partial(_bounds, 1, gaps.exact(index), halvings)
        if is_below(ratio, entropy):
            return index
        flags[offset] = 0
        heads[at] = np.packbits(flags)
        counts[at] -= 1


def vector(name: str, values: Scores | Weights) -> NDArray[Any] | Sequence[Any]:
    """Returns ``values`` as an int64 or float64 array if that is exact, else as a list of exact
    numbers.

    ``name`` is used in errors.

    >>> vector("scores", [1, 2]).dtype, vector("scores", [1, Fraction(1, 2)])
    (dtype('int64'), [1, Fraction(1, 2)])
    """
    if isinstance(values, np.ma.MaskedArray) or not isinstance(values, np.ndarray | Sequence):
        raise _unfit(f"{name} of type {type(values).__name__}")
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind not in "iubfO"):
        raise _unfit(f"{name} of dtype {values.dtype} and shape {values.shape}")
    if not 1 <= len(values) <= _MOST:
        raise _unfit(f"{len(values)} candidates")
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "f" and values.dtype.itemsize <= 8:
            return np.asarray(values, np.float64)
        if values.dtype.kind in "iub" and np.can_cast(values.dtype, np.int64):
            return np.asarray(values, np.int64)
        values = values.tolist()
    kinds = set(map(type, values))
    if not all(issubclass(kind, int | float | Fraction) for kind in kinds):
        raise _unfit(f"{name} that are not all int, float or Fraction")
    if all(issubclass(kind, float) for kind in kinds):
        return np.array(values, np.float64)
    all_whole = all(issubclass(kind, int) for kind in kinds)
    if all_whole and min(values) >= -(2**63) and max(values) < 2**63:
        return np.array(values, np.int64)
    return values


def integers(name: str, values: Integers | Sequence[int]) -> NDArray[Any]:
    """Returns ``values`` as an array of integers whose sums and differences do not overflow.

    The dtype is int64 for small entries, else object (Python integers). ``name`` is used in errors.

    >>> integers("scores", [1, 2]).dtype, integers("scores", [2**62]).dtype
    (dtype('int64'), dtype('O'))
    """
    exact = vector(name, values)
    if isinstance(exact, np.ndarray) and exact.dtype == np.int64:
        largest = max(-exact.min().item(), exact.max().item())
        return exact if largest <= _ADDABLE else exact.astype(object)
    if isinstance(exact, np.ndarray) or not all(isinstance(value, int) for value in exact):
        raise InvalidNumber(f"{name} that are not integers.", allowed="integers")
    return np.array([*map(int, exact)], object)


class _Gaps(Protocol):
    """The gaps g_i = rate (max u - u_i), exactly and in powers of two, rounded down."""

    @property
    def count(self) -> int: ...

    def exact(self, index: int) -> Fraction:
        """g_i."""
        ...

    def bits(self, block: slice, most: int) -> Integers:
        """Integers 0 <= j_i <= min(g_i / ln 2, ``most``); 0 if g_i = 0."""
        ...


@dataclass(frozen=True, slots=True)
class _Array:
    """Gaps of int64 or float64 scores."""

    scores: Vector
    best: int | float
    rate: Fraction
    factor: float

    @property
    def count(self) -> int:
        return len(self.scores)

    def exact(self, index: int) -> Fraction:
        gap = Fraction(self.best) - Fraction(self.scores.item(index))
        return self.rate * gap

    def bits(self, block: slice, most: int) -> Integers:
        differences: NDArray[Any] = self.best - self.scores[block]
        if differences.dtype == np.int64:
            # the subtraction wraps around modulo 2^64; as unsigned integers it is exact
            differences = differences.view(np.uint64)
        bits: NDArray[np.float64] = np.multiply(differences, self.factor, dtype=np.float64)
        np.minimum(bits, float(most), out=bits)
        whole: Integers = bits.astype(np.int64)
        return whole


@dataclass(frozen=True, slots=True)
class _Listed:
    """Gaps of scores of any size, as Fractions."""

    gaps: Sequence[Fraction]
    floors: Integers

    @property
    def count(self) -> int:
        return len(self.gaps)

    def exact(self, index: int) -> Fraction:
        return self.gaps[index]

    def bits(self, block: slice, most: int) -> Integers:
        return np.minimum(self.floors[block], most)


@dataclass(frozen=True, slots=True)
class _Majorant:
    """Powers of two 2^(_TOP - s_i), each at least w_i e^-g_i times one common factor.

    ``leads`` are the j_i - b_i, where w_i <= 2^b_i and j_i are the ``bits`` of the gaps; ``floor``
    is the least of them.
    """

    gaps: _Gaps
    weights: Weights | None
    leads: Integers | None
    floor: int

    @classmethod
    def over(cls, gaps: _Gaps, weights: Weights | None) -> "_Majorant":
        """The majorant whose largest power is 2^_TOP."""
        if weights is None:
            return cls(gaps, None, None, 0)
        whole = _whole(weights, gaps.count)
        leads = np.empty(gaps.count, np.int64)
        for block in _blocks(gaps.count):
            np.subtract(gaps.bits(block, _FAR), _sizes(whole[block]), out=leads[block])
        return cls(gaps, whole, leads, int(leads.min()))

    def powers(self, block: slice) -> Integers:
        """The powers of a block of candidates, integers from 1 to 2^_TOP."""
        shifts = self._shifts(block)
        return np.right_shift(1 << _TOP, shifts, out=shifts)

    def _shifts(self, block: slice) -> Integers:
        """The s_i of a block, as a new array."""
        if self.leads is None:
            return self.gaps.bits(block, _TOP)
        return np.minimum(self.leads[block] - self.floor, _TOP)

    def ratio(self, index: int, power: int) -> Bounds:
        """Bounds of the exact weight of a candidate over its ``power``: at most 1."""
        weight = 1 if self.weights is None else int(self.weights[index])
        shift = _TOP + 1 - power.bit_length() + self.floor
        return partial(_bounds, weight, self.gaps.exact(index), shift)


def _sizes(weights: Weights) -> Integers:
    """Integers b_i with w_i <= 2^b_i."""
    if isinstance(weights, np.ndarray):
        sizes: Integers = np.frexp(weights)[1]
        return sizes
    return np.array([(weight - 1).bit_length() for weight in weights], np.int64)


def _bounds(
    weight: int,
    gap: Fraction,
    shift: int,
    precision: int,
) -> tuple[int, int]:
    """Integers lower <= 2^precision weight e^-gap 2^shift <= upper."""
    inner = max(precision + shift + weight.bit_length(), 0)
    lower, upper = exp_scaled(gap.numerator, gap.denominator, inner)
    excess = inner - precision - shift
    return weight * lower >> excess, -(-weight * upper >> excess)


def _halvings(counts: Integers, entropy: Entropy) -> NDArray[np.bool_]:
    """Draws independent booleans, the i-th True with probability 2^-counts[i], counts <= _FLIPS."""
    drawn = np.empty(len(counts), "<u2")
    entropy.fill(drawn.view(np.uint8))
    return drawn < np.right_shift(1 << _FLIPS, counts)


def _blocks(count: int) -> list[slice]:
    """The slices that cut ``count`` candidates into blocks."""
    starts = range(0, count, _BLOCK)
    return [slice(start, start + _BLOCK) for start in starts]


def _locate(ends: list[int], point: int) -> tuple[int, int]:
    """The index of the interval that contains ``point``, and the offset in it.

    ``ends`` are the ends of adjacent intervals; the first begins at 0.
    """
    at = bisect_right(ends, point)
    return at, point - (ends[at - 1] if at else 0)


def _gaps(scores: Scores, rate: Fraction) -> _Gaps:
    rate = positive("rate", rate)
    values = vector("scores", scores)
    if not isinstance(values, np.ndarray):
        return _listed(values, rate)
    best = values.max().item()
    whole = values.dtype == np.int64
    worst = best if whole else values.min().item()
    if not (math.isfinite(best) and math.isfinite(worst)):
        raise _not_finite()
    factor = float_down(rate * _BITS_A_NAT * _SLACK)
    if best - worst < _HUGE and factor < _HUGE:
        return _Array(values, best, rate, factor)
    return _listed(values.tolist(), rate)


def _listed(scores: Sequence[int | float | Fraction], rate: Fraction) -> _Listed:
    try:
        values = [Fraction(score) for score in scores]
    except (ValueError, OverflowError):
        raise _not_finite() from None
    best = max(values)
    gaps = [rate * (best - value) for value in values]
    floors = [min(int(gap * _BITS_A_NAT), _FAR) for gap in gaps]
    return _Listed(gaps, np.array(floors, np.int64))


def _whole(weights: Weights, count: int) -> Weights:
    """Returns the weights after a check that they are integers >= 1, one per candidate."""
    values = vector("weights", weights)
    if len(values) != count:
        raise _unfit(f"{len(values)} weights for {count} candidates")
    if isinstance(values, np.ndarray):
        if values.dtype == np.int64 and values.min() >= 1:
            return values
    elif all(isinstance(value, int) and value >= 1 for value in values):
        return values
    raise InvalidNumber("A weight that is not an integer >= 1.", allowed="integers >= 1")


def _unfit(problem: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"{problem}.",
        allowed="an array of integers or floats of one dimension, or a sequence of int, float or "
        "Fraction, with one entry for each of 1 to 2^40 candidates",
    )


def _not_finite() -> InvalidNumber:
    return InvalidNumber("A score is NaN or infinite.", allowed="finite scores")

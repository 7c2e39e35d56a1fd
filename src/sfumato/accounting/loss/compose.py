# SPDX-License-Identifier: Apache-2.0
"""Adds independent privacy losses on lattices: powers by the fast Fourier transform, and products.

A ``Lattice`` is a rounded loss distribution with bounds of its errors. In a sum the roundings
(``blur``, ``shift``, ``travel``) add up, ``hidden`` (mass left out) grows as the probability of at
least one event, ``relative`` is the largest, and the absolute ``error`` of the weights takes in the
transform's own; ``tilt`` stays. Proof: compose.proof.md.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count as counted
from typing import Any, TypeAlias

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from sfumato.accounting.loss.edges import ROUNDOFF, Floats
from sfumato.accounting.loss.lattice import LOST, Lattice, norm
from sfumato.errors import InvalidNumber, shown

Reals: TypeAlias = NDArray[np.floating[Any]]
Spectrum: TypeAlias = NDArray[np.complexfloating[Any, Any]]

# ||computed - true||_2 <= 20 u (1 + log2(N)) ||true||_2 for transforms of 5-smooth length N
_TRANSFORM = 20
# If the error of a transform exceeds the allowed loss by this factor, it is computed in extended
# precision.
_WORSE = 100
# Two lattices are convolved directly if the shorter length times that of the sum is at most this.
_DIRECT = 2**16
# Lattices with at most this many points in all are convolved at once.
_SMALL_BATCH = 2**11
# Odd products of 3 and 5; times powers of two they are the lengths of fast transforms.
_ODD = tuple(int(3**three * 5**five) for three in range(20) for five in range(14))
# The most copies that one transform adds up.
_LONGEST_POWER = 256
# Transforms may always have this many points; sums over fewer are not cut to a window.
_SHORT = 2**14
# The rates t of the Chernoff bound that ``_least_reach`` tries.
_RATES = 12
# Sums with at most this many points are not cropped while many losses are merged.
_UNCROPPED = 2**9
# The assumed width of a distribution on one point; it only guides choices.
_NARROWEST = 1e-3
# Logarithms from here on count as infinite, before e^x overflows.
_LARGEST_LOG = 700.0
# The most copies in one fold that may be in the tail.
_SELDOM = 3


def coarsen(x: Lattice) -> Lattice:
    """Returns the distribution of a privacy loss on a lattice with twice the step: every other
    point is divided among its neighbours.

    Guarantees:
        coarsening keeps the mass of both laws
    """
    weights = x.weights
    start = x.start
    step = x.step
    if start % 2:
        weights = np.concatenate([[0.0], weights])
        start -= 1
    if len(weights) % 2 == 0:
        weights = np.concatenate([weights, [0.0]])
    even = weights[::2].copy()
    odd = weights[1::2]
    up = 1 / (1 + math.exp(-step))
    even[1:] += odd * (math.exp(x.tilt * step) * up)
    even[:-1] += odd * (math.exp(-(1 + x.tilt) * step) * up)
    rounding = 16 * ROUNDOFF * (1 + x.tilt * step) * float(even.sum())
    error = x.error * math.exp(x.tilt * step) + rounding
    blur = x.blur
    if odd.any():
        blur += step**2
    coarse = replace(x, step=2 * step, start=start // 2, weights=even, error=error, blur=blur)
    return coarse.scaled()


def product(first: Lattice, *others: Lattice) -> Lattice:
    """Returns the distribution of the sum of independent privacy losses, by convolution.

    Guarantees:
        the product of losses holds the law of their sum
    """
    parts = _align_steps([first, *others])
    arrays = [part.weights for part in parts]
    length = sum(len(array) for array in arrays) - len(arrays) + 1
    shortest = min(len(array) for array in arrays)
    start = sum(part.start for part in parts)
    if len(parts) == 2 and shortest * length <= _DIRECT:
        weights = np.convolve(arrays[0], arrays[1])
        rounding = 2 * ROUNDOFF * (1 + shortest) * float(weights.sum())
        return _add_copies(parts, 1, start, weights, lost=rounding)
    size = _quick_length(length)
    table = np.zeros((len(arrays), size))
    for row, array in zip(table, arrays, strict=True):
        row[: len(array)] = array
    around = fft.irfft(fft.rfft(table).prod(axis=0), size)
    weights = np.maximum(around[:length], 0.0)
    off = _transform_error(size) * max(part.norm for part in parts)
    return _add_copies(parts, 1, start, weights, lost=_inverse_error(around), off=off)


def power(x: Lattice, times: int, budget: float, *, lost: float = LOST) -> Lattice:
    """Returns the distribution of the sum of ``times`` independent copies of a privacy loss.

    ``budget`` is the total blur that coarsening may add, ``lost`` the weight that windows and crops
    may lose.

    Guarantees:
        a power holds the law of the sum of so many
    """
    rest: Lattice | None = None
    while times > 1:
        x = x.cropped(lost / (4 * times))
        count = _copies_at_once(x, times)
        times, left = divmod(times, count)
        counts = [count]
        if left:
            counts.append(left)
        x, *others = _sums_of_copies(x, counts, lost / (4 * times))
        for other in others:
            rest = other if rest is None else product(rest, other)
        x = x.cropped(lost / (4 * times))
        while times * x.step**2 <= budget / 4:
            budget -= times * x.step**2
            x = coarsen(x)
    if rest is None:
        return x
    return product(x, rest)


def folded(body: Lattice, tail: Lattice, times: int, uses: int, *, lost: float = LOST) -> Lattice:
    """Returns the distribution of the sum of ``times`` copies of a privacy loss that is in ``body``
    or, rarely, in ``tail``.

    The tail has a coarser lattice. Sums with more than ``_SELDOM`` losses in it are left out.
    ``uses``: how often the result will be added up, which bounds what it may lose.

    Guarantees:
        a folded loss holds the law of the sum
    """
    lost /= 4 * uses
    odds = math.exp(tail.log_mass - body.log_mass)
    most = min(_SELDOM, times)
    sums = _sums_of_copies(body, [times - hits for hits in range(most + 1)], lost)
    terms: list[Lattice] = []
    jumps = tail
    for hits, term in enumerate(sums):
        ways = math.comb(times, hits)
        while term.step < 0.75 * tail.step:
            term = coarsen(term)
        if hits > 1:
            jumps = product(jumps, tail)
        if hits:
            factor = ways * odds**hits
            jumps = jumps.cropped(min(lost / factor, 0.25))
            term = product(term, jumps)
        terms.append(replace(term, log_mass=term.log_mass + math.log(ways)))
    rest = 0.0
    if most < times:
        mean = times * odds
        rest = mean ** (most + 1) / math.factorial(most + 1) * math.exp(mean)
    whole = _mix(terms)
    hidden = _at_least_once(body.hidden + tail.hidden, times)
    whole = replace(whole, error=whole.error + rest * 1.01, hidden=hidden)
    return whole.cropped(lost)


def merge(parts: Sequence[Lattice], budget: float, *, lost: float = LOST) -> Lattice:
    """Returns the distribution of the sum of all ``parts`` (privacy losses); those of least
    variance are added first.

    ``budget`` and ``lost`` are as for ``power``.

    Guarantees:
        a merge holds the law of the sum of all
    """
    order = counted()
    heap = [(part.moments()[1], next(order), part) for part in parts]
    variance = sum(entry[0] for entry in heap)
    levels = 1 + math.ceil(math.log2(len(heap)))
    # the variance is divided among the blocks of a level, so every level has the same share of the
    # budget
    fine = budget / (2 * levels * variance) if variance > 0 else 0.0
    lost /= 4 * len(heap)
    heapq.heapify(heap)
    while len(heap) > 1:
        block: list[Lattice] = []
        spread = 0.0
        points = 0
        while heap and (len(block) < 2 or points + len(heap[0][2].weights) <= _SMALL_BATCH):
            least, _, part = heapq.heappop(heap)
            spread += least
            points += len(part.weights)
            block.append(part)
        whole = product(*block)
        if len(whole.weights) > _UNCROPPED:
            whole = whole.cropped(lost)
        while whole.step**2 <= fine * spread:
            whole = coarsen(whole)
        heapq.heappush(heap, (spread, next(order), whole))
    return heap[0][2]


def _align_steps(parts: list[Lattice]) -> list[Lattice]:
    """Returns the parts, each coarsened to the step of the coarsest; steps must be powers of two
    apart.
    """
    widest = max(part.step for part in parts)
    for place, part in enumerate(parts):
        while part.step < 0.75 * widest:
            part = coarsen(part)
        if part.step != widest:
            raise InvalidNumber(
                f"Lattices of steps {shown(part.step)} and {shown(widest)}.",
                allowed="steps a power of two apart",
            )
        parts[place] = part
    return parts


def _add_copies(
    parts: Sequence[Lattice],
    times: int,
    start: int,
    weights: Floats,
    *,
    lost: float,
    off: float = 0.0,
) -> Lattice:
    """Returns the lattice with the given weights as the sum of ``times`` copies of each part.

    Combines the error bounds of the parts. ``lost`` is the weight that may be wrong in the result,
    ``off`` the possible error of each part's transform.
    """
    if any(part.cap for part in parts):
        raise InvalidNumber("A sum with a cap cannot be added to.", allowed="sums without a cap")
    logs = sum(math.log(max(part.total + off, 1.0)) for part in parts)
    grows = _exp(times * logs * (1 + 2.0**-30))
    log_masses = [times * part.log_mass for part in parts]
    errors = sum(part.error for part in parts) + len(parts) * off
    error = times * errors + _written(*log_masses)
    return replace(
        parts[0],
        start=start,
        weights=weights,
        log_mass=sum(log_masses),
        blur=times * sum(part.blur for part in parts),
        shift=times * sum(part.shift for part in parts),
        error=error * grows + lost,
        hidden=_at_least_once(sum(part.hidden for part in parts), times),
        relative=max(part.relative for part in parts),
        travel=times * sum(part.travel for part in parts),
    )


def _at_least_once(chance: float, times: int) -> float:
    """An upper bound of the probability that an event of probability ``chance`` happens at least
    once.
    """
    if chance >= 1:
        return 1.0
    log_none = times * math.log1p(-chance)
    return -math.expm1(log_none) * (1 + 2.0**-40)


def _transform_error(size: int, roundoff: float = ROUNDOFF) -> float:
    """The total error, relative to the norm, of a transform of that size and of the multiplication
    after it.
    """
    levels = 1 + math.log2(size)
    return 1.3 * math.sqrt(size) * _TRANSFORM * roundoff * levels


def _inverse_error(around: Reals, roundoff: float = ROUNDOFF) -> float:
    """The total error of the inverse transform and of rounding the result to floats."""
    size = len(around)
    back = norm(around.astype(np.float64))
    relative = _TRANSFORM * roundoff * (1 + math.log2(size))
    if roundoff < ROUNDOFF:
        relative += ROUNDOFF
    return 1.1 * math.sqrt(size) * relative * back


def _exp(number: float) -> float:
    """e^number; infinity on overflow, which proves nothing and is no error."""
    return math.exp(number) if number < _LARGEST_LOG else math.inf


@lru_cache(maxsize=1024)
def _quick_length(least: int) -> int:
    """The smallest 2^a 3^b 5^c from ``least`` on (b < 20, c < 14)."""
    lengths: list[int] = [odd << (-(-least // odd) - 1).bit_length() for odd in _ODD]
    return min(lengths)


def _copies_at_once(x: Lattice, times: int) -> int:
    """The number of copies to add in one transform, such that it stays short."""
    _, variance = x.moments()
    points = max(math.sqrt(variance) / x.step, _NARROWEST)
    longest = max(2 * len(x.weights), _SHORT)
    if times <= _LONGEST_POWER and 16 * points * math.sqrt(times) <= 2 * longest:
        return times
    short = int((longest / (16 * points)) ** 2)
    most = min(times, _LONGEST_POWER, max(short, 2))
    return even_share(times, most)


def even_share(times: int, most: int) -> int:
    """Returns the largest divisor of ``times`` that is near ``most``; ``most`` if there is none."""
    for share in range(most, max(most // 3, 1), -1):
        if times % share == 0:
            return share
    return most


def _sums_of_copies(x: Lattice, times: Sequence[int], lost: float) -> list[Lattice]:
    """The sums of several numbers of copies, from one transform."""
    windows = [_window(x, copies, lost) for copies in times]
    longest = max(len(window) for window in windows)
    size = _quick_length(max(longest, len(x.weights)))
    there = _Spectrum.of(x, size, np.float64)
    if max(times) * there.off > _WORSE * lost:
        there = _Spectrum.of(x, size, np.longdouble)
    sums = []
    for copies, window in zip(times, windows, strict=True):
        if copies == 1:
            sums.append(x)
        else:
            sums.append(_inverse_transform(x, there, copies, window, size))
    return sums


def _mix(terms: Sequence[Lattice]) -> Lattice:
    """A mixture of distributions whose weights are parts of a whole; the first is the largest."""
    start = min(term.start for term in terms)
    stop = max(term.start + len(term.weights) for term in terms)
    base = terms[0].log_mass
    weights = np.zeros(stop - start)
    error = 0.0
    for term in terms:
        factor = math.exp(term.log_mass - base)
        begin = term.start - start
        end = begin + len(term.weights)
        weights[begin:end] += factor * term.weights
        error += factor * (term.error + _written(term.log_mass, base))
    whole = replace(
        terms[0],
        start=start,
        weights=weights,
        blur=max(term.blur for term in terms),
        shift=max(term.shift for term in terms),
        error=error,
        hidden=max(term.hidden for term in terms),
        relative=max(term.relative for term in terms),
        travel=max(term.travel for term in terms),
    )
    return whole.scaled()


@dataclass(frozen=True, slots=True)
class _Window:
    """The points from ``first`` to ``last``; a sum has at most ``lost`` of its weight elsewhere."""

    first: int
    last: int
    lost: float

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class _Spectrum:
    """The transform of weights, rotated so that the largest, at ``start``, is point 0; total error
    ``off``.
    """

    values: Spectrum
    start: int
    off: float
    roundoff: float

    @classmethod
    def of(cls, x: Lattice, size: int, digits: type[np.floating[Any]]) -> "_Spectrum":
        """Transforms the largest weight exactly, to a constant, so that most of the error comes
        from the others.
        """
        roundoff = float(np.finfo(digits).eps) / 2
        peak = int(np.argmax(x.weights))
        rest = np.zeros(size, digits)
        rest[: len(x.weights)] = x.weights
        rest[peak] = 0.0
        values = fft.rfft(np.roll(rest, -peak)) + digits(x.weights[peak])
        others = x.weights.copy()
        others[peak] = 0.0
        off = _transform_error(size, roundoff) * norm(others)
        off += 6 * math.sqrt(size) * roundoff * x.norm
        return cls(values, x.start + peak, off, roundoff)


def _inverse_transform(
    x: Lattice, there: _Spectrum, times: int, window: _Window, size: int
) -> Lattice:
    """The sum of ``times`` copies, on its window, from the power of the transform."""
    around = fft.irfft(_power(there.values, times), size)
    turn = (times * there.start - window.first) % size
    kept = np.roll(around, turn)[: len(window)]
    weights = np.maximum(kept, 0.0).astype(np.float64)
    lost = _inverse_error(around, there.roundoff) + 2 * window.lost
    whole = _add_copies([x], times, window.first, weights, lost=lost, off=there.off)
    return whole.scaled()


def _power(base: Spectrum, times: int) -> Spectrum:
    """base^times by repeated squaring: a relative error of at most 3 u per multiplication."""
    result = np.ones_like(base)
    square = base
    while times:
        if times & 1:
            result = result * square
        times >>= 1
        if times:
            square = square * square
    return result


def _window(x: Lattice, times: int, lost: float) -> _Window:
    """Chernoff: weight beyond b is at most e^(-t b) G(t)^times, for every t > 0 on either side."""
    first = times * x.start
    last = times * (x.start + len(x.weights) - 1)
    if times == 1 or last - first < _SHORT:
        return _Window(first, last, 0.0)
    mean, variance = x.moments()
    middle = round(mean / x.step)
    spread = max(math.sqrt(variance) / x.step, _NARROWEST)
    chance = -math.log(lost / 2)
    rate = math.sqrt(2 * chance / times) / spread
    below = math.ceil(_least_reach(x, times, middle, -rate, chance)) + 1
    above = math.ceil(_least_reach(x, times, middle, rate, chance)) + 1
    centre = times * middle
    return _Window(max(first, centre - below), min(last, centre + above), lost)


def _least_reach(x: Lattice, times: int, middle: int, rate: float, chance: float) -> float:
    """The least reach (in steps) over some rates: the first suits a normal, smaller ones heavy
    tails.
    """
    least = math.inf
    for _ in range(_RATES):
        block = max(1, int(1 / (abs(rate) * math.sqrt(times))))
        grown = times * _log_transform(x.weights, x.start - middle, rate, block)
        reach = (grown + chance) / abs(rate)
        if reach >= least:
            break
        least = reach
        rate /= 2
    return least * (1 + 2.0**-40)


def _log_transform(weights: Floats, start: int, rate: float, block: int) -> float:
    """Returns an upper bound of ln of the sum of weight e^(rate * point)."""
    if block > 1:
        padded = np.zeros(-(-len(weights) // block) * block)
        padded[: len(weights)] = weights
        table = padded.reshape(-1, block)
        upper = (table * (np.arange(block) / (block - 1))).sum(axis=1)
        lower = np.maximum(table.sum(axis=1) - upper, 0.0)
    else:
        lower, upper = weights, np.zeros(1)
    points = (start + block * np.arange(len(lower))) * rate
    ends = points + (block - 1) * rate
    peak = float(max(points.max(), ends.max()))
    total = float((lower * np.exp(points - peak)).sum())
    if block > 1:
        total += float((upper * np.exp(ends - peak)).sum())
    return peak + math.log(max(total, 1e-300)) + 2.0**-40 + 2.0**-48 * abs(peak)


def _written(*log_masses: float) -> float:
    """The relative error from rounding the logarithm of a mass."""
    size = sum(abs(mass) for mass in log_masses)
    return 4 * ROUNDOFF * (1 + size)

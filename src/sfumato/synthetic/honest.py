# SPDX-License-Identifier: Apache-2.0
"""The honest check: coarse marginals that the fit never used, compared with synthetic rows.

The report shows the resulting distances and correlations with their noise; released numbers only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.metadata.column import Category
from sfumato.noise import Integers
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.task import Released, check_blocks
from sfumato.synthetic.tree import Clique

# The mean absolute value of noise, in standard deviations; within how many 95% of it lies.
_MEAN, _NORMAL = math.sqrt(2 / math.pi), 1.96


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """A marginal of the check: its blocks' counts in the rows, and the noisy counts."""

    columns: Clique
    rows: Floats
    counted: Floats


@dataclass(frozen=True, slots=True)
class Way:
    """The honest check's result for its marginals of 1, 2 or 3 ``columns``.

    ``distance`` is the mean total variation distance between synthetic rows and noisy counts,
    ``noise`` what noise alone would cause. ``off`` is the typical error of a cell as a share of all
    rows, with the noise taken out; it is 0 where the noise of a cell (``hidden``) is larger.
    """

    columns: int
    marginals: int
    distance: float
    noise: float
    off: float
    hidden: float


@dataclass(frozen=True, slots=True)
class Correlation:
    """The correlation of two ordered columns in the synthetic ``rows`` and in the noisy counts of
    the honest check, by their block numbers, without missing values.

    ``counted`` is the correlation in the noisy counts; its 95% interval is ``error`` wide on either
    side.
    """

    columns: tuple[str, str]
    rows: float
    counted: float
    error: float


def seen_of(
    released: Released,
    cells: Integers,
    weights: Floats | None = None,
) -> tuple[Seen, ...]:
    """Returns the marginals of the honest check: the noisy counts of each, with the counts of the
    synthetic rows.

    ``cells`` are the rows as cell numbers.
    """
    base, marginals = released.base, []
    for clique, noisy in released.checks:
        coarse = []
        for column in clique:
            coarse.append(np.array(check_blocks(base, column))[cells[:, column]])
        flat = np.ravel_multi_index(tuple(coarse), noisy.shape)
        rows = np.bincount(flat, weights, minlength=noisy.size).reshape(noisy.shape)
        marginals.append(Seen(clique, rows.astype(np.float64), noisy))
    return tuple(marginals)


def ways_of(
    base: Base,
    marginals: Sequence[Seen],
) -> tuple[Way, ...]:
    """Returns the honest check's mean distances between synthetic rows and noisy counts, for
    marginals of one, two and three columns.

    Single columns are not counted by the check: they are sums of its larger marginals, weighted by
    precision.
    """
    sigma = base.sigma[2]
    distances_by_ways = []
    singles = _single_columns(marginals, sigma)
    if singles:
        distances_by_ways.append(_mean_distance(base, 1, singles))
    for ways in (2, 3):
        whole = [(each.rows, each.counted, sigma) for each in marginals if each.rows.ndim == ways]
        if whole:
            distances_by_ways.append(_mean_distance(base, ways, whole))
    return tuple(distances_by_ways)


def _single_columns(
    seen: Sequence[Seen],
    sigma: float,
) -> list[tuple[Floats, Floats, float]]:
    """Returns, for each column, its blocks in the rows, in the counts, and the noise of these
    counts.
    """
    single_columns = []
    columns: set[int] = set().union(*(marginal.columns for marginal in seen))
    for column in sorted(columns):
        rows, counted, precision = np.zeros(0), np.zeros(()), 0.0
        for marginal in seen:
            if column not in marginal.columns:
                continue
            axis = marginal.columns.index(column)
            others = tuple(at for at in range(marginal.rows.ndim) if at != axis)
            rows = marginal.rows.sum(axis=others)
            weight = len(rows) / (marginal.rows.size * sigma**2)
            precision += weight
            counted = counted + weight * marginal.counted.sum(axis=others)
        single_columns.append((rows, counted / precision, 1 / math.sqrt(precision)))
    return single_columns


def _mean_distance(
    base: Base,
    ways: int,
    marginals: Sequence[tuple[Floats, Floats, float]],
) -> Way:
    total = base.total
    distances, noises, beyond, hidden = [], [], [], []
    for rows, counted, sigma in marginals:
        apart = rows * (total / max(rows.sum(), 1.0)) - counted
        distances.append(0.5 * float(np.abs(apart).sum()) / total)
        noises.append(0.5 * _MEAN * sigma * rows.size / total)
        beyond.append(float(np.square(apart).mean()) - sigma**2)
        hidden.append(sigma / total)
    off = math.sqrt(max(0.0, float(np.mean(beyond)))) / total
    distance, noise = float(np.mean(distances)), float(np.mean(noises))
    return Way(ways, len(marginals), distance, noise, off, float(np.mean(hidden)))


def correlations(
    base: Base,
    marginals: Sequence[Seen],
) -> tuple[Correlation, ...]:
    """Returns the correlation, in rows and in noisy counts, of each pair of ordered columns that
    the honest check counted together.

    Rows with a missing value are left out. Blocks are numbered in order of their values and scaled
    by the rows, so the counted correlation is a linear function of noisy counts with known noise.
    """
    by_pair: dict[Clique, Correlation] = {}
    ordered = set(_ordered_columns(base))
    for marginal in marginals:
        for axes in combinations(range(marginal.rows.ndim), 2):
            pair = tuple(marginal.columns[axis] for axis in axes)
            if pair in by_pair or not ordered.issuperset(pair):
                continue
            correlation = _correlate_axes(base, marginal, axes)
            if correlation is not None:
                first, second = (base.schema.axes[column].name for column in pair)
                by_pair[pair] = Correlation((first, second), *correlation)
    return tuple(by_pair.values())


def _ordered_columns(base: Base) -> list[int]:
    """Returns the ordered columns whose missing values were counted in a block of their own."""
    found = []
    for place, axis in enumerate(base.schema.axes):
        is_apart = base.missing_apart or not base.has_missing(place)
        if is_apart and not isinstance(axis.kind, Category):
            found.append(place)
    return found


def _correlate_axes(
    base: Base,
    marginal: Seen,
    axes: tuple[int, ...],
) -> tuple[float, float, float] | None:
    """Returns the correlation of two axes of a marginal, without missing values."""
    others = tuple(at for at in range(marginal.rows.ndim) if at not in axes)
    rows, counted = marginal.rows.sum(axis=others), marginal.counted.sum(axis=others)
    sigma = base.sigma[2] * math.sqrt(marginal.rows.size / rows.size)
    ends = [-1 if base.has_missing(marginal.columns[axis]) else None for axis in axes]
    known = tuple(map(slice, ends))
    total = base.total * float(rows[known].sum()) / max(float(rows.sum()), 1.0)
    if not total:
        return None
    return _correlation(rows[known], counted[known] / total, sigma / total)


def _correlation(
    rows: Floats,
    counted: Floats,
    noise: float,
) -> tuple[float, float, float] | None:
    """Returns the correlation in the rows, in the counted shares, and the error of the latter.

    ``noise`` is that of a share.
    """
    shares = rows / max(rows.sum(), 1.0)
    products = np.outer(_block_scores(shares.sum(axis=1)), _block_scores(shares.sum(axis=0)))
    if not products.any():
        return None
    error = _NORMAL * noise * math.sqrt(float(np.square(products).sum()))
    return (
        float((products * shares).sum()),
        float((products * counted).sum()),
        error,
    )


def _block_scores(shares: Floats) -> Floats:
    """Returns block numbers standardised to mean 0 and variance 1; 0 if all rows are in one
    block.
    """
    places = np.arange(len(shares), dtype=np.float64)
    far = places - float((places * shares).sum())
    variance = float((np.square(far) * shares).sum())
    if variance <= 0:
        return np.zeros(len(shares))
    return far / math.sqrt(variance)

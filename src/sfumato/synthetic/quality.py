# SPDX-License-Identifier: Apache-2.0
"""Compares synthetic rows with what was measured, and runs the honest check; released numbers
only.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.honest import Correlation, Way, correlations, seen_of, ways_of
from sfumato.synthetic.merging import has_order
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.task import Released
from sfumato.synthetic.tree import Clique

# The mean absolute value of noise, in standard deviations.
_MEAN = math.sqrt(2 / math.pi)
# The associations of more columns are not computed.
MOST_ASSOCIATED = 60


@dataclass(frozen=True, slots=True)
class Fit:
    """The misfit between synthetic rows and the noisy counts of one marginal.

    ``distance`` is the total variation distance, ``noise`` the distance expected from noise alone.
    ``off`` is the typical error of a cell as a share of all rows, with the noise taken out; 0 where
    the noise is larger.
    """

    columns: tuple[str, ...]
    distance: float
    noise: float
    off: float


@dataclass(frozen=True, slots=True)
class Range:
    """The ends of the declared range of a column, and of the bins that contain rows.

    ``is_cut``: bins farther out cannot be distinguished from noise.
    """

    column: str
    declared: tuple[str, str]
    rows: tuple[str, str]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Quality:
    """The fit of synthetic rows to the released numbers: single columns, selected pairs, the honest
    check; and which pairs were not measured.

    ``associations`` has Cramer's V of each pair of columns in the rows (0 is none, 1 is full).
    ``missed`` are the pairs that were not measured, ``ways`` the check's distances by number of
    columns, ``ranges`` those of ordered columns.
    """

    singles: tuple[Fit, ...]
    pairs: tuple[Fit, ...]
    checks: tuple[Fit, ...]
    missed: tuple[tuple[str, str], ...]
    merged: tuple[tuple[str, int, int], ...]
    associations: Floats
    ways: tuple[Way, ...]
    correlations: tuple[Correlation, ...]
    ranges: tuple[Range, ...]

    @property
    def unmeasured(self) -> int:
        """The number of pairs that were not measured together."""
        return len(self.missed)


def quality(
    released: Released,
    cells: Integers,
    weights: Floats | None = None,
) -> Quality:
    """Returns the fit of synthetic rows (given as cells) to the measurements that were released;
    ``weights`` are those of the rows.
    """
    base = released.base
    blocks = np.empty_like(cells)
    for place, merging in enumerate(base.merges):
        blocks[:, place] = np.array(merging.blocks)[cells[:, place]]
    singles = []
    for place, noisy in enumerate(base.singles[: base.counted]):
        rows = _count_cells(cells[:, [place]], noisy.shape, weights)
        singles.append(_fit(base, (place,), rows, noisy, base.sigma[0]))
    pairs = []
    for each in released.pairs:
        rows = _count_cells(blocks[:, each.columns], each.counts.shape, weights)
        pairs.append(_fit(base, each.columns, rows, each.counts, base.sigma[1]))
    check_marginals = seen_of(released, cells, weights)
    checks = [
        _fit(base, each.columns, each.rows, each.counted, base.sigma[2]) for each in check_marginals
    ]
    return Quality(
        tuple(singles),
        tuple(pairs),
        tuple(checks),
        _missed_pairs(released),
        _merged_values(base),
        _associations(blocks, base.sizes),
        ways_of(base, check_marginals),
        correlations(base, check_marginals),
        tuple(_ranges(base, cells)),
    )


def _missed_pairs(released: Released) -> tuple[tuple[str, str], ...]:
    """Returns the pairs with a column of this table that no selected marginal contains."""
    base = released.base
    names = base.schema.names
    measured: set[Clique] = set()
    for each in released.pairs:
        measured |= set(combinations(each.columns, 2))
    found = []
    for one, other in combinations(range(len(names)), 2):
        is_own = one < (base.counted or len(names))
        if is_own and (one, other) not in measured:
            found.append((names[one], names[other]))
    return tuple(found)


def _ranges(
    base: Base,
    cells: Integers,
) -> Iterator[Range]:
    """Yields the ranges of ordered columns, except columns that are missing in every row."""
    for place, axis in enumerate(base.schema.axes[: base.counted]):
        known = cells[:, place][cells[:, place] < axis.bins]
        if not has_order(axis.kind) or not len(known):
            continue
        limits, kind = axis.limits, axis.kind
        low, high = int(limits[known.min()]), int(limits[known.max() + 1]) - 1
        reach = base.reach(place)
        is_cut = False
        if reach is not None:
            is_cut = reach != (kind.lower_code, kind.upper_code + 1)
            low, high = max(low, reach[0]), min(high, reach[1] - 1)
        codes = np.array([kind.lower_code, kind.upper_code, low, high])
        first, last, least, greatest = map(said, axis.values(codes).to_pylist())
        yield Range(axis.name, (first, last), (least, greatest), is_cut)


def said(value: object) -> str:
    """Formats a value for a page; a year has no thousands separator.

    >>> said(76_000), said(1900)
    ('76,000', '1900')
    """
    if isinstance(value, int | float) and abs(value) >= 10_000:
        return f"{value:,}"
    return str(value)


def _merged_values(base: Base) -> tuple[tuple[str, int, int], ...]:
    """Returns, for each measured column, how many of its values are merged, and how many it has.

    Where no value is missing, the cell of missing values joins the rarest value and is not counted.
    Merged neighbours of an ordered column are not counted as merged.
    """
    merged = []
    for place, axis in enumerate(base.schema.axes[: base.counted]):
        if base.schedule.neighbours and has_order(axis.kind):
            continue
        blocks, values = np.array(base.merges[place].blocks), axis.cells
        if not base.has_missing(place):
            blocks, values = blocks[:-1], axis.bins
        sizes = np.bincount(blocks)
        merged.append((axis.name, int(sizes[sizes > 1].sum()), values))
    return tuple(merged)


def _count_cells(
    cells: Integers,
    shape: Sequence[int],
    weights: Floats | None = None,
) -> Floats:
    """Returns the number, or the weight, of the rows in each cell of a table."""
    flat = np.ravel_multi_index(tuple(cells.T), tuple(shape))
    counts = np.bincount(flat, weights, minlength=math.prod(shape)).reshape(shape)
    return counts.astype(np.float64)


def _fit(
    base: Base,
    columns: Clique,
    rows: Floats,
    noisy: Floats,
    sigma: float,
) -> Fit:
    """Compares counts of rows, scaled to the estimated total, with noisy counts."""
    total = base.total
    residual = rows * (total / max(rows.sum(), 1.0)) - noisy
    beyond = max(0.0, float(np.square(residual).mean()) - sigma**2)
    names = tuple(base.schema.axes[each].name for each in columns)
    return Fit(
        names,
        0.5 * float(np.abs(residual).sum()) / total,
        0.5 * _MEAN * sigma * noisy.size / total,
        math.sqrt(beyond) / total,
    )


def _associations(
    blocks: Integers,
    sizes: Sequence[int],
) -> Floats:
    """Returns Cramer's V of each pair of columns; nothing for many columns."""
    columns = len(sizes)
    associations = np.eye(columns)
    if columns > MOST_ASSOCIATED or not len(blocks):
        return associations
    for first, second in combinations(range(columns), 2):
        table = _count_cells(blocks[:, [first, second]], (sizes[first], sizes[second])) / len(
            blocks
        )
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        squared = np.square(table - independent)
        chi = float((squared / np.maximum(independent, 1e-12))[independent > 0].sum())
        occurring = [int((table.sum(axis=axis) > 0).sum()) for axis in (0, 1)]
        least = max(min(occurring) - 1, 1)
        associations[first, second] = associations[second, first] = min(1.0, math.sqrt(chi / least))
    return associations

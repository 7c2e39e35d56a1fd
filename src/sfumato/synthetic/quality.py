# SPDX-License-Identifier: Apache-2.0
"""How well rows fit what was measured, and the honest check; computed from released numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.task import Released, check_blocks
from sfumato.synthetic.tree import Clique

# The mean absolute value of noise, in standard deviations.
_MEAN = math.sqrt(2 / math.pi)
# The associations of more columns are not computed.
MOST_ASSOCIATED = 60


@dataclass(frozen=True, slots=True)
class Fit:
    """How far rows are from the noisy counts of one marginal.

    ``distance`` is the total variation distance, ``noise`` what noise alone is expected to make
    of it. ``off`` is the typical error of a cell as a share of all rows, the noise taken out; 0
    where the noise hides it.
    """

    columns: tuple[str, ...]
    distance: float
    noise: float
    off: float


@dataclass(frozen=True, slots=True)
class Quality:
    """The fit of single columns and chosen pairs, the honest check, and what was not measured.

    ``associations`` has Cramer's V of each pair of columns in the rows: 0 is none, 1 is full.
    """

    singles: tuple[Fit, ...]
    pairs: tuple[Fit, ...]
    checks: tuple[Fit, ...]
    unmeasured: int
    merged: tuple[tuple[str, int, int], ...]
    associations: Floats


def quality(
    released: Released,
    cells: Integers,
    weights: Floats | None = None,
) -> Quality:
    """Compares rows, given as cells, with what was released; ``weights`` are those of the rows."""
    base = released.base
    blocks = np.empty_like(cells)
    for place, merging in enumerate(base.merges):
        blocks[:, place] = np.array(merging.blocks)[cells[:, place]]
    singles = []
    for place, noisy in enumerate(base.singles[: base.counted]):
        rows = _counted(cells[:, [place]], noisy.shape, weights)
        singles.append(_fit(base, (place,), rows, noisy, base.sigma[0]))
    pairs = []
    for each in released.pairs:
        rows = _counted(blocks[:, each.columns], each.counts.shape, weights)
        pairs.append(_fit(base, each.columns, rows, each.counts, base.sigma[1]))
    return Quality(
        tuple(singles),
        tuple(pairs),
        _checked(released, cells, weights),
        base.possible - len(pairs),
        _merged(base),
        _associations(blocks, base.sizes),
    )


def _merged(base: Base) -> tuple[tuple[str, int, int], ...]:
    """For each measured column, how many of its cells are in a rest, and how many it has."""
    found = []
    for place, axis in enumerate(base.schema.axes[: base.counted]):
        sizes = base.merges[place].sizes
        found.append((axis.name, int(sizes[sizes > 1].sum()), axis.cells))
    return tuple(found)


def _checked(
    released: Released,
    cells: Integers,
    weights: Floats | None,
) -> tuple[Fit, ...]:
    """The fit of the marginals that the model never saw."""
    base, found = released.base, []
    for clique, noisy in released.checks:
        coarse = np.empty((len(cells), 2), np.int64)
        for at, column in enumerate(clique):
            coarse[:, at] = np.array(check_blocks(base, column))[cells[:, column]]
        rows = _counted(coarse, noisy.shape, weights)
        found.append(_fit(base, clique, rows, noisy, base.sigma[2]))
    return tuple(found)


def _counted(
    cells: Integers,
    shape: Sequence[int],
    weights: Floats | None = None,
) -> Floats:
    """The number, or the weight, of the rows in each cell of a table."""
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
    """Compares counts of rows, scaled to the estimated number, with noisy counts."""
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
    """Cramer's V of each pair of columns; nothing for many columns."""
    columns = len(sizes)
    found = np.eye(columns)
    if columns > MOST_ASSOCIATED or not len(blocks):
        return found
    for one, other in combinations(range(columns), 2):
        table = _counted(blocks[:, [one, other]], (sizes[one], sizes[other])) / len(blocks)
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        squared = np.square(table - independent)
        chi = float((squared / np.maximum(independent, 1e-12))[independent > 0].sum())
        occurring = [int((table.sum(axis=axis) > 0).sum()) for axis in (0, 1)]
        least = max(min(occurring) - 1, 1)
        found[one, other] = found[other, one] = min(1.0, math.sqrt(chi / least))
    return found

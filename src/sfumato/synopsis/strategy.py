# SPDX-License-Identifier: Apache-2.0
"""Strategies for one column: a stack of layers, each with a share of the cost.

The candidates are the identity, trees, the Haar wavelet, and for Laplace noise p-identity. For
each, the cost is split among the layers so that the exact expected error of the workload is least.
All follows from declarations, so choosing costs no budget.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.privacy.distance import Norm
from sfumato.synopsis.dense import DenseStack
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.p_identity import p_identity
from sfumato.synopsis.split import Dense, best_split, error, information
from sfumato.synopsis.stack import Stack
from sfumato.synopsis.workload import Floats, Workload

# Shares are multiples of one over this; a layer that would get less than one is left out.
_PARTS = 2**12
# The branching factors of the trees that are compared.
_BRANCHES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A measuring strategy for one column: a stack of layers, each with its share of the cost; the
    shares add up to 1.

    ``factor`` is the mean variance of the workload's queries if a whole unit of cost buys noise of
    variance 1 at distance 1. The expected squared error is ``factor`` times T^2/(2 rho) for
    Gaussian noise, and times 2 T^2/epsilon^2 for Laplace noise (discrete Laplace noise has a little
    less).
    """

    name: str
    stack: Stack | DenseStack
    shares: tuple[Fraction, ...]
    norm: Norm
    factor: float


@lru_cache(maxsize=64)
def strategies(workload: Workload, norm: Norm, *, halves_cost: int = 1) -> tuple[Strategy, ...]:
    """Returns all candidate strategies for a workload, each with its best split of the cost.

    The one of least error comes first.

    Args:
        workload: the queries.
        norm: L1 for Laplace noise, L2 for Gaussian noise.
        halves_cost: the squared L2 distance of ``halves`` over that of sums: 1 under add/remove,
            2 under replace-one.

    >>> from sfumato.synopsis.workload import Ranges
    >>> best, *_ = strategies(Ranges(1024), Norm.L2)
    >>> best.name, best.factor < 18.6
    ('tree of 2', True)
    """
    candidates = []
    for name, stack in _candidates(workload.cells):
        candidates.append(_split(name, stack, workload, norm, halves_cost))
    dense = p_identity(workload) if norm is Norm.L1 else None
    if dense is not None:
        # the noise of its integers is that of a distance of its norm
        factor = dense.error(workload, [float(dense.layer.norm) ** -2])
        candidates.append(Strategy("p-identity", dense, (Fraction(1),), norm, factor))
    least = min(strategy.factor for strategy in candidates)
    # of equal candidates the one with the fewest layers, then a wavelet
    candidates.sort(key=lambda each: (round(each.factor / least, 9), len(each.shares), each.name))
    return tuple(candidates)


def _candidates(cells: int) -> Iterator[tuple[str, Stack]]:
    """Yields the stacks that are compared: the identity, trees, and the Haar wavelet."""
    if cells == 1:
        yield "identity", Stack(1, (1,), (Layer(1),))
        return
    yield "identity", Stack(cells, (1, cells), (Layer(1),))
    for branch in _BRANCHES:
        if branch >= cells:
            break
        widths = _widths(cells, branch)
        yield f"tree of {branch}", Stack(cells, widths, tuple(map(Layer, widths)))
    widths = _widths(cells, 2)
    halves = tuple(Layer(width, halves=True) for width in widths[1:])
    yield "Haar wavelet", Stack(cells, widths, (*halves, Layer(widths[-1])))


def _widths(cells: int, branch: int) -> tuple[int, ...]:
    """Returns the powers of a branching factor, up to the first that covers all cells."""
    widths = [1]
    while widths[-1] < cells:
        widths.append(widths[-1] * branch)
    return tuple(widths)


def _split(name: str, stack: Stack, workload: Workload, norm: Norm, halves_cost: int) -> Strategy:
    """Returns the strategy with the split of least error; layers that win nothing are left out."""
    energies = workload.energies(stack.widths)
    lost = np.maximum(-np.diff(np.append(energies, 0.0)), 0.0)
    acts = _actions(stack)
    if norm is Norm.L2 and halves_cost > 1:
        for place, layer in enumerate(stack.layers):
            if layer.halves:
                acts[place] /= halves_cost
    whole, shares = best_split(lost, Dense(acts), norm)
    parts = _rounded(shares)
    kept = [place for place, part in zip(whole, parts, strict=True) if part]
    layers = tuple(stack.layers[place] for place in kept)
    given = tuple(Fraction(part, _PARTS) for part in parts if part)
    final = np.array([float(share) for share in given])
    known = information(final, Dense(acts[kept]), norm)
    factor = error(lost, known) / workload.queries
    return Strategy(name, Stack(stack.cells, stack.widths, layers), given, norm, factor)


def _actions(stack: Stack) -> Floats:
    """As what number each layer acts on each space."""
    alone = np.eye(len(stack.layers))
    return np.array([stack.information(list(row)) for row in alone])


def _rounded(shares: Floats) -> list[int]:
    """Returns the shares as whole parts that add up to ``_PARTS``, by largest remainders."""
    exact = shares * _PARTS
    parts = np.floor(exact).astype(int)
    rest = _PARTS - int(parts.sum())
    for place in np.argsort(parts - exact)[:rest]:
        parts[place] += 1
    return [int(part) for part in parts]

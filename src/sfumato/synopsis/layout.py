# SPDX-License-Identifier: Apache-2.0
"""Layouts: sets of layers over several columns, with shares of the cost, chosen for a workload.

The candidates are the requested tables at even shares; these with all coarser tables, at the shares
of least error; the same with trees over columns of which ranges are requested; and the one table of
all columns. All follows from declarations, so choosing costs no budget.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from sfumato.errors import WrongUse
from sfumato.privacy.distance import Norm
from sfumato.synopsis.chain import Chain
from sfumato.synopsis.grid import Grid, Place
from sfumato.synopsis.split import Sparse, best_split, error, information
from sfumato.synopsis.wanted import Term, Wanted
from sfumato.synopsis.workload import Cells, Floats

# Shares are multiples of one over this and the number of layers; what is left is not spent.
_PARTS = 2**12
# The branching factors of the trees that are compared.
_BRANCHES = (2, 4, 8, 16, 32)
# The most layers of a candidate.
_MOST = 400_000
# The most cells of the one table of all columns.
_WIDEST = 5_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """A strategy for several columns: layers with their shares of the cost, which add up to at most
    1.

    ``factor`` is the weighted mean over the terms of the mean squared error of their queries, where
    a whole share buys noise of variance 1 for a distance of 1 (``Strategy`` has the same).
    """

    name: str
    grid: Grid
    shares: tuple[Fraction, ...]
    norm: Norm
    factor: float


def layouts(wanted: Wanted, sizes: Mapping[str, tuple[int, int]], norm: Norm) -> list[Layout]:
    """Returns all candidate strategies for a workload over several columns, each with its best
    split of the cost, the one of least error first.

    Args:
        wanted: the queries.
        sizes: for each column the number of its declared values, and of its cells: one more with
            that of missing values.
        norm: L1 for Laplace noise, L2 for Gaussian noise.

    Raises:
        WrongUse: every candidate has too many layers.

    >>> from sfumato.synopsis.wanted import marginals
    >>> sizes = {"a": (20, 20), "b": (18, 18), "c": (2, 2), "d": (9, 9)}
    >>> found = layouts(marginals(list(sizes), up_to=3), sizes, Norm.L2)
    >>> best, alone = found[0], next(each for each in found if each.name == "tables alone")
    >>> best.name, round((best.factor / alone.factor) ** 0.5, 3)
    ('marginals', 0.753)
    """
    return list(_layouts(wanted, tuple(sizes.items()), norm))


@lru_cache(maxsize=64)
def _layouts(
    wanted: Wanted, columns: tuple[tuple[str, tuple[int, int]], ...], norm: Norm
) -> tuple[Layout, ...]:
    """Returns the candidates; a workload that is measured again is not planned again."""
    layouts, sizes = [], dict(columns)
    for name, chains, places in _candidates(wanted, sizes):
        if not 1 <= len(places) <= _MOST:
            continue
        grid = Grid(chains, places)
        if name == "tables alone":
            layouts.append(_alone(grid, wanted, sizes, norm))
        else:
            layouts.append(_split(name, grid, wanted, sizes, norm))
    if not layouts:
        raise WrongUse(
            "Every strategy for this workload has too many layers.",
            allowed=f"at most {_MOST:,}",
            remedy="Ask for ranges of fewer columns together.",
        )
    least = min(layout.factor for layout in layouts)
    layouts.sort(key=lambda one: (round(one.factor / least, 9), len(one.shares)))
    return tuple(layouts)


def _candidates(
    wanted: Wanted, sizes: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, tuple[Chain, ...], tuple[Place, ...]]]:
    flat = {name: _chain(cells, cells) for name, (_, cells) in sizes.items()}
    chains = tuple(flat.values())
    wanted_places = tuple(dict.fromkeys(_finest(term, flat) for term in wanted.terms))
    yield "tables alone", chains, wanted_places
    yield "marginals", chains, _below(wanted_places, chains)
    if math.prod(chain.cells for chain in chains) <= _WIDEST and len(wanted_places) > 1:
        every = tuple((axis, 0) for axis, chain in enumerate(chains) if chain.top)
        yield "one table", chains, (every,)
    ordered = _ranged(wanted)
    for branch in _BRANCHES:
        if any(branch < flat[name].cells for name in ordered):
            deep = dict(flat)
            for name in ordered:
                deep[name] = _chain(flat[name].cells, branch)
            trees = tuple(deep.values())
            yield f"trees of {branch}", trees, _below(wanted_places, trees)


def _ranged(wanted: Wanted) -> set[str]:
    """Returns the columns of which more is asked than their cells."""
    names = set()
    for term in wanted.terms:
        names |= {name for name, kind in term.factors if kind is not Cells}
    return names


def _chain(cells: int, branch: int) -> Chain:
    """Blocks of 1, branch, branch squared, ... cells; a column of one cell is constant."""
    widths = [1]
    while widths[-1] < cells:
        widths.append(widths[-1] * max(branch, 2))
    return Chain(cells, tuple(widths))


def _finest(term: Term, flat: Mapping[str, Chain]) -> Place:
    """Returns the table of a term by the cells of its columns."""
    order = {name: axis for axis, name in enumerate(flat)}
    axes = sorted(order[name] for name in term.names if flat[name].top)
    return tuple((axis, 0) for axis in axes)


def _below(wanted_places: Sequence[Place], chains: Sequence[Chain]) -> tuple[Place, ...]:
    """The tables that are asked for, and all coarser ones; none if one alone has too many."""
    places: dict[Place, None] = {}
    for place in wanted_places:
        if math.prod(chains[axis].top + 1 for axis, _ in place) > _MOST:
            return ()
        choices = []
        for axis, _ in place:
            choices.append([(axis, level) for level in range(chains[axis].top + 1)])
        for chosen in product(*choices):
            kept = tuple(each for each in chosen if each[1] < chains[each[0]].top)
            places[kept] = None
        if len(places) > _MOST:
            break
    return tuple(places)


def energies(
    grid: Grid, wanted: Wanted, sizes: Mapping[str, tuple[int, int]]
) -> tuple[dict[Place, float], float]:
    """Returns the workload's energy in each space, and the sum of the weights of its terms.

    The energy is the weighted sum over the queries of their squared projection on the space.
    """
    order = {name: axis for axis, name in enumerate(sizes)}
    known: dict[tuple[str, object], Floats] = {}
    energy_by_place: dict[Place, float] = {}
    weights = 0.0
    for term in wanted.terms:
        queries, parts = 1, []
        for name, kind in sorted(term.factors, key=lambda factor: order[factor[0]]):
            workload = kind(sizes[name][0])
            if (name, kind) not in known:
                known[name, kind] = grid.chains[order[name]].energies(workload)
            parts.append((order[name], known[name, kind]))
            queries *= workload.queries
        _ask(energy_by_place, grid, parts, float(term.weight) / queries)
        weights += float(term.weight)
    return energy_by_place, weights


def _ask(
    energy_by_place: dict[Place, float],
    grid: Grid,
    parts: Sequence[tuple[int, Floats]],
    weight: float,
) -> None:
    """Adds what one term asks of each space."""
    choices = []
    for axis, energy_of in parts:
        choices.append([(axis, level) for level in range(len(energy_of))])
    for chosen in product(*choices):
        energy = weight
        for (_, energies_of), (_, level) in zip(parts, chosen, strict=True):
            energy *= float(energies_of[level])
        if energy > 0:
            space = tuple(each for each in chosen if each[1] < grid.chains[each[0]].top)
            energy_by_place[space] = energy_by_place.get(space, 0.0) + energy


def _split(
    name: str, grid: Grid, wanted: Wanted, sizes: Mapping[str, tuple[int, int]], norm: Norm
) -> Layout:
    """Returns the layout with the split of least error; layers that win nothing are left out."""
    asked, weights = energies(grid, wanted, sizes)
    spaces = {space: number for number, space in enumerate(asked)}
    actions = _actions(grid, spaces)
    wants = np.array(list(asked.values()))
    whole, shares = best_split(wants, actions, norm)
    parts = np.floor(shares * _PARTS * len(shares) + 1e-9).astype(int)
    kept = [number for number, part in enumerate(parts) if part]
    # equal noise, one after the other, is one entry of the event; each table is read once
    kept.sort(key=lambda number: (*_columns(grid.layers[whole[number]]), -parts[number]))
    given = tuple(Fraction(int(parts[number]), _PARTS * len(shares)) for number in kept)
    places = [whole[number] for number in kept]
    final = np.array([float(share) for share in given])
    known = information(final, actions.only(places), norm)
    left = Grid(grid.chains, tuple(grid.layers[place] for place in places))
    return Layout(name, left, given, norm, error(wants, known) / weights)


def _columns(place: Place) -> tuple[int, tuple[int, ...]]:
    """Returns an order of layers: more columns first, then by column."""
    return -len(place), tuple(axis for axis, _ in place)


def _actions(grid: Grid, spaces: Mapping[Place, int]) -> Sparse:
    """As what number each layer acts on each space in which something is asked."""
    layers, numbers, values = [], [], []
    for layer, place in enumerate(grid.layers):
        for space, value in grid.actions(place):
            if space in spaces:
                layers.append(layer)
                numbers.append(spaces[space])
                values.append(value)
    return Sparse(
        np.array(layers), np.array(numbers), np.array(values), len(grid.layers), len(spaces)
    )


def _alone(grid: Grid, wanted: Wanted, sizes: Mapping[str, tuple[int, int]], norm: Norm) -> Layout:
    """Returns every table by itself at an even share: an estimate reads its own table and no other.

    Its error is that of asking each by SQL. It is there to be compared, and the best is never it:
    the same tables estimated together are at least as good.
    """
    share = Fraction(1, len(grid.layers))
    precision = float(share) ** (2 if norm is Norm.L1 else 1)
    total = weights = 0.0
    for term in wanted.terms:
        # the length of a query is its variance where each cell's noise is 1
        squared, queries = 1.0, 1
        for name, kind in term.factors:
            workload = kind(sizes[name][0])
            squared *= float(workload.energy(1))
            queries *= workload.queries
        total += float(term.weight) * squared / queries / precision
        weights += float(term.weight)
    shares = (share,) * len(grid.layers)
    return Layout("tables alone", grid, shares, norm, total / weights)

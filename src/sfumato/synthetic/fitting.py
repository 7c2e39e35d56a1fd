# SPDX-License-Identifier: Apache-2.0
"""The state of a fit between measurements: what was measured, and the model fitted to it.

``task`` alternates between measuring and ``Fitting``; computes with released numbers only.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.copies import Copies
from sfumato.synthetic.counts import BlockCounts
from sfumato.synthetic.estimate import Estimator, Fitted, MaximumEntropy, Measurement
from sfumato.synthetic.merging import Merging, has_order
from sfumato.synthetic.public import PublicCells
from sfumato.synthetic.rows import Dice, sampled
from sfumato.synthetic.rules import Rule, kinds
from sfumato.synthetic.schedule import BATCH, Noises, Schedule
from sfumato.synthetic.schema import Floats, Schema
from sfumato.synthetic.select import Candidate
from sfumato.synthetic.tree import Clique, JunctionTree, Part, cells_of, components

# A marginal of more declared cells is never counted.
MOST_COUNTED = 2**22
# More synthetic rows than this are not counted in a round: fewer rows, each of which counts more.
_ROWS = 100_000
# At most so many candidates, chosen at random, take part in a selection.
_CANDIDATES = 1000
# Columns of a marginal that may make the tree grow.
_PAIR = 2
# Into so many batches a tree is divided then.
_PARTS_OF_TREE = 8
# Of so many columns, the cells of a junction tree are computed exactly for each candidate.
_FEW_COLUMNS = 24
# From so many standard deviations on, missing values that are not declared are taken for real.
_SEEN = 4.0
# From so many on, a bin has rows. The weight of one beyond all that have.
_TOLD, _NEXT_TO_NONE = 3.0, 1e-9
# The expected absolute value of noise in standard deviations; and how much of it is subtracted.
_MEAN_NOISE = math.sqrt(2 / math.pi) * 0.7
# The steps of a fit of the whole: as many as can visit so many cells, within these ends.
_VISITS, _LEAST_STEPS, _MOST_STEPS = 10**8, 150, 2000
# The steps of a fit between rounds.
QUICK = MaximumEntropy(60)


@dataclass(frozen=True, eq=False)
class Base:
    """The noisy counts of each single column, with the rules of rows: the input of every fit.

    ``singles`` are the noisy counts of each column, in rows, before rare cells are merged into
    blocks. ``rules`` declare impossible combinations. ``pinned`` replaces the blocks computed from
    the counts. If ``counted`` is set, only the first ``counted`` columns were measured; the others
    belong to another table, with their counts there. With ``missing_apart``, the honest check
    counts missing values in a block of their own.
    """

    schema: Schema
    schedule: Schedule
    singles: tuple[Floats, ...]
    rules: tuple[Rule, ...] = ()
    pinned: tuple[Merging, ...] = ()
    counted: int | None = None
    publics: tuple[PublicCells, ...] = ()
    triples: bool = False
    missing_apart: bool = True

    @cached_property
    def noises(self) -> Noises:
        """The noise mechanism of each kind of measurement: single columns, selections, checks."""
        return self.schedule.noises(self.schema.plan)

    @property
    def refinement(self) -> int:
        """The integer that a row of full weight adds to a measured count."""
        return self.schema.plan.refinement

    @cached_property
    def sigma(self) -> tuple[float, float, float]:
        """The standard deviations of a noisy count, in rows: single column, selected marginal,
        check.
        """
        noises, refinement = self.noises, self.refinement
        single = _deviation(noises.single.noise.variance.upper) / refinement
        chosen = checked = 0.0
        if self.schedule.rounds:
            chosen = _deviation(noises.chosen.noise.variance.upper) / refinement
        if self.schedule.checks:
            checked = _deviation(noises.checked.noise.variance.upper) / refinement
        return single, chosen, checked

    @cached_property
    def merges(self) -> tuple[Merging, ...]:
        """For each column, the partition of its cells into blocks; rare cells are merged."""
        return self.pinned or tuple(self._merging(place) for place in range(len(self.singles)))

    def _merging(
        self,
        place: int,
    ) -> Merging:
        noisy, least = self.singles[place], self.schedule.faint * self.sigma[0]
        if any(place in each.columns for each in self.publics):
            return Merging(tuple(range(len(noisy))))
        is_ruled = any(place in rule.columns for rule in self.rules)
        values = noisy[:-1]
        if self.schedule.neighbours and has_order(self.schema.axes[place].kind) and not is_ruled:
            merged = Merging.of_neighbours(values, self.schedule.alike * self.sigma[0])
            if self.has_missing(place):
                return Merging((*merged.blocks, merged.size))
            return merged.joined(int(values.argmin()))
        if self.has_missing(place) or is_ruled:
            return Merging.of(noisy, least, kinds(self.rules, place, len(noisy)))
        # rows without a value count among those of the rarest one
        return Merging.of(values, least).joined(int(values.argmin()))

    def weights(
        self,
        place: int,
    ) -> Floats:
        """Returns the estimated number of rows in each cell of a column.

        Every value gets at least a tenth of a standard deviation, as a negative noisy count means
        rare, not absent. Bins outside of ``reach(place)``, beyond all bins that exceed the noise,
        get 1e-9.
        """
        row_weights = np.maximum(self.singles[place], 0.0) + 0.1 * self.sigma[0]
        if not self.has_missing(place):
            row_weights[-1] = 0.0
        reach = self.reach(place)
        if reach is not None:
            limits = self.schema.axes[place].limits
            is_outside = (limits[1:] <= reach[0]) | (limits[:-1] >= reach[1])
            row_weights[:-1][is_outside] = _NEXT_TO_NONE
        return row_weights

    def reach(
        self,
        place: int,
    ) -> tuple[int, int] | None:
        """Returns the range of codes in which a binned column has rows; None means anywhere.

        It ends at the outermost bins that exceed the noise, extended by the width of that bin
        unless it has a single value. Where the few values farther out lie is unknown.
        """
        axis = self.schema.axes[place]
        if axis.starts is None:
            return None
        limits = axis.limits
        (seen,) = np.nonzero(self.singles[place][: axis.bins] >= _TOLD * self.sigma[0])
        if not len(seen):
            return None
        first, last = int(seen[0]), int(seen[-1])
        below, above = limits[first + 1] - limits[first], limits[last + 1] - limits[last]
        low = limits[first] - (below if below > 1 else 0)
        high = limits[last + 1] + (above if above > 1 else 0)
        return max(int(low), int(limits[0])), min(int(high), int(limits[-1]))

    def has_missing(
        self,
        place: int,
    ) -> bool:
        """Whether missing values are modelled: declared, or their count exceeds the noise."""
        is_seen = self.singles[place][-1] >= _SEEN * self.sigma[0]
        return self.schema.axes[place].is_nullable or bool(is_seen)

    @cached_property
    def declared(self) -> tuple[int, ...]:
        """The number of cells of each column before merging."""
        return self.schema.cells

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of blocks of each column."""
        return tuple(each.size for each in self.merges)

    @cached_property
    def total(self) -> float:
        """The estimated number of rows, at least 1: the columns' mean, weighted by precision."""
        counted = self.singles[: self.counted]
        precisions = [1 / len(counts) for counts in counted]
        totals = [float(counts.sum()) for counts in counted]
        return max(1.0, float(np.average(totals, weights=precisions)))

    @cached_property
    def measured(self) -> tuple[Measurement, ...]:
        """The noisy counts of each single column, in blocks, as measurements."""
        found = []
        for place, counts in enumerate(self.singles[: self.counted]):
            merging = self.merges[place]
            sigma = self.sigma[0] * np.sqrt(merging.sizes)
            found.append(Measurement((place,), merging.merged(counts), sigma))
        return tuple(found)

    @cached_property
    def fixed(self) -> tuple[Part, ...]:
        """For each rule, a table of logarithms that excludes what it forbids, in blocks."""
        return tuple((rule.columns, rule.logarithms(self.merges)) for rule in self.rules)

    def counts(
        self,
        clique: Clique,
    ) -> BlockCounts:
        """Returns the statistic that counts the rows of a marginal, in blocks."""
        axes = self.schema.axes
        blocks = tuple((axes[each].name, self.merges[each].blocks) for each in clique)
        return BlockCounts(self.schema.plan, blocks)

    def pair(
        self,
        clique: Clique,
        noisy: Integers,
    ) -> Measurement:
        """Returns the noisy integers of a selected marginal as a ``Measurement``, in rows."""
        shape = tuple(self.sizes[each] for each in clique)
        counts = noisy.reshape(shape) / self.refinement
        return Measurement(clique, counts, np.full(shape, self.sigma[1]))

    def is_small(
        self,
        clique: Clique,
    ) -> bool:
        """Whether a marginal has few enough cells and blocks to be measured."""
        declared = math.prod(self.declared[each] for each in clique)
        size = math.prod(self.sizes[each] for each in clique)
        return declared <= MOST_COUNTED and size <= self.schedule.largest

    @property
    def ruled(self) -> list[Clique]:
        """The sets of columns of rules and public marginals, which need a clique each."""
        rules = [rule.columns for rule in self.rules]
        return rules + [each.columns for each in self.publics]

    @cached_property
    def known(self) -> tuple[Measurement, ...]:
        """The measurements of single columns, and the public marginals as measurements."""
        return (*self.measured, *(each.measured(self.total) for each in self.publics))


def _deviation(variance: object) -> float:
    return math.sqrt(max(float(variance), 1e-12))  # type: ignore[arg-type]


def candidate(
    base: Base,
    clique: Clique,
    rows: Integers,
    row_weights: Integers,
    weight: int,
) -> Candidate:
    """Returns a candidate of the private selection, with its counts in synthetic rows."""
    statistic = base.counts(clique)
    shape = statistic.shape
    flat = np.ravel_multi_index(rows[:, list(clique)].T, shape)
    # sums of integers below 2^53 are exact
    synthetic = np.bincount(flat, row_weights, math.prod(shape)).astype(np.int64)
    penalty = round(_MEAN_NOISE * base.sigma[1] * base.refinement)
    return Candidate(statistic, synthetic, penalty * math.prod(shape), weight)


@dataclass(frozen=True, eq=False)
class Fitting:
    """The state of a fit: the marginals selected so far, and the model fitted to them."""

    base: Base
    pairs: tuple[Measurement, ...]
    fitted: Fitted

    @classmethod
    def begin(
        cls,
        base: Base,
        estimator: Estimator = QUICK,
    ) -> "Fitting":
        """Returns the first model of a fit: all columns independent of one another."""
        tree = JunctionTree.over(base.sizes, base.ruled)
        fitted = estimator(tree, base.known, base.total, (), base.fixed)
        return cls(base, (), fitted)

    @property
    def cliques(self) -> list[Clique]:
        """The columns of each selected marginal."""
        return [each.columns for each in self.pairs]

    @property
    def batch(self) -> int:
        """The number of marginals to select before the next fit: first those of a tree, later few.

        If only some candidates take part in a selection, each part of the tree uses others.
        """
        columns = len(self.base.sizes)
        if self.base.schedule.is_forest and columns * (columns - 1) > 2 * _CANDIDATES:
            return columns // _PARTS_OF_TREE + 1
        if not self.pairs:
            return max(columns - 1, 1)
        return BATCH

    def after(
        self,
        chosen: Sequence[Measurement],
        estimator: Estimator = QUICK,
    ) -> "Fitting":
        """Returns the state after measuring ``chosen``: the model is fitted again to all marginals.

        If memory does not suffice, the model is unchanged, so that the charge is not lost.
        """
        base, pairs = self.base, (*self.pairs, *chosen)
        cliques = [each.columns for each in pairs]
        tree = JunctionTree.over(base.sizes, [*cliques, *base.ruled])
        seen = [*base.known, *pairs]
        try:
            fitted = estimator(tree, seen, base.total, self.fitted.potentials, base.fixed)
        except MemoryError:
            return replace(self, pairs=pairs)
        return replace(self, pairs=pairs, fitted=fitted)

    def candidates(
        self,
        weights: dict[Clique, int],
        dice: Dice,
    ) -> list[tuple[Clique, Candidate]]:
        """Returns every marginal that may be selected next, with its counts in model rows."""
        base = self.base
        whole = max(1, round(base.total))
        each = -(-whole // _ROWS)
        rows = sampled(self.fitted, max(1, whole // each), dice)
        row_weights = np.full(len(rows), each * base.refinement)
        candidates = []
        for clique in self._possible_pairs(dice):
            weight = _weight_of(clique, weights)
            if weight:
                pair_candidate = candidate(base, clique, rows, row_weights, weight)
                candidates.append((clique, pair_candidate))
        return candidates

    def _possible_pairs(
        self,
        dice: Dice,
    ) -> list[Clique]:
        """Returns the small pairs not yet selected; in a forest, only between two trees."""
        base = self.base
        chosen = set(self.cliques)
        trees = components(len(base.sizes), chosen)
        pairs: list[Clique] = []
        for clique in combinations(range(len(base.sizes)), 2):
            joins = not base.schedule.is_forest or trees[clique[0]] != trees[clique[1]]
            if joins and clique not in chosen and base.is_small(clique):
                pairs.append(clique)
        if base.triples and self.pairs:
            pairs += self._triples(chosen)
        if len(pairs) > _CANDIDATES:
            pairs = [pairs[place] for place in sorted(dice.order(len(pairs))[:_CANDIDATES])]
        return pairs

    def _triples(
        self,
        chosen: set[Clique],
    ) -> list[Clique]:
        """Returns triples within a clique of the junction tree, which does not grow with them."""
        found: set[Clique] = set()
        for clique in self.fitted.tree.cliques:
            for three in combinations(clique, 3):
                if three not in chosen and self.base.is_small(three):
                    found.add(three)
        return sorted(found)

    def open(
        self,
        candidates: Sequence[tuple[Clique, Candidate]],
        chosen: Sequence[Clique],
    ) -> list[tuple[Clique, Candidate]]:
        """Returns the candidates that may be selected in addition to those chosen in this batch."""
        every = [*self.cliques, *chosen]
        trees = components(len(self.base.sizes), every)
        joining = [each for each in candidates if trees[each[0][0]] != trees[each[0][1]]]
        if joining or self.base.schedule.is_forest:
            return joining
        left = [each for each in candidates if each[0] not in chosen]
        return list(self._below_limit(left, every))

    def _below_limit(
        self,
        candidates: Sequence[tuple[Clique, Candidate]],
        chosen: Sequence[Clique],
    ) -> Iterator[tuple[Clique, Candidate]]:
        """Yields the candidates with which the junction tree stays below its limit of cells.

        A bound on the growth decides; if it leaves few, the exact growth.
        """
        base = self.base
        cliques = [*chosen, *base.ruled]
        tree = JunctionTree.over(base.sizes, cliques)
        growths = [tree.growths(column) for column in range(len(base.sizes))]
        for clique, candidate in candidates:
            grown = tree.cells
            if tree.home(clique) < 0:
                if len(clique) > _PAIR:
                    continue
                grown += _growth(tree, growths, clique)
            if grown > base.schedule.limit and len(base.sizes) <= _FEW_COLUMNS:
                grown = cells_of(base.sizes, [*cliques, clique])
            if grown <= base.schedule.limit:
                yield clique, candidate


def _weight_of(
    clique: Clique,
    weights: dict[Clique, int],
) -> int:
    """Returns the weight of columns: that of their heaviest pair; 0 if a pair has weight 0."""
    pairs = [weights.get(pair, 1) for pair in combinations(clique, 2)]
    return max(pairs) if all(pairs) else 0


def _growth(
    tree: JunctionTree,
    growths: Sequence[Sequence[int]],
    pair: Clique,
) -> int:
    """Returns an upper bound on the cells that a pair of columns adds to a tree."""
    found = []
    for one, other in (pair, pair[::-1]):
        for place, clique in enumerate(tree.cliques):
            if other in clique:
                found.append(growths[one][place])
    return min(found)


def whole_fit(
    base: Base,
    pairs: Sequence[Measurement],
    estimator: Estimator | None = None,
) -> Fitted:
    """Fits the model to all measurements from scratch: a function of them and the estimator only.

    The first pairs, which form a tree, are fitted first because their tables are small. If memory
    does not suffice, fewer pairs are fitted: half of them, and in the end none.
    """
    try:
        return _whole_fit(base, pairs, estimator)
    except MemoryError:
        if not pairs:
            raise
    return whole_fit(base, pairs[: len(pairs) // 2], estimator)


def _whole_fit(
    base: Base,
    pairs: Sequence[Measurement],
    estimator: Estimator | None,
) -> Fitted:
    start: tuple[Floats, ...] = ()
    for count, tree, steps in _stages(base, pairs):
        seen = [*base.known, *pairs[:count]]
        whole = estimator or MaximumEntropy(steps)
        found = whole(tree, seen, base.total, start, base.fixed)
        start = found.potentials
    return found


def _stages(
    base: Base,
    pairs: Sequence[Measurement],
) -> Iterator[tuple[int, JunctionTree, int]]:
    """How many pairs are fitted first and then, on which tree, and in how many steps at most."""
    for count in sorted({min(len(pairs), len(base.sizes) - 1), len(pairs)}):
        cliques = [each.columns for each in pairs[:count]]
        tree = JunctionTree.over(base.sizes, [*cliques, *base.ruled])
        yield count, tree, min(_MOST_STEPS, max(_LEAST_STEPS, _VISITS // tree.cells))


def whole_fits(
    copies: Sequence[tuple[Base, Sequence[Measurement]]],
    estimator: Estimator | None = None,
) -> list[Fitted]:
    """Fits several copies, which differ in their noisy counts only, as ``whole_fit`` does.

    The built-in estimator fits them together; another one, or if memory is short, one by one.
    """
    if estimator is None and len(copies) > 1:
        try:
            return _fits_together(copies)
        except MemoryError:
            pass
    return [whole_fit(base, pairs, estimator) for base, pairs in copies]


def _fits_together(copies: Sequence[tuple[Base, Sequence[Measurement]]]) -> list[Fitted]:
    base, pairs = copies[0]
    totals = np.array([base.total for base, _ in copies])
    potentials = np.zeros((len(copies), 0))
    for count, tree, steps in _stages(base, pairs):
        seen = [[*base.known, *pairs[:count]] for base, pairs in copies]
        together = Copies(tree, seen, totals, base.fixed)
        potentials = together.descend(potentials, steps)
    return together.fits(potentials)

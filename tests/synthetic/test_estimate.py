# SPDX-License-Identifier: Apache-2.0
"""Maximum entropy against independent computations on small domains."""

import itertools

import numpy as np
from scipy.optimize import minimize

from sfumato.synthetic import estimate
from sfumato.synthetic.estimate import MaximumEntropy, Measurement
from sfumato.synthetic.tree import JunctionTree

SIZES = (2, 3, 2)


def measured(counts, sigma=1e-3):
    """All pairs of a table of counts, with almost no noise."""
    seen = []
    for pair in itertools.combinations(range(3), 2):
        (other,) = set(range(3)) - set(pair)
        table = counts.sum(axis=other)
        seen.append(Measurement(pair, table, np.full(table.shape, sigma)))
    return seen


def fitted_proportionally(seen, total):
    """Iterative proportional fitting of the whole table: another way to maximum entropy."""
    found = np.full(SIZES, total / np.prod(SIZES))
    for _ in range(500):
        for each in seen:
            (other,) = set(range(3)) - set(each.columns)
            ratio = each.counts / found.sum(axis=other)
            found = found * np.expand_dims(ratio, other)
    return found


def test_exact_marginals_give_the_distribution_of_maximum_entropy():
    counts = np.random.default_rng(3).uniform(5, 100, SIZES)
    seen = measured(counts)
    tree = JunctionTree.over(SIZES, [each.columns for each in seen])
    found = MaximumEntropy(3000)(tree, seen, counts.sum())
    expected = fitted_proportionally(seen, counts.sum())
    assert np.allclose(found.marginals[0], expected, rtol=1e-3)
    # an interaction of all three columns is not in the marginals
    assert not np.allclose(found.marginals[0], counts, rtol=1e-2)


def test_the_fit_of_noisy_counts_is_near_the_least_squares_of_any_table(monkeypatch):
    monkeypatch.setattr(estimate, "EXPLAINED", 0.0)
    random = np.random.default_rng(5)
    counts = random.uniform(50, 100, SIZES)
    seen = []
    for each in measured(counts, 4.0):
        noise = random.normal(0, 4, each.counts.shape)
        seen.append(Measurement(each.columns, each.counts + noise, each.sigma))
    tree = JunctionTree.over(SIZES, [each.columns for each in seen])
    found = MaximumEntropy(4000)(tree, seen, counts.sum())

    def loss(logarithms):
        table = np.exp(logarithms - logarithms.max()).reshape(SIZES)
        table *= counts.sum() / table.sum()
        return residual(table, seen)

    best = minimize(loss, np.zeros(12), method="BFGS")
    assert residual(found.marginals[0], seen) < 1.01 * best.fun


def residual(table, seen):
    total = 0.0
    for each in seen:
        (other,) = set(range(3)) - set(each.columns)
        total += 0.5 * np.square((table.sum(axis=other) - each.counts) / each.sigma).sum()
    return total


def test_a_fit_stops_where_the_noise_explains_the_residual():
    seen = [Measurement((0,), np.array([60.0, 40.0]), np.full(2, 1000.0))]
    tree = JunctionTree.over((2,), [])
    # 60 and 40 are within the noise of 50 and 50
    assert MaximumEntropy()(tree, seen, 100.0).marginals[0].tolist() == [50.0, 50.0]


def test_a_fit_goes_on_from_potentials():
    seen = measured(np.random.default_rng(3).uniform(5, 100, SIZES))
    tree = JunctionTree.over(SIZES, [each.columns for each in seen])
    total = seen[0].counts.sum()
    whole = MaximumEntropy(3000)(tree, seen, total)
    again = MaximumEntropy(1)(tree, seen, total, whole.potentials)
    assert np.allclose(again.marginal((0, 2)), whole.marginal((0, 2)), rtol=1e-6)


def test_potentials_and_marginals_of_many_cliques_are_those_of_plain_sums():
    """Pairs, triples and single columns, several of them in each clique, in no order."""
    random, sizes = np.random.default_rng(4), (5, 6, 2, 7, 3, 4)
    cliques = [(1, 3), (0, 1, 2), (0,), (0, 3), (1, 2), (3,), (4, 5), (0, 2), (2, 3), (4,)]
    seen = []
    for columns in (*cliques, (0, 1)):
        counts = random.uniform(1, 9, [sizes[each] for each in columns])
        seen.append(Measurement(columns, counts, np.full(counts.shape, 0.5)))
    tree = JunctionTree.over(sizes, [each.columns for each in seen])
    target = estimate.TreeTarget(tree, seen, 50.0, tree.summed([((0,), random.normal(size=5))]))
    potentials = [random.normal(size=each.counts.shape) for each in seen]
    logarithms = tree.summed([(one.columns, p) for one, p in zip(seen, potentials, strict=True)])
    whole = [one + other for one, other in zip(logarithms, target.fixed, strict=True)]
    found = target.marginals(potentials)
    for one, other in zip(found, tree.marginals(whole, 50.0), strict=True):
        assert np.allclose(one, other, rtol=1e-9)
    loss, slopes = target.residual(found)
    lost = 0.0
    for each, slope in zip(seen, slopes, strict=True):
        home = tree.home(each.columns)
        model = found[home].sum(axis=tree.others(home, each.columns))
        lost += 0.5 * np.square((model - each.counts) / 0.5).sum()
        assert np.allclose(slope, (model - each.counts) / (model + 50), rtol=1e-9)
    assert np.isclose(loss, lost)


class Uphill:
    """A target whose direction never lowers the residual."""

    measurements = (Measurement((0,), np.zeros(1), np.ones(1)),)

    def __init__(self):
        self.looked = 0

    def marginals(self, potentials):
        self.looked += 1
        return [1 + np.abs(potentials[0])]

    def residual(self, marginals):
        return float(marginals[0].sum()), [np.ones(1)]


def test_a_fit_that_gets_no_better_ends():
    """Each step halves the way, so that after a dozen the others could move nothing."""
    target = Uphill()
    potentials, _ = estimate.descended(target, [np.zeros(1)], 2000)
    assert potentials[0].tolist() == [0.0]
    assert target.looked < 20

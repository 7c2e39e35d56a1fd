# SPDX-License-Identifier: Apache-2.0
"""Copies fitted together against fits of each of them."""

import numpy as np
import pytest

from sfumato.synthetic import copies as copies_module
from sfumato.synthetic.copies import Copies
from sfumato.synthetic.elimination import Elimination
from sfumato.synthetic.estimate import MaximumEntropy, Measurement
from sfumato.synthetic.rules import IMPOSSIBLE
from sfumato.synthetic.tree import JunctionTree

SIZES = (4, 3, 5, 2, 3)
CLIQUES = [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (0, 2), (2, 3), (0, 3)]
# cells of the first and fourth column that cannot occur
FORBIDDEN = ((0, 3), np.where(np.eye(4, 2, dtype=bool), IMPOSSIBLE, 0.0))


def measured(copies=6, sigma=4.0, seed=1):
    """Noisy marginals of one table, each copy with noise of its own; totals differ too."""
    random = np.random.default_rng(seed)
    counts = random.gamma(1.0, 40.0, SIZES)
    counts[0, :, :, 0] = counts[1, :, :, 1] = 0.0
    every = []
    for place in range(copies):
        seen = []
        for columns in CLIQUES:
            others = tuple(each for each in range(len(SIZES)) if each not in columns)
            exact = counts.sum(axis=others)
            # the last copies are far noisier, so that they end sooner
            far = sigma * (1 + place)
            noisy = exact + random.normal(0, far, exact.shape)
            seen.append(Measurement(columns, noisy, np.full(exact.shape, far)))
        every.append(seen)
    return every, counts.sum() + random.normal(0, 5, copies)


def check_together(every, totals, fixed, steps):
    """What is fitted together is what is fitted alone, to rounding."""
    tree = JunctionTree.over(SIZES, CLIQUES)
    together = Copies(tree, every, totals, fixed)
    cells = sum(each.counts.size for each in every[0])
    fits = together.fits(together.descend(np.zeros((len(every), 0)), steps))
    for seen, total, fit in zip(every, totals, fits, strict=True):
        alone = MaximumEntropy(steps)(tree, seen, float(total), (), fixed)
        assert fit.total == alone.total and sum(each.size for each in fit.potentials) == cells
        for one, other in zip(fit.marginals, alone.marginals, strict=True):
            assert np.allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("fixed", [(), (FORBIDDEN,)])
@pytest.mark.parametrize("steps", [0, 7, 400])
def test_copies_fitted_together_are_those_fitted_alone(fixed, steps):
    check_together(*measured(), fixed, steps)


def test_a_start_is_that_of_the_first_measurements():
    every, totals = measured(2)
    tree = JunctionTree.over(SIZES, CLIQUES)
    few = Copies(tree, [seen[:5] for seen in every], totals)
    start = few.descend(np.zeros((2, 0)), 50)
    fits = Copies(tree, every, totals).fits(Copies(tree, every, totals).descend(start, 30))
    for seen, total, fit in zip(every, totals, fits, strict=True):
        begun = MaximumEntropy(50)(tree, seen[:5], float(total))
        alone = MaximumEntropy(30)(tree, seen, float(total), begun.potentials)
        for one, other in zip(fit.marginals, alone.marginals, strict=True):
            assert np.allclose(one, other, rtol=1e-8, atol=1e-8)


def test_products_that_are_too_small_are_added_as_logarithms(monkeypatch):
    monkeypatch.setattr(Elimination, "marginals", lambda *_: None)
    check_together(*measured(3), (FORBIDDEN,), 30)


def test_exact_counts_far_apart_are_fitted():
    """With next to no noise, potentials are large."""
    check_together(*measured(3, sigma=1e-4), (), 60)


def test_one_step_for_all_copies_is_noticed(monkeypatch):
    """As if every copy took the step of the first."""
    plain = np.where

    def of_the_first(condition, *values):
        return plain(condition[:1] if np.isscalar(values[0]) else condition, *values)

    class Numbers:
        where = staticmethod(of_the_first)

        def __getattr__(self, name):
            return getattr(np, name)

    monkeypatch.setattr(copies_module, "np", Numbers())
    with pytest.raises(AssertionError):
        check_together(*measured(sigma=0.5), (), 200)

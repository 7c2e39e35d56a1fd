# SPDX-License-Identifier: Apache-2.0
"""Measurements to and from mbi, and its estimator beside the built-in one.

Where mbi is not installed, only the refusal is tested: jax is too large for every environment.
"""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from sfumato.errors import WrongUse
from sfumato.synthetic.estimate import MaximumEntropy, Measurement
from sfumato.synthetic.mbi import Mbi, from_mbi, to_mbi
from sfumato.synthetic.tree import JunctionTree

SIZES = (3, 4, 2)
CLIQUES = [(0,), (1,), (2,), (0, 1), (1, 2)]
HAS_MBI = find_spec("mbi") is not None


def joint():
    """A distribution in which the first and the last column meet through the second."""
    random = np.random.default_rng(1)
    given = random.dirichlet(np.ones(3), 4).T[:, :, np.newaxis]
    last = random.dirichlet(np.ones(2), 4)[np.newaxis]
    return given * last * random.dirichlet(np.ones(4))[np.newaxis, :, np.newaxis] * 5000


def seen(noise):
    """Its marginals; the noise of the first column differs from value to value."""
    found = []
    for clique in CLIQUES:
        others = tuple(each for each in range(3) if each not in clique)
        counts = joint().sum(axis=others)
        sigma = np.full(counts.shape, noise)
        if clique == (0,):
            sigma = noise * np.array([1.0, 2.0, 3.0])
        found.append(Measurement(clique, counts, sigma))
    return found


if HAS_MBI:

    def test_measurements_come_back_as_they_went():
        sent = seen(7.0)
        for one, other in zip(sent, from_mbi(to_mbi(sent), SIZES), strict=True):
            assert one.columns == other.columns
            np.testing.assert_allclose(other.counts, one.counts, rtol=1e-12)
            np.testing.assert_allclose(other.sigma, one.sigma, rtol=1e-12)

    def test_a_query_that_is_no_marginal_is_refused():
        (one, *_) = to_mbi(seen(7.0)[1:])
        changed = type(one)(one.noisy_measurement, one.clique, 1.0, lambda factor: factor)
        with pytest.raises(WrongUse, match="counts of a marginal"):
            from_mbi([changed], SIZES)

    def test_both_estimators_find_the_distribution():
        tree = JunctionTree.over(SIZES, CLIQUES)
        ours = MaximumEntropy(5000)(tree, seen(1.0), 5000.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = Mbi(500)(tree, seen(1.0), 5000.0)
        for clique, one, other in zip(tree.cliques, ours.marginals, theirs.marginals, strict=True):
            others = tuple(each for each in range(3) if each not in clique)
            true = joint().sum(axis=others)
            assert np.abs(one - true).max() < 5 and np.abs(other - true).max() < 5
            assert np.abs(one - other).max() < 5

else:

    def test_what_is_missing_is_named():
        for call in (lambda: to_mbi(seen(1.0)), lambda: from_mbi([], SIZES)):
            with pytest.raises(WrongUse, match="sfumato\\[mbi\\]"):
                call()


def test_constraints_are_refused():
    tree = JunctionTree.over(SIZES, CLIQUES)
    with pytest.raises(WrongUse, match="Constraints"):
        Mbi()(tree, seen(1.0), 5000.0, (), [((0,), np.zeros(3))])

# SPDX-License-Identifier: Apache-2.0
"""Layouts over several columns: their exact errors, their shares, and the best of them."""

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from sfumato.privacy.distance import Norm
from sfumato.synopsis.grid import Place
from sfumato.synopsis.layout import Layout, layouts
from sfumato.synopsis.wanted import Term, Wanted, cells, marginals, prefixes, ranges
from tests.synopsis.matrices import queries

SIZES = {"a": (20, 20), "b": (18, 18), "c": (2, 2), "d": (9, 9)}
SMALL = {"a": (4, 5), "b": (3, 4), "c": (2, 3)}
MIXED = ranges("a") * cells("b") + 2 * prefixes("a") + cells("b", "c")


def named(wanted: Wanted, sizes: dict[str, tuple[int, int]], norm: Norm) -> dict[str, Layout]:
    return {layout.name: layout for layout in layouts(wanted, sizes, norm)}


@pytest.mark.parametrize(("most", "expected"), [(2, 0.8131), (3, 0.7532)])
def test_marginals_have_the_known_error(most, expected):
    """The values of an independent prototype, against every table alone at the same rho."""
    found = named(marginals(list(SIZES), up_to=most), SIZES, Norm.L2)
    ratio = math.sqrt(found["marginals"].factor / found["tables alone"].factor)
    assert ratio == pytest.approx(expected, abs=1e-4)


def matrix(layout: Layout, place: Place) -> np.ndarray:
    """A layer over all padded cells."""
    factors, levels = [], dict(place)
    for axis, chain in enumerate(layout.grid.chains):
        width = chain.widths[levels.get(axis, chain.top)]
        blocks = np.arange(chain.padded) // width
        factors.append((np.arange(chain.padded // width)[:, None] == blocks).astype(float))
    return reduce(np.kron, factors)


def rows(layout: Layout, term: Term, sizes: dict[str, tuple[int, int]]) -> np.ndarray:
    """Every query of a term over all padded cells."""
    kinds, factors = dict(term.factors), []
    for (name, (values, _)), chain in zip(sizes.items(), layout.grid.chains, strict=True):
        if name not in kinds:
            factors.append(np.ones((1, chain.padded)))
            continue
        table = queries(kinds[name](values))
        factors.append(np.pad(table, ((0, 0), (0, chain.padded - values))))
    return reduce(np.kron, factors)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_the_factor_is_the_error_of_dense_least_squares(norm):
    """The workload reaches every candidate but the one that estimates each table alone."""
    for layout in layouts(MIXED, SMALL, norm):
        if layout.name == "tables alone":
            continue
        assert sum(layout.shares) <= 1
        power = 2 if norm is Norm.L1 else 1
        information = 0.0
        for place, share in zip(layout.grid.layers, layout.shares, strict=True):
            layer = matrix(layout, place)
            information = information + float(share) ** power * layer.T @ layer
        # far above rounding and far below the smallest true eigenvalue: the cut must not depend on BLAS
        inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
        error = weights = 0.0
        for term in MIXED.terms:
            asked = rows(layout, term, SMALL)
            variances = np.einsum("ij,jk,ik->i", asked, inverse, asked)
            error += float(term.weight) * variances.mean()
            weights += float(term.weight)
        assert layout.factor == pytest.approx(error / weights, rel=1e-6), layout.name


def test_tables_alone_have_the_error_of_separate_questions():
    """Four tables at a quarter of rho each: variance 4 a cell; of a range of m cells, 4 m."""
    wanted = cells("a") + cells("b") + cells("a", "b") + ranges("c")
    alone = named(wanted, SMALL, Norm.L2)["tables alone"]
    assert alone.shares == (Fraction(1, 4),) * 4
    assert alone.factor == pytest.approx((4 + 4 + 4 + 4 * (1 + 1 + 2) / 3) / 4)


def test_trees_are_best_for_ranges_and_marginals_for_tables():
    sizes = {"a": (256, 257), "b": (3, 4)}
    assert layouts(ranges("a") * cells("b"), sizes, Norm.L2)[0].name.startswith("trees of")
    assert layouts(cells("a", "b") + cells("a"), sizes, Norm.L2)[0].name == "marginals"


def test_the_best_is_never_worse_than_any_other():
    for norm in (Norm.L1, Norm.L2):
        best, *others = layouts(MIXED, SMALL, norm)
        assert all(best.factor <= other.factor * (1 + 1e-8) for other in others)


def test_a_workload_with_too_many_layers_is_refused():
    sizes = {f"c{k}": (2**20, 2**20 + 1) for k in range(8)}
    wanted = reduce(lambda one, other: one * other, (ranges(name) for name in sizes))
    names = [layout.name for layout in layouts(wanted, sizes, Norm.L2)]
    assert names == ["marginals", "tables alone"]

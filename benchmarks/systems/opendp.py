# SPDX-License-Identifier: Apache-2.0
"""OpenDP: its exact integer noise, its noisy max (fed in the form that it takes fastest and as lists), its odometer."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found]
from numpy.typing import NDArray

from benchmarks.systems import Call, Make
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import QUESTION
from benchmarks.systems.range_errors import over_all_ranges
from benchmarks.systems.scores import RATE, normal, votes

PACKAGES = ("opendp",)

dp.enable_features("contrib")

# which rule its noisy max follows
_MEASURES = {
    "exponential": dp.zero_concentrated_divergence(),
    "permute-and-flip": dp.max_divergence(),
}


def _many(make: Callable[..., Any], metric: Callable[..., Any], scale: float, n: int) -> Call:
    measurement = make(dp.vector_domain(dp.atom_domain(T="i64")), metric(T="i64"), float(scale))
    return partial(measurement, np.zeros(n, np.int64))


def _one(make: Callable[..., Any], scale: float, n: int) -> Call:
    return partial(make(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), float(scale)), 0)


def _noisy_max(
    measure: object, scores: Callable[[int], NDArray[Any]], form: str, scale: float, n: int
) -> Call:
    given = scores(n)
    kind = {"int64": "i64", "float64": "f64"}[given.dtype.name]
    atom = dp.atom_domain(T=kind) if kind == "i64" else dp.atom_domain(T=kind, nan=False)
    measurement = dp.m.make_noisy_max(
        dp.vector_domain(atom), dp.linf_distance(T=kind), measure, 1 / RATE
    )
    return partial(measurement, given if form == "array" else given.tolist())


def _bits(scale: float, n: int) -> Call:
    space = dp.bitvector_domain(max_weight=n), dp.discrete_distance()
    return partial(
        dp.m.make_randomized_response_bitvec(*space, f=2 * 0.2689414213699951), bytes(n // 8)
    )


def _left(scale: float, n: int) -> Call:
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    question = dp.m.make_gaussian(*space, 1 / QUESTION)
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.zero_concentrated_divergence())

    def call() -> float:
        asked = odometer(0)
        for _ in range(n):
            asked(question)
            spent = asked.privacy_loss(1)
        return float(spent)

    return call


def _tree(scale: float, n: int) -> Call:
    """Its tree of the base that it recommends, made consistent; a row is one change in L1."""
    base = dp.t.choose_branching_factor(n)
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=n), dp.l1_distance(T="i64")
    tree = dp.t.make_b_ary_tree(*space, leaf_count=n, branching_factor=base)
    noisy = tree >> dp.m.then_laplace(tree.map(1) * scale)
    consistent = dp.t.make_consistent_b_ary_tree(base)

    def release(counts: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(consistent(noisy(counts.tolist())))[:n]

    return partial(over_all_ranges, release, n)


def _selections() -> dict[str, Make]:
    return {
        f"{rule}, {name}, {form}": partial(_noisy_max, measure, scores, form)
        for rule, measure in _MEASURES.items()
        for name, scores in (("normal", normal), ("votes", votes))
        for form in ("array", "list")
    }


WORKS: dict[str, Make] = {
    "laplace": partial(_many, dp.m.make_laplace, dp.l1_distance),
    "gaussian": partial(_many, dp.m.make_gaussian, dp.l2_distance),
    "laplace one": partial(_one, dp.m.make_laplace),
    "gaussian one": partial(_one, dp.m.make_gaussian),
    "bits": _bits,
    "range errors": _tree,
    "what is left": _left,
    "first answer": lambda scale, n: fresh(
        "import opendp.prelude as dp; dp.enable_features('contrib');"
        "dp.m.make_laplace(dp.atom_domain(T='i64'), dp.absolute_distance(T='i64'), 10.0).map(1)"
    ),
    **_selections(),
}

# SPDX-License-Identifier: Apache-2.0
"""Autodp: its Renyi accountant."""

from functools import partial

from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism  # type: ignore[import-not-found]
from autodp.transformer_zoo import AmplificationBySampling, Composition  # type: ignore[import-not-found]

from benchmarks.systems import Make
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import DELTA, GAUSSIAN_SIGMA, LAPLACE_EPSILON, MANY, SGD, Sgd

PACKAGES = ("autodp",)


def _sgd(problem: Sgd) -> float:
    whole = GaussianMechanism(sigma=problem.sigma)
    whole.neighboring = "add_remove"
    step = AmplificationBySampling(PoissonSampling=True)(
        whole, problem.rate, improved_bound_flag=True
    )
    return _composed(step, problem.steps, problem.delta)


def _asked(problem: Sgd) -> Make:
    return lambda scale, n: partial(_sgd, problem)


def _composed(step: object, times: int, delta: float) -> float:
    return float(Composition()([step], [times]).get_approxDP(delta))


WORKS: dict[str, Make] = {
    **{f"DP-SGD, {name}": _asked(problem) for name, problem in SGD.items()},
    "gaussians": lambda scale, n: (
        lambda: _composed(GaussianMechanism(sigma=GAUSSIAN_SIGMA), MANY, DELTA)
    ),
    "laplaces": lambda scale, n: (
        lambda: _composed(LaplaceMechanism(b=1 / LAPLACE_EPSILON), MANY, DELTA)
    ),
    "first answer": lambda scale, n: fresh(
        "from autodp.mechanism_zoo import LaplaceMechanism; LaplaceMechanism(b=10.0).get_approxDP(1e-6)"
    ),
}

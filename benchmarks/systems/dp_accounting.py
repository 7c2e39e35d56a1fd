# SPDX-License-Identifier: Apache-2.0
"""Google's dp-accounting: its privacy loss distributions, at the default accuracy and finer."""

from collections.abc import Callable
from functools import partial

import dp_accounting as dpa
from dp_accounting.pld import PLDAccountant, common
from dp_accounting.pld import privacy_loss_distribution as pld

from benchmarks.systems import Call, Make
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import (
    CALIBRATED,
    DELTA,
    GAUSSIAN_SIGMA,
    LAPLACE_EPSILON,
    MANY,
    QUESTION,
    SGD,
    Sgd,
    mix,
)

PACKAGES = ("dp-accounting",)

_LOSS: dict[str, Callable[[float], object]] = {
    "laplace": lambda epsilon: pld.from_laplace_mechanism(1 / epsilon),
    "gaussian": lambda epsilon: pld.from_gaussian_mechanism(1 / epsilon),
    "geometric": lambda epsilon: pld.from_discrete_laplace_mechanism(epsilon),
    "response": lambda epsilon: pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, 0)
    ),
    "exponential": lambda epsilon: pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, 0)
    ),
}


def _sgd(problem: Sgd, sigma: float) -> dpa.DpEvent:
    step = dpa.PoissonSampledDpEvent(problem.rate, dpa.GaussianDpEvent(sigma))
    return dpa.SelfComposedDpEvent(step, problem.steps)


def _epsilon(problem: Sgd, interval: float) -> Call:
    return lambda: (
        PLDAccountant(value_discretization_interval=interval)
        .compose(_sgd(problem, problem.sigma))
        .get_epsilon(problem.delta)
    )


def _asked(problem: Sgd) -> Make:
    return lambda scale, n: _epsilon(problem, scale)


def _many(make: Callable[[], object]) -> Call:
    return lambda: make().self_compose(MANY).get_epsilon_for_delta(DELTA)  # type: ignore[attr-defined]


def _mixed(scale: float, n: int) -> Call:
    def call() -> float:
        first, *rest = [_LOSS[kind](epsilon) for kind, epsilon in mix(n)]
        for each in rest:
            first = first.compose(each)  # type: ignore[attr-defined]
        return float(first.get_epsilon_for_delta(DELTA))  # type: ignore[attr-defined]

    return call


def _left(scale: float, n: int) -> Call:
    def call() -> float:
        accountant, question = PLDAccountant(), dpa.LaplaceDpEvent(1 / QUESTION)
        for _ in range(n):
            accountant.compose(question)
            spent = accountant.get_epsilon(DELTA)
        return float(spent)

    return call


def _calibrated() -> float:
    return float(
        dpa.calibrate_dp_mechanism(
            PLDAccountant, partial(_sgd, CALIBRATED), target_epsilon=1.0, target_delta=DELTA
        )
    )


WORKS: dict[str, Make] = {
    **{f"DP-SGD, {name}": _asked(problem) for name, problem in SGD.items()},
    "gaussians": lambda scale, n: _many(
        partial(pld.from_gaussian_mechanism, GAUSSIAN_SIGMA, value_discretization_interval=scale)
    ),
    "laplaces": lambda scale, n: _many(
        partial(
            pld.from_laplace_mechanism, 1 / LAPLACE_EPSILON, value_discretization_interval=scale
        )
    ),
    "mix": _mixed,
    "what is left": _left,
    "sigma": lambda scale, n: _calibrated,
    "first answer": lambda scale, n: fresh(
        "import dp_accounting; from dp_accounting.pld import PLDAccountant;"
        "PLDAccountant().compose(dp_accounting.LaplaceDpEvent(10.0)).get_epsilon(1e-6)"
    ),
}

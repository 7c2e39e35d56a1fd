# SPDX-License-Identifier: Apache-2.0
"""Microsoft's prv-accountant, which brackets: by ``eps_error`` it is told how wide."""

from collections.abc import Callable
from functools import partial

from prv_accountant import (  # type: ignore[import-not-found]
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)
from prv_accountant.dpsgd import find_noise_multiplier  # type: ignore[import-not-found]

from benchmarks.systems import Call, Make
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import CALIBRATED, DELTA, LAPLACE_EPSILON, MANY, SGD

PACKAGES = ("prv-accountant",)


def _bounds(
    make: Callable[[], object], times: int, delta: float, error: float
) -> tuple[float, float, float]:
    accountant = PRVAccountant(
        prvs=[make()],
        max_self_compositions=[times],
        eps_error=error,
        delta_error=min(1e-10, delta / 1000),
    )
    lower, estimate, upper = accountant.compute_epsilon(delta, [times])
    return lower, estimate, upper


def _asked(name: str, make: Callable[[], object], times: int, delta: float) -> dict[str, Make]:
    def width(bounds: tuple[float, float, float]) -> float:
        return (bounds[2] - bounds[0]) / bounds[1]

    def upper(error: float) -> Call:
        return lambda: _bounds(make, times, delta, error)[2]

    return {
        name: lambda scale, n: upper(scale),
        f"{name}, width": lambda scale, n: lambda: width(_bounds(make, times, delta, scale)),
    }


def _problems() -> dict[str, Make]:
    works: dict[str, Make] = {}
    for name, each in SGD.items():
        step = partial(
            PoissonSubsampledGaussianMechanism,
            noise_multiplier=each.sigma,
            sampling_probability=each.rate,
        )
        works |= _asked(f"DP-SGD, {name}", step, each.steps, each.delta)
    return works | _asked("laplaces", partial(LaplaceMechanism, mu=LAPLACE_EPSILON), MANY, DELTA)


WORKS: dict[str, Make] = {
    **_problems(),
    "sigma": lambda scale, n: (
        lambda: find_noise_multiplier(
            CALIBRATED.rate,
            CALIBRATED.steps,
            target_epsilon=1.0,
            target_delta=DELTA,
            eps_error=scale,
        )
    ),
    "first answer": lambda scale, n: fresh(
        "from prv_accountant import LaplaceMechanism, PRVAccountant;"
        "a = PRVAccountant(prvs=[LaplaceMechanism(mu=0.1)], max_self_compositions=[9], eps_error=0.1, delta_error=1e-9);"
        "a.compute_epsilon(1e-6, [9])"
    ),
}

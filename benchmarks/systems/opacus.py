# SPDX-License-Identifier: Apache-2.0
"""The accountants of Opacus. Its PRV takes minutes for a million steps and is asked for MNIST only."""

from functools import partial

from opacus.accountants import PRVAccountant, RDPAccountant  # type: ignore[import-not-found]
from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found]

from benchmarks.systems import Make, opacus_steps
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import CALIBRATED, DELTA, SGD, Sgd

PACKAGES = ("opacus", "torch")


def _epsilon(accountant: type[PRVAccountant] | type[RDPAccountant], problem: Sgd) -> float:
    made = accountant()
    made.history = [(problem.sigma, problem.rate, problem.steps)]
    return float(made.get_epsilon(problem.delta))


def _asked(problem: Sgd) -> Make:
    return lambda scale, n: partial(_epsilon, RDPAccountant, problem)


WORKS: dict[str, Make] = {
    **opacus_steps.WORKS,
    **{f"DP-SGD, {name}": _asked(problem) for name, problem in SGD.items()},
    "DP-SGD, MNIST, PRV": lambda scale, n: partial(_epsilon, PRVAccountant, SGD["MNIST"]),
    "sigma": lambda scale, n: (
        lambda: get_noise_multiplier(
            target_epsilon=1.0,
            target_delta=DELTA,
            sample_rate=CALIBRATED.rate,
            steps=CALIBRATED.steps,
            accountant="prv",
            epsilon_tolerance=scale,
        )
    ),
    "first answer": lambda scale, n: fresh(
        "from opacus.accountants import RDPAccountant; a = RDPAccountant(); a.history = [(1.0, 1.0, 1)]; a.get_epsilon(1e-6)"
    ),
}

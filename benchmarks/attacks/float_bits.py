# SPDX-License-Identifier: Apache-2.0
"""Bits of floats.

Given: 4,000 releases of 0 and of 1 with Laplace noise of scale 1.
Broken: results that only one of the two can give.
Right: the same results from both.
Source: Mironov (CCS 2012); Haney et al. (2022).
"""

import math
from collections.abc import Callable

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import SUMS, opendp

RELEASES = 4000


def _finer(release: Callable[[float], float]) -> Seen:
    shares = []
    for exact in (0.0, 1.0):
        scaled = [release(exact) * 2.0**53 for _ in range(RELEASES)]
        shares.append(sum(each != math.floor(each) for each in scaled) / RELEASES)
    seen = f"finer than 2^-53: {shares[0]:.1%} from 0, {shares[1]:.1%} from 1"
    return judged(holds=(shares[0] > 0.005) == (shares[1] > 0.005), seen=seen)


def _sfumato() -> Seen:
    sums = [SUMS["sfumato"]([exact], 1.0) for exact in (0.0, 1.0)]
    on_grid = all(each * 4 == math.floor(each * 4) for each in sums)
    return judged(holds=on_grid, seen="integer noise: multiples of the step 0.25 from both")


def _opendp() -> Seen:
    dp = opendp()
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return _finer(dp.m.make_laplace(*space, scale=1.0))


def _diffprivlib() -> Seen:
    from diffprivlib.mechanisms import Laplace  # type: ignore[import-not-found]

    return _finer(Laplace(epsilon=1, sensitivity=1).randomise)


def _python_dp() -> Seen:
    from pydp.algorithms import numerical_mechanisms  # type: ignore[import-not-found]

    mechanism = numerical_mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    return _finer(lambda exact: float(mechanism.add_noise(exact)))


CASE = Case(
    __doc__,
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": _diffprivlib,
        "python-dp": _python_dp,
    },
    {"diffprivlib": "https://github.com/IBM/differential-privacy-library/issues/94"},
)

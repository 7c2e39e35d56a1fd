# SPDX-License-Identifier: Apache-2.0
"""What is promised: exact values, convertible only by name (``accounting.convert``)."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, order=True)
class PureDP:
    """epsilon-DP: P(A) <= e^epsilon Q(A) for every event A (Dwork, McSherry, Nissim, Smith 2006)."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(epsilon, delta)-DP: P(A) <= e^epsilon Q(A) + delta (Dwork et al. 2006)."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True, order=True)
class ZeroConcentratedDP:
    """rho-zCDP: the Renyi divergence of every order a > 1 is at most a rho (Bun, Steinke 2016)."""

    rho: Fraction

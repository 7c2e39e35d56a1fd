# SPDX-License-Identifier: Apache-2.0
"""One file per distribution: draw it exactly, and state its law.

May import: ``exact``, ``errors``. Begin with ``laplace``. A distribution is a frozen value
on the integers; the very object that is drawn from is the one the accountant reads, so
the sampled law is the accounted law. ``entropy`` is the only place in sfumato that asks
the operating system for randomness. The samplers here are the plain ones of Canonne,
Kamath and Steinke (2020): slow, short, exact; faster ones are tested against them.
"""

from typing import TypeAlias

from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.gaussian import DiscreteGaussian
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import DiscreteLaplace
from sfumato.noise.law import Integers, Law, Shape

Noise: TypeAlias = DiscreteLaplace | DiscreteGaussian

__all__ = ["SYSTEM", "DiscreteGaussian", "DiscreteLaplace", "Entropy", "Geometric", "Integers", "Law", "Noise", "Shape"]

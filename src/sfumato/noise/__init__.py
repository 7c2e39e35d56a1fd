# SPDX-License-Identifier: Apache-2.0
"""One file per distribution: draw it exactly, and state its law.

May import: ``exact``, ``errors``. Begin with ``laplace`` (a law and what it states), then
``cells`` (how it is drawn). A distribution is a frozen value on the integers; the very
object that is drawn from is the one the accountant reads, so the sampled law is the
accounted law. ``entropy`` is the only place in sfumato that asks the operating system for
randomness. ``plain`` has the samplers of Canonne, Kamath and Steinke (2020): slow, short,
exact; the fast ones are tested against them.
"""

from typing import TypeAlias

from sfumato.noise.binomial import Binomial
from sfumato.noise.bits import random_bits
from sfumato.noise.coin import Bernoulli, BernoulliExp, BernoulliLogistic
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.gaussian import DiscreteGaussian
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import DiscreteLaplace
from sfumato.noise.law import Integers, Law, Shape
from sfumato.noise.skellam import Skellam
from sfumato.noise.staircase import DiscreteStaircase
from sfumato.noise.truncated import Truncated
from sfumato.noise.uniform import below_many, permutation, subset

Noise: TypeAlias = (
    DiscreteLaplace | DiscreteGaussian | DiscreteStaircase | Truncated | Binomial | Skellam
)

__all__ = [
    "SYSTEM",
    "Bernoulli",
    "BernoulliExp",
    "BernoulliLogistic",
    "Binomial",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "Entropy",
    "Geometric",
    "Integers",
    "Law",
    "Noise",
    "Shape",
    "Skellam",
    "Truncated",
    "below_many",
    "permutation",
    "random_bits",
    "subset",
]

# SPDX-License-Identifier: Apache-2.0
"""Distributions on the integers: exact samplers, and outward bounds of their probabilities.

May import: ``exact``, ``errors``. One file per distribution. Begin with ``laplace`` (a
distribution and what it states), then ``rejection_sampler`` (how it is sampled).

A distribution is a frozen value. The accountant reads the same object that is sampled from, so
the sampled law is the accounted law. Only ``entropy`` asks the operating system for randomness.
``plain`` has the samplers of Canonne, Kamath and Steinke (2020): slow, short and exact; the fast
samplers are tested against them.
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
from sfumato.noise.negative_binomial import NegativeBinomial
from sfumato.noise.rounded import RoundedGaussian
from sfumato.noise.skellam import Skellam
from sfumato.noise.staircase import DiscreteStaircase
from sfumato.noise.truncated import Truncated
from sfumato.noise.uniform import below_many, permutation, subset

Noise: TypeAlias = (
    DiscreteLaplace
    | DiscreteGaussian
    | DiscreteStaircase
    | Truncated
    | Binomial
    | Skellam
    | RoundedGaussian
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
    "NegativeBinomial",
    "Noise",
    "RoundedGaussian",
    "Shape",
    "Skellam",
    "Truncated",
    "below_many",
    "permutation",
    "random_bits",
    "subset",
]

# SPDX-License-Identifier: Apache-2.0
"""Samplers that are short, slow and exact at any scale.

Tests compare the fast samplers with them, and the fast samplers use them for the largest scales.
Source: Canonne, Kamath, Steinke (2020), Algorithms 2 and 3. Proof: plain.proof.md.
"""

import math
from fractions import Fraction

from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.noise.entropy import Entropy, below


def geometric(scale: Fraction, entropy: Entropy) -> int:
    """Draws x >= 0 with probability proportional to exp(-x / scale)."""
    over = scale.numerator
    under = scale.denominator
    while True:
        offset = below(over, entropy)
        if bernoulli_exp(offset, over, entropy):
            break
    turns = 0
    while bernoulli_exp(1, 1, entropy):
        turns += 1
    return (offset + over * turns) // under


def laplace(scale: Fraction, entropy: Entropy) -> int:
    """Draws an integer x with probability proportional to exp(-|x| / scale)."""
    while True:
        magnitude = geometric(scale, entropy)
        negative = entropy.bits(1) == 1
        # reject -0, or zero would be drawn twice as often
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def gaussian(sigma_squared: Fraction, entropy: Entropy) -> int:
    """Draws an integer x with probability proportional to exp(-x^2 / (2 sigma^2))."""
    proposal_scale = math.isqrt(int(sigma_squared)) + 1
    # accept y with probability exp(-(|y| - sigma^2/t)^2 / (2 sigma^2)), as a ratio of integers
    over = sigma_squared.numerator
    under = sigma_squared.denominator * proposal_scale
    bottom = 2 * over * under * proposal_scale
    while True:
        candidate = laplace(Fraction(proposal_scale), entropy)
        distance = abs(candidate) * under - over
        if bernoulli_exp(distance * distance, bottom, entropy):
            return candidate

# SPDX-License-Identifier: Apache-2.0
"""The dominating pair of one integer with symmetric, log-concave noise: the largest shift.

Proof: shifted.proof.md.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.loss.atoms import Atoms
from sfumato.accounting.loss.edges import MAX_LOSS, ROUNDOFF
from sfumato.noise import Binomial, Skellam

_REACH, _LEAST_REACH, _MOST_REACH = 13, 40, 1600
# How many ratios before the first used one the recurrence starts; the error of the start has
# vanished by then.
_BEFORE = 64
_EXACT = Context(prec=60)


@lru_cache(maxsize=64)
def shifted(noise: Skellam | Binomial, shift: int) -> Atoms | None:
    """Returns the dominating pair of one integer plus Skellam or binomial noise that neighbours
    change by ``shift``.

    None if floats cannot represent it.

    Guarantees:
        a shifted integer loses the ratio of two probabilities

    >>> pair = shifted(Skellam(50), 1)
    >>> round(sum(pair.masses), 12), round(max(pair.losses), 2)
    (1.0, 1.31)
    """
    reach = math.ceil(_REACH * math.sqrt(noise.variance.upper)) + _LEAST_REACH + shift
    if isinstance(noise, Binomial):
        if 2 * noise.probability != 1 or noise.trials % 2:
            return None
        reach = min(reach, noise.trials // 2)
    if not 1 <= shift < reach <= _MOST_REACH:
        return None
    falls = _falls(noise, reach)
    weights = _weights(falls)
    losses = _losses(falls, shift)
    if float(np.abs(losses).max()) > MAX_LOSS or min(weights) < 1e-300:
        return None
    middle = 0 if isinstance(noise, Skellam) else noise.trials // 2
    outside = 2 * noise.above(middle + reach - shift).upper
    return Atoms(
        tuple(losses.tolist()), tuple(weights[shift:]), None, outside, fixed=64 * shift * ROUNDOFF
    )


def _weights(falls: list[Decimal]) -> list[float]:
    """The probabilities from -reach to reach."""
    half = []
    weight = Decimal(1)
    for fall in falls:
        weight = _EXACT.multiply(weight, fall)
        half.append(weight)
    total = 1 + 2 * sum(half)
    both = (*reversed(half), Decimal(1), *half)
    return [float(_EXACT.divide(mass, total)) for mass in both]


def _losses(falls: list[Decimal], shift: int) -> NDArray[np.float64]:
    """The logarithms of p(y - shift) / p(y), from y = -reach + shift on."""
    logs = np.log([float(fall) for fall in falls])
    steps = np.concatenate([-logs[::-1], logs])
    losses = np.zeros(2 * len(falls) + 1 - shift)
    for step in range(shift):
        losses -= steps[step : step + len(losses)]
    return losses


def _falls(noise: Skellam | Binomial, count: int) -> list[Decimal]:
    """p(k + 1) / p(k) for the first ``count`` k from the centre outward."""
    if isinstance(noise, Binomial):
        half = noise.trials // 2
        return [_decimal(Fraction(half - k, half + k + 1)) for k in range(count)]
    width, fall, falls = _decimal(2 * noise.rate), Decimal(0), []
    # I(k + 1) / I(k) = 1 / (2 (k + 1) / width + I(k + 2) / I(k + 1)), downward
    for k in range(count + _BEFORE + math.ceil(2 * noise.rate), 0, -1):
        fall = _EXACT.divide(Decimal(1), _EXACT.add(_EXACT.divide(Decimal(2 * k), width), fall))
        falls.append(fall)
    return falls[::-1][:count]


def _decimal(number: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))

# SPDX-License-Identifier: Apache-2.0
"""The privacy curve of the discrete Gaussian, and the least noise for an (epsilon, delta).

Source: Canonne, Kamath, Steinke (2020), Theorem 7, in one dimension; Balle and Wang (2018) for the
continuous Gaussian, which bounds large sensitivities here. Proof: gaussian.proof.md.
"""

import math
from fractions import Fraction

from sfumato.accounting.zcdp import approx_from_zcdp
from sfumato.errors import InvalidNumber, shown
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, sqrt_down
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.guarantee import ZeroConcentratedDP

# The most shifts that are enumerated; of more, the largest are, and the rest have one common bound.
_ENUMERATED = 256
_LAST = 64
_SUMMED_SIGMA_SQUARED = 64**2
_PRECISION = Fraction(1, 2**16)
_LARGEST = Fraction(1000)
_LEAST = Fraction(1, 2**64)
_LIBM_SLACK = 1e-9


def gaussian_delta(noise: DiscreteGaussian, sensitivity: int, epsilon: Number) -> Bracket:
    """Returns bounds of the least delta at which one integer plus ``noise`` is (epsilon, delta)-DP.

    It is the worst over all changes of the integer by up to ``sensitivity``.

    Guarantees:
        the discrete curve lies between its bounds

    >>> gaussian_delta(DiscreteGaussian(5), 1, "0.5").upper
    0.000497...
    """
    # the curve falls with epsilon: at less than the given one it is larger
    loss = min(positive("epsilon", epsilon), _LARGEST)
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or sensitivity < 1:
        raise InvalidNumber(
            f"A sensitivity of {shown(sensitivity)} lattice steps.", allowed="an integer >= 1"
        )
    first = 1 if sensitivity <= _ENUMERATED else sensitivity - _LAST + 1
    shifts = [_one_shift(noise, shift, loss) for shift in range(first, sensitivity + 1)]
    rest = _smaller_shifts(noise, first - 1, loss) if first > 1 else 0.0
    return Bracket(
        max(bracket.lower for bracket in shifts),
        min(max(rest, *(bracket.upper for bracket in shifts)), 1.0),
    )


def gaussian_for(
    epsilon: Number, delta: Number, *, sensitivity_squared: Fraction, entries: int | None = None
) -> DiscreteGaussian:
    """Returns the discrete Gaussian with nearly the least variance that is (epsilon, delta)-DP.

    ``entries`` is the number of integers. For one it uses the exact curve; for more, rho-zCDP with
    rho = sensitivity^2 / (2 sigma^2) at the best order (a proved bound for any dimension; slightly
    more noise).

    Guarantees:
        the calibrated gaussian keeps its delta

    >>> noise = gaussian_for("0.1", "1e-5", sensitivity_squared=Fraction(10**6), entries=1)
    >>> round(float(noise.sigma_squared) ** 0.5, -1)
    30750.0
    """
    loss, slack = positive("epsilon", epsilon), positive("delta", delta, at_most=Fraction(1, 2))

    def enough(sigma_squared: Fraction) -> bool:
        if entries == 1:
            exact = gaussian_delta(DiscreteGaussian(sigma_squared=sigma_squared), steps, loss).upper
            if exact <= slack:
                return True
        rho = ZeroConcentratedDP(sensitivity_squared / (2 * sigma_squared))
        return approx_from_zcdp(rho, slack).epsilon <= loss

    steps = math.isqrt(int(sensitivity_squared))
    low = high = max(sensitivity_squared / loss**2 / 64, Fraction(1, 64))
    while not enough(high):
        low, high = high, 2 * high
    while enough(low) and low > _LEAST:
        low, high = low / 2, low
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return DiscreteGaussian(sigma_squared=high)


def _one_shift(noise: DiscreteGaussian, shift: int, epsilon: Fraction) -> Bracket:
    """P(X <= m) - e^epsilon P(X <= m - shift), m the last point whose loss exceeds epsilon."""
    last = math.ceil(Fraction(shift, 2) - epsilon * noise.sigma_squared / shift) - 1
    here, there = noise.cdf(last), noise.cdf(last - shift)
    lower = Fraction(here.lower) - exp_up(epsilon) * Fraction(there.upper)
    upper = Fraction(here.upper) - exp_down(epsilon) * Fraction(there.lower)
    return Bracket(max(float_down(lower), 0.0), max(float_up(upper), 0.0))


def _smaller_shifts(noise: DiscreteGaussian, largest: int, epsilon: Fraction) -> float:
    """A bound for all shifts up to ``largest``: the continuous curve plus the difference of
    discrete tails.
    """
    if not _SUMMED_SIGMA_SQUARED <= noise.sigma_squared <= 10**200 or epsilon > 50:
        return 1.0
    sigma, loss = float(sqrt_down(noise.sigma_squared)), float(epsilon)
    shift = largest / sigma
    near, far = loss / shift - shift / 2, loss / shift + shift / 2
    here = math.erfc(near / math.sqrt(2)) / 2 * (1 + _LIBM_SLACK)
    there = math.exp(loss) * math.erfc(far / math.sqrt(2)) / 2 * (1 - _LIBM_SLACK)
    return max(here - there, 0.0) + _discreteness(sigma, near - 1 / sigma, far + 1 / sigma, loss)


def _discreteness(sigma: float, near: float, far: float, loss: float) -> float:
    """Returns how much a sum of discrete tails can exceed the sum of continuous ones."""
    relative = ((far**2 + 1) + (far**3 + 19) / sigma) / (24 * sigma**2)
    if near >= 1.8 and relative <= 0.004:
        return 2.1 * math.erfc(near / math.sqrt(2)) / 2 * relative
    return (1 + math.exp(loss)) * 0.0104 / sigma**2

# SPDX-License-Identifier: Apache-2.0
"""The best (epsilon, delta) that follows from one Renyi order: the joint range of two divergences.

Source: Asoodeh, Liao, Calmon, Kosut, Sankar, "Three variants of differential privacy: lossless
conversion and applications" (2021). The optimum is searched in floats; each result is a tangent of
a convex set and so proved, wherever it touches. Proof: renyi_to_approx.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rounding import exp_down, exp_up, log_down, log_up

_LARGEST = 10**6
_LARGEST_EXPONENT = 600.0
_AIM = 1e-11


@dataclass(frozen=True, slots=True)
class Line:
    """The statement P(A) <= e^epsilon Q(A) + delta for all sets A, which a Renyi divergence
    implies.
    """

    epsilon: Fraction
    delta: Fraction


def epsilon_of_renyi(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction | None:
    """Returns nearly the least epsilon at delta that follows from a Renyi divergence.

    None if the float search fails.

    >>> round(float(epsilon_of_renyi(Fraction(8), Fraction("0.3"), Fraction("1e-5"))), 6)
    1.495458
    """
    aim = _log(delta) - _AIM
    line = _search(order, divergence, lambda touch: aim - math.log(touch.delta))
    return max(line.epsilon, Fraction(0)) if line is not None and line.delta <= delta else None


def delta_of_renyi(order: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction | None:
    """Returns nearly the least delta at epsilon that follows from a Renyi divergence.

    None if the float search fails.
    """
    aim = float(min(epsilon, Fraction(_LARGEST))) * (1 - _AIM)
    line = _search(order, divergence, lambda touch: touch.epsilon - aim)
    return (
        min(max(line.delta, Fraction(0)), Fraction(1))
        if line is not None and line.epsilon <= epsilon
        else None
    )


def tangent(order: Fraction, divergence: Fraction, one: Fraction, other: Fraction) -> Line | None:
    """Returns the tangent at (one, other) to the set {M(p, q) <= M(one, other)}, moved outward: a
    line from which an (epsilon, delta) bound of a Renyi divergence follows.

    It is moved to the set {M(p, q) <= e^((order - 1) divergence)}, where M(p, q) = p^a q^(1-a) +
    (1-p)^a (1-q)^(1-a). None if its slope is not positive.

    Guarantees:
        every tangent is a true statement
    """
    if not 0 < other < one < 1:
        return None
    high, low = one / other, (1 - one) / (1 - other)
    below, above = _powers(high, order, low)
    fewer, more = _powers(high, order - 1, low)
    run_down, run_up = below[0] - above[1], below[1] - above[0]
    rise_down, rise_up = fewer[0] - more[1], fewer[1] - more[0]
    if run_down <= 0 or rise_down <= 0:
        return None
    share = (order - 1) / order
    moment = other * below[0] + (1 - other) * above[0]
    gap = exp_up((order - 1) * divergence) - moment
    outwards = gap / (order * (rise_down if gap > 0 else rise_up))
    return Line(
        log_up(share * run_up / rise_down), one - share * run_down / rise_up * other + outwards
    )


def _powers(
    high: Fraction, power: Fraction, low: Fraction
) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """Bounds of high^power and of low^power, power > 0."""
    return _power(high, power), _power(low, power)


def _power(base: Fraction, power: Fraction) -> tuple[Fraction, Fraction]:
    return exp_down(power * log_down(base)), exp_up(power * log_up(base))


@dataclass(frozen=True, slots=True)
class _Touch:
    """The intersection of a ray p = e^slant q with the boundary, in floats, and the tangent
    there.
    """

    one: float
    other: float
    epsilon: float
    delta: float


def _search(
    order: Fraction, divergence: Fraction, missing: Callable[[_Touch], float]
) -> Line | None:
    """The tangent at which ``missing`` (which grows with the slant) is 0; its result is proved, the
    search is not.
    """
    if max(order, divergence) > _LARGEST:
        return None
    a, r = float(order), float(divergence)
    least, most = r * (1 + 1e-9), _LARGEST_EXPONENT / a
    if not (a - 1) * r < _LARGEST_EXPONENT or not 1e-9 < least < most:
        return None
    try:
        slant = _root(lambda at: missing(_touch(a, r, at)), least, most)
        touch = _touch(a, r, slant)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return tangent(order, divergence, Fraction(touch.one), Fraction(touch.other))


def _touch(a: float, r: float, slant: float) -> _Touch:
    """Newton's method along the ray: the moment is convex in p, so the steps descend to the
    boundary.
    """
    steep, thin = math.exp((a - 1) * slant), math.exp(-slant)
    rest = math.expm1((a - 1) * r)
    p = min((1 + rest) / steep, 1 - 1e-12)
    for _ in range(60):
        fall = a * math.log1p(-p) - (a - 1) * math.log1p(-p * thin)
        value = p * steep + math.expm1(fall) - rest
        slope = steep + math.exp(fall) * ((a - 1) * thin / (1 - p * thin) - a / (1 - p))
        before, p = p, p - value / slope
        if abs(before - p) <= 1e-16 * p:
            break
    q = p * thin
    fall = math.log1p(-p) - math.log1p(-q)
    rise = (math.exp(a * slant) - math.exp(a * fall)) / (steep - math.exp((a - 1) * fall))
    rise *= (a - 1) / a
    return _Touch(p, q, math.log(rise), p - rise * q)


def _root(missing: Callable[[float], float], low: float, high: float) -> float:
    """The zero of an increasing function by the Illinois method."""
    below, above = missing(low), missing(high)
    if not below < 0 < above:
        raise ValueError("no root between the ends")
    for _ in range(100):
        middle = (low * above - high * below) / (above - below)
        here = missing(middle)
        if here == 0 or high - low <= 1e-15 * high:
            return middle
        if here < 0:
            low, below, above = middle, here, above / 2
        else:
            high, above, below = middle, here, below / 2
    return middle


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)

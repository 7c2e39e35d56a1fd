# SPDX-License-Identifier: Apache-2.0
"""What losses are, worked out without the code under test: 200-bit balls, closed forms,
enumeration.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from flint import arb, ctx, fmpq

BITS = 200


def number(value: object) -> arb:
    exact = Fraction(value)
    with ctx.workprec(BITS):
        return arb(fmpq(exact.numerator, exact.denominator))


def normal_tail(x: arb) -> arb:
    with ctx.workprec(BITS):
        return (x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu_squared: Fraction, epsilon: float) -> arb:
    """Balle and Wang (2018), Theorem 8."""
    with ctx.workprec(BITS):
        mu, e = number(mu_squared).sqrt(), number(epsilon)
        return normal_tail(e / mu - mu / 2) - e.exp() * normal_tail(e / mu + mu / 2)


def sampled_gaussian_delta(mu: Fraction, rate: Fraction, epsilon: float, *, added: bool) -> arb:
    """One step of DP-SGD: the losses fall where the density ratio crosses e^epsilon, one point."""
    with ctx.workprec(BITS):
        m, q, x = number(mu), number(rate), number(epsilon).exp()
        if added:
            x = 1 / x
        ratio = (x - 1 + q) / q
        if not bool(ratio > 0):
            return arb(0) if added else 1 - x
        point = ratio.log() / m + m / 2
        if added:
            # P = N(0, 1) where the mixture's ratio is below e^-epsilon
            mixed = (1 - q) * normal_tail(-point) + q * normal_tail(m - point)
            return normal_tail(-point) - mixed / x
        mixed = (1 - q) * normal_tail(point) + q * normal_tail(point - m)
        return mixed - x * normal_tail(point)


def laplace_delta(epsilon0: float, epsilon: float) -> float:
    """Continuous Laplace noise, |epsilon| <= epsilon0: 1 - e^((epsilon - epsilon0) / 2)."""
    return -math.expm1((epsilon - epsilon0) / 2)


def bounded_range_delta(eta: float, epsilon: float) -> float:
    """Dong, Durfee, Rogers (2020): (e^(eta/2) - e^(epsilon/2))^2 / (e^eta - 1)."""
    return (math.exp(eta / 2) - math.exp(epsilon / 2)) ** 2 / math.expm1(eta)


def composed(losses: Mapping[int, arb], times: int) -> dict[int, arb]:
    """The law of the sum of ``times`` losses, in whole units: by convolution, in balls."""
    total: dict[int, arb] = {0: arb(1)}
    with ctx.workprec(BITS):
        for _ in range(times):
            after: dict[int, arb] = defaultdict(lambda: arb(0))
            for here, mass in total.items():
                for step, each in losses.items():
                    after[here + step] += mass * each
            total = after
    return dict(total)


def delta_of(law: Mapping[int, arb], unit: arb, epsilon: float) -> arb:
    """The sum of P(l) (1 - e^(epsilon - l)) over losses l = unit * index above epsilon."""
    with ctx.workprec(BITS):
        e = number(epsilon)
        terms = (
            mass * (1 - (e - unit * index).exp())
            for index, mass in law.items()
            if bool(unit * index > e)
        )
        return sum(terms, arb(0))


def response_law(epsilon: Fraction, categories: int) -> dict[int, arb]:
    """Under P, in units of epsilon."""
    with ctx.workprec(BITS):
        high = number(epsilon).exp()
        total = high + categories - 1
        law = {1: high / total, -1: 1 / total}
        if categories > 2:
            law[0] = (categories - 2) / total
        return law


def discrete_laplace_law(scale: Fraction, shift: int) -> dict[int, arb]:
    """Under P, in units of 1/scale: summed over all outputs that matter."""
    law: dict[int, arb] = defaultdict(lambda: arb(0))
    reach = int(120 * scale) + shift
    with ctx.workprec(BITS):
        g = (-1 / number(scale)).exp()
        for y in range(-reach, reach + 1):
            law[abs(y - shift) - abs(y)] += g ** abs(y) * (1 - g) / (1 + g)
    return dict(law)

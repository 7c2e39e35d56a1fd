# SPDX-License-Identifier: Apache-2.0
"""The laws worked out without sfumato: balls of python-flint, and every path of a sampler."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx, fmpq

PRECISION = 400
Real: TypeAlias = Fraction | float
Mass: TypeAlias = Fraction | arb


def ball(number: Fraction | int | float | arb) -> arb:
    """A ball that holds ``number``, far narrower than any statement tested here."""
    if isinstance(number, arb):
        return number
    exact = Fraction(number)
    with ctx.workprec(PRECISION):
        return arb(fmpq(exact.numerator, exact.denominator))


def is_outward(lower: Real, truth: arb, upper: Real, complement: arb | None = None) -> bool:
    """Whether ``lower <= truth <= upper`` for certain; near one, its complement has more digits."""
    if bool(ball(lower) <= truth) and bool(truth <= ball(upper)):
        return True
    return complement is not None and is_outward(
        1 - Fraction(upper), complement, 1 - Fraction(lower)
    )


class LaplaceTruth:
    """The discrete Laplace law by its closed forms, in 400 bits."""

    def __init__(self, scale: Fraction) -> None:
        self.scale = scale
        self.g = self._exp(Fraction(-1))

    def _exp(self, number: Fraction) -> arb:
        with ctx.workprec(PRECISION):
            return (ball(number) / ball(self.scale)).exp()

    def pmf(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            return self._exp(Fraction(-abs(x))) * (1 - self.g) / (1 + self.g)

    def above(self, x: int) -> arb:
        """P(X > x): a geometric series on the right side."""
        with ctx.workprec(PRECISION):
            return self.pmf(x + 1) / (1 - self.g) if x >= 0 else 1 - self.above(-x - 1)

    def cdf(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            return self.above(-x - 1)

    def tail(self, half_width: int) -> arb:
        """P(|X| > half_width)."""
        with ctx.workprec(PRECISION):
            return 2 * self.above(half_width)

    def variance(self) -> arb:
        """2 g / (1 - g)^2 as 1 / (2 sinh^2(1 / (2 scale)))."""
        with ctx.workprec(PRECISION):
            return 1 / (2 * (ball(1 / (2 * self.scale))).sinh() ** 2)


class GaussianTruth:
    """The discrete Gaussian law by adding up its weights to 45 sigma, in 400 bits."""

    def __init__(self, sigma_squared: Fraction) -> None:
        reach = int(45 * float(sigma_squared) ** 0.5) + 10
        with ctx.workprec(PRECISION):
            rate = 1 / (2 * ball(sigma_squared))
            ratio, shrink, weight = (-rate).exp(), (-2 * rate).exp(), arb(1)
            self.weights = []
            for _ in range(reach):
                self.weights.append(weight)
                weight, ratio = weight * ratio, ratio * shrink
            self.suffix = [arb(0)]
            for weight in reversed(self.weights):
                self.suffix.append(self.suffix[-1] + weight)
            self.suffix.reverse()
            self.total = 2 * self.suffix[0] - 1

    def pmf(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            return self.weights[abs(x)] / self.total

    def above(self, x: int) -> arb:
        """P(X > x)."""
        with ctx.workprec(PRECISION):
            return self.suffix[x + 1] / self.total if x >= 0 else 1 - self.above(-x - 1)

    def cdf(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            return self.above(-x - 1)

    def tail(self, half_width: int) -> arb:
        """P(|X| > half_width)."""
        with ctx.workprec(PRECISION):
            return 2 * self.above(half_width)

    def variance(self) -> arb:
        with ctx.workprec(PRECISION):
            return (
                2
                * sum((x * x * weight for x, weight in enumerate(self.weights)), arb(0))
                / self.total
            )


class Undecided(Exception):
    """The script has ended where a choice among ``options`` is to be made."""

    def __init__(self, options: list[tuple[object, Mass]]) -> None:
        self.options = options
        super().__init__(options)


class Restarted(Exception):
    """A rejection sampler began anew: nothing of this path counts."""


class Script:
    """An entropy source that plays fixed choices and stops at the first one that is not made."""

    def __init__(self, choices: tuple[object, ...]) -> None:
        self._choices = iter(choices)
        self.rounds = 0

    def choose(self, options: list[tuple[object, Mass]]) -> object:
        """One of the options, each with its probability."""
        try:
            return next(self._choices)
        except StopIteration:
            raise Undecided(options) from None

    def bits(self, count: int) -> int:
        return self.choose([(value, Fraction(1, 2**count)) for value in range(2**count)])

    def coin(self, bias: Mass) -> bool:
        """True with probability ``bias``."""
        return self.choose([(True, bias), (False, 1 - bias)])


def _add(one: Mass, other: Mass) -> Mass:
    mixed = isinstance(one, arb) or isinstance(other, arb)
    return ball(one) + ball(other) if mixed else one + other


def _times(one: Mass, other: Mass) -> Mass:
    mixed = isinstance(one, arb) or isinstance(other, arb)
    return ball(one) * ball(other) if mixed else one * other


def every_path(draw: Callable[[Script], int], smallest_mass: float) -> tuple[dict[int, Mass], Mass]:
    """The exact mass of each outcome over all choices, and the mass of the paths cut off as too
    rare.
    """
    law: dict[int, Mass] = defaultdict(Fraction)
    rest, paths = Fraction(0), [((), Fraction(1))]
    with ctx.workprec(PRECISION):
        while paths:
            choices, mass = paths.pop()
            try:
                outcome = draw(Script(choices))
                law[outcome] = _add(law[outcome], mass)
            except Restarted:
                continue
            except Undecided as stop:
                branches = [
                    ((*choices, value), _times(mass, part))
                    for value, part in stop.options
                    if float(part) > 0
                ]
                if max(float(each) for _, each in branches) < smallest_mass:
                    rest = _add(rest, mass)
                else:
                    paths.extend(branches)
    return dict(law), rest

# SPDX-License-Identifier: Apache-2.0
"""Calibration: searches for the least noise, the most queries or the least epsilon for a target.

Each search returns a parameter that is proved to meet its target, and the nearest one that is
proved not to. ``split`` divides a budget. Proof: calibrate.proof.md, grid_search.proof.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from sfumato.accounting.account import account
from sfumato.accounting.grid_search import Counts, Decimals, Found, Real, frontier
from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.bracket import Bounds
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    PoissonSample,
    Repeated,
    Sampled,
)
from sfumato.privacy.event.check import check_count
from sfumato.privacy.guarantee import ApproxDP, PureDP, ZeroConcentratedDP

_STEPS = 1000
_DIGITS = 5
_PRECISION = 1e-4
# The precision of the rough search, and the assumed slope of a cost (on a log scale) where it found
# none.
_NEARLY, _FALLS = 1e-2, -1.0
_MOST = 10**12
# The smallest first guess of sigma; no curve requires less.
_LEAST_SIGMA = 1e-6

Target: TypeAlias = PureDP | ZeroConcentratedDP | ApproxDP
T = TypeVar("T", int, Fraction)


class Costs(Protocol):
    """The cost of a plan: a privacy curve with bounds of epsilon and of delta."""

    def epsilon(self, delta: Number) -> Bounds: ...

    def delta(self, epsilon: Number) -> Bounds: ...


@runtime_checkable
class Quick(Protocol):
    """A curve that also estimates epsilon quickly, which speeds up a search and decides nothing."""

    def roughly(self, delta: Number) -> float: ...


CurveOf: TypeAlias = Callable[[Event], Costs]


@dataclass(frozen=True, slots=True)
class Calibrated(Generic[T]):
    """A calibrated parameter: ``value`` is proved to meet the target, ``fails`` proved not to.

    The optimum lies between them, or is ``value``. ``fails`` None: no parameter is known to fail.
    ``cost`` is the cost of ``value``, in the measure of the target.
    """

    value: T
    fails: T | None
    cost: Bounds

    @property
    def excess(self) -> Fraction | None:
        """The largest possible relative distance of ``value`` from the optimum; None if unknown.

        >>> Calibrated(Fraction("4.303"), Fraction("4.302"), Bounds(0.9999, 1.0)).excess
        Fraction(1, 4302)
        """
        if self.fails is None:
            return None
        return Fraction(abs(self.value - self.fails), min(self.value, self.fails) or 1)


@dataclass(frozen=True, slots=True)
class Priced:
    """The result of ``least_epsilon``: the ``scale`` of noise, and bounds of its ``epsilon``.

    No scale within the error needs an epsilon below ``lower``.
    """

    scale: Calibrated[Fraction]
    epsilon: Bounds


def least_noise(
    target: Target,
    event: Callable[[Fraction], Event],
    *,
    curve: CurveOf,
    start: Number = 1,
    precision: float = _PRECISION,
) -> Calibrated[Fraction]:
    """Returns the least noise scale, to five significant digits, at which a plan meets a privacy
    target, with the scale below it that fails.

    ``event`` builds the plan's privacy event from the scale of its noise. ``curve`` computes the
    event's cost if the target is (epsilon, delta); if it is ``Quick``, its estimates give a better
    first guess. Pure and zCDP targets use the upper bounds of ``account`` instead, so no failing
    scale is proved and ``fails`` of the result is None. ``start`` is a first guess; it cannot
    change what is proved. The search ends when ``value`` and ``fails`` are within a relative
    ``precision`` of each other, or are neighbours among five-digit numbers.

    Guarantees:
        the least noise meets its target and a little less does not

    Raises:
        InvalidNumber: the target is 0, or no noise up to 1e30 is known to meet it.
    """
    grid, (cost, limit) = Decimals(_DIGITS), _measure(target, curve)
    guess, slope = grid.near(math.log(positive("start", start))), _FALLS
    if isinstance(target, ApproxDP) and target.epsilon > 0:
        guess, slope = _nearer(target, lambda index: curve(event(grid.value(index))), grid, guess)
    result = frontier(
        lambda index: cost(event(grid.value(index))),
        limit,
        grid,
        start=guess,
        precision=precision,
        slope=slope,
    )
    return _calibrated(result, grid.value)


def laplace_scale(
    target: PureDP | ApproxDP, distance: Distance, queries: int = 1, *, curve: CurveOf
) -> Calibrated[Fraction]:
    """Returns the least scale of discrete Laplace noise for ``queries`` statistics.

    Each has the L1 sensitivity ``distance``. For a pure guarantee the scale is exactly queries *
    distance / epsilon.
    """
    _norm(distance, Norm.L1)
    check_count("queries", queries)
    if isinstance(target, PureDP) or target.delta == 0:
        epsilon = positive("epsilon", target.epsilon)
        return Calibrated(queries * distance.value / epsilon, None, Bounds(None, float_up(epsilon)))
    return least_noise(
        target,
        lambda scale: _repeated(AdditiveNoise(DiscreteLaplace(scale), distance), queries),
        curve=curve,
        start=_as_gaussian(target, distance.value**2 * queries),
    )


def gaussian_sigma(
    target: ApproxDP, distance: Distance, queries: int = 1, *, curve: CurveOf
) -> Calibrated[Fraction]:
    """Returns the least sigma of discrete Gaussian noise for ``queries`` statistics.

    Each has the L2 sensitivity ``distance``.
    """
    _norm(distance, Norm.L2)
    return least_noise(
        target,
        lambda sigma: _repeated(AdditiveNoise(DiscreteGaussian(sigma), distance), queries),
        curve=curve,
        start=_as_gaussian(target, distance.value * queries),
    )


def noise_multiplier(
    target: ApproxDP, rate: Number, steps: int, *, curve: CurveOf
) -> Calibrated[Fraction]:
    """Returns the least noise multiplier (sigma) of DP-SGD for an (epsilon, delta) guarantee.

    Each of the ``steps`` sums gradients clipped to norm 1 over a Poisson sample of ``rate``.
    """
    sample, clipped_norm = (
        PoissonSample(positive("rate", rate, at_most=Fraction(1))),
        Distance(Norm.L2, Fraction(1)),
    )
    check_count("steps", steps)
    # the variance of a step's loss is about rate^2 (e^(1 / sigma^2) - 1), and rate^2 / sigma^2
    # where sigma is large
    flat = max(_as_gaussian(target, sample.rate**2 * steps), _LEAST_SIGMA)
    return least_noise(
        target,
        lambda sigma: _repeated(
            Sampled(sample, ContinuousNoise(ContinuousLaw.GAUSSIAN, sigma, clipped_norm)), steps
        ),
        curve=curve,
        start=1 / math.sqrt(math.log1p(flat**-2)),
    )


def most_queries(
    target: Target, event: Event, *, curve: CurveOf, most: int = _MOST
) -> Calibrated[int]:
    """Returns the largest number of repetitions of ``event`` within a guarantee, at most ``most``.

    Guarantees:
        the most queries meet their target and one more does not
    """
    cost, limit = _measure(target, curve)
    check_count("most", most)
    result = frontier(
        lambda index: cost(_repeated(event, -index)) if index else (0.0, 0.0),
        limit,
        Counts(most),
        start=-1,
    )
    return _calibrated(result, lambda index: -index)


def least_epsilon(
    error: int,
    confidence: Number,
    event: Callable[[Fraction], AdditiveNoise],
    *,
    curve: CurveOf,
    delta: Number,
) -> Priced:
    """Returns the least epsilon at which noise stays within ``error`` lattice steps, with a
    confidence.

    ``event`` makes the noise by its scale: the larger the scale, the larger the error and the
    smaller epsilon.

    Guarantees:
        the least epsilon keeps the error
    """
    check_count("error", error)
    chance = 1 - positive("confidence", confidence, at_most=1 - Fraction(1, 10**30))
    grid = Decimals(_DIGITS, falling=True)

    def misses(index: int) -> tuple[Real, Real]:
        tail = event(grid.value(index)).noise.tail(error)
        return tail.lower, tail.upper

    scale = _calibrated(
        frontier(misses, chance, grid, start=grid.near(-math.log(error))), grid.value
    )
    upper = curve(event(scale.value)).epsilon(delta).upper
    lower = None if scale.fails is None else curve(event(scale.fails)).epsilon(delta).lower
    return Priced(scale, Bounds(lower, upper))


def _measure(
    target: Target, curve: CurveOf
) -> tuple[Callable[[Event], tuple[Real, Real]], Fraction]:
    """Returns how a plan's cost is computed for a target, and the largest cost that is allowed."""
    match target:
        case PureDP(epsilon):
            return lambda event: (-math.inf, _pure(event)), positive("epsilon", epsilon)
        case ZeroConcentratedDP(rho):
            return lambda event: (-math.inf, account(event).rho), positive("rho", rho)
        case ApproxDP(epsilon, delta) if epsilon > 0:
            return lambda event: _ends(lambda: curve(event).epsilon(delta)), epsilon
        case ApproxDP(epsilon, delta):
            return lambda event: _ends(lambda: curve(event).delta(epsilon)), positive(
                "delta", delta
            )
        case _:
            raise InvalidDeclaration(
                f"A calibration to {shown(target)}.",
                allowed="PureDP, ZeroConcentratedDP, ApproxDP",
                remedy="Convert it first.",
            )


def _nearer(
    target: ApproxDP, curve: Callable[[int], Costs], grid: Decimals, guess: int
) -> tuple[int, float]:
    """A better guess and the slope of the cost there, by rough readings; the same guess without
    them.
    """
    seen: dict[int, float] = {}

    def read(index: int) -> tuple[Real, Real]:
        if index in seen:
            return seen[index], seen[index]
        try:
            told = curve(index)
            seen[index] = told.roughly(target.delta) if isinstance(told, Quick) else math.nan
        except InvalidNumber:
            seen[index] = math.inf
        return seen[index], seen[index]

    if math.isnan(read(guess)[0]):
        return guess, _FALLS
    try:
        rough = frontier(read, target.epsilon, grid, start=guess, precision=_NEARLY)
    except InvalidNumber:
        return guess, _FALLS
    low, high = rough.fails, rough.meets
    if low is None or not 0 < seen[high] < seen[low] < math.inf:
        return guess, _FALLS
    slope = math.log(seen[high] / seen[low]) / (grid.place(high) - grid.place(low))
    return grid.near(grid.place(high) + math.log(float(target.epsilon) / seen[high]) / slope), slope


def _pure(event: Event) -> Real:
    cost = account(event)
    return math.inf if cost.epsilon is None or cost.delta > 0 else cost.epsilon


def _ends(read: Callable[[], Bounds]) -> tuple[Real, Real]:
    """Reads a cost; nothing is known if the curve refuses (noise that hides next to nothing)."""
    try:
        bounds = read()
    except InvalidNumber:
        return -math.inf, math.inf
    return -math.inf if bounds.lower is None else bounds.lower, bounds.upper


def _calibrated(result: Found, value: Callable[[int], T]) -> Calibrated[T]:
    lower, upper = result.cost
    least = None if lower == -math.inf else float_down(Fraction(lower))
    cost = Bounds(least, float_up(Fraction(upper)))
    return Calibrated(
        value(result.meets), None if result.fails is None else value(result.fails), cost
    )


def _repeated(event: Event, times: int) -> Event:
    return event if times == 1 else Repeated(event, times)


def _as_gaussian(target: ApproxDP, squared: Fraction) -> float:
    """A first guess: the sigma of one Gaussian with the total squared distance (Balle and Wang
    2018, Theorem 8).
    """
    delta, epsilon = (
        float(positive("delta", target.delta)),
        float(min(target.epsilon, Fraction(500))),
    )
    low, high = 1e-30, 1e3
    for _ in range(40):
        mu = math.sqrt(low * high)
        near, far = (epsilon / mu + sign * mu / 2 for sign in (-1, 1))
        spent = (
            math.erfc(near / math.sqrt(2)) / 2
            - math.exp(epsilon) * math.erfc(far / math.sqrt(2)) / 2
        )
        low, high = (low, mu) if spent > delta else (mu, high)
    return math.sqrt(float(min(squared, Fraction(10**60)))) / low


def _norm(distance: Distance, norm: Norm) -> None:
    if distance.norm is not norm:
        raise InvalidDeclaration(
            f"A distance in {distance.norm.value}.", allowed=f"a distance in {norm.value}"
        )


def split(total: Fraction, weights: Sequence[Fraction], norm: Norm) -> list[Fraction]:
    """Splits ``total`` into shares that minimise the sum of the parts' relative variances.

    ``weights``: each part's sensitivity over its own natural scale. Laplace variance goes as
    (w/epsilon)^2, so epsilon is shared as w^(2/3); Gaussian as w^2/rho, so rho is shared as w
    (Lagrange; weights of an L2 sensitivity are given as w^2).

    Guarantees:
        shares sum to the stated cost

    >>> [str(share) for share in split(Fraction(1), [Fraction(1), Fraction(1)], Norm.L1)]
    ['1/2', '1/2']
    """
    power = 2 / 3 if norm is Norm.L1 else 1 / 2
    largest = max(weights)
    steps = [max(round(_STEPS * float(weight / largest) ** power), 1) for weight in weights]
    return [total * step / sum(steps) for step in steps]

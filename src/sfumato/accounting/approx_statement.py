# SPDX-License-Identifier: Apache-2.0
"""A guarantee as a family of statements P(A) <= odds Q(A) + delta, for every set A of answers.

Each guarantee and each privacy curve implies one such statement for each position (0 to 1) along
its trade-off curve. ``interpret`` derives the success of attackers from them. Floats choose the
position; the statement is proved whatever they choose. Proof: approx_statement.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.delta import delta_at
from sfumato.accounting.renyi_to_approx import tangent
from sfumato.errors import InvalidDeclaration
from sfumato.exact.bracket import Bounds
from sfumato.exact.rounding import exp_up, float_up, log_up, sqrt_up
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

# e^-2000 is zero as a float; a parameter above this gives no statement worth showing.
_HOPELESS = 2000
# A smaller parameter is replaced by this one, which is sound, since floats cannot resolve it.
_LEAST = Fraction(1, 10**16)
# The false alarm rate at place 0; at place 1 it is a half.
_RAREST = 1e-40
_GAPS = 2.0 ** np.arange(-24, 36, 0.25)
_FINER = 2.0 ** np.linspace(-0.25, 0.25, 65)

Floats: TypeAlias = NDArray[np.float64]


@runtime_checkable
class PrivacyCurve(Protocol):
    """A curve that gives delta at each epsilon: the larger delta of both directions (P, Q), (Q, P)."""

    def delta(self, epsilon: Fraction, /) -> Bounds:
        """Returns bounds of the least delta at which the plan is (epsilon, delta)-DP."""
        ...


Promise: TypeAlias = Guarantee | PrivacyCurve


@dataclass(frozen=True, slots=True)
class Statement:
    """The (ln(odds), delta)-DP statement about neighbours P and Q: P(A) <= odds Q(A) + delta and
    Q(A) <= odds P(A) + delta, for every set A.

    ``odds`` None states nothing.

    Guarantees:
        a statement allows what randomised response attains

    >>> Statement(Fraction(3), Fraction(0)).misses(Fraction(1, 10))
    Fraction(7, 10)
    """

    odds: Fraction | None
    delta: Fraction

    @property
    def corner(self) -> Fraction:
        """The type I error at which the trade-off curve has an equal type II error."""
        return Fraction(0) if self.odds is None else (1 - self.delta) / (1 + self.odds)

    def misses(self, false_alarms: Fraction) -> Fraction:
        """Returns the least miss rate (type II error) of an attacker's test.

        ``false_alarms`` is the test's false alarm rate (type I error).
        """
        if self.odds is None:
            return Fraction(0)
        rest = 1 - self.delta
        return max(rest - self.odds * false_alarms, (rest - false_alarms) / self.odds, Fraction(0))

    def excess(self, odds: Fraction) -> Fraction:
        """Returns the largest P(A) - odds Q(A), over all sets A, that the statement admits for
        these ``odds``: the delta at ln(odds).
        """
        if self.odds is None:
            return Fraction(1)
        if odds * self.odds <= 1:
            return 1 - odds * (1 - self.delta)
        return self.delta + (1 - self.delta) * max(self.odds - odds, Fraction(0)) / (1 + self.odds)


NOTHING = Statement(None, Fraction(1))
Family: TypeAlias = Callable[[float], Statement]


def family(promise: Promise) -> Family:
    """Returns the (epsilon, delta) statements that a guarantee implies, as a function of a position
    along its trade-off curve.

    Position 0 is at small type I errors, 1 at large ones.

    Guarantees:
        each statement of a family holds

    Raises:
        InvalidDeclaration: the argument is no guarantee and has no method ``delta``.

    >>> family(PureDP(0))(0.5)
    Statement(odds=Fraction(1, 1), delta=Fraction(0, 1))
    """
    match promise:
        case PureDP():
            return _single(promise.epsilon, Fraction(0))
        case ApproxDP():
            return _single(promise.epsilon, promise.delta)
        case BoundedRangeDP(eta) if 0 < eta <= _HOPELESS:
            return _curve(lambda epsilon: delta_at(promise, epsilon).delta, eta)
        case GaussianDP(mu_squared) if 0 < mu_squared <= _HOPELESS:
            return _curve(
                lambda epsilon: delta_at(promise, epsilon).delta,
                13 * sqrt_up(mu_squared) + mu_squared / 2,
            )
        case ZeroConcentratedDP(rho) if 0 < rho <= _HOPELESS:
            return lambda place: _concentrated(max(rho, _LEAST), place)
        case RenyiDP(order, budget) if 0 < budget <= _HOPELESS:
            return lambda place: _renyi(order, max(budget, _LEAST), place)
        case (
            ZeroConcentratedDP(number)
            | RenyiDP(_, number)
            | BoundedRangeDP(number)
            | GaussianDP(number)
        ):
            return _single(number, Fraction(0))
        case PrivacyCurve():
            return _curve(lambda epsilon: Fraction(promise.delta(epsilon).upper), _reach(promise))
    raise InvalidDeclaration(
        f"A {type(promise).__name__} promises nothing that can be interpreted.",
        allowed="a guarantee such as PureDP(1), or a privacy curve with delta(epsilon)",
    )


def _of(epsilon: Fraction, delta: Fraction) -> Statement:
    """(epsilon, delta)-DP with its odds rounded up."""
    return Statement(exp_up(epsilon), delta) if epsilon <= _HOPELESS and delta < 1 else NOTHING


def _single(epsilon: Fraction, delta: Fraction) -> Family:
    only = _of(epsilon, delta)
    return lambda place: only


def _concentrated(rho: Fraction, place: float) -> Statement:
    """The tangent of zCDP at a place; the order is searched on a grid, then refined."""
    gap, _, _ = _touching(place, _GAPS, (1 + _GAPS) * float(rho))
    finer = gap * _FINER
    gap, hits, false_alarms = _touching(place, finer, (1 + finer) * float(rho))
    order = 1 + Fraction(gap)
    return _tangent(order, order * rho, hits, false_alarms)


def _renyi(order: Fraction, budget: Fraction, place: float) -> Statement:
    gap = float(min(order - 1, Fraction(10**30)))
    return _tangent(
        order, budget, *_touching(place, np.array([gap]), np.array([float(budget)]))[1:]
    )


def _tangent(
    order: Fraction, budget: Fraction, hits: Fraction, false_alarms: Fraction
) -> Statement:
    epsilon = max(log_up(hits / false_alarms), Fraction(0))
    if order * (epsilon + budget) > _HOPELESS:
        return _of(epsilon, Fraction(float_up(delta_at(RenyiDP(order, budget), epsilon).delta)))
    line = tangent(order, budget, hits, false_alarms)
    if line is None:
        return NOTHING
    return _of(max(line.epsilon, Fraction(0)), Fraction(max(float_up(line.delta), 0.0)))


def _touching(place: float, gaps: Floats, budgets: Floats) -> tuple[float, Fraction, Fraction]:
    """The order (less one) whose bound is tight for a test at a place, with the test's true and
    false positives.
    """
    rare = 0.5 * (2 * _RAREST) ** ((1 - place) ** 2)
    start = math.log(rare) - math.log1p(-rare)
    low = 0.0
    high = 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        if _slack(rare, start + middle, gaps, budgets).max() < 0:
            low = middle
        else:
            high = middle
    odds = start + low
    binding = float(gaps[int(np.argmax(_slack(rare, odds, gaps, budgets)))])
    return binding, _probability(odds), Fraction(rare)


def _slack(rare: float, odds: float, gaps: Floats, budgets: Floats) -> Floats:
    """By how much a test exceeds the bound of each order.

    ``rare`` is its rate of false positives, ``odds`` the logarithm of those of true positives.
    """
    hit = -np.logaddexp(0, -odds)
    miss = -np.logaddexp(0, odds)
    yes = gaps * (hit - math.log(rare))
    no = gaps * (miss - math.log1p(-rare))
    moment = np.exp(hit) * np.expm1(np.minimum(yes, 1)) + np.exp(miss) * np.expm1(no)
    near = np.log1p(np.maximum(moment, -0.9))
    far = np.logaddexp(hit + yes, miss + no)
    slack: Floats = np.where(yes < 1, near, far) / gaps - budgets
    return slack


def _probability(odds: float) -> Fraction:
    """The probability with these logarithmic odds; near 1 from its complement."""
    if odds < 0:
        return Fraction(1 / (1 + math.exp(-odds)))
    return 1 - Fraction(1 / (1 + math.exp(min(odds, 690.0))))


def _curve(delta: Callable[[Fraction], Fraction], reach: Fraction) -> Family:
    """Statements at epsilons from ``reach`` down to 0, denser near 0."""

    def at(place: float) -> Statement:
        epsilon = reach * Fraction((1 - place) ** 2)
        return _of(epsilon, Fraction(float_up(delta(epsilon))))

    return at


def _reach(curve: PrivacyCurve) -> Fraction:
    """An epsilon at which delta is close to its limit."""
    least = max(1.01 * curve.delta(Fraction(_HOPELESS)).upper, 1e-30)
    powers = (Fraction(2) ** power for power in range(-20, 11))
    return next(
        (power for power in powers if curve.delta(power).upper <= least), Fraction(_HOPELESS)
    )

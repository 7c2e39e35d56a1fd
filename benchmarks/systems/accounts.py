# SPDX-License-Identifier: Apache-2.0
"""Sfumato's accountant, by its public names."""

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count
from statistics import median

from benchmarks.systems import Call, Make
from benchmarks.systems.fresh import fresh
from benchmarks.systems.problems import (
    CALIBRATED,
    DELTA,
    GAUSSIAN_SIGMA,
    LAPLACE_EPSILON,
    MANY,
    QUESTION,
    SGD,
    Sgd,
    grid,
    mix,
)
from sfumato.accounting.calibrate import noise_multiplier
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.loss import Gaussian, discretise, epsilon_at, power
from sfumato.accounting.loss.tuning import Part, aim
from sfumato.accounting.odometer import ConcentratedFilter, Odometer
from sfumato.exact import Bracket
from sfumato.exact.rational import to_fraction
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxDP,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Event,
    Norm,
    PoissonSample,
    RandomizedResponse,
    Relation,
    Repeated,
    Rule,
    Sampled,
    Selection,
)

DEFAULT_WIDTH = 1e-4
# no scale is asked about twice, in case that something of it is kept
_FRESH = (Fraction(each, 10**9) for each in count())


def _exact(number: float) -> Fraction:
    return to_fraction("a number", number)


def _one(norm: Norm, relation: Relation = Relation.ADD_REMOVE) -> Distance:
    return Distance(norm, Fraction(1), relation)


def _gaussian(sigma: Fraction, relation: Relation = Relation.ADD_REMOVE) -> Event:
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, sigma, _one(Norm.L2, relation))


def _laplace(scale: Fraction, relation: Relation = Relation.ADD_REMOVE) -> Event:
    return ContinuousNoise(ContinuousLaw.LAPLACE, scale, _one(Norm.L1, relation))


def _steps(problem: Sgd) -> Event:
    step = Sampled(
        PoissonSample(_exact(problem.rate)), _gaussian(_exact(problem.sigma) + next(_FRESH))
    )
    return Repeated(step, problem.steps)


def _brackets(name: str, bracket: Callable[[float], Bracket]) -> dict[str, Make]:
    def asked(told: Callable[[Bracket], float]) -> Make:
        def make(scale: float, n: int) -> Call:
            return lambda: told(bracket(min(scale, DEFAULT_WIDTH)))

        return make

    return {
        name: asked(lambda found: found.upper),
        f"{name}, lower": asked(lambda found: found.lower),
        f"{name}, width": asked(lambda found: found.width / found.lower),
    }


def _plans() -> dict[str, Make]:
    works: dict[str, Make] = {}
    for name, each in SGD.items():
        works |= _brackets(f"DP-SGD, {name}", partial(_fixed, partial(_steps, each), each.delta))
    return (
        works
        | _brackets("laplaces", partial(_fixed, _laplaces, DELTA))
        | _brackets("gaussians", _gaussians)
    )


def _laplaces() -> Event:
    return Repeated(_laplace(1 / _exact(LAPLACE_EPSILON) + next(_FRESH)), MANY)


def _gaussians(width: float) -> Bracket:
    """Not by the closed form, which ``privacy_curve`` would take."""
    part = Part(Gaussian(float(1 / (_exact(GAUSSIAN_SIGMA) + next(_FRESH)))), MANY)
    goal = aim((part,), delta=DELTA, width=width)
    one = discretise(part.pair, goal.step((part,)), goal.tilt, outside=goal.outside / part.times)
    return epsilon_at(power(one, part.times, goal.blur / 2), DELTA)


def _fixed(plan: Callable[[], Event], delta: float, width: float) -> Bracket:
    found = privacy_curve(plan(), width=width).epsilon(delta)
    if found.lower is None:
        raise ValueError("a plan whose worst neighbours are not known")
    return Bracket(found.lower, found.upper)


_MIXED: dict[str, Callable[[Fraction], Event]] = {
    # a response hides a value, so all are about replacing one
    "laplace": lambda epsilon: _laplace(1 / epsilon, Relation.REPLACE_ONE),
    "gaussian": lambda epsilon: _gaussian(1 / epsilon, Relation.REPLACE_ONE),
    "geometric": lambda epsilon: AdditiveNoise(
        DiscreteLaplace(1 / epsilon), _one(Norm.L1, Relation.REPLACE_ONE)
    ),
    "response": lambda epsilon: RandomizedResponse(epsilon, 2),
    "exponential": lambda epsilon: Selection(
        Rule.EXPONENTIAL, epsilon / 2, _one(Norm.LINF, Relation.REPLACE_ONE)
    ),
}


def _mixed(scale: float, n: int) -> Call:
    def call() -> float:
        more = next(_FRESH)
        events = [_MIXED[kind](_exact(epsilon) + more) for kind, epsilon in mix(n)]
        return privacy_curve(Composed(tuple(events))).epsilon(DELTA).upper

    return call


def _questions(n: int) -> list[Event]:
    """Each a little different."""
    return [_gaussian(1 / _exact(QUESTION) + next(_FRESH)) for _ in range(n)]


def _left(scale: float, n: int) -> Call:
    def call() -> float:
        spent = ConcentratedFilter(cap=Fraction(1))
        for question in _questions(n):
            spent = spent.spend(question)
            left = spent.left
        return float(left)

    return call


def _lost(scale: float, n: int) -> Call:
    def call() -> float:
        odometer = Odometer()
        for question in _questions(n):
            odometer = odometer.spend(question)
            lost = odometer.epsilon_spent(DELTA)
        return float(lost)

    return call


def _sigma() -> float:
    target = ApproxDP(1, DELTA)
    rate = _exact(CALIBRATED.rate) + next(_FRESH) / 1000
    found = noise_multiplier(target, rate, CALIBRATED.steps, curve=privacy_curve)
    return float(found.value)


def _on_grid(told: Callable[[list[tuple[Bracket, float]]], float]) -> Make:
    """Of many settings: the bounds of each, and its CPU seconds."""

    def make(scale: float, n: int) -> Call:
        def call() -> float:
            seen = []
            for each in grid(n):
                start = time.process_time()
                found = _fixed(partial(_steps, each), each.delta, DEFAULT_WIDTH)
                seen.append((found, time.process_time() - start))
            return told(seen)

        return call

    return make


def _apart(found: Bracket) -> float:
    """Relative to epsilon; 0 where both ends are within 1e-9."""
    width = found.upper - found.lower
    return width / found.upper if width > 1e-9 else 0.0


_GRID: dict[str, Make] = {
    "grid, median": _on_grid(lambda seen: median(took for _, took in seen)),
    "grid, worst": _on_grid(lambda seen: max(took for _, took in seen)),
    "grid, widest": _on_grid(lambda seen: max(_apart(found) for found, _ in seen)),
    "grid, wide": _on_grid(lambda seen: sum(_apart(found) > DEFAULT_WIDTH for found, _ in seen)),
}

ACCOUNTS: dict[str, Make] = {
    **_GRID,
    **_plans(),
    "mix": _mixed,
    "what is left": _left,
    "what is lost": _lost,
    "sigma": lambda scale, n: _sigma,
    "first answer": lambda scale, n: fresh(
        "from sfumato.accounting import account; from sfumato.noise import DiscreteLaplace;"
        "from sfumato.privacy import AdditiveNoise, Distance, Norm;"
        "account(AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, 1)))"
    ),
}

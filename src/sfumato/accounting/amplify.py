# SPDX-License-Identifier: Apache-2.0
"""Privacy amplification by sampling and shuffling: converts (epsilon, delta) in both directions.

Each sampling design amplifies for its own neighbour relation; another one raises (RULES 19). Proof:
amplify.proof.md. Sources: Balle, Barthe, Gaboardi (NeurIPS 2018), Theorems 8 to 10; Feldman,
McMillan, Talwar, "Hiding Among the Clones" (FOCS 2021), Theorem 3.1 and Section 3.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from sfumato.accounting.account import account
from sfumato.accounting.shuffle_amplification import binomial_weights, hidden_delta, lone_delta
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, to_fraction
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, log_down, log_up, sqrt_up
from sfumato.privacy.event import (
    ApproxEvent,
    Design,
    DeviceReport,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Sampled,
    Shuffled,
)
from sfumato.privacy.event import WithReplacementSample as WithReplacement
from sfumato.privacy.guarantee import ApproxDP
from sfumato.privacy.unit import Relation

# An upper bound of delta at an epsilon if the unit that differs is in the sample that many times.
Whole: TypeAlias = Callable[[Fraction, int], Fraction]
Local: TypeAlias = RandomizedResponse | PureEvent

# Above this epsilon, e^epsilon would be a number of thousands of digits, and the protection is nil.
_HUGE = 10_000
# More reports count as this many: that is sound, and longer sums would be slow.
_MOST = 10**8
# The share of delta that sums may leave out, and the relative distance at which a search ends.
_IGNORED = _CLOSE = Fraction(1, 2**24)


def after_sampling(design: Design, relation: Relation, whole: ApproxDP) -> ApproxDP:
    """Returns the guarantee of a mechanism that runs on a secret sample.

    ``whole`` is its guarantee on any dataset, without sampling.

    Guarantees:
        a sample under another relation raises

    Raises:
        InvalidDeclaration: the relation is not that of the design.

    >>> from sfumato.privacy import PoissonSample
    >>> design, whole = PoissonSample(Fraction(1, 100)), ApproxDP(Fraction(1), Fraction(1, 10**6))
    >>> share = after_sampling(design, Relation.ADD_REMOVE, whole)
    >>> round(float(share.epsilon), 6), share.delta
    (0.017037, Fraction(1, 100000000))
    """
    _same(design, relation)
    cost = account(Sampled(design, ApproxEvent(whole.epsilon, whole.delta, relation)))
    return ApproxDP(whole.epsilon if cost.epsilon is None else cost.epsilon, cost.delta)


def before_sampling(design: Design, relation: Relation, wanted: ApproxDP) -> ApproxDP:
    """Returns the guarantee that a mechanism needs to have the guarantee ``wanted`` on a secret
    sample.

    Guarantees:
        what is bought for a sample costs at most what was wanted

    >>> from sfumato.privacy import PoissonSample
    >>> sample, wanted = PoissonSample(Fraction(1, 100)), ApproxDP(Fraction(1), Fraction(0))
    >>> whole = before_sampling(sample, Relation.ADD_REMOVE, wanted)
    >>> round(float(whole.epsilon), 6)
    5.152298
    """
    _same(design, relation)
    if not isinstance(design, WithReplacement):
        return ApproxDP(
            whole_epsilon(design, wanted.epsilon), min(wanted.delta / design.rate, Fraction(1))
        )
    one = wanted.epsilon / design.size
    epsilon = (
        one if one > _HUGE else max(log_down(1 + design.population * (exp_down(one) - 1)), one)
    )
    if wanted.epsilon > _HUGE:
        return ApproxDP(epsilon, Fraction(0))
    # the group's delta is delta / population * (1 + e^one + ... + e^((size - 1) one))
    # and at most size / population * e^((size - 1) one)
    steps = design.rate * exp_up(wanted.epsilon - one)
    grows = exp_down(epsilon) - 1
    if grows > 0:
        steps = min(steps, (exp_up(wanted.epsilon) - 1) / grows)
    return ApproxDP(epsilon, min(wanted.delta / steps, Fraction(1)))


def whole_epsilon(design: Design, epsilon: Fraction) -> Fraction:
    """Returns the epsilon that a mechanism needs to have ``epsilon`` on a sample, rounded down.

    It is ln(1 + (e^epsilon - 1) / q), where q is the probability that a given unit is in the
    sample.

    >>> from sfumato.privacy import FixedSample
    >>> round(float(whole_epsilon(FixedSample(1, 100), Fraction(1))), 6)
    5.152298
    """
    if epsilon < 0:
        raise InvalidNumber(f"epsilon = {epsilon}.", allowed="0 or greater")
    share = _share(design)
    if share == 1 or epsilon > _HUGE:
        return epsilon
    return max(log_down(1 + (exp_down(epsilon) - 1) / share), epsilon)


def sampled_delta(design: Design, relation: Relation, epsilon: Fraction, whole: Whole) -> Fraction:
    """Returns an upper bound of delta at ``epsilon`` of a mechanism that runs on a secret sample.

    ``whole(epsilon, copies)`` bounds the delta of the mechanism without sampling if one unit
    changes that is in the data ``copies`` times (more than once only for sampling with
    replacement).

    Guarantees:
        a sample shows at most its share of the profile

    >>> from sfumato.privacy import PoissonSample
    >>> design, whole = PoissonSample(Fraction(1, 100)), lambda epsilon, copies: Fraction(1, 1000)
    >>> sampled_delta(design, Relation.ADD_REMOVE, Fraction(1), whole)
    Fraction(1, 100000)
    """
    _same(design, relation)
    inner = whole_epsilon(design, epsilon)
    if not isinstance(design, WithReplacement):
        return min(design.rate * whole(inner, 1), Fraction(1))
    if design.population == 1:
        return whole(inner, design.size)
    bits = 256
    first, weights, rest = binomial_weights(
        design.size, Fraction(1, design.population), bits, Fraction(1, 2**192)
    )
    shown = sum(
        weight * whole(inner, copies) for copies, weight in enumerate(weights, first) if copies
    )
    return min(Fraction(shown) / (1 << bits) + rest, Fraction(1))


def shuffled(event: Shuffled, delta: Number) -> Bracket:
    """Returns lower and upper bounds of epsilon at ``delta`` for shuffled reports.

    The upper bound is that of one report hidden among "clones": each other report is drawn
    independently of its value with probability 2/(e^epsilon0 + 1) for randomised response,
    e^-epsilon0 for any randomizer. The lower bound is attained when all other units have the same
    value; for ``PureEvent`` by the worst randomizer. For a report of telemetry it is 0 unless delta
    is.

    Guarantees:
        a shuffle hides at least so well
        a shuffle hides no better

    Raises:
        InvalidNumber: delta is outside [0, 1).

    >>> found = shuffled(Shuffled(RandomizedResponse(Fraction(4), 2), 1_000_000), "1e-6")
    >>> round(found.lower, 4), round(found.upper, 4)
    (0.024, 0.0343)
    """
    chance, epsilon0 = _delta(delta), event.event.epsilon
    if chance == 0 or epsilon0 > _HUGE:
        return Bracket(float_down(epsilon0) if chance == 0 else 0.0, float_up(epsilon0))
    nothing = Fraction(0)
    upper = _falls(
        lambda epsilon: _upper(event, epsilon, chance * _IGNORED), chance, nothing, epsilon0
    )[1]
    lower = _falls(lambda epsilon: _lower(event, epsilon), chance, nothing, epsilon0)[0]
    return Bracket(float_down(lower), float_up(upper))


def shuffled_delta(event: Shuffled, epsilon: Number) -> Bracket:
    """Returns lower and upper bounds of delta at ``epsilon`` >= 0 for shuffled reports
    (``shuffled``).

    >>> found = shuffled_delta(Shuffled(RandomizedResponse(Fraction(4), 2), 1_000_000), "0.03428")
    >>> f"{found.upper:.4g}", found.lower < found.upper
    ('9.999e-07', True)
    """
    exact = to_fraction("epsilon", epsilon)
    if exact < 0:
        raise InvalidNumber(f"epsilon = {epsilon}.", allowed="0 or greater")
    if event.event.epsilon > _HUGE:
        return Bracket(0.0, 1.0 if exact < event.event.epsilon else 0.0)
    ignored = Fraction(1, 2**64)
    rough = _upper(event, exact, ignored)
    while 0 < rough <= ignored / _IGNORED and ignored > Fraction(1, 2**1024):
        ignored *= ignored
        rough = _upper(event, exact, ignored)
    return Bracket(float_down(_lower(event, exact)), float_up(rough))


def clone_bound(event: Shuffled, delta: Number) -> Fraction:
    """Returns the closed form of Feldman, McMillan, Talwar 2021, Theorem 3.1, rounded up.

    For comparison, as it is looser than ``shuffled``: ln(1 + (e - 1)/(e + 1) (8 sqrt(e ln(4/delta)
    / n) + 8 e / n)), e = e^epsilon0, n reports.

    Raises:
        InvalidDeclaration: epsilon0 is above ln(n / (16 ln(2/delta))), where the form is not
            proved.

    >>> shuffled = Shuffled(RandomizedResponse(Fraction(4), 2), 1_000_000)
    >>> round(float(clone_bound(shuffled, "1e-6")), 4)
    0.201
    """
    chance, epsilon0, reports = _delta(delta), event.event.epsilon, event.reports
    if chance == 0 or epsilon0 > _HUGE or exp_up(epsilon0) > reports / (16 * log_up(2 / chance)):
        raise InvalidDeclaration(
            f"The closed form for epsilon0 = {float_up(epsilon0):g} and {reports} reports.",
            allowed="epsilon0 <= ln(reports / (16 ln(2 / delta)))",
            remedy="Use shuffled, which holds always.",
        )
    odds = exp_up(epsilon0)
    spread = 8 * sqrt_up(odds * log_up(4 / chance) / reports) + 8 * odds / reports
    return log_up(1 + (odds - 1) / (odds + 1) * spread)


def before_shuffling(
    reports: int, wanted: ApproxDP, local: Callable[[Fraction], Local] | None = None
) -> Fraction:
    """Returns the largest epsilon0 of a report that is proved to give ``wanted`` after the shuffle.

    It is rounded down. ``reports`` is their number. ``local`` builds the randomizer of an epsilon0;
    without it, any randomizer is assumed.

    Guarantees:
        what is bought for a shuffle costs at most what was wanted

    >>> wanted = ApproxDP(Fraction("0.034281"), Fraction(1, 10**6))
    >>> def report(epsilon0):
    ...     return RandomizedResponse(epsilon0, 2)
    >>> round(float(before_shuffling(1_000_000, wanted, report)), 3)
    4.0
    """
    if wanted.epsilon <= 0 or not 0 <= wanted.delta < 1:
        raise InvalidNumber(
            f"A shuffle to {wanted}.", allowed="epsilon greater than 0, delta from 0 to less than 1"
        )
    make = local or (lambda epsilon0: PureEvent(epsilon0, Relation.REPLACE_ONE))

    def shown(minus: Fraction) -> Fraction:
        return _upper(
            Shuffled(make(-minus), reports), wanted.epsilon, max(wanted.delta, _CLOSE**8) * _IGNORED
        )

    most = 2 * wanted.epsilon
    while most <= _HUGE and shown(-most) <= wanted.delta:
        most *= 2
    if wanted.delta == 0 or most > _HUGE:
        return wanted.epsilon if wanted.delta == 0 else most / 2
    return -_falls(shown, wanted.delta, -most, -wanted.epsilon)[1]


def _upper(event: Shuffled, epsilon: Fraction, ignored: Fraction) -> Fraction:
    """delta among clones, with e^epsilon0 rounded up and e^epsilon rounded down."""
    if epsilon >= event.event.epsilon:
        return Fraction(0)
    odds, factor = exp_up(event.event.epsilon), max(exp_down(epsilon), Fraction(1))
    rate = 2 / (odds + 1) if isinstance(event.event, RandomizedResponse) else 1 / odds
    return hidden_delta(odds, rate, min(event.reports, _MOST) - 1, factor, ignored)


def _lower(event: Shuffled, epsilon: Fraction) -> Fraction:
    """delta if all others have the victim's second value and only reports of the first are
    counted; 0 for a report of telemetry, which need not be the worst randomizer.
    """
    if (
        epsilon >= event.event.epsilon
        or event.reports > _MOST
        or isinstance(event.event, DeviceReport)
    ):
        return Fraction(0)
    categories = event.event.categories if isinstance(event.event, RandomizedResponse) else 2
    odds = exp_down(event.event.epsilon)
    total = odds + categories - 1
    return lone_delta(odds / total, 1 / total, event.reports - 1, exp_up(epsilon))


def _falls(
    curve: Callable[[Fraction], Fraction], level: Fraction, low: Fraction, high: Fraction
) -> tuple[Fraction, Fraction]:
    """Brackets the place where a falling curve crosses a level: above it at the first point, not at
    the second.

    At ``high`` the curve is known not to be above the level. If it is not at ``low`` either, both
    points are ``low``. Uses the Illinois method on a scale on which the curve is nearly straight,
    and bisection where that stalls.
    """
    left, right, was_low = _straight(curve(low), level), math.inf, None
    if left >= 0:
        return low, low
    for step in range(200):
        gap = _CLOSE * max(abs(low), abs(high))
        if high - low <= gap:
            break
        at = (low + high) / 2
        if right < math.inf and step % 8:
            secant = Fraction(float(high) - right * float(high - low) / (right - left))
            at = min(max(secant, low + gap / 2), high - gap / 2)
        value = _straight(curve(at), level)
        is_low = value < 0
        # Illinois method: an end that did not move counts half, so that the next secant moves it
        weight = 0.5 if is_low is was_low else 1.0
        if is_low:
            low, left, right = at, value, right * weight
        else:
            high, right, left = at, value, left * weight
        was_low = is_low
    return low, high


def _straight(value: Fraction, level: Fraction) -> float:
    """A nearly linear function of the curve that is negative if and only if value > level."""
    if value <= 0:
        return math.inf
    reached, goal = (
        math.sqrt(max(math.log(x.denominator) - math.log(x.numerator), 0.0)) for x in (value, level)
    )
    distance = reached - goal
    return min(distance, -1e-300) if value > level else max(distance, 0.0)


def _share(design: Design) -> Fraction:
    """The probability that a given unit is in the sample, rounded up if it is irrational."""
    if not isinstance(design, WithReplacement):
        return design.rate
    if design.population == 1:
        return Fraction(1)
    return 1 - exp_down(design.size * log_down(1 - Fraction(1, design.population)))


def _same(design: Design, relation: Relation) -> None:
    if isinstance(design, PoissonSample) and design.relation is Relation.REPLACE_ONE:
        raise InvalidDeclaration(
            "One guarantee of a Poisson sample of which one unit is replaced.",
            allowed="account and privacy_curve of a Sampled event: they need what the event does "
            "when a unit leaves",
        )
    if relation is not design.relation:
        raise InvalidDeclaration(
            f"{type(design).__name__} for neighbours under {relation.value}.",
            allowed=f"{design.relation.value}, for which its amplification is proved",
        )


def _delta(delta: Number) -> Fraction:
    exact = to_fraction("delta", delta)
    if not 0 <= exact < 1:
        raise InvalidNumber(f"delta = {delta}.", allowed="0 or greater, and less than 1")
    return exact

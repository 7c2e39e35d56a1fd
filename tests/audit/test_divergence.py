# SPDX-License-Identifier: Apache-2.0
"""Bounds of divergences hold the brute-force truth: all sets of outcomes, in Fractions and 200
bits.
"""

import math
from fractions import Fraction
from itertools import chain, combinations

from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit.divergence import Compared
from sfumato.audit.explore import ONE, Explored

KEYS = "abcd"


@st.composite
def laws(draw):
    """A law on four outcomes in exact units, and what was reached of it."""
    weights = draw(st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any))
    total = sum(weights)
    whole = [Fraction(weight, total) for weight in weights]
    share = draw(st.sampled_from([Fraction(1), Fraction(999, 1000), Fraction(1, 2)]))
    lost = draw(st.integers(0, 3))
    reached = [mass * (share if index == lost else 1) for index, mass in enumerate(whole)]
    bounds = {
        key: (math.floor(m * ONE), math.ceil(m * ONE))
        for key, m in zip(KEYS, reached, strict=True)
        if m
    }
    return whole, Explored(bounds)


def sets():
    return chain.from_iterable(combinations(range(4), size) for size in range(5))


def true_delta(p, q, factor: arb) -> arb:
    with ctx.workprec(200):
        values = (
            number(sum(p[i] for i in each)) - factor * number(sum(q[i] for i in each))
            for each in sets()
        )
        return max(values, key=float)


def true_ratio(p, q, delta: Fraction):
    """The largest (P(A) - delta) / Q(A); None: infinite."""
    best = Fraction(0)
    for each in sets():
        above, below = sum(p[i] for i in each) - delta, sum(q[i] for i in each)
        if above > 0:
            if below == 0:
                return None
            best = max(best, above / below)
    return best


def number(value) -> arb:
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def holds(bracket, truth: arb) -> bool:
    with ctx.workprec(200):
        return bool(arb(bracket.lower) <= truth + arb(2) ** -90) and (
            bracket.upper == math.inf or bool(truth <= arb(bracket.upper) + arb(2) ** -90)
        )


def delta_is_held(one, other, epsilon) -> bool:
    (p, seen), (q, against) = one, other
    with ctx.workprec(200):
        return holds(
            Compared(seen, against).delta(epsilon), true_delta(p, q, number(epsilon).exp())
        )


def epsilon_is_held(one, other, delta) -> bool:
    (p, seen), (q, against) = one, other
    ratio = true_ratio(p, q, delta)
    bracket = Compared(seen, against).epsilon(delta)
    if ratio is None:
        return bracket.upper == math.inf
    with ctx.workprec(200):
        return holds(bracket, number(max(ratio, Fraction(1))).log())


def renyi_is_held(one, other, order) -> bool:
    """Lower: of the whole laws; upper: of their common part, which is all where all was reached."""
    (p, seen), (q, against) = one, other
    bracket = Compared(seen, against).renyi(order, Fraction(1, 10**9))
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return bracket.upper == math.inf
    with ctx.workprec(200):
        terms = (number(a**order / b ** (order - 1)) for a, b in zip(p, q, strict=True) if a)
        truth = sum(terms, arb(0)).log() / (order - 1)
        if seen.rest or against.rest:
            return bool(arb(bracket.lower) <= truth + arb(2) ** -90)
        return holds(bracket, truth)


EPSILONS = st.fractions(0, 4, max_denominator=100)
DELTAS = st.sampled_from(
    [Fraction(0), Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1)]
)


@given(laws(), laws(), EPSILONS)
@settings(deadline=None)
def test_the_true_delta_lies_between_its_bounds(one, other, epsilon):
    assert delta_is_held(one, other, epsilon)


@given(laws(), laws(), DELTAS)
@settings(deadline=None)
def test_the_true_epsilon_lies_between_its_bounds(one, other, delta):
    assert epsilon_is_held(one, other, delta)


@given(laws(), laws(), st.integers(2, 9))
@settings(deadline=None)
def test_the_true_order_of_divergence_lies_between_its_bounds(one, other, order):
    assert renyi_is_held(one, other, order)


def reached(whole, share):
    """A law of which this share of every outcome was reached."""
    return whole, Explored(
        {key: (int(share * m * ONE),) * 2 for key, m in zip(KEYS, whole, strict=True)}
    )


def test_bounds_that_forget_what_was_not_reached_are_noticed():
    one = reached([Fraction(3, 4), Fraction(1, 4), Fraction(0), Fraction(0)], 1)
    other = reached([Fraction(1, 4), Fraction(3, 4), Fraction(0), Fraction(0)], Fraction(1, 2))
    checks = (
        lambda: delta_is_held(one, other, Fraction(1, 2)),
        lambda: delta_is_held(other, one, Fraction(1, 2)),
        lambda: epsilon_is_held(one, other, Fraction(1, 10)),
        lambda: epsilon_is_held(other, one, Fraction(1, 10)),
        lambda: renyi_is_held(one, other, 2),
    )
    assert all(check() for check in checks)
    object.__setattr__(other[1], "rest", 0)
    assert not any(check() for check in checks)


def test_the_bounds_are_tight_where_all_was_reached():
    p, q = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    one, other = (
        Explored({i: (int(m * ONE), int(m * ONE)) for i, m in enumerate(law)}) for law in (p, q)
    )
    compared = Compared(one, other)
    assert (
        compared.epsilon(Fraction(0)).lower == math.nextafter(math.log(3), 0)
        or compared.epsilon(Fraction(0)).width < 1e-15
    )
    assert math.log(3) in compared.epsilon(Fraction(0))
    assert compared.delta(Fraction(0)).lower == compared.delta(Fraction(0)).upper == 0.5
    assert math.log(9 / 4 + 1 / 12) in compared.renyi(2, Fraction(0))
    assert compared.renyi(2, Fraction(0)).width < 1e-15


def test_outcomes_of_one_law_alone_are_infinitely_telling():
    one, other = Explored({"a": (ONE, ONE)}), Explored({"b": (ONE, ONE)})
    compared = Compared(one, other)
    assert (
        compared.epsilon(Fraction(1, 2)).lower == math.inf
        and compared.epsilon(Fraction(1)).upper == 0
    )
    assert compared.delta(Fraction(5)).lower == 1
    assert compared.renyi(2, Fraction(0)).upper == math.inf

# SPDX-License-Identifier: Apache-2.0
"""The ladder mechanism: drawn with the law of its rungs, charged as drawn, and its error."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import ladder as module
from sfumato.mechanisms.ladder import ladder
from sfumato.privacy import Distance, Norm
from sfumato.privacy.event import Rule, Selection
from sfumato.testing import assert_follows

ONE = Distance(Norm.LINF, Fraction(1))


def law(width, rate, growth=1):
    """The probability of each distance from 0 on, from the definition of rungs."""
    weights, rung, weight = [1.0], 1, 1.0
    while weight > 1e-13 or rung < 3:
        weight = math.exp(-rate * rung)
        weights += [weight] * (width + growth * (rung - 1))
        rung += 1
    total = weights[0] + 2 * sum(weights[1:])
    return [weight / total for weight in weights]


def cdf_of(side):
    """The cdf of the integers whose distances have these probabilities."""
    sums = [side[0], *side[1:]]
    for place in range(1, len(sums)):
        sums[place] += sums[place - 1]

    def cdf(x):
        above = sums[-1] - sums[min(abs(x) - (x < 0), len(sums) - 1)]
        return above if x < 0 else 1 - (sums[-1] - sums[min(x, len(sums) - 1)])

    return cdf


@pytest.mark.parametrize(("width", "epsilon"), [(0, "1"), (1, "1"), (3, "0.7"), (10, "2")])
def test_an_integer_is_drawn_with_exactly_the_probability_of_its_rung(width, epsilon):
    mechanism = ladder(ONE, epsilon)
    rate = float(mechanism.rate)
    drawn = [mechanism.release(100, width) - 100 for _ in range(3000)]
    wrong = cdf_of(law(width + 1, 0.45 * rate))
    assert_follows(drawn, cdf_of(law(width, rate)), notices=wrong)


BROKEN = {
    "rungs that do not grow": lambda rung, width: rung * width,
    "rungs too far": lambda rung, width: honest(rung + 3, width),
}
honest = module._below_rung


@pytest.mark.parametrize("name", BROKEN)
def test_a_draw_of_another_law_is_noticed(name, monkeypatch):
    mechanism = ladder(ONE, "0.4")
    rate = float(mechanism.rate)
    monkeypatch.setattr(module, "_below_rung", BROKEN[name])
    drawn = [mechanism.release(0, 4) for _ in range(1500)]
    with pytest.raises(AssertionError, match="from the stated law"):
        assert_follows(drawn, cdf_of(law(4, rate)), notices=cdf_of(law(4, 4 * rate)))


def test_the_event_names_the_very_rate_that_is_drawn():
    mechanism = ladder(ONE, "0.5")
    assert mechanism.rate == Fraction(1, 4)
    event = mechanism.event(ONE)
    assert event == Selection(Rule.EXPONENTIAL, Fraction(1, 4), ONE)
    assert account(event).epsilon == Fraction(1, 2)
    assert account(event).rho == Fraction(1, 32)
    replaced = ladder(Distance(Norm.LINF, Fraction(2)), "0.5")
    assert replaced.rate == Fraction(1, 8)


def test_a_ladder_between_neighbours_loses_at_most_its_epsilon():
    """An edge may add the width to the exact integer, and one to the width."""
    epsilon = 0.7
    for width, wider in ((0, 0), (0, 1), (2, 0), (2, 1), (3, 1)):
        before, after = law(width, epsilon / 2), law(width + wider, epsilon / 2)
        for more in range(width + 1):
            for integer in range(-20, 30):
                loss = math.log(before[abs(integer)] / after[abs(integer - more)])
                assert abs(loss) <= epsilon + 1e-9
    # and a width one short would lose more
    short = law(1, epsilon / 2)
    losses = [abs(math.log(short[abs(at)] / short[abs(at - 2)])) for at in range(-20, 30)]
    assert max(losses) > epsilon


@given(st.integers(0, 60), st.sampled_from(["0.5", "1", "3"]))
def test_the_errors_are_those_of_the_law(width, epsilon):
    mechanism = ladder(ONE, epsilon)
    side = law(width, float(mechanism.rate))
    covered, needed = side[0], 0
    while covered < 0.95:
        needed += 1
        covered += 2 * side[needed]
    assert mechanism.error("0.95", width) == needed
    mean = 2 * sum(distance * weight for distance, weight in enumerate(side))
    assert mechanism.mean_error(width) == pytest.approx(mean, rel=1e-6)


def test_the_known_errors_of_a_graph_of_co_authors():
    """ca-GrQc: 48,260 triangles, 61 common neighbours at most; a tenth of epsilon is for these."""
    for epsilon, percent in (("0.9", 0.304), ("0.45", 0.644), ("0.09", 5.11)):
        expected = ladder(ONE, epsilon).mean_error(61) / 48_260
        assert 100 * expected == pytest.approx(percent, rel=0.01)


def test_what_is_no_ladder_is_refused():
    with pytest.raises(InvalidDeclaration, match="Linf"):
        ladder(Distance(Norm.L1, Fraction(1)), 1)
    with pytest.raises(InvalidNumber):
        ladder(ONE, 0)
    mechanism = ladder(ONE, 1)
    for exact, width in ((1.5, 1), (1, -1), (True, 1), (1, 2.0)):
        with pytest.raises(InvalidNumber):
            mechanism.release(exact, width)
    with pytest.raises(InvalidNumber):
        mechanism.error("0.95", -1)


def test_rungs_begin_one_after_the_other():
    for width in range(5):
        reached = 0
        for rung in range(1, 9):
            assert module._below_rung(rung - 1, width) == reached
            reached += width + rung - 1

# SPDX-License-Identifier: Apache-2.0
"""Report noisy max: its cost, and that of its gap, by going through the noise of all candidates."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import noisy_max
from sfumato.mechanisms.noisy_max import NoisyMaxMechanism, Winner, report_noisy_max
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import Distance, Norm, Relation
from sfumato.privacy.event import NoisyMax
from sfumato.testing import Replay, assert_at_most
from tests.noise.truth import PRECISION, LaplaceTruth, ball, is_outward

ONE = Distance(Norm.LINF, Fraction(1))
AMOUNTS = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
INTEGERS = st.lists(st.integers(-9, 9) | st.integers(-(10**30), 10**30), min_size=2, max_size=6)
# the noise of the candidates that do not win is followed from -8 to 8
REACH = 8
SCALE = Fraction(7, 10)


def wins(noisy, index) -> bool:
    """The first of the largest."""
    return max(range(len(noisy)), key=lambda i: (noisy[i], -i)) == index


def is_least(noisy, index, least) -> bool:
    """Whether ``index`` wins with this value and not with one less, whatever it has now."""
    tried = [[*noisy[:index], value, *noisy[index + 1 :]] for value in (least, least - 1)]
    return wins(tried[0], index) and not wins(tried[1], index)


@given(INTEGERS, st.data())
@settings(deadline=None)
def test_the_winner_is_the_first_of_the_largest_and_its_gap_the_least_that_wins(scores, data):
    drawn = data.draw(st.lists(st.integers(-3, 3), min_size=len(scores), max_size=len(scores)))
    noisy = [score + noise for score, noise in zip(scores, drawn, strict=True)]
    winner = NoisyMaxMechanism(DiscreteLaplace(1), gap=True).release(scores, drawn)
    assert wins(noisy, winner.index)
    assert winner.gap >= 0
    assert is_least(noisy, winner.index, noisy[winner.index] - winner.gap)
    second = max(noisy[: winner.index] + noisy[winner.index + 1 :])
    assert noisy[winner.index] - second - winner.gap in (0, 1)
    assert NoisyMaxMechanism(DiscreteLaplace(1)).release(scores, drawn) == Winner(winner.index)


def law(scores, scale: Fraction) -> dict[tuple[int, int], float]:
    """The probability of each (index, gap), as far as the noise of the others is within reach."""
    a = math.exp(-1 / scale)
    pmf = {x: a ** abs(x) * (1 - a) / (1 + a) for x in range(-40, 41)}
    found: dict[tuple[int, int], float] = {}
    for index in range(len(scores)):
        others = [i for i in range(len(scores)) if i != index]
        for noise in itertools.product(range(-REACH, REACH + 1), repeat=len(others)):
            mass = math.prod(pmf[x] for x in noise)
            noisy = np.array(scores)
            noisy[others] += noise
            reported = noisy_max._least(noisy, index)
            # the rule itself, in other words: strictly above those before, level with those after
            truly = max([v + 1 for v in noisy[:index].tolist()] + noisy[index + 1 :].tolist())
            for gap in range(6):
                if reported + gap >= truly:
                    mine = pmf.get(reported + gap - scores[index], 0.0)
                    found[index, gap] = found.get((index, gap), 0.0) + mass * mine
    return found


def loses_at_most(scores, moved, moves: int) -> bool:
    """P <= e^(moves/scale) P' for each answer, both ways, up to the noise that is out of reach."""
    one, other = law(scores, SCALE), law(moved, SCALE)
    a, allowed = math.exp(-1 / SCALE), math.exp(moves / SCALE)
    beyond = 2 * len(scores) * a ** (REACH + 1) / (1 + a) * allowed
    return all(
        p.get(answer, 0.0) <= allowed * q.get(answer, 0.0) + beyond
        for p, q in ((one, other), (other, one))
        for answer in one.keys() | other.keys()
    )


GENERAL = [
    ((0, 0, 0), (1, -1, 1)),
    ((0, 1, 0), (1, 0, -1)),
    ((2, 0, 0), (1, 1, 1)),
    ((0, 0, 1), (1, 1, 0)),
]
MONOTONE = [
    ((0, 0, 0), (0, 1, 0)),
    ((0, 1, 0), (1, 1, 1)),
    ((2, 0, 0), (2, 1, 1)),
    ((0, 0, 1), (1, 1, 1)),
]
# two candidates lead; the third can only win strictly above them, and then the fourth is its
# runner-up
LEVEL = ((1, 1, 0, 0), (2, 2, -1, -1))


@pytest.mark.parametrize(
    ("pairs", "moves"), [(GENERAL, 2), (MONOTONE, 1)], ids=["general", "monotone"]
)
def test_a_noisy_maximum_costs_at_most_its_epsilon(pairs, moves):
    assert report_noisy_max(ONE, moves / SCALE, monotone=moves == 1).noise.scale == SCALE
    assert all(loses_at_most(scores, moved, moves) for scores, moved in pairs)


def test_the_loss_notices_a_scale_without_the_factor_of_two():
    assert not all(loses_at_most(scores, moved, 1) for scores, moved in GENERAL)


def test_the_gap_of_a_noisy_maximum_is_free():
    distance = Distance(Norm.LINF, Fraction(3))
    for monotone in (False, True):
        costs = [
            account(report_noisy_max(distance, 1, monotone=monotone, gap=gap).event(distance))
            for gap in (False, True)
        ]
        assert costs[0] == costs[1]
        assert costs[0].epsilon == 1
    assert loses_at_most(*LEVEL, 2)


def test_the_loss_notices_the_plain_difference_of_the_two_largest(monkeypatch):
    monkeypatch.setattr(
        noisy_max,
        "_least",
        lambda noisy, index: max(noisy[:index].tolist() + noisy[index + 1 :].tolist()),
    )
    assert not loses_at_most(*LEVEL, 2)


@given(AMOUNTS, AMOUNTS, st.booleans())
@settings(deadline=None)
def test_a_noisy_maximum_buys_its_epsilon(sensitivity, epsilon, monotone):
    distance = Distance(Norm.LINF, sensitivity, Relation.REPLACE_ONE)
    mechanism = report_noisy_max(distance, epsilon, monotone=monotone)
    assert account(mechanism.event(distance)).epsilon == epsilon


def test_the_event_names_the_very_noise_of_the_maximum():
    mechanism = report_noisy_max(ONE, "0.5", monotone=True, gap=True)
    assert mechanism.event(ONE) == NoisyMax(mechanism.noise, ONE, monotone=True, gap=True)
    assert mechanism.event(ONE).noise is mechanism.noise
    assert draws_what_it_names(mechanism)


def draws_what_it_names(mechanism: NoisyMaxMechanism) -> bool:
    """Whether the event's own law, on the same bits, gives the same draws."""
    return bool(
        np.all(mechanism.draw(50, Replay(9)) == mechanism.event(ONE).noise.sample(50, Replay(9)))
    )


def test_the_comparison_notices_a_mechanism_that_draws_less_noise(monkeypatch):
    monkeypatch.setattr(
        NoisyMaxMechanism,
        "draw",
        lambda mechanism, n, bits: DiscreteLaplace(mechanism.noise.scale / 9).sample(n, bits),
    )
    assert not draws_what_it_names(report_noisy_max(ONE, "0.01"))


# ---------------------------------------------------------------- the error


def overtaking(scale: Fraction, lead: int) -> arb:
    """P(X - Y >= lead), added up over all Y within 300 scales and more."""
    truth = LaplaceTruth(scale)
    with ctx.workprec(PRECISION):
        reach = int(300 * scale) + 2 * lead + 10
        within = sum(
            (truth.pmf(y) * truth.above(y + lead - 1) for y in range(-reach, reach + 1)), arb(0)
        )
        return within + arb(0, 1) * truth.tail(reach)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("lead", [0, 1, 2, 7, 40])
def test_the_chance_to_overtake_is_an_upper_bound_and_tight(scale, lead):
    stated = noisy_max._overtakes(scale, lead)
    truth = overtaking(scale, lead)
    assert is_outward(stated * (1 - Fraction(1, 10**40)), truth, stated)
    assert not is_outward(Fraction(0), truth, stated * (1 - Fraction(1, 10**20)))


def test_the_chance_to_overtake_is_small_at_large_scales():
    # 1/2 e^-t (1 + t/2) for continuous noise, t leads in scales
    for leads in (1, 3):
        stated = float(noisy_max._overtakes(Fraction(10**12), leads * 10**12))
        assert stated == pytest.approx(math.exp(-leads) * (1 + leads / 2) / 2, rel=1e-9)
    assert noisy_max._overtakes(Fraction(1), -1) == 1


def failures(mechanism: NoisyMaxMechanism, error: int, confidence: float) -> None:
    """Fails if winners are too often more than ``error`` below the best; sure to notice 6% more."""
    scores = [0] + [-error - 1] * 4
    beyond = sum(mechanism.release(scores).index != 0 for _ in range(12_000))
    assert_at_most(beyond, 12_000, 1 - confidence, notices=1 - confidence + 0.06)


def test_the_error_of_a_noisy_maximum_covers_as_often_as_stated():
    mechanism = report_noisy_max(ONE, "0.7")
    failures(mechanism, mechanism.error("0.8", 5), 0.8)


def test_the_coverage_notices_half_the_error():
    mechanism = report_noisy_max(ONE, "0.7")
    with pytest.raises(AssertionError, match="was stated"):
        failures(mechanism, mechanism.error("0.8", 5) // 2, 0.8)


def test_the_error_is_the_smallest_that_the_union_bound_allows():
    mechanism = report_noisy_max(ONE, "0.3")
    for confidence, candidates in (("0.5", 2), ("0.95", 10), ("0.999999", 10**6)):
        error, miss = mechanism.error(confidence, candidates), 1 - Fraction(confidence)
        with ctx.workprec(PRECISION):
            assert overtaking(mechanism.noise.scale, error + 1) * (candidates - 1) <= ball(miss)
            assert not overtaking(mechanism.noise.scale, error) * (candidates - 1) <= ball(miss)
    assert mechanism.error("0.95", 1) == 0
    assert report_noisy_max(ONE, 100).error("0.5", 2) == 0


# ---------------------------------------------------------------- sizes and refusals


def test_a_million_scores_and_scores_beyond_a_machine_word():
    mechanism = report_noisy_max(ONE, 1, gap=True)
    scores = np.zeros(10**6, np.int64)
    scores[777_777] = 10**6
    assert mechanism.release(scores).index == 777_777
    assert abs(mechanism.release(scores).gap - 10**6) < 1000
    large = [2**63 - 1, -(2**63), 2**63 - 10**6, 10**30]
    assert mechanism.release(large).index == 3
    assert mechanism.release(np.array(large[:3], np.int64), [0, 0, 0]) == Winner(0, 10**6 - 1)
    assert mechanism.release([0, 0], [2**63 - 1, 2**63]) == Winner(1, 0)


def test_a_scale_beyond_a_machine_word():
    distance = Distance(Norm.LINF, Fraction(10**30))
    winner = report_noisy_max(distance, 1, gap=True).release([0, 10**40, 5])
    assert winner.index == 1
    assert winner.gap > 10**38


@pytest.mark.parametrize("scores", [[], [1, None], np.zeros((2, 2), np.int64), 3, "12"], ids=repr)
def test_what_is_no_list_of_scores_is_refused(scores):
    with pytest.raises(InvalidDeclaration):
        report_noisy_max(ONE, 1).release(scores)


@pytest.mark.parametrize(
    "scores", [[1.0, 2.0], [1, Fraction(1, 2)], np.array([1.0, math.nan])], ids=repr
)
def test_scores_that_are_not_integers_are_refused(scores):
    with pytest.raises(InvalidNumber, match="scores"):
        report_noisy_max(ONE, 1).release(scores)


def test_noise_of_another_length_and_a_gap_of_one_are_refused():
    with pytest.raises(InvalidDeclaration, match="2 integers for 3"):
        report_noisy_max(ONE, 1).release([1, 2, 3], [0, 0])
    with pytest.raises(InvalidDeclaration, match="single"):
        report_noisy_max(ONE, 1, gap=True).release([1])
    assert report_noisy_max(ONE, 1).release([1]) == Winner(0)
    for candidates in (0, -1, True, 2.0):
        with pytest.raises(InvalidNumber, match="candidates"):
            report_noisy_max(ONE, 1).draw(candidates)


@pytest.mark.parametrize("amount", [0, -1, math.nan, math.inf, "one", True])
def test_an_epsilon_that_is_not_positive_is_refused(amount):
    with pytest.raises(InvalidNumber, match="epsilon"):
        report_noisy_max(ONE, amount)


def test_a_mechanism_takes_only_scores_bounded_one_by_one():
    for norm in (Norm.L1, Norm.L2):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            report_noisy_max(Distance(norm, Fraction(1)), 1)

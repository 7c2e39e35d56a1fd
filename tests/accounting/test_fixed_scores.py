# SPDX-License-Identifier: Apache-2.0
"""Fixed scores: against all shares of candidates, real exponential mechanisms, the published
formula; mutants.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import fixed_scores
from sfumato.accounting.account import account
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.fixed_scores import FixedScores
from sfumato.accounting.odometer import PureFilter
from sfumato.accounting.renyi import renyi
from sfumato.privacy import (
    BoundedRange,
    Composed,
    Distance,
    Nonadaptive,
    Norm,
    PureEvent,
    Repeated,
    Rule,
    Selection,
)
from tests.accounting import laws
from tests.contracts.effort import examples

EACH = Distance(Norm.LINF, Fraction(1))
SLACK = 1e-12


def fixed(eta: str, times: int) -> Nonadaptive:
    return Nonadaptive(Repeated(BoundedRange(Fraction(eta)), times))


def two_points(eta: float, top: float) -> list[tuple[float, float]]:
    """Mass under P and ratio P / Q of the two outcomes of a mechanism with losses ``top`` and ``top
    - eta``.
    """
    low = (math.exp(-top) - math.exp(-eta)) / -math.expm1(-eta)
    return [(low * math.exp(top), math.exp(top)), (1 - low * math.exp(top), math.exp(top - eta))]


def lost(etas: list[float], tops: tuple[float, ...], epsilon: float) -> float:
    """The delta of these mechanisms together, outcome by outcome."""
    total = 0.0
    for outcome in product(*(two_points(eta, top) for eta, top in zip(etas, tops, strict=True))):
        mass, ratio = math.prod(each[0] for each in outcome), math.prod(each[1] for each in outcome)
        total += mass * max(1 - math.exp(epsilon) / ratio, 0.0)
    return total


GRID = [(place + 0.5) / 24 for place in range(24)]


def is_bound(times: int, eta: str, epsilon: float) -> bool:
    """Whether no choice of shares, equal or not, loses more than the curve says, and one loses
    nearly that.
    """
    size = float(Fraction(eta))
    worst = max(
        lost([size] * times, tuple(size * each for each in tops), epsilon)
        for tops in product(GRID, repeat=times)
    )
    found = privacy_curve(fixed(eta, times)).delta(epsilon)
    return worst <= found.upper + SLACK and found.lower <= worst * 1.05 + SLACK


@pytest.mark.parametrize(("times", "eta"), [(1, "1/2"), (2, "1/10"), (2, "3"), (3, "1")])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.7])
def test_fixed_scores_lose_what_the_worst_shares_of_candidates_lose(
    times: int, eta: str, part: float
) -> None:
    assert is_bound(times, eta, part * times * float(Fraction(eta)))


SLIPS = {
    "one count less": lambda worst, eta, times, loss, count: worst(eta, times, loss, count - 1),
    "shares of another number": lambda worst, eta, times, loss, count: worst(
        eta, times + 1, loss, count
    ),
    "always half": lambda worst, eta, times, loss, count: eta / 2,
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_wrong_share_of_candidates_is_caught(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worst = fixed_scores._worst_top
    monkeypatch.setattr(fixed_scores, "_worst_top", lambda *given: SLIPS[slip](worst, *given))
    assert not all(
        is_bound(times, "3", part * 3.0 * times)
        for times in (1, 2)
        for part in (0.0, 0.1, 0.3, 0.7)
    )


def mechanisms(raised: int, candidates: int, rate: Fraction) -> tuple[laws.Law, laws.Law]:
    """The exponential mechanism on scores that rise by 1 for some candidates and fall by 1 for the
    others, and before.
    """
    return laws.exponential([1] * raised + [-1] * (candidates - raised), rate), laws.exponential(
        [0] * candidates, rate
    )


def test_exponential_mechanisms_with_fixed_scores_lose_no_more() -> None:
    rate, event = Fraction(1), Selection(Rule.EXPONENTIAL, Fraction(1), EACH)
    curve = privacy_curve(Nonadaptive(Repeated(event, 2)))
    for one, other in product(range(1, 5), repeat=2):
        sides = zip(mechanisms(one, 5, rate), mechanisms(other, 5, rate), strict=True)
        pair = [laws.together(*side) for side in sides]
        for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2)):
            with ctx.workprec(laws.PRECISION):
                delta = laws.hockey_stick(*pair, epsilon)
            assert float(delta.mid()) <= curve.delta(epsilon).upper


def merged(law: laws.Law, raised: int) -> dict[bool, arb]:
    """A law by whether the candidate is one that was raised: all others of its kind are alike."""
    found: dict[bool, arb] = defaultdict(lambda: arb(0))
    for candidate, mass in law.items():
        found[int(str(candidate)) < raised] += mass
    return found


def test_many_candidates_of_the_worst_share_lose_nearly_all_of_it() -> None:
    # the lower end is a loss that neighbours come near
    eta, times, epsilon = Fraction(1), 3, Fraction(1)
    found = privacy_curve(
        Nonadaptive(Repeated(Selection(Rule.EXPONENTIAL, eta / 2, EACH), times))
    ).delta(epsilon)
    reached = 0.0
    for raised in range(20, 50):
        pair = [merged(law, raised) for law in mechanisms(raised, 100, eta / 2)]
        with ctx.workprec(laws.PRECISION):
            together = [laws.together(*([law] * times)) for law in pair]
            reached = max(reached, float(laws.hockey_stick(*together, epsilon).mid()))
    assert found.lower is not None and 0.99 * found.lower <= reached <= found.upper


def published(eta: Fraction, times: int, epsilon: Fraction) -> float:
    """Dong, Durfee, Rogers (2020), Theorem 3, in 200 bits."""
    with ctx.workprec(200):
        e, best = laws.number(eta), arb(0)
        for count in range(times):
            top = (epsilon + (count + 1) * eta) / (times + 1)
            if top >= eta:
                continue
            t = laws.number(top)
            p = ((-t).exp() - (-e).exp()) / (1 - (-e).exp())
            found = arb(0)
            for i in range(times + 1):
                gain = (laws.number(times * top - i * eta)).exp() - laws.number(epsilon).exp()
                if bool(gain > 0):
                    found += math.comb(times, i) * p ** (times - i) * (1 - p) ** i * gain
            best = best.max(found)
        return float(best.mid())


@pytest.mark.parametrize(
    ("eta", "times", "epsilon"),
    [("1/10", 20, "0.7"), ("1/10", 40, "1.5"), ("2", 12, "9"), ("1/2", 1, "0.3")],
)
def test_the_published_formula_lies_between_the_ends(eta: str, times: int, epsilon: str) -> None:
    truth = published(Fraction(eta), times, Fraction(epsilon))
    found = privacy_curve(fixed(eta, times)).delta(epsilon)
    assert found.lower <= truth * (1 + 1e-12) and truth * (1 - 1e-12) <= found.upper <= truth * (
        1 + 1e-5
    )


def test_a_hundred_selections_cost_what_was_worked_out_beforehand() -> None:
    event = Repeated(Selection(Rule.EXPONENTIAL, Fraction(1, 20), EACH), 100)
    found = privacy_curve(Nonadaptive(event)).epsilon("1e-6")
    assert found.lower <= 2.2460265 <= found.upper and found.upper - found.lower < 1e-5
    # asked one after the other, with scores that follow from the answers: dearer, and no lower end
    # is known
    assert privacy_curve(event).epsilon("1e-6").lower is None
    # the Renyi divergences of a loss of two values 0.1 apart add up; the dearest two at each order
    orders = np.linspace(1.5, 60, 1200)[:, np.newaxis]
    top = np.linspace(0.0005, 0.0995, 199)
    part = np.expm1(0.1 - top) / (np.exp(0.1 - top) - np.exp(-top))
    grown = part * np.exp((orders - 1) * top) + (1 - part) * np.exp((orders - 1) * (top - 0.1))
    added = 100 * np.log(grown).max(axis=1) / (orders[:, 0] - 1)
    orders = orders[:, 0]
    # converted by Canonne, Kamath and Steinke (2020)
    spread = (math.log(1e6) - np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)
    expected = float((added + spread).min())
    assert privacy_curve(event).epsilon("1e-6").upper == pytest.approx(expected, rel=1e-3)


def adaptive(eta: float, epsilon: float) -> float:
    """Two mechanisms, the share of the second chosen after the first answer."""
    worst = 0.0
    for top in (eta * each for each in GRID):
        total = 0.0
        for mass, ratio in two_points(eta, top):
            left = epsilon - math.log(ratio)
            total += mass * max(
                sum(
                    part * max(1 - math.exp(left) / x, 0.0)
                    for part, x in two_points(eta, eta * each)
                )
                for each in GRID
            )
        worst = max(worst, total)
    return worst


def test_scores_that_follow_from_answers_lose_more_than_the_bound_of_fixed_ones() -> None:
    truth = adaptive(1.0, 0.4)
    assert privacy_curve(fixed("1", 2)).delta(0.4).upper < truth
    assert truth <= privacy_curve(fixed("1", 2).event).delta(0.4).upper


def test_several_ranges_cost_at_most_what_the_widest_costs_and_no_more_than_before() -> None:
    mixed = Composed((Repeated(BoundedRange(Fraction(1, 10)), 2), BoundedRange(Fraction(9, 100))))
    curve, epsilon = privacy_curve(Nonadaptive(mixed)), 0.05
    worst = max(
        lost([0.1, 0.1, 0.09], (0.1 * a, 0.1 * b, 0.09 * c), epsilon)
        for a, b, c in product(GRID, repeat=3)
    )
    found = curve.delta(epsilon)
    assert found.lower is None and worst <= found.upper < privacy_curve(mixed).delta(epsilon).upper
    one_small = Composed((BoundedRange(Fraction(1)), Repeated(BoundedRange(Fraction(1, 100)), 50)))
    assert privacy_curve(Nonadaptive(one_small)).epsilon("1e-3") == privacy_curve(
        one_small
    ).epsilon("1e-3")


def test_everything_else_costs_the_same_with_fixed_scores_and_without() -> None:
    inner = Composed((Selection(Rule.EXPONENTIAL, Fraction(1, 2), EACH), PureEvent(Fraction(1))))
    event = Nonadaptive(inner)
    assert account(event) == account(inner) and renyi(event, 3) == renyi(inner, 3)
    assert privacy_curve(event).epsilon("1e-3") == privacy_curve(inner).epsilon("1e-3")
    books = PureFilter(cap=Fraction(3))
    assert books.spend(event) == books.spend(inner)
    # inside a plan that may be chosen step by step nothing is gained
    outer = Repeated(fixed("1/10", 50), 2)
    assert privacy_curve(outer).epsilon("1e-6") == privacy_curve(fixed("1/10", 100).event).epsilon(
        "1e-6"
    )


@given(
    st.fractions(Fraction(1, 1000), 4, max_denominator=1000),
    st.integers(1, 300),
    st.sampled_from(["1e-2", "1e-6", "1e-15"]),
)
@settings(deadline=None, max_examples=examples(0.4))
def test_both_ends_agree_with_delta_and_never_exceed_the_sum(
    eta: Fraction, times: int, delta: str
) -> None:
    curve = privacy_curve(Nonadaptive(Repeated(BoundedRange(eta), times)))
    found = curve.epsilon(delta)
    assert 0 <= found.lower <= found.upper <= math.nextafter(float(times * eta), math.inf)
    assert found.upper - found.lower <= 1e-5 * found.upper
    assert curve.delta(found.upper).upper <= float(delta)
    assert found.lower == 0 or curve.delta(found.lower).upper >= float(delta)


def test_the_ends_of_the_curve() -> None:
    curve = privacy_curve(fixed("1/3", 6))
    assert curve.epsilon(0).lower <= 2 <= curve.epsilon(0).upper
    assert curve.delta(2).upper == 0 and curve.epsilon("0.9").upper == 0
    halves = Selection(Rule.EXPONENTIAL, Fraction(1), Distance(Norm.LINF, Fraction(1, 2)))
    assert privacy_curve(Nonadaptive(Repeated(halves, 2))).delta(0).lower is None
    # beyond what shares are gone through, what holds for any scores
    many = fixed("1/100000", 2 * 10**6)
    assert privacy_curve(many).epsilon("1e-6") == privacy_curve(many.event).epsilon("1e-6")
    assert FixedScores(0.5, 1, Fraction(1, 2), reached=False).delta(0).lower is None

# SPDX-License-Identifier: Apache-2.0
"""The k best: exact laws over all sequences, cost by going through neighbours, error by drawing."""

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
from sfumato.mechanisms import top_k
from sfumato.mechanisms.top_k import JointMechanism, PeelingMechanism, joint_top_k, peeled_top_k
from sfumato.noise import select
from sfumato.privacy import Distance, Norm, Relation
from sfumato.privacy.event import Repeated, Rule, Selection
from sfumato.testing import Replay, assert_at_most
from tests.noise.truth import PRECISION, Restarted, ball, every_path

ONE = Distance(Norm.LINF, Fraction(1))
AMOUNTS = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
MAKERS = [peeled_top_k, joint_top_k]
BOTH = pytest.mark.parametrize("make", MAKERS, ids=["peeled", "joint"])
COUNTS = {
    "ties": ([4, 4, 4, 4], 2),
    "apart": ([0, 9, 3, 5], 2),
    "pairs": ([7, 2, 7, 2, 5], 3),
    "all": ([1, 0, 6], 3),
    "one": ([1, 0, 6], 1),
    "alone": ([5], 1),
    "huge": ([10**30, 10**30 - 2, 10**30 + 1, 5], 2),
}


def best_first(scores) -> list[int]:
    return sorted(scores, reverse=True)


def loss(scores, sequence) -> int:
    """The worst place: the i-th best score less the score of the i-th member."""
    return max(
        best - scores[member] for best, member in zip(best_first(scores), sequence, strict=False)
    )


def sequences(scores, k):
    return list(itertools.permutations(range(len(scores)), k))


def joint_truth(scores, k, rate) -> dict[tuple[int, ...], arb]:
    """e^(-rate loss) over their sum, sequence by sequence."""
    with ctx.workprec(PRECISION):
        each = {
            members: (-ball(rate * loss(scores, members))).exp() for members in sequences(scores, k)
        }
        total = sum(each.values(), arb(0))
        return {members: weight / total for members, weight in each.items()}


def peeling_truth(scores, k, rate) -> dict[tuple[int, ...], arb]:
    """One softmax after the other over those that are left."""
    law = {}
    with ctx.workprec(PRECISION):
        bias = [ball(rate * (score - max(scores))).exp() for score in scores]
        for members in sequences(scores, k):
            law[members], left = arb(1), set(range(len(scores)))
            for member in members:
                law[members] *= bias[member] / sum((bias[i] for i in left), arb(0))
                left.remove(member)
    return law


class Scripted:
    """The exponential mechanism as one choice of the script, and of a band as the only one of a
    path.
    """

    def __init__(self, *, once: bool) -> None:
        self.once = once

    def __call__(self, scores, rate, script, *, weights=None) -> int:
        script.rounds += 1
        if self.once and script.rounds > 1:
            raise Restarted
        scores = [int(score) for score in scores]
        with ctx.workprec(PRECISION):
            each = [
                ball(weight) * ball(rate * (score - max(scores))).exp()
                for score, weight in zip(scores, weights or [1] * len(scores), strict=True)
            ]
            total = sum(each, arb(0))
            return script.choose([(i, weight / total) for i, weight in enumerate(each)])


def scripted_coin(numerator, denominator, script) -> bool:
    with ctx.workprec(PRECISION):
        bias = (-ball(Fraction(numerator, denominator))).exp() if numerator else Fraction(1)
    return script.coin(bias)


def law_of(mechanism, scores) -> dict[tuple[int, ...], arb]:
    """The exact law of a release: every path of choices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "exponential", Scripted(once=isinstance(mechanism, JointMechanism)))
        patch.setattr(
            top_k, "below", lambda n, script: script.choose([(x, Fraction(1, n)) for x in range(n)])
        )
        patch.setattr(top_k, "bernoulli_exp", scripted_coin)
        law, rest = every_path(lambda script: mechanism.release(scores, script), 0.0)
    assert rest == 0
    with ctx.workprec(PRECISION):
        total = sum((ball(mass) for mass in law.values()), arb(0))
        return {members: ball(mass) / total for members, mass in law.items()}


def agree(law, truth) -> bool:
    """Whether two laws over sequences agree to 1e-60."""
    return all(
        abs(law.get(members, arb(0)) - truth.get(members, arb(0))) < arb("1e-60")
        for members in law | truth
    )


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(5), Fraction(300)])
@pytest.mark.parametrize("case", COUNTS)
def test_sequences_are_drawn_in_proportion_to_their_exponential_weights(case, rate):
    scores, k = COUNTS[case]
    assert agree(law_of(JointMechanism(k, rate), scores), joint_truth(scores, k, rate))


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize("case", COUNTS)
def test_peeling_draws_each_of_the_k_from_those_that_are_left(case, rate):
    scores, k = COUNTS[case]
    assert agree(law_of(PeelingMechanism(k, rate), scores), peeling_truth(scores, k, rate))


def test_the_two_laws_are_not_confused():
    assert not agree(
        joint_truth([0, 9, 3, 5], 2, Fraction(1, 2)), peeling_truth([0, 9, 3, 5], 2, Fraction(1, 2))
    )


JOINT = (JointMechanism(2, Fraction(1, 2)), [0, 9, 3, 5])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_choices", lambda ranked, k, loss: [len(ranked) - place for place in range(k)]),
        (
            "_sequence",
            lambda choices, entropy: [
                place + top_k.below(1, entropy) for place in range(len(choices))
            ],
        ),
        ("_bands", lambda ranked, k, rate: [(0, 3), (5, 9)]),
        ("_bands", lambda ranked, k, rate: [(0, 5), (3, 9)]),
    ],
    ids=[
        "all sequences in every band",
        "the best always",
        "a loss in no band",
        "a loss in two bands",
    ],
)
def test_the_law_notices_a_broken_part(name, wrong, monkeypatch):
    scores = JOINT[1]
    truth = joint_truth(scores, 2, Fraction(1, 2))
    assert agree(law_of(*JOINT), truth)
    monkeypatch.setattr(top_k, name, wrong)
    assert not agree(law_of(*JOINT), truth)


@given(
    st.lists(st.integers(0, 60) | st.integers(0, 10**25), min_size=1, max_size=9),
    st.integers(1, 9),
    st.fractions(Fraction(1, 10**4), 100),
)
@settings(deadline=None)
def test_bands_cover_every_loss_once_and_numbers_of_choices_count(scores, k, rate):
    k = min(k, len(scores), 3)
    ranked = select.integers("scores", best_first(scores))
    bands = top_k._bands(ranked, k, rate)
    assert bands[0][0] == 0 and bands[-1][1] == max(scores) - min(scores)
    assert all(one[1] + 1 == other[0] for one, other in itertools.pairwise(bands))
    assert all(first <= last for first, last in bands)
    losses = [loss(best_first(scores), members) for members in sequences(scores, k)]
    for _, last in bands[:5] + bands[-2:]:
        choices = top_k._choices(ranked, k, last)
        assert math.prod(choices) == sum(each <= last for each in losses)


def test_bands_are_few_whatever_the_scores_are():
    ranked = np.arange(10**6, 0, -10, dtype=np.int64) << 30
    for rate in (Fraction(1, 10**12), Fraction(1, 1000), Fraction(1), Fraction(10**6)):
        bands = top_k._bands(ranked, 20, rate)
        assert len(bands) <= (math.log2(10**5) * 20 + 40) / 0.35 + 5
        # what the last band stands for is negligible, or it is as short as the others
        wide = bands[-1][1] - bands[-1][0] >= max(Fraction(7, 10) / rate, 1)
        assert not wide or rate * bands[-1][0] >= (20 * math.log2(10**5)) * math.log(2) + 20


# ---------------------------------------------------------------- cost


def largest_loss(mechanism) -> float:
    """The largest |ln P/P'| over sequences and neighbours, of which each count moves by at most
    1.
    """
    truth = joint_truth if isinstance(mechanism, JointMechanism) else peeling_truth
    worst = 0.0
    for scores in ([0, 0, 0], [2, 1, 0], [3, 0, 0], [1, 1, 0]):
        one = truth(scores, mechanism.k, mechanism.rate)
        for move in itertools.product((0, 1) if mechanism.monotone else (-1, 0, 1), repeat=3):
            moved = [score + step for score, step in zip(scores, move, strict=True)]
            other = truth(moved, mechanism.k, mechanism.rate)
            worst = max(worst, max(abs(math.log(float(one[s]) / float(other[s]))) for s in one))
    return worst


@pytest.mark.parametrize("monotone", [False, True], ids=["general", "monotone"])
def test_peeling_costs_at_most_its_epsilon(monotone):
    mechanism = peeled_top_k(ONE, 2, "1.5", monotone=monotone)
    assert 0.5 < largest_loss(mechanism) <= 1.5 + 1e-9
    assert largest_loss(PeelingMechanism(2, 4 * mechanism.rate, monotone=monotone)) > 1.5


@pytest.mark.parametrize("monotone", [False, True], ids=["general", "monotone"])
def test_a_joint_choice_costs_at_most_its_epsilon(monotone):
    mechanism = joint_top_k(ONE, 2, "1.5", monotone=monotone)
    assert 0.5 < largest_loss(mechanism) <= 1.5 + 1e-9


def test_the_loss_notices_the_monotone_rate_for_counts_that_are_not():
    wrong = JointMechanism(2, joint_top_k(ONE, 2, 1, monotone=True).rate)
    assert largest_loss(wrong) > 1 + 1e-9
    half = JointMechanism(2, 2 * joint_top_k(ONE, 2, 1, monotone=True).rate, monotone=True)
    assert largest_loss(half) > 1 + 1e-9


@given(AMOUNTS, AMOUNTS, st.integers(1, 50), st.booleans())
@settings(deadline=None)
def test_both_buy_exactly_their_epsilon(sensitivity, epsilon, k, monotone):
    distance = Distance(Norm.LINF, sensitivity, Relation.REPLACE_ONE)
    for make in MAKERS:
        assert (
            account(make(distance, k, epsilon, monotone=monotone).event(distance)).epsilon
            == epsilon
        )


def test_the_event_of_peeling_is_one_selection_for_each():
    mechanism = peeled_top_k(ONE, 3, 1, monotone=True)
    assert mechanism.event(ONE) == Repeated(
        Selection(Rule.EXPONENTIAL, Fraction(1, 3), ONE, monotone=True), 3
    )
    assert account(mechanism.event(ONE)).rho == Fraction(1, 24)


def test_the_event_of_a_joint_choice_is_one_selection():
    twice = Distance(Norm.LINF, Fraction(2))
    assert joint_top_k(ONE, 3, 1).event(ONE) == Selection(Rule.EXPONENTIAL, Fraction(1, 4), twice)
    assert joint_top_k(ONE, 3, 1, monotone=True).event(ONE) == Selection(
        Rule.EXPONENTIAL, Fraction(1, 2), ONE
    )
    assert account(joint_top_k(ONE, 3, 1).event(ONE)).rho == Fraction(1, 8)


# ---------------------------------------------------------------- error


def failures(mechanism, scores, error, confidence: float) -> None:
    """Fails if picks are too often ``error`` or more below their place; sure to notice 15% more."""
    trials = 1500
    beyond = sum(loss(scores, mechanism.release(scores)) >= error for _ in range(trials))
    assert_at_most(beyond, trials, 1 - confidence, notices=1 - confidence + 0.17)


# six candidates level below two: the worst case of the bound, at the error and at a third of it
def at(error) -> list[int]:
    return [0, 0] + [-math.ceil(error)] * 6


def test_the_error_of_peeling_covers_as_often_as_stated():
    mechanism = peeled_top_k(ONE, 2, "0.4")
    error = mechanism.error("0.7", 8)
    failures(mechanism, at(error), error, 0.7)
    with pytest.raises(AssertionError, match="was stated"):
        failures(mechanism, at(error / 3), error / 3, 0.7)


def test_the_error_of_a_joint_choice_covers_as_often_as_stated():
    mechanism = joint_top_k(ONE, 2, "0.4")
    error = mechanism.error("0.7", 8)
    failures(mechanism, at(error), error, 0.7)
    with pytest.raises(AssertionError, match="was stated"):
        failures(mechanism, at(error / 3), error / 3, 0.7)


def test_the_errors_are_the_formulas():
    peeled, joint = peeled_top_k(ONE, 3, 3), joint_top_k(ONE, 3, 4)
    assert float(peeled.error("0.95", 101)) == pytest.approx(2 * math.log(300 / 0.05))
    assert float(joint.error("0.95", 101)) == pytest.approx(math.log((101 * 100 * 99 - 1) / 0.05))
    assert peeled_top_k(ONE, 1, 1).error("0.5", 1) == joint_top_k(ONE, 1, 1).error("0.5", 1) == 0


# ---------------------------------------------------------------- the whole, unpatched


@BOTH
def test_a_hundred_of_a_hundred_thousand(make):
    scores = (10**7 // np.arange(1, 10**5 + 1)).astype(np.int64)
    mechanism = make(ONE, 100, 100, monotone=True)
    picked = mechanism.release(scores)
    assert len(set(picked)) == 100 and all(type(each) is int for each in picked)
    assert loss(scores.tolist(), picked) < mechanism.error("0.999999999", 10**5)
    assert picked[:20] == tuple(range(20))


@BOTH
@pytest.mark.parametrize(
    "scores", [[3, 10**6, 5 * 10**5], np.array([3, 10**6, 5 * 10**5], np.int32)]
)
def test_releases_of_lists_and_arrays(make, scores):
    assert make(ONE, 2, 1).release(scores) == (1, 2)
    assert sorted(make(ONE, 3, "0.000001").release(scores)) == [0, 1, 2]


def test_peeling_takes_any_finite_scores():
    mechanism = peeled_top_k(ONE, 2, 100)
    assert mechanism.release([Fraction(1, 3), 10**40, Fraction(10**20, 3)]) == (1, 2)
    assert mechanism.release(np.array([0.5, 1e300, 1e9])) == (1, 2)


@BOTH
def test_replayed_entropy_gives_the_same_sequences(make):
    mechanism, scores = make(ONE, 3, "0.1"), list(range(40))
    one, other = Replay(8), Replay(8)
    assert [mechanism.release(scores, one) for _ in range(5)] == [
        mechanism.release(scores, other) for _ in range(5)
    ]
    assert len({mechanism.release(scores) for _ in range(9)}) > 1


# ---------------------------------------------------------------- refusals


@BOTH
@pytest.mark.parametrize("k", [0, -1, 1.0, True, "2", None])
def test_a_k_that_is_no_number_of_candidates_is_refused(make, k):
    with pytest.raises(InvalidNumber, match="k = "):
        make(ONE, k, 1)
    with pytest.raises(InvalidNumber, match="k = "):
        type(make(ONE, 1, 1))(k, Fraction(1))


@BOTH
def test_more_than_there_are_is_refused(make):
    with pytest.raises(InvalidDeclaration, match="best 3 of 2"):
        make(ONE, 3, 1).release([1, 2])
    with pytest.raises(InvalidDeclaration, match="best 3 of 2"):
        make(ONE, 3, 1).error("0.9", 2)
    with pytest.raises(InvalidDeclaration, match="candidates"):
        make(ONE, 3, 1).release([])


@BOTH
@pytest.mark.parametrize("amount", [0, -1, math.nan, math.inf, "one", True])
def test_an_epsilon_that_is_not_positive_is_refused(make, amount):
    with pytest.raises(InvalidNumber, match="epsilon"):
        make(ONE, 2, amount)
    with pytest.raises(InvalidNumber, match="rate"):
        type(make(ONE, 2, 1))(2, amount)


@BOTH
def test_a_mechanism_takes_only_scores_bounded_one_by_one(make):
    for norm in (Norm.L1, Norm.L2):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            make(Distance(norm, Fraction(1)), 2, 1)


def test_a_joint_choice_takes_only_integers():
    for scores in ([1.5, 2.0], np.array([1.0, math.nan]), [1, Fraction(1, 2)]):
        with pytest.raises(InvalidNumber, match="scores"):
            joint_top_k(ONE, 1, 1).release(scores)
    with pytest.raises(InvalidNumber, match="NaN"):
        peeled_top_k(ONE, 1, 1).release(np.array([1.0, math.nan]))

# SPDX-License-Identifier: Apache-2.0
"""Sparse vector: the law of every sequence of verdicts, read off the code, and the variants that
break it.

The broken variants are those of Lyu, Su and Li (2017), Figure 1: Stoddard et al. (no noise on
answers), Lee and Clifton (noise that does not grow with the positives), Chen et al. (no end),
Roth (the noisy answer is told with the noise of its comparison).
"""

import copy
import multiprocessing
import pickle
import threading
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from flint import arb, ctx

from sfumato.accounting import account
from sfumato.errors import BudgetExceeded, InvalidDeclaration, InvalidNumber, WrongUse
from sfumato.mechanisms import sparse
from sfumato.mechanisms.sparse import SparseSession, SparseVectorMechanism, Verdict, sparse_vector
from sfumato.noise import SYSTEM, DiscreteLaplace
from sfumato.privacy import Distance, Norm
from sfumato.testing import Replay, assert_at_most, assert_follows
from tests.noise.truth import PRECISION, LaplaceTruth, ball

ONE = Distance(Norm.LINF, Fraction(1))
REACH = 90
NOISE = range(-REACH, REACH + 1)


class Forced:
    """A law that shows what it is told to."""

    def __init__(self) -> None:
        self.value = 0

    def sample_one(self, entropy=None) -> int:
        return self.value


def pmf(noise: DiscreteLaplace) -> np.ndarray:
    """The masses of -REACH .

    REACH by the closed form; the ends stand for all that is beyond them.
    """
    g = exp(-1 / float(noise.scale))
    return (
        np.array([g ** abs(x) for x in NOISE]) * np.where(np.abs(NOISE) < REACH, 1 - g, 1) / (1 + g)
    )


class Law:
    """The law of verdicts: for each answer, noise and noisy threshold, what the code says about it.

    The code's verdict on one answer is a function of the answer, its noise and the noisy
    threshold. It is asked for each triple; probabilities are then sums of products.
    """

    def __init__(self, mechanism: SparseVectorMechanism) -> None:
        self.mechanism = mechanism
        self.threshold, self.query = pmf(mechanism.threshold_noise), pmf(mechanism.query_noise)
        self.seen: dict[int, dict[object, np.ndarray]] = {}

    def of(self, answer: int) -> dict[object, np.ndarray]:
        """The probability of each verdict on an answer, for each noise of the threshold."""
        if answer not in self.seen:
            found: dict[object, np.ndarray] = {}
            ours, each = Forced(), Forced()
            forced = SparseVectorMechanism(
                ours, each, self.mechanism.threshold, 1, gap=self.mechanism.gap
            )
            for place, ours.value in enumerate(NOISE):
                for each.value, mass in zip(NOISE, self.query, strict=True):
                    verdict = forced.open().ask(answer)
                    row = found.setdefault((verdict.above, verdict.gap), np.zeros(len(NOISE)))
                    row[place] += mass
            self.seen[answer] = found
        return self.seen[answer]

    def probability(self, answers: tuple[int, ...], verdicts: tuple[object, ...]) -> float:
        """Of a sequence of verdicts, which the code must be willing to give to its end."""
        mass = self.threshold.copy()
        for answer, verdict in zip(answers, verdicts, strict=True):
            mass *= self.of(answer).get(verdict, np.zeros(len(NOISE)))
        return float(mass.sum())


BELOW, ABOVE = (False, None), (True, None)


def sequences(mechanism: SparseVectorMechanism, length: int) -> list[tuple[object, ...]]:
    """All sequences of verdicts that the code can give on so many answers, or up to its end."""
    ended = []
    for verdicts in product([BELOW, ABOVE], repeat=length):
        forced = SparseVectorMechanism(Forced(), Forced(), 0, mechanism.positives)
        answers = iter([1 if verdict is ABOVE else -1 for verdict in verdicts])
        given = forced.release(answers)
        ended.append(verdicts[: len(given)])
    return sorted(set(ended))


def worst(mechanism: SparseVectorMechanism, length: int, *, monotone: bool = False) -> float:
    """The largest loss of any sequence of verdicts, over neighbouring answers near the
    threshold.
    """
    law, near = Law(mechanism), mechanism.threshold
    outcomes = sequences(mechanism, length)
    losses = [0.0]
    for moves in product([0, 1] if monotone else [-1, 0, 1], repeat=length):
        for start in product([near - 1, near], repeat=length):
            other = tuple(a + b for a, b in zip(start, moves, strict=True))
            for verdicts in outcomes:
                cut = len(verdicts)
                one, two = (
                    law.probability(start[:cut], verdicts),
                    law.probability(other[:cut], verdicts),
                )
                losses.append(
                    abs(log(one / two)) if one and two else (0.0 if one == two else float("inf"))
                )
    return max(losses)


def long_run(mechanism: SparseVectorMechanism, below: int, positives: int | None = None) -> float:
    """The loss of many verdicts below while answers rise, then of all positives while answers
    fall.
    """
    law, near, count = Law(mechanism), mechanism.threshold, positives or mechanism.positives
    verdicts = (BELOW,) * below + (ABOVE,) * count
    one = law.probability((near,) * below + (near - 20,) * count, verdicts)
    two = law.probability((near + 1,) * below + (near - 21,) * count, verdicts)
    return log(one / two)


EPSILON = 3


def mechanism_of(positives: int = 2, **flags: bool) -> SparseVectorMechanism:
    return sparse_vector(ONE, EPSILON, 5, positives, **flags)


@pytest.mark.parametrize("positives", [1, 2])
def test_answers_of_neighbours_are_within_e_to_the_epsilon(positives):
    mechanism = mechanism_of(positives)
    assert worst(mechanism, 3) <= EPSILON + 1e-9
    assert 0.9 * EPSILON < long_run(mechanism, 60) <= EPSILON + 1e-9


def test_monotone_answers_of_neighbours_are_within_e_to_the_epsilon():
    mechanism = mechanism_of(2, monotone=True)
    assert worst(mechanism, 3, monotone=True) <= EPSILON + 1e-9
    # claimed of answers that move in both directions, the half noise is not enough
    assert long_run(mechanism, 60) > 1.2 * EPSILON


def gap_losses(mechanism: SparseVectorMechanism) -> float:
    """The largest loss of a gap, alone, after one verdict below, and of two gaps."""
    law, near = Law(mechanism), mechanism.threshold
    gaps = [(True, gap) for gap in range(12)]
    outcomes = [(gap,) for gap in gaps] + [(BELOW, gap) for gap in gaps]
    outcomes += list(product(gaps[:6], repeat=2)) if mechanism.positives > 1 else []
    losses = [0.0]
    for verdicts in outcomes:
        cut = len(verdicts)
        for start, other in [
            ((near,) * cut, (near + 1,) * cut),
            ((near, near)[:cut], (near + 1, near - 1)[:cut]),
        ]:
            one, two = law.probability(start, verdicts), law.probability(other, verdicts)
            losses.append(
                abs(log(one / two)) if one and two else (0.0 if one == two else float("inf"))
            )
    return max(losses)


@pytest.mark.parametrize("positives", [1, 2])
def test_gaps_of_neighbours_are_within_e_to_the_epsilon(positives):
    assert 0.3 * EPSILON < gap_losses(mechanism_of(positives, gap=True)) <= EPSILON + 1e-9


def test_the_law_notices_answers_without_noise(monkeypatch):
    """Stoddard et al. 2014: a verdict tells which of two answers is the larger."""
    honest = SparseSession.ask

    def bare(session: SparseSession, answer: int) -> Verdict:
        session._noise = 0
        return honest(session, answer)

    monkeypatch.setattr(SparseSession, "ask", bare)
    assert worst(mechanism_of(2), 3) == float("inf")


def test_the_law_notices_noise_that_does_not_grow_with_the_positives():
    """Lee and Clifton 2014: scale 2 / epsilon_2, whatever the positives."""
    honest = mechanism_of(4)
    broken = SparseVectorMechanism(
        honest.threshold_noise, DiscreteLaplace(honest.query_noise.scale / 4), honest.threshold, 4
    )
    assert long_run(honest, 40) <= EPSILON + 1e-9
    assert long_run(broken, 40) > 2 * EPSILON


def test_the_sequences_notice_a_session_without_an_end(monkeypatch):
    """Chen et al. 2015: positives are told for ever; the loss grows with each."""
    assert (
        max(sum(verdict is ABOVE for verdict in each) for each in sequences(mechanism_of(1), 6))
        == 1
    )
    honest = SparseSession.ask

    def endless(session: SparseSession, answer: int) -> Verdict:
        session._left += 1
        return honest(session, answer)

    monkeypatch.setattr(SparseSession, "ask", endless)
    longest = max(
        sequences(mechanism_of(1), 6), key=lambda each: sum(verdict is ABOVE for verdict in each)
    )
    assert longest == (ABOVE,) * 6
    assert long_run(mechanism_of(1), 40) <= EPSILON + 1e-9
    assert long_run(mechanism_of(1), 40, positives=6) > 2 * EPSILON


def test_the_gaps_notice_an_answer_told_with_the_noise_of_its_comparison(monkeypatch):
    """Roth 2011: answer + noise is told, not its distance from the noisy threshold, which then
    comes out.
    """
    honest = SparseSession.ask

    def told(session: SparseSession, answer: int) -> Verdict:
        noise = session._noise
        verdict = honest(session, answer)
        return Verdict(verdict.above, answer + noise if verdict.above else None)

    monkeypatch.setattr(SparseSession, "ask", told)
    law, below = Law(mechanism_of(1, gap=True)), 25
    # a low answer among the positives says that the threshold is lower still, and all verdicts
    # below were sure
    verdicts = (BELOW,) * below + ((True, -5),)
    one = law.probability((5,) * below + (5,), verdicts)
    two = law.probability((6,) * below + (4,), verdicts)
    assert log(one / two) > 1.5 * EPSILON


@pytest.mark.parametrize(
    ("positives", "monotone"), [(1, False), (3, False), (3, True), (1000, False)]
)
@pytest.mark.parametrize("sensitivity", ["1", "3", "5/2"])
def test_a_sparse_vector_costs_its_whole_epsilon_at_opening(sensitivity, positives, monotone):
    distance = Distance(Norm.LINF, Fraction(sensitivity))
    mechanism = sparse_vector(distance, "0.7", 100, positives, gap=True, monotone=monotone)
    event = mechanism.event(distance)
    assert account(event).epsilon == Fraction(7, 10)
    assert (event.threshold_noise, event.query_noise) == (
        mechanism.threshold_noise,
        mechanism.query_noise,
    )
    assert (event.positives, event.monotone, event.gap) == (positives, monotone, True)


@pytest.mark.parametrize(
    ("positives", "monotone", "moves"), [(1, False, 2), (5, False, 10), (5, True, 5)]
)
def test_the_split_makes_each_comparison_as_sharp_as_it_can_be(positives, monotone, moves):
    mechanism = sparse_vector(ONE, 1, 0, positives, monotone=monotone)
    ours, others = 1 / mechanism.threshold_noise.scale, moves / mechanism.query_noise.scale
    assert ours + others == 1
    assert float(others / ours) == pytest.approx(moves ** (2 / 3), rel=0.01)
    variance = mechanism.threshold_noise.scale**2 + mechanism.query_noise.scale**2
    for share in (Fraction(1, 20), Fraction(1, 2), Fraction(19, 20)):
        assert variance < (1 / share) ** 2 + (moves / (1 - share)) ** 2


@pytest.mark.parametrize("positives", [1, 3])
def test_a_session_stops_for_ever_after_its_positives(positives):
    session = sparse_vector(ONE, 1, 0, positives).open()
    for left in range(positives, 0, -1):
        assert session.left == left
        assert not session.ask(-(10**6))
        assert session.ask(10**6)
    assert session.left == 0
    for answer in (10**6, -(10**6)):
        with pytest.raises(BudgetExceeded, match=f"its {positives} positives"):
            session.ask(answer)


def test_a_stream_ends_with_its_last_positive():
    mechanism = sparse_vector(ONE, 1, 0, 2)
    low, high = -(10**6), 10**6
    answers = iter([low, high, low, high, low, high])
    assert [verdict.above for verdict in mechanism.release(answers)] == [False, True, False, True]
    assert list(answers) == [low, high]
    assert len(mechanism.release([low] * 10)) == 10


def copies(session: SparseSession) -> list[object]:
    """Whatever of a session outlives an attempt to copy it."""
    made = []
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        try:
            made.append(attempt(session))
        except WrongUse:
            continue
        except TypeError:
            made.append(attempt)
    return made


def test_a_session_is_never_copied(monkeypatch):
    session = mechanism_of().open()
    assert copies(session) == []
    monkeypatch.delattr(SparseSession, "__reduce_ex__")
    assert copies(session) != []


def ask_in_child(session: SparseSession, answers) -> None:
    try:
        session.ask(1)
    except WrongUse:
        answers.put("refused")
    else:
        answers.put("answered")


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_session_is_not_used_after_a_fork():
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()
    child = fork.Process(target=ask_in_child, args=(mechanism_of().open(), answers))
    child.start()
    assert answers.get() == "refused"
    child.join()
    session = mechanism_of().open()
    session._process += 1
    with pytest.raises(WrongUse, match="after a fork"):
        session.ask(1)
    assert session.left == 2


def test_noise_is_drawn_before_the_answer():
    class Spied(Forced):
        drawn = 0

        def sample_one(self, entropy=None) -> int:
            self.drawn += 1
            return 0

    ours, each = Spied(), Spied()
    session = SparseVectorMechanism(ours, each, 0, 1).open()
    assert (ours.drawn, each.drawn) == (1, 1)
    for asked in range(1, 4):
        session.ask(-1)
        assert (ours.drawn, each.drawn) == (1, asked + 1)
    session.ask(0)
    assert (ours.drawn, each.drawn) == (1, 4)


def test_a_source_that_fails_ends_the_session_and_repeats_no_noise():
    class Failing(Forced):
        left = 2

        def sample_one(self, entropy=None) -> int:
            self.left -= 1
            if self.left < 0:
                raise OSError("no entropy")
            return 0

    session = SparseVectorMechanism(Forced(), Failing(), 0, 3).open()
    assert not session.ask(-1)
    with pytest.raises(OSError, match="no entropy"):
        session.ask(-1)
    assert session.left == 0
    with pytest.raises(BudgetExceeded):
        session.ask(-1)


def test_threads_share_the_positives():
    session, above, refused = sparse_vector(ONE, 1, 0, 50).open(), [], []

    def ask() -> None:
        for _ in range(40):
            try:
                above.append(session.ask(10**6).above)
            except BudgetExceeded:
                refused.append(True)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (above, len(refused)) == ([True] * 50, 110)


def within(mechanism: SparseVectorMechanism, answers: list[int], reach: int, entropy) -> bool:
    """Whether all verdicts, and gaps, on a stream are right up to ``reach``."""
    for answer, verdict in zip(answers, mechanism.release(answers, entropy), strict=False):
        if verdict.above and not answer >= mechanism.threshold - reach:
            return False
        if not verdict.above and not answer < mechanism.threshold + reach:
            return False
        if verdict.gap is not None and abs(verdict.gap - (answer - mechanism.threshold)) > reach:
            return False
    return True


def misses(mechanism: SparseVectorMechanism, reach: int, runs: int) -> int:
    """How many of so many runs have a verdict that is wrong by more than ``reach``.

    Hardest answers.
    """
    answers = [mechanism.threshold + (-reach - 1 if place % 2 else reach) for place in range(20)]
    return sum(not within(mechanism, answers, reach, SYSTEM) for _ in range(runs))


@pytest.mark.parametrize("gap", [False, True])
def test_verdicts_are_right_up_to_the_error_as_often_as_stated(gap):
    mechanism = sparse_vector(ONE, 1, 1000, 20, gap=gap)
    assert_at_most(misses(mechanism, mechanism.error("0.9", 20), 1500), 1500, 0.1, notices=0.3)


def test_the_runs_notice_half_the_error():
    mechanism = sparse_vector(ONE, 1, 1000, 20)
    with pytest.raises(AssertionError, match="was stated"):
        assert_at_most(
            misses(mechanism, mechanism.error("0.9", 20) // 2, 1500), 1500, 0.1, notices=0.3
        )


def beyond(one: Fraction, other: Fraction, h: int) -> arb:
    """P(X - Y > h) of two discrete Laplace laws, by adding up P(X = x) P(Y < x - h) to 300
    scales.
    """
    x, y = LaplaceTruth(one), LaplaceTruth(other)
    reach = int(300 * one) + 300
    with ctx.workprec(PRECISION):
        return sum((x.pmf(at) * y.above(h - at) for at in range(-reach, reach + 1)), arb(0))


def is_tight(one: str, other: str, h: int) -> bool:
    """Whether the stated tail of a difference is above the true one, by less than a thousandth."""
    truth = beyond(Fraction(one), Fraction(other), h)
    stated = sparse._apart(DiscreteLaplace(one), DiscreteLaplace(other), h)
    with ctx.workprec(PRECISION):
        return bool(truth <= ball(stated)) and bool(
            ball(stated) <= truth * (1 + ball(Fraction(1, 1000)))
        )


@pytest.mark.parametrize("h", [0, 1, 6, 37])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1"),
        ("1/3", "1/3"),
        ("2", "3"),
        ("3", "2"),
        ("1/100", "2"),
        ("2", "2.0000001"),
        ("1", "9"),
    ],
)
def test_the_tail_of_a_difference_is_bounded(one, other, h):
    assert is_tight(one, other, h)


def test_the_tail_notices_one_noise_left_out(monkeypatch):
    monkeypatch.setattr(sparse, "_apart", lambda one, other, h: Fraction(other.above(h).upper))
    assert not is_tight("2", "3", 6)


@pytest.mark.parametrize(("one", "other"), [(10**9, 10**9), (10**40, 10**40), (10**40, 3 * 10**40)])
def test_the_tail_of_wide_noise_is_that_of_its_limit(one, other):
    h, s, t = 10 * other, float(one), float(other)
    # two continuous Laplace laws: equal scales, and (t^2 e^(-h/t) - s^2 e^(-h/s)) / (2 (t^2 - s^2))
    ratio = s / t
    limit = (
        exp(-10) * 3
        if one == other
        else (exp(-10) - ratio**2 * exp(-10 / ratio)) / (2 * (1 - ratio**2))
    )
    assert float(sparse._apart(DiscreteLaplace(one), DiscreteLaplace(other), h)) == pytest.approx(
        limit, rel=1e-3
    )


@pytest.mark.parametrize("queries", [1, 1000, 10**15])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_the_error_is_the_smallest_of_a_union_over_the_queries(confidence, queries):
    mechanism = sparse_vector(ONE, "0.1", 0, 3)
    stated, miss = mechanism.error(confidence, queries), (1 - Fraction(confidence)) / (2 * queries)
    tails = [
        sparse._apart(mechanism.threshold_noise, mechanism.query_noise, h)
        for h in (stated, max(stated - 1, 0))
    ]
    assert tails[0] <= miss and (stated == 0 or tails[1] > miss)


def test_certain_noise_has_no_error():
    assert sparse_vector(ONE, 10**6, 0, 1).error("0.999", 10**6) == 0


def test_the_first_verdict_has_its_exact_probability():
    mechanism, law = mechanism_of(), Law(mechanism_of())
    above = float((law.threshold * law.of(4)[ABOVE]).sum())
    drawn = [int(mechanism.open().ask(4).above) for _ in range(20_000)]
    assert_follows(
        drawn,
        lambda x: float(x >= 0) * (1 - above) if x < 1 else 1.0,
        notices=lambda x: 0.5 if x == 0 else float(x > 0),
    )


def test_the_same_entropy_gives_the_same_verdicts():
    answers = [0, 3, 5, 7, 4, 5, 6] * 3
    assert mechanism_of(gap=True).release(answers, Replay(2)) == mechanism_of(gap=True).release(
        answers, Replay(2)
    )


@pytest.mark.parametrize("answer", [1.0, "1", None, True, Fraction(1), np.float64(1), np.True_])
def test_an_answer_that_is_not_an_integer_is_refused_and_costs_nothing(answer):
    session = mechanism_of().open()
    with pytest.raises(InvalidDeclaration, match=type(answer).__name__):
        session.ask(answer)
    assert session.left == 2 and session.ask(np.int64(10**6))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threshold", 1.5),
        ("threshold", True),
        ("threshold", "1"),
        ("positives", 0),
        ("positives", 1.0),
    ],
)
def test_a_threshold_or_positives_that_cannot_be_are_refused(field, value):
    with pytest.raises(InvalidNumber, match=field):
        sparse_vector(ONE, 1, **{"threshold": 0, "positives": 1, field: value})


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), None])
def test_an_epsilon_that_is_not_positive_is_refused(epsilon):
    with pytest.raises(InvalidNumber, match="epsilon"):
        sparse_vector(ONE, epsilon, 0, 1)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_a_stream_bounded_in_another_norm_is_refused(norm):
    with pytest.raises(InvalidDeclaration, match="stream"):
        sparse_vector(Distance(norm, Fraction(1)), 1, 0, 1)
    with pytest.raises(InvalidDeclaration):
        mechanism_of().event(Distance(norm, Fraction(1)))


@pytest.mark.parametrize(
    ("confidence", "queries"), [(0, 1), (1, 1), ("0.9", 0), ("0.9", 1.5), (float("nan"), 1)]
)
def test_an_error_that_cannot_be_is_refused(confidence, queries):
    with pytest.raises(InvalidNumber):
        mechanism_of().error(confidence, queries)

# SPDX-License-Identifier: Apache-2.0
"""Audits find planted bugs, never accuse a right mechanism, and say what they would have found.

Each audit here is at the default confidence: a false alarm has a probability of at most 1e-9.
"""

import importlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import Profile, account
from sfumato.audit import Audit, Verdict, audit
from sfumato.errors import InvalidDeclaration, InvalidNumber, WrongUse
from sfumato.mechanisms import (
    exponential,
    gaussian,
    laplace,
    permute_and_flip,
    report_noisy_max,
    vector,
)
from sfumato.mechanisms.response import randomized_response
from sfumato.mechanisms.sparse import sparse_vector
from sfumato.mechanisms.threshold import ThresholdMechanism, threshold_laplace
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import ApproxDP, Distance, Norm, PureDP, Relation, ZeroConcentratedDP
from sfumato.testing import Replay, assert_at_most

ATTACK = importlib.import_module("sfumato.audit.attack")
ADD = Relation.ADD_REMOVE
L1, LINF = Distance(Norm.L1, Fraction(1)), Distance(Norm.LINF, Fraction(1))
ONE, TWO = PureDP(Fraction(1)), PureDP(Fraction(2))


class Drawn:
    """A counting query with noise drawn beforehand: fast, and the same in every run of the
    tests.
    """

    def __init__(self, scale, runs, seed):
        noise = DiscreteLaplace(scale).sample(2 * runs, Replay(seed))
        self._noise = itertools.cycle(noise.tolist())

    def __call__(self, count):
        return count + next(self._noise)


def numpy_laplace(scale, seed=1):
    """Continuous Laplace noise of numpy, shown in 1024ths: what the last bits of a double tell is
    rounded away.
    """
    generator = np.random.default_rng(Replay(seed).bits(64))
    return lambda count: round((count + generator.laplace(0, scale)) * 1024) / 1024


def test_halved_noise_is_noticed():
    right = audit(Drawn(1, 10_000, 1), (0, 1), 10_000, claim=ONE)
    assert right.verdict is Verdict.UNDECIDED and 0.7 < right.epsilon <= 1 < right.notices < 2
    wrong = audit(Drawn("0.5", 10_000, 2), (0, 1), 10_000, claim=ONE)
    assert wrong.verdict is Verdict.VIOLATED and 1.6 < wrong.epsilon <= 2


def test_halved_sensitivity_is_noticed():
    # calibrated to 1, while neighbours are 2 apart
    assert audit(Drawn(1, 10_000, 3), (0, 2), 10_000, claim=ONE).verdict is Verdict.VIOLATED
    right = audit(Drawn(2, 10_000, 4), (0, 2), 10_000, claim=ONE)
    # it says beforehand that it is sure to notice the 2 that the bug makes of it
    assert right.verdict is Verdict.UNDECIDED and right.notices < 2


@pytest.mark.parametrize(("scale", "verdict"), [(1, Verdict.UNDECIDED), (0.5, Verdict.VIOLATED)])
def test_another_library_is_audited(scale, verdict):
    result = audit(numpy_laplace(scale), (0.0, 1.0), 10_000, claim=ONE)
    assert (
        result.verdict is verdict and result.epsilon <= 1 / scale and result.mechanism == "<lambda>"
    )


def lone(keys):
    return {}, {f"k{index}": 1 for index in range(keys)}


def test_a_delta_of_one_key_instead_of_all_is_noticed():
    # three keys a unit; every lone key is shown with at most delta / 3
    mechanism = ThresholdMechanism(DiscreteLaplace(1), 4, 3)
    honest = account(mechanism.event(LINF))
    claim = ApproxDP(honest.epsilon, honest.delta)
    assert Fraction(1, 100) < claim.delta / 3
    assert audit(mechanism, lone(3), 12_000, claim=claim).verdict is Verdict.UNDECIDED
    wrong = audit(mechanism, lone(3), 12_000, claim=ApproxDP(claim.epsilon / 3, claim.delta / 3))
    assert wrong.verdict is Verdict.VIOLATED and wrong.notices_delta < honest.delta


def test_a_threshold_accounted_as_strict_is_noticed():
    mechanism = ThresholdMechanism(DiscreteLaplace("0.5"), 2, 1)
    honest = account(mechanism.event(LINF))
    strict = Fraction(mechanism.noise.above(mechanism.threshold - 1).upper)
    assert strict >= Fraction(1, 100)
    claims = [ApproxDP(honest.epsilon, delta) for delta in (honest.delta, strict)]
    right, wrong = (audit(mechanism, lone(1), 12_000, claim=claim) for claim in claims)
    assert right.verdict is Verdict.UNDECIDED and wrong.verdict is Verdict.VIOLATED
    # at delta >= 1e-2 the audit said beforehand that it is sure to notice it
    assert right.notices_delta < 1 and wrong.notices_delta < honest.delta


RIGHT = {
    "laplace": (laplace(L1, 1), ((0,), (1,)), ONE),
    "gaussian": (
        gaussian(Distance(Norm.L2, Fraction(1)), "0.5"),
        ((0,), (1,)),
        ZeroConcentratedDP(Fraction(1, 2)),
    ),
    "vector": (vector(L1, 3, epsilon=1), ((0, 0, 0), (0, 1, 0)), ONE),
    "exponential": (exponential(LINF, 1), ((0, 0, 0), (1, -1, -1)), ONE),
    "permute and flip": (permute_and_flip(LINF, 1), ((0, 0, 0), (1, -1, -1)), ONE),
    "noisy max": (report_noisy_max(LINF, 2, gap=True), ((0, 0, 0), (1, -1, -1)), TWO),
    "sparse vector": (sparse_vector(LINF, 2, threshold=5, positives=1), ((5, 5), (6, 4)), TWO),
    "response": (randomized_response(1), (0, 1), ONE),
    "threshold": (
        threshold_laplace(2, 1, "0.02", ADD),
        ({"a": 9, "b": 1}, {"a": 9}),
        ApproxDP(Fraction(1), Fraction(1, 50)),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_mechanisms_are_not_accused(name):
    mechanism, neighbours, claim = RIGHT[name]
    delta = "1e-3" if isinstance(claim, ZeroConcentratedDP) else None
    result = audit(mechanism, neighbours, 2000, claim=claim, delta=delta)
    assert result.verdict is Verdict.UNDECIDED and result.notices > (result.claim or 0)


WRONG = {
    "vector": (vector(L1, 3, epsilon=3), ((0, 0, 0), (0, 1, 0))),
    "exponential": (exponential(LINF, 3), ((0, 0, 0), (1, -1, -1))),
    "noisy max": (report_noisy_max(LINF, 4, gap=True), ((0, 0, 0), (1, -1, -1))),
    "response": (randomized_response(3), (0, 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_any_kind_of_output_is_audited(name):
    mechanism, neighbours = WRONG[name]
    assert audit(mechanism, neighbours, 4000, claim=ONE).verdict is Verdict.VIOLATED


# --- the stated error and the stated power


def many(repeats, runs, scale, *, confidence="0.8"):
    """Small audits at a low confidence, with new noise each."""
    noise = Drawn(scale, 60_000, 9)
    return [audit(noise, (0, 1), runs, claim=ONE, confidence=confidence) for _ in range(repeats)]


def test_an_audit_is_wrong_as_rarely_as_stated():
    # the stated doubt is 0.2; one of 0.7 would be noticed
    wrong = sum(each.epsilon > 1 for each in many(200, 60, 1))
    assert_at_most(wrong, 200, 0.2, notices=0.7)


@pytest.mark.long
def test_the_tested_sets_are_chosen_on_other_runs(monkeypatch):
    """A mutant that tests where it chose is wrong too often."""

    def on_the_same(sampler, runs, regions):
        return [
            [sum(each in region for each in sample) for sample in kept[id(sampler)]]
            for region in regions
        ]

    def keep(sampler, runs):
        kept[id(sampler)] = honest(sampler, runs)
        return kept[id(sampler)]

    kept, honest = {}, ATTACK._Sampler.choose
    monkeypatch.setattr(ATTACK._Sampler, "choose", keep)
    monkeypatch.setattr(ATTACK._Sampler, "test", on_the_same)
    # dice, all alike under both inputs
    dice = itertools.cycle((DiscreteLaplace(20).sample((80_000,), Replay(5)) % 10).tolist())
    mutant = [
        audit(lambda _: tuple(next(dice) for _ in range(4)), (0, 1), 80, confidence="0.7").epsilon
        > 0
        for _ in range(120)
    ]
    with pytest.raises(AssertionError, match="failed"):
        assert_at_most(sum(mutant), 120, 0.3, notices=0.9)


def test_an_audit_states_what_it_would_have_noticed():
    first = audit(Drawn(1, 8000, 6), (0, 1), 8000, claim=ONE)
    assert 1 < first.notices < 3
    # a mechanism of that epsilon is noticed indeed
    again = audit(Drawn(1 / Fraction(first.notices), 8000, 7), (0, 1), 8000, claim=ONE)
    assert again.verdict is Verdict.VIOLATED
    # more runs notice less; two runs notice nothing, and say so
    assert audit(Drawn(1, 20_000, 6), (0, 1), 20_000, claim=ONE).notices < first.notices
    least = audit(Drawn(1, 2, 6), (0, 1), 2, claim=ONE)
    assert least.notices == math.inf and least.notices_delta == 1 and least.epsilon == 0


def test_the_bound_falls_with_delta_and_with_confidence():
    bounds = [
        audit(Drawn(1, 4000, 8), (0, 1), 4000, delta=delta).epsilon for delta in (0, "0.05", "0.3")
    ]
    assert bounds[0] > bounds[1] > bounds[2]
    doubtful = audit(Drawn(1, 4000, 8), (0, 1), 4000, confidence="0.9")
    assert doubtful.epsilon > bounds[0] and doubtful.claim is None


# --- claims, progress, words


def test_claims_of_every_kind():
    release = Drawn(1, 1000, 1)
    assert audit(
        release, (0, 1), 100, claim=ApproxDP(Fraction(1), Fraction(1, 10))
    ).delta == Fraction(1, 10)
    assert audit(release, (0, 1), 100, claim=Profile.pure(Fraction(3))).claim == 3
    rho = audit(
        release, (0, 1), 100, claim=Profile(None, Fraction(1, 2), Fraction(1, 100)), delta="0.02"
    )
    assert rho.delta == Fraction(1, 50) and 2 < rho.claim < 4
    assert audit(release, (0, 1), 100, claim=ONE, delta="0.1").delta == Fraction(1, 10)


@pytest.mark.parametrize(
    ("claim", "delta", "text"),
    [
        (0.5, None, "claim of type float"),
        (ZeroConcentratedDP(Fraction(1)), None, "without a delta"),
        (Profile(None, Fraction(1), Fraction(1, 10)), "0.1", "without a delta"),
        (ApproxDP(Fraction(1), Fraction(1, 10)), "0.01", "for a claim of delta"),
    ],
)
def test_claims_that_cannot_be_looked_at_are_refused(claim, delta, text):
    with pytest.raises(InvalidDeclaration, match=text):
        audit(Drawn(1, 10, 1), (0, 1), 10, claim=claim, delta=delta)


def test_progress_is_reported_about_a_hundred_times():
    seen = []
    audit(Drawn(1, 1000, 1), (0, 1), 1000, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 100 and seen[-1] == (1000, 1000) and seen == sorted(seen)
    seen.clear()
    audit(Drawn(1, 7, 1), (0, 1), 7, progress=lambda done, total: seen.append(done))
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def test_an_audit_is_a_sentence_and_a_table():
    result = audit(Drawn("0.5", 4000, 2), (0, 1), 4000, claim=ONE)
    sentence, empty, *rows, last = str(result).split("\n")
    assert (
        sentence.startswith("Drawn: VIOLATED: epsilon >= 1.")
        and "at most 1e-09" in sentence
        and empty == ""
    )
    assert "would have noticed epsilon = " in sentence
    assert len(rows) == 4 and last == f"{result.considered} sets were considered on other runs."
    assert isinstance(result, Audit) and len(result.trials) == 2
    assert "claimed" not in audit(Drawn(1, 10, 1), (0, 1), 10).sentence


# --- ugly input


@pytest.mark.parametrize("runs", [0, 1, -5, True, 2.5, "100", 2**41])
def test_runs_that_are_none_are_refused(runs):
    with pytest.raises(InvalidNumber, match="runs"):
        audit(Drawn(1, 10, 1), (0, 1), runs)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "x", float("nan")])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InvalidNumber):
        audit(Drawn(1, 10, 1), (0, 1), 10, confidence=confidence)


@pytest.mark.parametrize("delta", [-1, 1, float("inf")])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(InvalidNumber, match="delta"):
        audit(Drawn(1, 10, 1), (0, 1), 10, delta=delta)


def test_what_cannot_be_run_is_refused():
    with pytest.raises(InvalidDeclaration, match="mechanism of type int"):
        audit(3, (0, 1), 10)
    for pair in ((0,), 5, (0, 1, 2)):
        with pytest.raises(InvalidDeclaration, match="not a pair"):
            audit(Drawn(1, 10, 1), pair, 10)


def test_outputs_that_cannot_be_counted_are_refused():
    with pytest.raises(InvalidDeclaration, match="object, which cannot be counted"):
        audit(lambda _: object(), (0, 1), 10)


def test_outputs_of_changing_types_are_counted():
    kinds = itertools.cycle([1, "1", 1.0, None, [1], {"a": [1]}, np.float32(1), (1, "a"), math.nan])
    assert audit(lambda _: next(kinds), (0, 1), 360).epsilon == 0


def test_an_error_is_an_answer():
    def fails_for_one(value):
        if value:
            raise ValueError("the secret is 1")
        return "fine"

    result = audit(fails_for_one, (0, 1), 200, claim=ONE)
    assert result.verdict is Verdict.VIOLATED and "secret" not in str(result)


def test_nothing_but_errors_is_refused():
    def fails(value):
        raise ZeroDivisionError(f"the secret is {value}")

    with pytest.raises(WrongUse, match="raised in every run: ZeroDivisionError") as error:
        audit(fails, (0, 1), 10)
    assert "secret" not in str(error.value)


def test_an_interrupt_stops_an_audit():
    def stops(value):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(stops, (0, 1), 10)

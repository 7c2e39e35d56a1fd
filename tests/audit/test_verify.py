# SPDX-License-Identifier: Apache-2.0
"""Right mechanisms hold; every planted bug is proved to violate its claim."""

import importlib
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import Profile, account
from sfumato.audit import Measure, Neighbours, Verdict, Verification, verify
from sfumato.errors import InvalidDeclaration, InvalidNumber, WrongUse
from sfumato.exact.bracket import Bracket
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up
from sfumato.mechanisms import (
    AdditiveMechanism,
    NoisyMaxMechanism,
    SelectionMechanism,
    VectorMechanism,
    calibrated_gaussian,
    exponential,
    gaussian,
    laplace,
    peeled_top_k,
    permute_and_flip,
    report_noisy_max,
    staircase,
    vector,
)
from sfumato.mechanisms.response import ResponseMechanism, randomized_response
from sfumato.mechanisms.sparse import SparseVectorMechanism, sparse_vector
from sfumato.mechanisms.threshold import (
    ThresholdMechanism,
    threshold_gaussian,
    threshold_geometric,
    threshold_laplace,
)
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, Truncated
from sfumato.privacy import (
    AdditiveNoise,
    ApproxDP,
    Distance,
    Norm,
    PureDP,
    Relation,
    Selection,
    Thresholded,
    ZeroConcentratedDP,
)
from tests.contracts.effort import examples

ACCOUNT = importlib.import_module("sfumato.accounting.account")
VERIFY = importlib.import_module("sfumato.audit.verify")
ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
L1, L2, L1_2, L2_2 = (Distance(norm, Fraction(v)) for v in (1, 2) for norm in (Norm.L1, Norm.L2))
LINF, LINF_2 = Distance(Norm.LINF, Fraction(1)), Distance(Norm.LINF, Fraction(2))
REPLACED_KEY = Distance(Norm.LINF, Fraction(1), REPLACE)
REPLACED = Distance(Norm.L1, Fraction(2), REPLACE)
PURE = PureDP(Fraction(2))


@dataclass(frozen=True)
class Cut:
    """Truncated Laplace noise on one integer: delta pays for the ends."""

    noise: Truncated

    def event(self, distance):
        return AdditiveNoise(self.noise, distance)

    def draw(self, cells, entropy):
        return self.noise.sample(cells, entropy).tolist()

    def release(self, exact, drawn):
        return [value + extra for value, extra in zip(exact, drawn, strict=True)]


RIGHT = {
    "laplace": (laplace(L1, 2), L1),
    "laplace of two steps": (laplace(L1_2, 3), L1_2),
    "gaussian": (gaussian(L2, "0.5"), L2),
    "gaussian of two cells": (gaussian(L2_2, "0.5"), L2_2),
    "staircase": (staircase(LINF_2, 2), LINF_2),
    "vector": (vector(L1_2, 2, epsilon=3), L1_2),
    "truncated": (Cut(Truncated(DiscreteLaplace(1), -4, 6)), L1),
    "threshold laplace": (threshold_laplace(2, 4, "0.01", ADD), LINF),
    "threshold gaussian": (threshold_gaussian(2, 1, "1e-4", ADD), LINF),
    "threshold geometric": (threshold_geometric(2, 3, "1e-4", ADD), LINF),
    "threshold of a replaced unit": (threshold_laplace(1, 4, "1e-4", REPLACE), REPLACED_KEY),
    "exponential": (exponential(LINF, 1), LINF),
    "exponential of monotone scores": (exponential(LINF_2, 1, monotone=True), LINF_2),
    "permute and flip": (permute_and_flip(LINF, 1), LINF),
    "noisy max": (report_noisy_max(LINF, 4), LINF),
    "noisy max with gap": (report_noisy_max(LINF, 3, gap=True, monotone=True), LINF),
    "response": (randomized_response("1.5", 3), REPLACED),
    "sparse vector": (sparse_vector(LINF, 8, threshold=10, positives=1), LINF),
    "monotone sparse vector with gap": (
        sparse_vector(LINF, 6, threshold=10, positives=1, monotone=True, gap=True),
        LINF,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_holds_is_proved_on_the_pairs_compared(name):
    mechanism, distance = RIGHT[name]
    result = verify(mechanism, distance, tolerance="1e-7")
    assert result.verdict is Verdict.HOLDS, str(result)
    assert result.sentence.split(": ")[1].startswith("HOLDS on")
    assert all(each.truth.lower <= each.truth.upper for each in result.findings)
    # and what is lost is not far below the claim: the pairs are near the worst
    if result.claim.epsilon is not None:
        assert result.epsilon.lower >= result.claim.epsilon * Fraction(45, 100)


@given(
    st.fractions(1, 5, max_denominator=8),
    st.fractions(1, 3, max_denominator=5),
    st.booleans(),
)
@settings(deadline=None, max_examples=examples(0.4))
def test_a_right_mechanism_is_never_called_violated(epsilon, sensitivity, monotone):
    scores, sums = Distance(Norm.LINF, sensitivity), Distance(Norm.L1, sensitivity)
    for mechanism, distance in (
        (laplace(sums, epsilon), sums),
        (gaussian(Distance(Norm.L2, sensitivity), epsilon), Distance(Norm.L2, sensitivity)),
        (exponential(scores, epsilon, monotone=monotone), scores),
        (permute_and_flip(scores, epsilon, monotone=monotone), scores),
        (randomized_response(epsilon, 4), REPLACED),
        (threshold_laplace(1, epsilon, "1e-3", ADD), LINF),
    ):
        assert (
            verify(mechanism, distance, tolerance="1e-5", paths=3000).verdict
            is not Verdict.VIOLATED
        )


@pytest.mark.parametrize("monotone", [False, True])
def test_a_long_stream_loses_nearly_what_is_claimed(monotone):
    mechanism = sparse_vector(LINF, 1, threshold=10, positives=1, monotone=monotone)
    result = verify(mechanism, LINF, paths=10)
    assert 0.98 < result.epsilon.lower <= 1
    halved = halved_noise(LINF, sparse_vector, 1, 10, 1, monotone=monotone)
    assert verify(halved, LINF, claim=PureDP(Fraction(1)), paths=10).verdict is Verdict.VIOLATED


# --- planted bugs


def halved_noise(distance, make, *more, **options):
    """A maker that divides the noise by two; the claim is what was asked for."""
    mechanism = make(distance, *more, **options)
    match mechanism:
        case AdditiveMechanism(DiscreteGaussian(sigma_squared=s)):
            return replace(mechanism, noise=DiscreteGaussian(sigma_squared=s / 4))
        case AdditiveMechanism(DiscreteStaircase() as noise):
            return replace(mechanism, noise=DiscreteStaircase(2 * noise.epsilon, noise.sensitivity))
        case AdditiveMechanism(DiscreteLaplace(scale=s)) | NoisyMaxMechanism(
            DiscreteLaplace(scale=s)
        ):
            return replace(mechanism, noise=DiscreteLaplace(s / 2))
        case SparseVectorMechanism(ours, others):
            halves = {
                "threshold_noise": DiscreteLaplace(ours.scale / 2),
                "query_noise": DiscreteLaplace(others.scale / 2),
            }
            return replace(mechanism, **halves)
        case SelectionMechanism(rate=rate):
            return replace(mechanism, rate=2 * rate)
        case VectorMechanism(additive, cells):
            return VectorMechanism(
                AdditiveMechanism(DiscreteLaplace(additive.noise.scale / 2)), cells
            )
    raise AssertionError


HALVED = {
    "laplace": (L1, laplace, (2,), {}, PURE),
    "gaussian": (L2, gaussian, ("0.5",), {}, ZeroConcentratedDP(Fraction(1, 2))),
    "calibrated gaussian": (
        L2,
        calibrated_gaussian,
        (1, "1e-3", 1),
        {},
        ApproxDP(Fraction(1), Fraction(1, 1000)),
    ),
    "staircase": (LINF_2, staircase, (2,), {}, PURE),
    "vector": (L1, vector, (2,), {"epsilon": 2}, PURE),
    "exponential": (LINF, exponential, (2,), {}, PURE),
    "permute and flip": (LINF, permute_and_flip, (2,), {}, PURE),
    "noisy max": (LINF, report_noisy_max, (2,), {}, PURE),
    "noisy max with gap": (LINF, report_noisy_max, (2,), {"gap": True}, PURE),
    "sparse vector": (LINF, sparse_vector, (3, 10, 1), {}, PureDP(Fraction(3))),
}


EFFORT = {"tolerance": "1e-4", "paths": 6000}


@pytest.mark.parametrize("name", HALVED)
def test_halved_noise_is_violated(name):
    distance, make, more, options, claim = HALVED[name]
    right = make(distance, *more, **options)
    assert verify(right, distance, claim=claim, **EFFORT).verdict is not Verdict.VIOLATED
    bug = halved_noise(distance, make, *more, **options)
    assert verify(bug, distance, claim=claim, **EFFORT).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("name", HALVED)
def test_halved_sensitivity_is_violated(name):
    halved, make, more, options, claim = HALVED[name]
    true = replace(halved, value=halved.value * (4 if halved.norm is Norm.L2 else 2))
    assert (
        verify(make(halved, *more, **options), true, claim=claim, **EFFORT).verdict
        is Verdict.VIOLATED
    )


class HalvedInRelease(AdditiveMechanism):
    """Its event is honest about the noise that it does not add whole."""

    def release(self, exact, drawn=None):
        return tuple(value + int(extra / 2) for value, extra in zip(exact, drawn, strict=True))


class HalvedInEvent(AdditiveMechanism):
    """Accounts for half the sensitivity."""

    def event(self, distance):
        return AdditiveNoise(self.noise, replace(distance, value=distance.value / 2), self.cells)


class Reused(AdditiveMechanism):
    """One draw for all cells."""

    def draw(self, cells, entropy=None):
        return tuple(self.noise.sample(1, entropy).tolist()) * cells


@pytest.mark.parametrize("bug", [HalvedInRelease, HalvedInEvent, Reused])
def test_wrong_code_under_an_honest_claim_is_violated(bug):
    result = verify(bug(DiscreteLaplace(1)), L1)
    assert result.verdict is Verdict.VIOLATED and result.sentence.split(": ")[1] == "VIOLATED"
    assert verify(AdditiveMechanism(DiscreteLaplace(1)), L1).verdict is Verdict.HOLDS


def test_noise_reused_across_cells_loses_without_bound():
    result = verify(Reused(DiscreteLaplace(1)), L1)
    assert result.epsilon.lower > 15 and result.worst.truth.lower > 0.99
    assert str(result.worst.neighbours) == "(0, 0) | (1, 0)"


@dataclass(frozen=True)
class TwiceZero:
    """What a sampler of sign and magnitude draws that does not reject the negative zero."""

    scale: Fraction

    def pmf(self, x):
        low, high = exp_down(-1 / self.scale), exp_up(-1 / self.scale)
        weights = [2 if x == 0 else g ** abs(x) for g in (low, high)]
        totals = [(1 + g) / (1 - g) + 1 for g in (low, high)]
        return Bracket(
            float_down(Fraction(weights[0]) / totals[1]), float_up(Fraction(weights[1]) / totals[0])
        )

    def sample(self, shape, entropy):
        raise AssertionError


@dataclass(frozen=True)
class Adds:
    """A mechanism from outside the house, by the words of ``privacy.mechanism``."""

    noise: object
    claimed: DiscreteLaplace

    def event(self, distance):
        return AdditiveNoise(self.claimed, distance)

    def draw(self, cells, entropy):
        return self.noise.sample(cells, entropy).tolist()

    def release(self, exact, drawn):
        return [value + extra for value, extra in zip(exact, drawn, strict=True)]


def test_zero_counted_twice_is_violated():
    law = DiscreteLaplace(2)
    assert verify(Adds(law, law), L1, tolerance="1e-6").verdict is Verdict.HOLDS
    result = verify(Adds(TwiceZero(Fraction(2)), law), L1, tolerance="1e-6")
    assert result.verdict is Verdict.VIOLATED
    # ln 2 more than the claim, exactly
    assert abs(result.epsilon.lower - 1.1931) < 1e-3


class Strict(ThresholdMechanism):
    """Accounts for "more than", and shows what is at least the threshold."""

    def event(self, distance):
        honest = ThresholdMechanism.event(self, distance)
        return Thresholded(honest.additive, honest.threshold + 1, honest.keys)


THRESHOLDS: dict[str, tuple[ThresholdMechanism, Distance]] = {
    name: RIGHT[name] for name in RIGHT if name.startswith("threshold")
}


@pytest.mark.parametrize("name", ["threshold laplace", "threshold gaussian"])
def test_a_threshold_accounted_as_strict_is_violated(name):
    mechanism, distance = THRESHOLDS[name]
    bug = Strict(mechanism.noise, mechanism.threshold, mechanism.keys)
    assert verify(mechanism, distance).verdict is Verdict.HOLDS
    assert verify(bug, distance).verdict is Verdict.VIOLATED


def test_where_something_else_pays_for_it_a_strict_threshold_is_no_violation():
    # truncated noise pays for its ends what a lone key costs
    mechanism, distance = THRESHOLDS["threshold geometric"]
    bug = Strict(mechanism.noise, mechanism.threshold, mechanism.keys)
    assert account(bug.event(distance)).delta == account(mechanism.event(distance)).delta
    assert verify(bug, distance).verdict is Verdict.HOLDS


@pytest.mark.parametrize("name", ["threshold laplace", "threshold gaussian", "threshold geometric"])
def test_the_delta_of_one_key_instead_of_all_is_violated(name):
    mechanism, distance = THRESHOLDS[name]
    honest = account(mechanism.event(distance))
    assert verify(mechanism, distance, claim=honest).verdict is Verdict.HOLDS
    assert (
        verify(mechanism, distance, claim=replace(honest, delta=honest.delta / 2)).verdict
        is Verdict.VIOLATED
    )


def test_an_accountant_that_is_wrong_is_noticed(monkeypatch):
    mechanism, distance = THRESHOLDS["threshold laplace"]
    assert verify(mechanism, distance).verdict is Verdict.HOLDS

    def strict(event):
        return _with_delta(
            event, event.keys * Fraction(event.additive.noise.above(event.threshold - 1).upper)
        )

    def one_key(event):
        return _with_delta(event, Fraction(event.additive.noise.above(event.threshold - 2).upper))

    for bug in (strict, one_key):
        monkeypatch.setitem(ACCOUNT._EVENTS, Thresholded, bug)
        assert verify(mechanism, distance).verdict is Verdict.VIOLATED


def _with_delta(event, delta):
    return Profile.pure(event.additive.cells / event.additive.noise.scale, delta)


def test_permute_and_flip_charged_an_eighth_is_violated(monkeypatch):
    mechanism = permute_and_flip(LINF, 1)
    assert verify(mechanism, LINF).verdict is Verdict.HOLDS
    monkeypatch.setitem(
        ACCOUNT._EVENTS, Selection, lambda event: Profile(2 * event.rate, (2 * event.rate) ** 2 / 8)
    )
    result = verify(mechanism, LINF)
    assert result.verdict is Verdict.VIOLATED and result.worst.measure is Measure.RHO
    # for the exponential mechanism the same eighth holds
    assert verify(exponential(LINF, 1), LINF).verdict is Verdict.HOLDS


# --- claims, results, ugly input


def test_a_violation_that_is_reported_is_there():
    mechanism = laplace(L1, 1)
    for percent in range(80, 121, 4):
        claim = PureDP(Fraction(percent, 100))
        verdict = verify(mechanism, L1, claim=claim, tolerance="1e-6").verdict
        assert verdict is (Verdict.VIOLATED if percent < 100 else Verdict.HOLDS)


def test_the_gaussian_curve_is_verified_at_any_delta():
    mechanism = calibrated_gaussian(L2, 1, "1e-5", cells=1)
    assert (
        verify(mechanism, L2, claim=ApproxDP(Fraction(1), Fraction(1, 10**5))).verdict
        is Verdict.HOLDS
    )
    below = ApproxDP(Fraction(1), Fraction(98, 10**7))
    assert verify(mechanism, L2, claim=below).verdict is Verdict.VIOLATED


def test_bounds_of_rho_are_in_order_where_the_tolerance_hides_more_than_their_width():
    for tolerance in ("1e-9", "1e-6", "1e-3"):
        result = verify(gaussian(L2, "0.5"), L2, tolerance=tolerance)
        assert result.verdict is Verdict.HOLDS
        assert all(each.truth.lower <= each.truth.upper <= 0.5 for each in result.findings)


def test_too_few_paths_decide_nothing():
    result = verify(laplace(L1, 1), L1, paths=5)
    assert result.verdict is Verdict.UNDECIDED and result.unreached > 0.1
    assert "was not gone through" in result.sentence
    # but may be enough to refute
    assert (
        verify(laplace(L1, 1), L1, claim=PureDP(Fraction(1, 100)), paths=20).verdict
        is Verdict.VIOLATED
    )


ORDINARY = {
    "laplace of epsilon 0.01": (laplace(L1, "0.01"), L1),
    "noisy max with gap of epsilon 1": (report_noisy_max(LINF, 1, gap=True), LINF),
    "sparse vector of epsilon 1": (sparse_vector(LINF, 1, threshold=5, positives=1), LINF),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_settings_are_decided(name):
    mechanism, distance = ORDINARY[name]
    result = verify(mechanism, distance)
    assert result.verdict is Verdict.HOLDS, str(result)
    whole = {str(each.neighbours) for each in result.findings if each.whole}
    partly = {str(each.neighbours) for each in result.findings} - whole
    assert f"HOLDS on {len(whole)} pairs" in result.sentence
    assert (f"Not compared whole: {len(partly)} pairs" in result.sentence) is bool(partly)


@pytest.mark.parametrize(
    "name",
    [
        "laplace of epsilon 0.01",
        pytest.param("noisy max with gap of epsilon 1", marks=pytest.mark.long),
        "sparse vector of epsilon 1",
    ],
)
def test_the_same_settings_with_halved_noise_are_violated(name, monkeypatch):
    mechanism, distance = ORDINARY[name]
    claim = account(mechanism.event(distance))
    noise = "query_noise" if isinstance(mechanism, SparseVectorMechanism) else "noise"
    halved = replace(mechanism, **{noise: DiscreteLaplace(getattr(mechanism, noise).scale / 2)})
    assert verify(halved, distance, claim=claim).verdict is Verdict.VIOLATED


def test_what_cannot_be_gone_through_is_said_and_never_held(monkeypatch):
    gap = sparse_vector(LINF, 1, threshold=5, positives=1, gap=True)
    seen = []
    law_of = VERIFY.law_of
    monkeypatch.setattr(VERIFY, "law_of", lambda *each: seen.append(each[3].paths) or law_of(*each))
    result = verify(gap, LINF)
    assert result.verdict is Verdict.UNDECIDED and result.needed > 10**6
    assert "more than paths allows" in result.sentence
    # said beforehand: hardly anything was gone through
    assert sum(seen) < 10 * VERIFY._GLANCE
    # a broken version, which counts a glance as whole, would call the largest noise right for
    # nothing
    assert {each.verdict for each in result.findings if not each.whole} != {Verdict.HOLDS}


def test_named_neighbours_are_compared():
    mechanism = laplace(L1, 1)
    same = verify(mechanism, L1, neighbours=[((3,), (3,))])
    assert same.verdict is Verdict.HOLDS and same.epsilon.upper == 0
    assert same.findings[0].neighbours == Neighbours((3,), (3,))
    assert verify(mechanism, L1, neighbours=[((3,), (5,))]).verdict is Verdict.VIOLATED
    counts = verify(threshold_laplace(1, 3, "0.01", ADD), LINF, neighbours=[({"a": 1}, {})])
    assert counts.verdict is Verdict.HOLDS


def test_a_verification_is_a_sentence_and_a_table():
    text = str(verify(permute_and_flip(LINF, 1), LINF, claim=Profile(Fraction(1), Fraction(1, 8))))
    sentence, empty, heading, rule, *rows = text.split("\n")
    assert sentence.startswith(
        "SelectionMechanism: VIOLATED: the rho of zCDP is proved to be above 0.125."
    )
    assert heading.split()[0] == "measure" and set(rule) == {"-", " "} and empty == ""
    assert sorted(row.split()[0] for row in rows) == ["delta", "rho"]


@pytest.mark.parametrize("tolerance", [0, -1, "0.6", float("nan")])
def test_a_tolerance_that_is_none_is_refused(tolerance):
    with pytest.raises(InvalidNumber):
        verify(laplace(L1, 1), L1, tolerance=tolerance)


@pytest.mark.parametrize("paths", [0, -1, True, 1.5, 10**9])
def test_paths_that_are_none_are_refused(paths):
    with pytest.raises(InvalidNumber, match="paths"):
        verify(laplace(L1, 1), L1, paths=paths)


def test_what_cannot_be_verified_is_refused():
    with pytest.raises(InvalidDeclaration, match="claim of type float"):
        verify(laplace(L1, 1), L1, claim=0.5)
    with pytest.raises(InvalidDeclaration, match="No neighbours"):
        verify(laplace(L1, 1), L1, neighbours=[])
    with pytest.raises(InvalidDeclaration, match="No worst neighbours"):
        verify(peeled_top_k(LINF, 2, 1), LINF)


def test_a_mechanism_that_draws_elsewhere_is_refused():
    class Elsewhere(AdditiveMechanism):
        def draw(self, cells, entropy=None):
            return tuple(DiscreteLaplace(self.noise.scale / 2).sample(cells, entropy).tolist())

    with pytest.raises(WrongUse, match="beside the noise laws"):
        verify(Elsewhere(DiscreteLaplace(1)), L1)


def test_an_error_of_the_mechanism_is_its_own():
    class Raises(AdditiveMechanism):
        def release(self, exact, drawn=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        verify(Raises(DiscreteLaplace(1)), L1)


def test_a_response_that_lies_too_rarely_is_violated():
    assert (
        verify(ResponseMechanism(Fraction(2), 3), REPLACED, claim=PureDP(Fraction(1))).verdict
        is Verdict.VIOLATED
    )
    assert isinstance(verify(ResponseMechanism(Fraction(2), 3), REPLACED, claim=PURE), Verification)

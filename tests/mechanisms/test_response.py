# SPDX-License-Identifier: Apache-2.0
"""Randomised response: exact reports, honest estimates, and packed bits that leave nothing out."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import response
from sfumato.mechanisms.response import ResponseMechanism, randomized_response
from sfumato.noise import SYSTEM
from sfumato.noise.coin import BernoulliLogistic
from sfumato.privacy import Distance, Norm
from sfumato.privacy.event import RandomizedResponse, Repeated
from sfumato.privacy.unit import Relation
from sfumato.testing import Replay, assert_at_most, assert_follows
from tests.noise.truth import PRECISION, ball, every_path

CASES = [("1/10", 2), ("1", 2), ("1", 5), ("4", 3)]
EVERY = pytest.mark.parametrize(("epsilon", "categories"), CASES)


def replaced(rows: int) -> Distance:
    return Distance(Norm.L1, Fraction(2 * rows), Relation.REPLACE_ONE)


def law_of_report(mechanism: ResponseMechanism, value: int) -> list[arb]:
    """The exact mass of each report of a value, all paths of the code followed.

    Its coin is given.
    """

    def coin(lie: BernoulliLogistic, script) -> bool:
        with ctx.workprec(PRECISION):
            odds = ball(lie.odds) * (-ball(lie.gamma)).exp()
            return script.coin(odds / (1 + odds))

    def below(bound: int, script) -> int:
        return script.choose([(each, Fraction(1, bound)) for each in range(bound)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BernoulliLogistic, "sample_one", coin)
        patch.setattr(response, "below", below)
        law, _ = every_path(lambda script: mechanism.release(value, script), 1e-30)
    return [ball(law.get(report, Fraction(0))) for report in range(mechanism.categories)]


def near(one: arb, other: arb) -> bool:
    return bool(abs(one - other) < 1e-60)


@EVERY
def test_a_report_has_exactly_the_stated_probabilities(epsilon, categories):
    mechanism = randomized_response(epsilon, categories)
    with ctx.workprec(PRECISION):
        growth = ball(Fraction(epsilon)).exp()
        for value in range(categories):
            law = law_of_report(mechanism, value)
            assert near(law[value], growth / (growth + categories - 1))
            others = [law[other] for other in range(categories) if other != value]
            assert all(near(mass, 1 / (growth + categories - 1)) for mass in others)


def is_private(mechanism: ResponseMechanism) -> bool:
    """Whether no report is likelier by more than e^epsilon from one value than from another."""
    laws = [law_of_report(mechanism, value) for value in range(mechanism.categories)]
    with ctx.workprec(PRECISION):
        limit = ball(mechanism.epsilon).exp() * (1 + ball(Fraction(1, 10**50)))
        return all(
            bool(one[j] <= limit * other[j])
            for one in laws
            for other in laws
            for j in range(len(one))
        )


@EVERY
def test_reports_of_neighbours_are_within_e_to_the_epsilon(epsilon, categories):
    assert is_private(randomized_response(epsilon, categories))


def test_the_ratio_notices_a_coin_made_for_two_categories(monkeypatch):
    monkeypatch.setattr(
        ResponseMechanism, "_lie", property(lambda mechanism: BernoulliLogistic(mechanism.epsilon))
    )
    assert is_private(randomized_response(1, 2))
    assert not is_private(randomized_response(1, 5))


def test_the_ratio_notices_lies_that_favour_a_neighbour(monkeypatch):
    monkeypatch.setattr(
        ResponseMechanism,
        "release",
        lambda mechanism, value, entropy: (
            (value + mechanism._lie.sample_one(entropy)) % mechanism.categories
        ),
    )
    assert not is_private(randomized_response(1, 5))


@pytest.mark.parametrize(("epsilon", "categories"), [*CASES, ("1.5", 40)])
def test_many_reports_follow_the_same_law(epsilon, categories):
    value = categories // 2
    reports = randomized_response(epsilon, categories).release_many(np.full((50, 2000), value))
    assert (reports.shape, reports.dtype) == ((50, 2000), np.int64)
    growth = float(np.exp(float(Fraction(epsilon))))

    def cdf(x: int, growth: float = growth) -> float:
        lies = min(max(x + 1, 0), categories) - (x >= value)
        return (lies + growth * (x >= value)) / (growth + categories - 1)

    assert_follows(reports.ravel().tolist(), cdf, notices=lambda x: cdf(x, growth / 3))


@pytest.mark.parametrize("count", [1, 64, 200])
def test_packed_reports_are_the_values_with_the_lies_turned(count):
    mechanism, values = (
        randomized_response("0.5"),
        np.arange(-(-count // 64), dtype=np.uint64) + np.uint64(77),
    )
    lies = BernoulliLogistic("0.5").bits(count, Replay(8))
    reports = mechanism.release_bits(values, count, Replay(8))
    mask = (1 << count) - 1
    assert whole(reports) == (whole(values) ^ whole(lies)) & mask


def whole(words: np.ndarray) -> int:
    return sum(int(word) << 64 * place for place, word in enumerate(words))


def test_packed_lies_are_as_frequent_as_stated():
    values = np.full(10**6 // 64, ~np.uint64(0))
    true = int(np.bitwise_count(randomized_response(1).release_bits(values, 10**6, SYSTEM)).sum())
    share = np.e / (1 + np.e)
    assert_at_most(true, 10**6, share, notices=share + 0.01)
    assert_at_most(10**6 - true, 10**6, 1 - share, notices=1 - share + 0.01)


def leaves_nothing_out(count: int) -> bool:
    """Whether a packed report of all-ones values, at an epsilon without lies, ends where its count
    ends.
    """
    values = np.full(-(-count // 64), ~np.uint64(0))
    return whole(randomized_response(100).release_bits(values, count)) == (1 << count) - 1


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_no_bit_beyond_the_count_is_reported(count):
    assert leaves_nothing_out(count)


def test_the_check_notices_values_beyond_the_count_that_leave_in_the_clear(monkeypatch):
    monkeypatch.setattr(
        ResponseMechanism,
        "release_bits",
        lambda mechanism, values, count: values ^ mechanism._lie.bits(count),
    )
    assert leaves_nothing_out(64)
    assert not leaves_nothing_out(65)


@given(st.integers(), st.sampled_from([2, 3, 1000, 2**31]))
@settings(deadline=None)
def test_every_value_has_a_report(value, categories):
    # at this epsilon a lie has probability below 2^31 e^-1000
    assert randomized_response(1000, categories).release(value) == min(
        max(value, 0), categories - 1
    )


@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "int32", "int64", "uint64"])
def test_every_value_of_an_array_has_a_report(kind):
    info = None if kind == "bool" else np.iinfo(kind)
    values = np.array([0, 1] if info is None else [info.min, 0, 1, 2, info.max], kind)
    expected = [min(max(int(value), 0), 299) for value in values]
    assert randomized_response(1000, 300).release_many(values).tolist() == expected
    assert [randomized_response(1000, 300).release(value) for value in values] == expected
    assert randomized_response(1).release_many([]).shape == (0,)


@pytest.mark.parametrize("value", ["77", 77.5, None, np.float64(77), float("nan"), [77]])
def test_what_is_no_number_of_a_category_counts_as_the_first(value):
    assert randomized_response(1000).release(value) == 0
    assert randomized_response(1000).release_many(
        [1, None if isinstance(value, list) else value]
    ).tolist() == [1, 0]


def test_an_array_of_another_type_is_refused():
    # its type is declared, and does not depend on a row
    with pytest.raises(InvalidDeclaration):
        randomized_response(1).release_many(np.array([0.0, 1.0]))


def bias(mechanism: ResponseMechanism, truth: tuple[int, ...]) -> float:
    """How far the exact expectation of the estimated counts is from the truth."""
    laws = [
        [float(mass.mid()) for mass in law_of_report(mechanism, value)]
        for value in range(mechanism.categories)
    ]
    mean = np.zeros(mechanism.categories)
    for reports in product(range(mechanism.categories), repeat=len(truth)):
        mass = np.prod([laws[value][report] for value, report in zip(truth, reports, strict=True)])
        mean += mass * mechanism.estimate(reports)
    return float(np.abs(mean - np.bincount(truth, minlength=mechanism.categories)).max())


@EVERY
def test_estimated_counts_are_unbiased(epsilon, categories):
    mechanism = randomized_response(epsilon, categories)
    assert bias(mechanism, (0, 0, 1)) < 1e-9
    assert bias(mechanism, (categories - 1,) * 3) < 1e-9


def test_the_expectation_notices_counts_that_are_not_corrected(monkeypatch):
    monkeypatch.setattr(ResponseMechanism, "estimate_counts", lambda mechanism, counts: counts)
    assert bias(randomized_response(1, 3), (0, 0, 1)) > 0.1


@pytest.mark.parametrize("epsilon", ["1e-100", "1e-9", "0.3", "30", "2000"])
def test_estimates_are_finite_and_sum_to_the_people(epsilon):
    mechanism = randomized_response(epsilon, 4)
    estimates = mechanism.estimate_counts([100, 0, 50, 10])
    assert np.isfinite(estimates).all()
    assert estimates.sum() == pytest.approx(160, abs=1e-9 * np.abs(estimates).max())
    assert np.isfinite(mechanism.error("0.95", 160))
    if Fraction(epsilon) >= 30:
        assert estimates == pytest.approx([100, 0, 50, 10], abs=1e-9)


@pytest.mark.parametrize("counts", [[1, 2, 3], [1], [-1, 2], [1.0, 2.0], [[1, 2]]])
def test_what_is_not_a_count_of_each_category_is_refused(counts):
    with pytest.raises(InvalidDeclaration):
        randomized_response(1).estimate_counts(counts)


@pytest.mark.parametrize("reports", [[2], [-1], [0.0], ["a"]])
def test_what_is_not_a_report_is_refused(reports):
    with pytest.raises(InvalidDeclaration):
        randomized_response(1).estimate(reports)
    assert randomized_response(1).estimate([]).tolist() == [0, 0]


def coverage(mechanism: ResponseMechanism, people: int, yes: int, half_width: float) -> float:
    """The exact probability that the estimate of the yeses of a binary question is within its
    error.
    """
    lie = 1 / (1 + np.exp(float(mechanism.epsilon)))
    seen = np.convolve(
        binom.pmf(np.arange(yes + 1), yes, 1 - lie),
        binom.pmf(np.arange(people - yes + 1), people - yes, lie),
    )
    estimates = [mechanism.estimate_counts([people - ones, ones])[1] for ones in range(people + 1)]
    return float(seen[np.abs(np.array(estimates) - yes) <= half_width].sum())


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_the_error_of_a_count_covers_as_often_as_stated(epsilon, confidence):
    mechanism = randomized_response(epsilon)
    for people, yes in [(1, 0), (1, 1), (60, 0), (60, 13), (300, 150), (300, 299)]:
        assert (
            coverage(mechanism, people, yes, mechanism.error(confidence, people))
            >= float(confidence) - 1e-12
        )


def test_the_coverage_notices_half_the_error():
    mechanism = randomized_response(1)
    assert coverage(mechanism, 300, 150, mechanism.error("0.95", 300) / 2) < 0.95


@pytest.mark.parametrize("category", [0, 2])
def test_the_error_of_a_count_among_many_categories_covers(category):
    mechanism, truth = randomized_response(1, 4), [0] * 150 + [1] * 30 + [2] * 20
    misses = 0
    for _ in range(4000):
        estimate = mechanism.estimate(mechanism.release_many(truth))[category]
        misses += abs(estimate - truth.count(category)) > mechanism.error("0.9", 200)
    assert_at_most(misses, 4000, 0.1, notices=0.25)


def test_reports_nearly_sure_have_the_smaller_error():
    # Hoeffding alone would say sqrt(n ln(40) / 2) = 1,358 reports
    assert randomized_response(8).error("0.95", 10**6) < 60
    assert randomized_response("0.01").error("0.95", 10**6) == pytest.approx(1358.1 * 200, rel=0.01)


def test_a_report_costs_its_epsilon_for_each_replaced_row():
    mechanism = randomized_response("1/3", 7)
    assert mechanism.event(replaced(1)) == RandomizedResponse(Fraction(1, 3), 7)
    assert mechanism.event(replaced(3)) == Repeated(RandomizedResponse(Fraction(1, 3), 7), 3)
    assert account(mechanism.event(replaced(3))).epsilon == 1


@pytest.mark.parametrize(
    "distance",
    [
        Distance(Norm.L1, Fraction(2), Relation.ADD_REMOVE),
        Distance(Norm.L1, Fraction(1), Relation.REPLACE_ONE),
        Distance(Norm.L1, Fraction(5, 2), Relation.REPLACE_ONE),
        Distance(Norm.LINF, Fraction(2), Relation.REPLACE_ONE),
    ],
)
def test_neighbours_that_are_not_replaced_rows_are_refused(distance):
    with pytest.raises(InvalidDeclaration, match="Randomised response"):
        randomized_response(1).event(distance)


@pytest.mark.parametrize("epsilon", [0, -1, "1e-101", float("nan"), float("inf"), None])
def test_an_epsilon_that_cannot_be_is_refused(epsilon):
    with pytest.raises(InvalidNumber):
        randomized_response(epsilon)


@pytest.mark.parametrize("categories", [1, 0, -3, True, 2.0, 2**31 + 1])
def test_a_number_of_categories_that_cannot_be_is_refused(categories):
    with pytest.raises(InvalidDeclaration):
        randomized_response(1, categories)


def test_packed_values_that_do_not_fit_are_refused():
    two = np.zeros(2, np.uint64)
    for mechanism, values, count in [
        (randomized_response(1, 3), two, 128),
        (randomized_response(1), two, 64),
        (randomized_response(1), two.astype(np.int64), 128),
    ]:
        with pytest.raises(InvalidDeclaration, match="Packed"):
            mechanism.release_bits(values, count)


@pytest.mark.parametrize("people", [0, -1, 1.5, True])
def test_a_number_of_people_that_cannot_be_is_refused(people):
    with pytest.raises(InvalidNumber):
        randomized_response(1).error("0.95", people)


def test_the_same_entropy_gives_the_same_reports():
    mechanism, values = randomized_response("0.2", 9), np.arange(500) % 9
    assert (
        mechanism.release_many(values, Replay(1)).tolist()
        == mechanism.release_many(values, Replay(1)).tolist()
    )
    assert values.tolist() == (np.arange(500) % 9).tolist()

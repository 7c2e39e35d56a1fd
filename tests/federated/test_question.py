# SPDX-License-Identifier: Apache-2.0
"""Questions compile alike at every party, cost what they state, or are refused free."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato import learning as ln
from sfumato.accounting.account import account
from sfumato.config.model import recipe_of
from sfumato.errors import InvalidDeclaration, InvalidNumber, SfumatoError, WrongUse
from sfumato.federated.declaration import read_study
from sfumato.federated.joint import JointSeries, JointTask
from sfumato.federated.question import Question, compiled, excess_misses
from sfumato.privacy.event import Composed
from tests.contracts.federation import write_study

BY_SEX = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM patients GROUP BY sex"
ROWS = "SELECT age, dose, responded FROM patients"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return read_study(write_study(tmp_path_factory.mktemp("study")))


def test_a_question_travels_as_json():
    plain = Question.of(BY_SEX, "0.5")
    model = Question.of(ROWS, 0.25, ln.Additive(bins=4), "responded")
    texts = Question.of(ROWS, 1, ln.LogisticRegression(bag=ln.Bag(buckets=16)), "responded")
    assert recipe_of("the model", json.loads(texts.model)).bag == ln.Bag(buckets=16)
    for each in (plain, model, texts):
        assert Question.from_json(each.to_json()) == each
    assert model.rho == "0.25" and '"bins":4' in model.model
    for wrong in ([], {}, plain.to_json() | {"more": 1}, plain.to_json() | {"sql": 3}):
        with pytest.raises(InvalidDeclaration):
            Question.from_json(wrong)


@pytest.mark.parametrize("rho", ["0.0001", "0.02", "0.4"])
def test_a_statement_costs_almost_its_rho_and_never_more(study, rho):
    made = compiled(Question.of(BY_SEX, rho), study)
    assert isinstance(made.asked, JointTask)
    cost = account(made.asked.event).rho
    assert Fraction(rho) * (1 - Fraction(1, 10**4)) < cost <= Fraction(rho)


@pytest.mark.parametrize(
    ("recipe", "label", "rows"),
    [
        (ln.Additive(steps=5), "responded", ROWS),
        (ln.LogisticRegression(steps=5), "responded", ROWS),
        (ln.NaiveBayes(), "responded", ROWS),
        (ln.Ridge(), "dose", "SELECT age, dose FROM patients"),
        (ln.KMeans(2), None, "SELECT age, dose FROM patients"),
        (ln.PCA(1), None, "SELECT age, dose FROM patients"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_models_cost_almost_their_rho(study, recipe, label, rows):
    made = compiled(Question.of(rows, "0.02", recipe, label), study)
    cost = account(made.asked.event).rho
    assert Fraction("0.0199") < cost <= Fraction("0.02")
    again = compiled(Question.from_json(Question.of(rows, "0.02", recipe, label).to_json()), study)
    assert (again.form_hash, again.event_hash) == (made.form_hash, made.event_hash)


def test_the_shares_of_all_sites_are_the_noise_of_the_planned_curator(study):
    made = compiled(Question.of(BY_SEX, "0.02"), study)
    assert isinstance(made.asked.event, Composed)
    for mechanism, shared in zip(made.planned.mechanisms, made.asked.event.events, strict=True):
        assert shared.noise.sigma_squared * 3 == mechanism.noise.sigma_squared
        # a curator at two thirds of the rho: sqrt(3/2) times the noise
        assert (shared.least, shared.colluders, shared.overlap) == (3, 1, 1)


def test_a_person_in_k_sites_costs_k_squared(study):
    once = compiled(Question.of(BY_SEX, "0.02"), study)
    twice = replace(study, terms=replace(study.terms, overlap=2))
    more = compiled(Question.of(BY_SEX, "0.02"), twice)
    ratios = {
        second.noise.sigma_squared / first.noise.sigma_squared
        for first, second in zip(once.asked.event.events, more.asked.event.events, strict=True)
    }
    assert ratios == {4}
    assert account(more.asked.event).rho == account(once.asked.event).rho


def test_whatever_differs_is_another_question(study):
    questions = [
        Question.of(BY_SEX, "0.02"),
        Question.of(BY_SEX, "0.021"),
        Question.of(BY_SEX.replace("AVG", "SUM"), "0.02"),
        Question.of(ROWS, "0.02", ln.Additive(), "responded"),
        Question.of(ROWS, "0.02", ln.Additive(bins=3), "responded"),
        Question.of(ROWS, "0.02", ln.Additive(), "dose"),
    ]
    hashes = {
        (made.form_hash, made.event_hash) for made in (compiled(each, study) for each in questions)
    }
    assert len(hashes) == len(questions)
    other = replace(study, terms=replace(study.terms, study="5a" * 32))
    assert compiled(questions[0], other).form_hash != compiled(questions[0], study).form_hash


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT MEDIAN(age) FROM patients", "AVG"),
        ("SELECT age FROM patients WHERE age > (SELECT AVG(age) FROM patients)", ""),
        (
            "SELECT COUNT(*) AS n FROM patients WHERE age > (SELECT AVG(age) FROM patients)",
            "Ask it first",
        ),
        ("SELECT nothing FROM patients", ""),
        ("DROP TABLE patients", ""),
    ],
)
def test_what_is_no_sum_is_refused_with_what_to_write(study, sql, told):
    with pytest.raises(SfumatoError) as refusal:
        compiled(Question.of(sql, "0.02"), study)
    assert told in str(refusal.value)


@pytest.mark.parametrize(
    "recipe",
    [ln.DecisionTree(), ln.Forest(), ln.Additive(order=ln.Poisson("0.1"))],
    ids=lambda recipe: type(recipe).__name__,
)
def test_models_whose_steps_are_no_sums_are_refused(recipe):
    with pytest.raises(WrongUse):
        Question.of(ROWS, "0.02", recipe, "responded")


def test_a_rho_that_leaves_no_noise_is_refused_with_one_that_fits(study):
    with pytest.raises(InvalidNumber) as refusal:
        compiled(Question.of(BY_SEX, 50), study)
    fits = refusal.value.allowed.rpartition(" ")[2]
    assert 0 < float(fits) < 50
    compiled(Question.of(BY_SEX, fits), study)


def test_narrow_shares_pay_for_being_no_gaussian(study):
    """Where tau counts, less than the rho is planned for; the cost stays below it."""
    made = compiled(Question.of("SELECT COUNT(*) AS n FROM patients", "0.2"), study)
    (step,) = made.asked.event.events
    assert step.noise.sigma_squared < 2
    assert account(made.asked.event).rho <= Fraction("0.2")
    assert Fraction(1, 2) / (2 * step.noise.sigma_squared) < Fraction("0.2")
    assert any("interval" in note for note in made.asked.inner.preface.facts["notes"])


def test_a_series_drops_pieces_that_not_all_sites_have(study):
    made = compiled(Question.of(ROWS, "0.02", ln.Additive(steps=5), "responded"), study)
    series = made.asked
    assert isinstance(series, JointSeries)
    size = series.piece(1, {}).size
    earlier = {1: b"\0" * size, 2: b"\1" * size}
    fresh = series.piece(3, {})
    assert series.piece(3, earlier).inner.state.to_bytes() != fresh.inner.state.to_bytes()
    series.exchange.begun = 2
    assert series.piece(3, earlier).inner.state.to_bytes() == fresh.inner.state.to_bytes()
    series.exchange.agreed = frozenset({1})
    assert series.piece(3, earlier).inner.state.to_bytes() == earlier[1]


def discrete_gaussian(variance, most=80):
    """The probabilities of the integers from -most to most."""
    weights = np.exp(-(np.arange(-most, most + 1.0) ** 2) / (2 * variance))
    return weights / weights.sum()


def most_excess(variance, sites):
    """By which share intervals miss more often at most, from the exact law of a sum of shares."""
    share = total = discrete_gaussian(variance)
    for _ in range(sites - 1):
        total = np.convolve(total, share)
    half = len(total) // 2
    stated = discrete_gaussian(sites * variance, half)
    inside = [slice(half - within, half + within + 1) for within in range(12)]
    return max(abs((1 - total[part].sum()) / (1 - stated[part].sum()) - 1) for part in inside)


@pytest.mark.parametrize(("variance", "sites"), [(1.0, 3), (1.0, 5), (1.5, 3)])
def test_an_interval_misses_by_no_larger_share_more_than_is_said(variance, sites):
    assert most_excess(variance, sites) <= excess_misses(variance, sites)


def test_a_hundredth_of_what_is_said_would_be_too_little():
    assert most_excess(1.0, 3) > excess_misses(1.0, 3) / 100


def test_a_narrow_share_is_noted(study):
    def notes(rho):
        made = compiled(Question.of("SELECT COUNT(*) AS n FROM patients", rho), study)
        return " ".join(made.asked.inner.preface.facts["notes"])

    assert "may miss more often" in notes("0.2") and "share of 4e-05" in notes("0.2")
    assert "may miss" not in notes("0.01")

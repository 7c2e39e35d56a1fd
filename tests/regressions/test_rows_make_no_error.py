# SPDX-License-Identifier: Apache-2.0
"""Found by a review of the mechanisms: what a row or a parameter must not be able to do."""

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account, approx_from_zcdp, gaussian_delta, gaussian_for
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import bounds, laplace, randomized_response, representative
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.noise import Binomial, DiscreteGaussian, DiscreteLaplace, Geometric
from sfumato.privacy import (
    AdditiveNoise,
    Distance,
    Norm,
    PoissonSample,
    Sampled,
    ZeroConcentratedDP,
)
from sfumato.privacy.event import event_from_json, event_to_json

ROW = Distance(Norm.L1, Fraction(1))


@pytest.mark.parametrize(
    "value",
    [
        0.5,
        Fraction(1, 3),
        float("nan"),
        Decimal("1.5"),
        "7",
        None,
        True,
        np.float64(2),
        np.bool_(1),
    ],
    ids=repr,
)
def test_noise_is_added_to_integers_alone(value):
    mechanism = laplace(ROW, 1)
    with pytest.raises(InvalidDeclaration, match="Noise on a"):
        mechanism.release([value])
    with pytest.raises(InvalidDeclaration, match="Noise on a"):
        mechanism.release([1], drawn=[value])


def test_a_release_that_takes_what_it_gets_shows_the_secret(monkeypatch):
    monkeypatch.setattr("sfumato.mechanisms.additive._integer", lambda value: value)
    assert AdditiveMechanism(DiscreteLaplace(1)).release([Fraction(1, 3)])[0] % 1 == Fraction(1, 3)


def test_an_integer_of_numpy_neither_wraps_nor_fails():
    released = laplace(ROW, 1).release(np.array([2**63 - 1, -(2**63)]), drawn=[5, -5])
    assert released == (2**63 + 4, -(2**63) - 5)
    assert laplace(ROW, 1).release(np.zeros(1, np.uint64), drawn=[-3]) == (-3,)


@pytest.mark.parametrize(
    "values", [[1, 2**70], [2**63, -1], [1, None], [1, float("nan")], ["2", 2]], ids=str
)
def test_no_value_can_make_a_report_fail(values):
    reports = randomized_response(50, 4).release_many(values)
    expected = [min(max(value, 0), 3) if isinstance(value, int) else 0 for value in values]
    assert reports.tolist() == expected
    assert [randomized_response(50, 4).release(value) for value in values] == expected


def test_a_distance_that_raises_counts_as_the_cap():
    typical = representative(ROW, 50, range(5), lambda c, r: abs(c - r), cap=4)
    assert typical.release([1, 1, None, "x", 1]) == 1


def test_a_failure_below_the_floats_is_refused():
    with pytest.raises(InvalidNumber):
        bounds(ROW, 1, lower=0, upper=2**20, failure="1e-330")


@pytest.mark.parametrize("scale", ["1e-7", "1e-12"])
def test_a_sample_of_a_huge_loss_costs_the_loss(scale):
    event = AdditiveNoise(DiscreteLaplace(scale), ROW)
    assert account(Sampled(PoissonSample(Fraction(1, 2)), event)).epsilon == 1 / Fraction(scale)


@pytest.mark.parametrize("epsilon", [10**7, 10**12])
def test_a_huge_epsilon_has_a_gaussian(epsilon):
    noise = gaussian_for(epsilon, "1e-5", sensitivity_squared=Fraction(1), entries=1)
    rho = ZeroConcentratedDP(1 / (2 * noise.sigma_squared))
    assert approx_from_zcdp(rho, Fraction(1, 10**5)).epsilon <= epsilon


def test_a_huge_sensitivity_has_a_gaussian():
    assert (
        gaussian_for("1", "1e-5", sensitivity_squared=Fraction(10**300), entries=1).sigma_squared
        > 10**300
    )


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.001", "0.01"), ("1e-100", "1e-5"), ("1", "1e-6")]
)
def test_the_variance_is_nearly_least_however_small_epsilon(epsilon, delta):
    noise = gaussian_for(epsilon, delta, sensitivity_squared=Fraction(1), entries=1)
    less = DiscreteGaussian(sigma_squared=noise.sigma_squared * Fraction(999, 1000))
    assert (
        gaussian_delta(noise, 1, epsilon).upper
        <= float(delta)
        < gaussian_delta(less, 1, epsilon).upper
    )


def test_statements_of_huge_gaussians_do_not_overflow():
    assert DiscreteGaussian("1e150").half_width("0.95") > 10**150
    assert DiscreteGaussian(100).cdf(10**400).upper == 1.0
    assert DiscreteGaussian(100).above(np.int64(2**62)).lower == 0.0


def test_a_binomial_beyond_64_bits_is_refused():
    with pytest.raises(InvalidNumber):
        Binomial(10**25, "0." + "9" * 20)


def test_an_event_nested_beyond_reason_is_unknown():
    form = event_to_json(AdditiveNoise(DiscreteLaplace(1), ROW))
    for _ in range(3000):
        form = {"kind": "repeated", "version": 1, "event": form, "times": 1}
    with pytest.raises(InvalidDeclaration):
        event_from_json(form)


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(3), Geometric(3), DiscreteGaussian(sigma_squared=7)], ids=repr
)
def test_a_stored_law_is_made_anew(law):
    again = pickle.loads(pickle.dumps(law))
    assert again == law and again._sampler._curve == law._sampler._curve
    assert len(pickle.dumps(law)) < 300

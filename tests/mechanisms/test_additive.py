# SPDX-License-Identifier: Apache-2.0
"""Noise on integers: charged as drawn, added exactly, bounded as stated."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import AdditiveMechanism, additive, gaussian, laplace
from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import Distance, Norm
from sfumato.testing import Replay, assert_at_most

AMOUNTS = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
STEPS = st.fractions(min_value=1, max_value=10**6)
ONE = {norm: Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2)}
MECHANISMS = [laplace(ONE[Norm.L1], "0.3"), gaussian(ONE[Norm.L2], "0.02")]
BOTH = pytest.mark.parametrize("mechanism", MECHANISMS, ids=["laplace", "gaussian"])


@given(STEPS, AMOUNTS)
@settings(deadline=None)
def test_laplace_buys_exactly_its_epsilon(sensitivity, epsilon):
    distance = Distance(Norm.L1, sensitivity)
    mechanism = laplace(distance, epsilon)
    assert mechanism.noise == DiscreteLaplace(sensitivity / epsilon)
    assert account(mechanism.event(distance)).epsilon == epsilon


@given(STEPS, AMOUNTS)
@settings(deadline=None)
def test_gaussian_buys_exactly_its_rho(squared, rho):
    distance = Distance(Norm.L2, squared)
    mechanism = gaussian(distance, rho)
    assert mechanism.noise == DiscreteGaussian(sigma_squared=squared / (2 * rho))
    cost = account(mechanism.event(distance))
    assert (cost.epsilon, cost.rho) == (None, rho)


def draws_what_it_names(mechanism: AdditiveMechanism, distance: Distance) -> bool:
    """Whether the event's own law, on the same bits, gives the same draws."""
    return (
        list(mechanism.draw(50, Replay(9)))
        == mechanism.event(distance).noise.sample(50, Replay(9)).tolist()
    )


@BOTH
def test_the_event_names_the_very_noise_that_is_drawn(mechanism):
    distance = ONE[Norm.L1 if isinstance(mechanism.noise, DiscreteLaplace) else Norm.L2]
    assert mechanism.event(distance).noise is mechanism.noise
    assert mechanism.event(distance).distance is distance
    assert draws_what_it_names(mechanism, distance)


def test_the_comparison_notices_a_mechanism_that_draws_less_noise(monkeypatch):
    monkeypatch.setattr(
        AdditiveMechanism,
        "draw",
        lambda mechanism, cells, entropy: tuple(
            DiscreteLaplace(mechanism.noise.scale / 2).sample(cells, entropy)
        ),
    )
    assert not draws_what_it_names(laplace(ONE[Norm.L1], "0.1"), ONE[Norm.L1])


def test_a_mechanism_takes_only_its_own_norm():
    for build, norm in ((laplace, Norm.L2), (gaussian, Norm.L1)):
        with pytest.raises(InvalidDeclaration) as caught:
            build(ONE[norm], 1)
        assert norm.value in caught.value.problem
        assert norm.value not in caught.value.allowed
    for mechanism, norm in zip(MECHANISMS, (Norm.L2, Norm.L1), strict=True):
        with pytest.raises(InvalidDeclaration):
            mechanism.event(ONE[norm])


def test_the_refusal_rests_on_the_table_of_norms(monkeypatch):
    with pytest.raises(InvalidDeclaration):
        MECHANISMS[0].event(ONE[Norm.L2])
    monkeypatch.setattr(additive, "_NORM", {DiscreteLaplace: Norm.L2, DiscreteGaussian: Norm.L1})
    assert MECHANISMS[0].event(ONE[Norm.L2]).noise is MECHANISMS[0].noise


def failures(mechanism: AdditiveMechanism, half_width: int, confidence: float) -> None:
    """Fails if draws exceed ``half_width`` more often than 1 - confidence.

    Sure to notice 3% more.
    """
    beyond = sum(abs(noise) > half_width for noise in mechanism.draw(60_000, SYSTEM))
    assert_at_most(beyond, 60_000, 1 - confidence, notices=1 - confidence + 0.03)


@BOTH
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_error_covers_as_often_as_stated(mechanism, confidence):
    failures(mechanism, mechanism.error(confidence), confidence)


@BOTH
def test_the_coverage_notices_an_error_for_half_the_noise(mechanism):
    with pytest.raises(AssertionError, match="was stated"):
        failures(mechanism, mechanism.error(0.95) // 2, 0.95)


@BOTH
def test_the_error_is_the_half_width_of_the_noise_and_grows(mechanism):
    errors = [mechanism.error(confidence) for confidence in ("0.5", "0.9", "0.99", "0.999999")]
    assert errors == sorted(set(errors))
    assert errors[1] == mechanism.noise.half_width("0.9")


@given(st.lists(st.tuples(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))))
@settings(deadline=None)
def test_a_release_adds_exactly(pairs):
    exact, drawn = [one for one, _ in pairs], [two for _, two in pairs]
    assert MECHANISMS[0].release(exact, drawn) == tuple(one + two for one, two in pairs)


@BOTH
def test_a_release_without_noise_given_draws_its_own(mechanism):
    exact = [10**12] * 200
    first, second = mechanism.release(exact), mechanism.release(exact)
    assert len(first) == 200 and first != second
    assert {abs(value - 10**12) < 10**4 for value in first} == {True}
    assert mechanism.release([]) == ()


@BOTH
@pytest.mark.parametrize("cells", [0, 1, 3])
def test_noise_for_another_number_of_cells_is_refused(mechanism, cells):
    with pytest.raises(ValueError, match="zip"):
        mechanism.release([1, 2], mechanism.draw(cells))


@BOTH
def test_one_draw_is_made_for_each_cell(mechanism):
    drawn = mechanism.draw(300, Replay(1))
    assert len(drawn) == 300 and len(set(drawn)) > 5
    assert drawn == tuple(mechanism.noise.sample(300, Replay(1)))


@pytest.mark.parametrize("amount", [0, -1, float("nan"), float("inf"), "one", True, 1e-400])
def test_a_cost_that_is_not_positive_is_refused(amount):
    with pytest.raises(InvalidNumber, match="epsilon"):
        laplace(ONE[Norm.L1], amount)
    with pytest.raises(InvalidNumber, match="rho"):
        gaussian(ONE[Norm.L2], amount)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_a_sensitivity_below_a_lattice_step_is_refused(norm):
    make = laplace if norm is Norm.L1 else gaussian
    with pytest.raises(InvalidDeclaration, match="finer lattice"):
        make(Distance(norm, Fraction(1, 2)), 1)


def test_arrays_are_released_as_sequences_are() -> None:
    mechanism = laplace(Distance(Norm.L1, Fraction(1)), 1)
    exact, noise = np.array([1, -5, 2**40]), np.array([3, 0, -7])
    assert mechanism.release_many(exact, noise).tolist() == list(
        mechanism.release(exact.tolist(), noise.tolist())
    )
    assert mechanism.norm is Norm.L1


def test_arrays_never_wrap_around() -> None:
    mechanism = laplace(Distance(Norm.L1, Fraction(1)), 1)
    largest = np.array([2**63 - 1, -(2**63)])
    assert mechanism.release_many(largest, np.array([1, -1])).tolist() == [2**63, -(2**63) - 1]
    assert mechanism.release_many(np.array([1]), np.array([2**80], object)).tolist() == [2**80 + 1]
    assert mechanism.release_many(np.array([], np.int64)).tolist() == []


@pytest.mark.parametrize(
    ("exact", "noise"),
    [
        (np.array([1.5]), None),
        (np.array([True]), None),
        (np.array([[1]]), None),
        (np.array([1], np.int32), None),
        (np.array([1]), np.array([1, 2])),
    ],
    ids=repr,
)
def test_arrays_of_anything_else_are_refused(exact: object, noise: object) -> None:
    with pytest.raises(InvalidDeclaration):
        laplace(Distance(Norm.L1, Fraction(1)), 1).release_many(exact, noise)


def test_an_array_has_the_declared_number_of_cells() -> None:
    with pytest.raises(InvalidDeclaration):
        AdditiveMechanism(DiscreteLaplace(1), cells=2).release_many(np.array([1]))

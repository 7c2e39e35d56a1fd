# SPDX-License-Identifier: Apache-2.0
"""Thresholds of unknown keys: the exact loss of all that neighbours can show, and the optimum it is
compared with.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import threshold
from sfumato.mechanisms.threshold import (
    ThresholdMechanism,
    threshold_gaussian,
    threshold_geometric,
    threshold_laplace,
)
from sfumato.noise import SYSTEM, DiscreteLaplace, Truncated
from sfumato.privacy import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.testing import Replay, assert_at_most
from tests.contracts.effort import examples
from tests.noise.truth import PRECISION, GaussianTruth, LaplaceTruth, ball

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
MAKERS = pytest.mark.parametrize(
    "make", [threshold_laplace, threshold_gaussian, threshold_geometric]
)
PURE = pytest.mark.parametrize("make", [threshold_laplace, threshold_geometric])
BOTH = pytest.mark.parametrize("relation", [ADD, REPLACE])


class TruncatedTruth:
    """The discrete Laplace law cut at +-m, by adding up its weights."""

    def __init__(self, noise: Truncated, scale: Fraction) -> None:
        whole = LaplaceTruth(scale)
        with ctx.workprec(PRECISION):
            weights = {x: whole.g ** abs(x) for x in range(noise.lower, noise.upper + 1)}
            total = sum(weights.values(), arb(0))
            self.masses = {x: weight / total for x, weight in weights.items()}

    def above(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            return sum((mass for value, mass in self.masses.items() if value > x), arb(0))


def truth_of(mechanism: ThresholdMechanism, make, keys: int, amount: Fraction):
    """The law that the maker promises, worked out without the mechanism's noise: scale L1/epsilon,
    L2/(2 rho).
    """
    if make is threshold_gaussian:
        return GaussianTruth(keys / (2 * amount))
    return (
        LaplaceTruth(keys / amount)
        if make is threshold_laplace
        else TruncatedTruth(mechanism.noise, keys / amount)
    )


def is_smallest(make, keys: int, amount: str, delta: str, relation: Relation) -> bool:
    """Whether the lone keys of a unit (of two, replace-one) pass with at most delta, and not one
    threshold below.
    """
    mechanism = make(keys, amount, delta, relation)
    touched = keys if relation is ADD else 2 * keys
    one = touched * truth_of(mechanism, make, touched, Fraction(amount)).above(
        mechanism.threshold - 2
    )
    lower = mechanism.threshold - 1
    if make is threshold_geometric:
        shorter = ThresholdMechanism(
            Truncated(DiscreteLaplace(1), 1 - lower, lower - 1), lower, keys
        )
        less = touched * truth_of(shorter, make, touched, Fraction(amount)).above(lower - 2)
    else:
        less = touched * truth_of(mechanism, make, touched, Fraction(amount)).above(lower - 2)
    with ctx.workprec(PRECISION):
        return bool(one <= ball(Fraction(delta))) and bool(less > ball(Fraction(delta)))


@MAKERS
@BOTH
@pytest.mark.parametrize("delta", ["0.3", "1e-3", "1e-9", "1e-20"])
@pytest.mark.parametrize(("keys", "amount"), [(1, "1"), (1, "1/10"), (4, "1"), (3, "7/2")])
def test_a_lone_unit_is_shown_with_at_most_delta(make, relation, keys, amount, delta):
    assert is_smallest(make, keys, amount, delta, relation)


def test_the_chance_notices_an_account_that_is_off_by_one(monkeypatch):
    monkeypatch.setattr(threshold, "account", lambda event: account(_lower(event)))
    assert not is_smallest(threshold_laplace, 1, "1", "1e-3", ADD)


def _lower(event):
    """A wrong reading of the comparison: shown only where count + noise is above the threshold."""
    return type(event)(event.additive, event.threshold + 1, event.keys)


def losses(mechanism: ThresholdMechanism, one: dict, two: dict, epsilon: float) -> float:
    """max over sets of P(one) - e^epsilon P(two), both ways, over all that the code shows for all
    noise.
    """
    noise = mechanism.noise
    reach = 60 if isinstance(noise, DiscreteLaplace) else noise.upper
    values = range(-reach, reach + 1)
    masses = {x: (noise.pmf(x).lower + noise.pmf(x).upper) / 2 for x in values}
    laws = [shown_law(mechanism, counts, masses) for counts in (one, two)]
    outcomes = set(laws[0]) | set(laws[1])
    grown = np.exp(epsilon)
    return max(
        sum(max(first.get(each, 0.0) - grown * second.get(each, 0.0), 0.0) for each in outcomes)
        for first, second in (laws, laws[::-1])
    )


def shown_law(
    mechanism: ThresholdMechanism, counts: dict, masses: dict[int, float]
) -> dict[object, float]:
    """The probability of each answer, by running the code on each noise."""
    law: dict[object, float] = {}
    for drawn in product(masses, repeat=len(counts)):
        forced = ThresholdMechanism(Forced(drawn), mechanism.threshold, mechanism.keys)
        outcome = tuple(forced.release(counts).items())
        law[outcome] = law.get(outcome, 0.0) + float(np.prod([masses[x] for x in drawn]))
    return law


class Forced:
    """A law that shows what it is told to."""

    def __init__(self, drawn: tuple[int, ...]) -> None:
        self.drawn = drawn

    def sample(self, shape, entropy=None) -> np.ndarray:
        assert shape == len(self.drawn)
        return np.array(self.drawn, np.int64)


NEIGHBOURS = {
    (ADD, 1): [({}, {"a": 1}), ({"a": 4}, {"a": 5}), ({"a": 12}, {"a": 11})],
    (ADD, 2): [
        ({}, {"a": 1, "b": 1}),
        ({"a": 4}, {"a": 5, "b": 1}),
        ({"a": 3, "b": 7}, {"a": 4, "b": 8}),
    ],
    (REPLACE, 1): [
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 3}, {"b": 4}),
        ({"a": 6, "b": 2}, {"a": 5, "b": 3}),
    ],
}


def worst(make, relation: Relation, keys: int) -> float:
    """The largest delta that any of the neighbours needs at the epsilon bought."""
    mechanism = make(keys, 1, "0.01", relation)
    return max(losses(mechanism, one, two, 1.0) for one, two in NEIGHBOURS[relation, keys])


@PURE
@pytest.mark.parametrize(("relation", "keys"), list(NEIGHBOURS), ids=str)
def test_keys_of_neighbours_are_within_epsilon_and_delta(make, relation, keys):
    # lone keys use delta up: within the step of one threshold, which is a factor e^(1 / scale)
    used = worst(make, relation, keys)
    assert 0.001 < used <= 0.01 + 1e-9


@PURE
def test_the_losses_notice_noise_for_one_key_of_several(monkeypatch, make):
    monkeypatch.setattr(threshold, "_touched", lambda keys, relation: 1)
    monkeypatch.setattr(
        threshold, "account", lambda event: _Costs(event.additive.noise.above(event.threshold - 2))
    )
    assert worst(make, ADD, 2) > 0.02


class _Costs:
    """A wrong account, of one lone key only."""

    def __init__(self, above) -> None:
        self.delta = Fraction(above.upper)


@PURE
def test_the_losses_notice_a_threshold_that_is_low(monkeypatch, make):
    honest = ThresholdMechanism.release
    monkeypatch.setattr(
        ThresholdMechanism,
        "release",
        lambda mechanism, counts: honest(
            ThresholdMechanism(mechanism.noise, mechanism.threshold - 2, mechanism.keys), counts
        ),
    )
    assert worst(make, ADD, 1) > 0.011


def test_a_gaussian_threshold_pays_rho_for_shared_and_delta_for_lone_keys():
    for relation, touched in ((ADD, 3), (REPLACE, 6)):
        mechanism = threshold_gaussian(3, "1/8", "1e-6", relation)
        cost = account(mechanism.event(Distance(Norm.LINF, Fraction(1), relation)))
        assert mechanism.noise.sigma_squared == touched * 4
        assert (cost.epsilon, cost.rho) == (None, Fraction(1, 8))
        assert Fraction(1, 10**7) < cost.delta <= Fraction(1, 10**6)


@PURE
@BOTH
def test_the_event_costs_what_was_bought(make, relation):
    mechanism = make(4, "0.3", "1e-8", relation)
    event = mechanism.event(Distance(Norm.LINF, Fraction(1), relation))
    assert event.additive.noise is mechanism.noise
    assert (event.threshold, event.keys) == (mechanism.threshold, 4)
    assert account(event).epsilon == Fraction(3, 10)
    assert account(event).delta <= Fraction(1, 10**8)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-3"), ("0.1", "1e-5"), ("3", "1e-9")])
def test_no_selection_of_its_delta_shows_a_key_more_often(epsilon, delta):
    """The recurrence of Desfontaines et al.

    (2022) for the best selection, at the delta that is spent.
    """
    mechanism = threshold_geometric(1, epsilon, delta, ADD)
    masses = TruncatedTruth(mechanism.noise, 1 / Fraction(epsilon))
    with ctx.workprec(PRECISION):
        growth, spent, best = (
            ball(Fraction(epsilon)).exp(),
            masses.above(mechanism.threshold - 2),
            arb(0),
        )
        for units in range(1, 2 * mechanism.threshold + 3):
            best = min(growth * best + spent, 1 - (1 - best - spent) / growth, arb(1), key=float)
            shown = masses.above(mechanism.threshold - units - 1)
            assert bool(abs(best - shown) < 1e-80)
            assert mechanism.shown(units).lower <= float(shown) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2"])
def test_the_cut_law_has_the_lower_threshold(epsilon):
    plain, cut = (
        make(1, epsilon, "1e-6", ADD).threshold for make in (threshold_laplace, threshold_geometric)
    )
    # by ln(1 / (1 - g)) / epsilon, since the lone key needs the last value instead of a tail
    gain = -np.log(1 - np.exp(-float(epsilon))) / float(epsilon)
    assert abs(plain - cut - gain) <= 1


@given(st.dictionaries(st.text(max_size=3), st.integers(-3, 40), max_size=8))
@settings(deadline=None)
def test_a_key_without_units_is_never_shown(counts):
    there = {key: units for key, units in counts.items() if units >= 1}
    mechanism = threshold_laplace(1, "0.5", "0.4", ADD)
    assert mechanism.release(counts, Replay(1)) == mechanism.release(there, Replay(1))
    assert is_silent(mechanism)


def is_silent(mechanism: ThresholdMechanism) -> bool:
    """Whether keys without units stay hidden whatever the noise is."""
    forced = ThresholdMechanism(Forced(()), mechanism.threshold, mechanism.keys)
    return (
        forced.release({"none": 0, "fewer": -5}) == {}
        and mechanism.shown(0).upper == mechanism.shown(-1).upper == 0
    )


def test_the_silence_notices_a_key_that_is_kept_at_zero(monkeypatch):
    monkeypatch.setattr(
        ThresholdMechanism,
        "release",
        lambda mechanism, counts: {k: 9 for k in counts if mechanism.threshold <= 9},
    )
    assert not is_silent(threshold_laplace(1, 1, "0.4", ADD))


KEYS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.binary(max_size=3)),
    lambda parts: st.lists(parts, max_size=3).map(tuple),
    max_leaves=5,
)


def has_one_order(keys: list[object]) -> bool:
    """Whether what is shown is in the same order from every order of the same counts."""
    mechanism, counts = threshold_geometric(1, 1, "1e-3", ADD), dict.fromkeys(keys, 10**6)
    turned = dict(reversed(counts.items()))
    return list(mechanism.release(counts)) == list(mechanism.release(turned)) and set(
        mechanism.release(counts)
    ) == set(keys)


@given(st.lists(KEYS, max_size=10, unique=True))
@settings(deadline=None, max_examples=examples(2))
def test_shown_keys_are_in_an_order_of_their_own(keys):
    assert has_one_order(keys)


def test_the_order_is_by_value_and_notices_the_order_of_the_counts(monkeypatch):
    shown = threshold_geometric(1, 1, "1e-3", ADD).release(
        dict.fromkeys(["b", "a", None, 10, 9, ("z", 1)], 10**6)
    )
    assert list(shown) == [9, 10, "a", "b", ("z", 1), None]
    monkeypatch.setattr(threshold, "sorted", lambda keys, key: list(keys), raising=False)
    assert not has_one_order(["b", "a"])


@pytest.mark.parametrize("key", [1.5, float("nan"), frozenset({1}), ("a", 2.5)])
def test_a_key_without_a_sure_order_is_one_that_is_not_there(key):
    shown = threshold_laplace(1, 1, "1e-6", ADD).release({"a": 10**6, key: 10**6})
    assert list(shown) == ["a"]


def test_a_key_of_any_depth_makes_no_error():
    key = ()
    for _ in range(5000):
        key = (key,)
    assert list(threshold_laplace(1, 1, "1e-6", ADD).release({"a": 10**6, key: 10**6})) == ["a"]


@pytest.mark.parametrize("units", [1.0, "5", None, True, np.float64(3)])
def test_a_count_that_is_not_an_integer_is_refused(units):
    with pytest.raises(InvalidDeclaration, match="A count of type") as caught:
        threshold_laplace(1, 1, "1e-6", ADD).release({"secret": units})
    assert "secret" not in str(caught.value)


@MAKERS
def test_counts_of_any_size_are_shown_exactly(make):
    mechanism = make(1, 1, "1e-6", ADD)
    noise = mechanism.noise.sample(3, Replay(6)).tolist()
    counts = {"a": 10**30, "b": np.int64(2**62), 7: 10**6}
    exact = [10**30, 2**62, 10**6]
    shown = mechanism.release(counts, Replay(6))
    assert shown == {key: x + extra for key, x, extra in zip(counts, exact, noise, strict=True)}
    assert all(type(each) is int for each in shown.values())
    assert mechanism.release({}) == {}


def test_of_many_counts_only_the_shown_keys_are_asked_for(monkeypatch):
    # noise that is zero but with 2 exp(-1000), drawn for three counts at once
    monkeypatch.setattr(threshold, "_AT_ONCE", 3)
    mechanism, asked = ThresholdMechanism(DiscreteLaplace("0.001"), 5, 1), []

    def keys_at(places):
        asked.extend(places.tolist())
        return [f"key {99 - place}" for place in places]

    counts = np.array([9, 4, 0, -7, 5, 5, 10**9, 1])
    shown = mechanism.release_many(counts, keys_at)
    assert list(shown.items()) == [("key 93", 10**9), ("key 94", 5), ("key 95", 5), ("key 99", 9)]
    assert asked == [0, 4, 5, 6]
    assert mechanism.release_many(counts[:0], keys_at) == {}
    with pytest.raises(InvalidDeclaration, match="float64"):
        mechanism.release_many(counts / 2, keys_at)


@MAKERS
@pytest.mark.parametrize("units", [1, 3, 9])
def test_a_key_is_shown_as_often_as_stated(make, units):
    mechanism = make(1, "1/2", "0.05", ADD)
    stated = mechanism.shown(units)
    shown = len(mechanism.release(dict.fromkeys(range(40_000), units), SYSTEM))
    assert_at_most(shown, 40_000, stated.upper, notices=stated.upper + 0.04)
    assert_at_most(40_000 - shown, 40_000, 1 - stated.lower, notices=1 - stated.lower + 0.04)


def test_the_shares_notice_a_strict_comparison():
    mechanism = threshold_laplace(1, "1/2", "0.05", ADD)
    strict = ThresholdMechanism(mechanism.noise, mechanism.threshold + 1, 1)
    shown = len(strict.release(dict.fromkeys(range(40_000), mechanism.threshold), SYSTEM))
    with pytest.raises(AssertionError, match="was stated"):
        stated = mechanism.shown(mechanism.threshold)
        assert_at_most(40_000 - shown, 40_000, 1 - stated.lower, notices=1 - stated.lower + 0.04)


@MAKERS
@pytest.mark.parametrize("confidence", ["0.01", "0.5", "0.95", "0.999999"])
def test_the_fewest_units_are_shown_with_their_confidence_and_no_fewer(make, confidence):
    mechanism = make(2, "1/3", "1e-7", ADD)
    units = mechanism.smallest_shown(confidence)
    assert mechanism.shown(units).lower >= Fraction(confidence)
    assert mechanism.shown(units - 1).lower < Fraction(confidence)
    assert mechanism.error(confidence) == mechanism.noise.half_width(confidence)


def test_many_units_are_always_shown_by_the_cut_law():
    mechanism = threshold_geometric(1, 1, "1e-6", ADD)
    most = 2 * mechanism.threshold - 1
    assert mechanism.shown(most).lower == 1.0 and mechanism.shown(most - 1).lower < 1.0


@pytest.mark.parametrize("delta", [0, -1, "0.51", 1, float("nan"), None])
def test_a_delta_that_cannot_be_is_refused(delta):
    with pytest.raises(InvalidNumber, match="delta"):
        threshold_laplace(1, 1, delta, ADD)


@MAKERS
def test_a_delta_that_cannot_be_stated_is_refused(make):
    with pytest.raises(InvalidNumber, match="delta"):
        make(1, 1, "1e-390", ADD)


@MAKERS
@pytest.mark.parametrize(
    ("keys", "amount"), [(0, 1), (1.0, 1), (True, 1), (1, 0), (1, -1), (1, float("inf"))]
)
def test_keys_or_a_cost_that_cannot_be_are_refused(make, keys, amount):
    with pytest.raises(InvalidNumber):
        make(keys, amount, "1e-6", ADD)


@pytest.mark.parametrize("field", ["threshold", "keys"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_a_mechanism_that_cannot_be_is_refused(field, value):
    with pytest.raises(InvalidNumber, match=field):
        ThresholdMechanism(**{"noise": DiscreteLaplace(1), "threshold": 3, "keys": 1, field: value})


@pytest.mark.parametrize(("norm", "value"), [(Norm.L1, 1), (Norm.L2, 1), (Norm.LINF, 2)])
def test_counts_that_move_otherwise_are_refused(norm, value):
    with pytest.raises(InvalidDeclaration, match="Counts of units"):
        threshold_laplace(1, 1, "1e-6", ADD).event(Distance(norm, Fraction(value), ADD))


@MAKERS
@pytest.mark.parametrize("amount", ["1e-9", "1000"])
def test_thresholds_of_extreme_noise_are_found(make, amount):
    mechanism = make(10, amount, "1e-9", REPLACE)
    assert mechanism.shown(1).upper <= 1e-9
    assert mechanism.threshold <= (2 + 40 * mechanism.error("0.7"))

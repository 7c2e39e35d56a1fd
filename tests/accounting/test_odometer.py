# SPDX-License-Identifier: Apache-2.0
"""Filters and the odometer: exact sums, and no adaptive strategy beyond what they state."""

import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from typing import TypeAlias, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import odometer
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.delta import delta_at
from sfumato.accounting.odometer import (
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
)
from sfumato.errors import BudgetExceeded, InvalidDeclaration, InvalidNumber
from sfumato.exact.rounding import exp_down, exp_up, log_down, log_up
from sfumato.noise import DiscreteGaussian
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Event,
    Norm,
    PoissonSample,
    PureEvent,
    Relation,
    Repeated,
    Sampled,
)
from sfumato.privacy.guarantee import GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP

ONE = Fraction(1)
FILTERS: list[Filter] = [
    PureFilter(cap=ONE),
    ConcentratedFilter(cap=ONE),
    RenyiFilter(order=Fraction(8), cap=ONE),
    GaussianFilter(cap=ONE),
]
NAMES = [type(each).__name__ for each in FILTERS]
LOSSES = st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1), max_size=30)


def noise(sigma: int) -> ContinuousNoise:
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(sigma), Distance(Norm.L2, ONE))


@pytest.mark.parametrize("opened", FILTERS, ids=NAMES)
@given(LOSSES)
@settings(deadline=None)
def test_a_filter_never_spends_more_than_its_cap(opened, losses):
    books, total = opened, Fraction(0)
    for loss in losses:
        event = PureEvent(loss)
        if books.admits(event):
            books, total = books.spend(event), total + opened.cost(event)
        else:
            with pytest.raises(BudgetExceeded):
                books.spend(event)
    assert total <= opened.cap
    # rounded up by less than a unit each
    assert 0 <= opened.cap - total - books.left <= Fraction(len(losses) + 1, 10**12)


def test_a_cost_that_fits_exactly_is_admitted():
    pure = PureFilter(cap=ONE)
    for _ in range(1000):
        pure = pure.spend(PureEvent(Fraction(1, 1000)))
    assert pure.left == 0 and not pure.admits(PureEvent(Fraction(1, 10**12)))
    # 400 Gaussians of mu = 1/20 are exactly mu = 1
    assert GaussianFilter(cap=ONE).spend(Repeated(noise(20), 400)).left == 0
    assert ConcentratedFilter(cap=ONE).spend(Repeated(PureEvent(ONE), 2)).left == 0
    assert RenyiFilter(order=Fraction(8), cap=ONE).spend(Repeated(noise(20), 100)).left == 0


def test_the_guarantee_is_of_the_cap():
    assert [each.guarantee for each in FILTERS] == [
        PureDP(1),
        ZeroConcentratedDP(1),
        RenyiDP(8, 1),
        GaussianDP(1),
    ]


class LikeACurve:
    """What a plan's privacy loss distribution can say; no event."""

    def delta(self, epsilon: Fraction) -> Fraction:
        return Fraction(0)

    def epsilon(self, delta: Fraction) -> Fraction:
        return Fraction(0)


@pytest.mark.parametrize("books", [*FILTERS, Odometer()], ids=[*NAMES, "Odometer"])
def test_a_filter_takes_no_curve(books):
    kinds = get_args(Event)
    for name in ("spend", "admits", "cost"):
        method = getattr(type(books), name, None)
        if method is not None:
            taken = get_type_hints(method, vars(odometer))
            assert taken["event"] == Event and list(inspect.signature(method).parameters) == [
                "self",
                "event",
            ]
    assert not any(hasattr(kind, "delta") and callable(kind.delta) for kind in kinds)
    for curve in (LikeACurve(), privacy_curve(PureEvent(ONE))):
        with pytest.raises(InvalidDeclaration):
            books.spend(curve)


@pytest.mark.parametrize("books", [*FILTERS, Odometer()], ids=[*NAMES, "Odometer"])
def test_a_filter_never_mixes_neighbour_relations(books):
    other = PureEvent(Fraction(1, 10), Relation.REPLACE_ONE)
    with pytest.raises(InvalidDeclaration):
        books.spend(other)
    if isinstance(books, Odometer):
        assert Odometer(Relation.REPLACE_ONE).spend(other).pure
    assert books.spend(Composed(())) == books


@pytest.mark.parametrize("books", [*FILTERS, Odometer()], ids=[*NAMES, "Odometer"])
def test_what_spends_delta_is_refused(books):
    with pytest.raises(InvalidDeclaration):
        books.spend(ApproxEvent(Fraction(1, 10), Fraction(1, 10**6)))


@pytest.mark.parametrize(
    ("kind", "more"),
    [(PureFilter, {}), (GaussianFilter, {}), (RenyiFilter, {"order": Fraction(2)})],
)
@pytest.mark.parametrize("cap", [0, -1, float("nan")])
def test_a_cap_must_be_above_zero(kind, more, cap):
    with pytest.raises(InvalidNumber):
        kind(cap=cap, **more)


def test_an_order_must_be_above_one():
    with pytest.raises(InvalidNumber):
        RenyiFilter(order=ONE, cap=ONE)


def test_gaussian_noise_enters_the_filters_in_which_it_is_proved():
    discrete = AdditiveNoise(DiscreteGaussian(20), Distance(Norm.L2, ONE))
    with pytest.raises(InvalidDeclaration):
        PureFilter(cap=ONE).admits(discrete)
    with pytest.raises(InvalidDeclaration):
        GaussianFilter(cap=ONE).admits(discrete)
    assert ConcentratedFilter(cap=ONE).admits(discrete)
    assert RenyiFilter(order=Fraction(2), cap=ONE).admits(
        Sampled(PoissonSample(Fraction(1, 100)), discrete)
    )


# An adversary, exactly: randomised responses whose likelihood ratio is a power of 11/10, chosen
# one after the other by what came before.
RATIO = Fraction(11, 10)
POWERS = (1, 2, 5)
State: TypeAlias = object
Step: TypeAlias = Callable[[State, int], State | None]
Worth: TypeAlias = Callable[[State, int], Fraction]


@cache
def response(power: int) -> PureEvent:
    return PureEvent(log_up(RATIO**power))


def spend(books: Filter, power: int) -> Filter | None:
    return books.spend(response(power)) if books.admits(response(power)) else None


def forgetful(books: Filter, power: int) -> Filter | None:
    """Broken books: a charge is checked against the cap alone and then forgotten."""
    return books if books.admits(response(power)) else None


def worst(start: State, step: Step, worth: Worth, rounds: int) -> Fraction:
    """The largest mean of ``worth`` (of the books and the loss, at stopping) that any choice
    reaches.
    """
    # the same books are reached by many losses
    step, worth = cache(step), cache(worth)

    @cache
    def value(state: State, loss: int, left: int) -> Fraction:
        best = worth(state, loss)
        for power in POWERS if left else ():
            after = step(state, power)
            if after is not None:
                likely = RATIO**power / (1 + RATIO**power)
                up, down = (
                    value(after, loss + power, left - 1),
                    value(after, loss - power, left - 1),
                )
                best = max(best, likely * up + (1 - likely) * down)
        return best

    return value(start, 0, rounds)


def hockey_stick(epsilon: Fraction) -> Worth:
    limit = exp_down(epsilon)
    return lambda _, loss: max(1 - limit / RATIO**loss, Fraction(0))


ADAPTIVE: list[Filter] = [
    PureFilter(cap=Fraction(6, 5)),
    ConcentratedFilter(cap=Fraction(1, 6)),
    RenyiFilter(order=Fraction(8), cap=ONE),
    GaussianFilter(cap=Fraction(1, 3)),
]


@pytest.mark.parametrize("opened", ADAPTIVE, ids=NAMES)
@pytest.mark.parametrize("epsilon", ["0", "0.4", "0.8", "1.3"])
def test_no_adaptive_strategy_exceeds_the_guarantee_of_a_filter(opened, epsilon):
    stated = delta_at(opened.guarantee, epsilon).delta
    worth = hockey_stick(Fraction(epsilon))
    assert worst(opened, spend, worth, rounds=12) <= stated
    assert worst(opened, forgetful, worth, rounds=30) > stated


def test_no_adaptive_strategy_exceeds_the_moment_of_a_renyi_filter():
    opened = RenyiFilter(order=Fraction(8), cap=ONE)
    moment = worst(opened, spend, lambda _, loss: RATIO ** (7 * loss), rounds=12)
    assert 1 < moment <= exp_up(Fraction(7))
    assert moment > exp_down(Fraction(5))


def test_the_adversary_breaks_a_gaussian_filter_that_takes_epsilon_for_mu(monkeypatch):
    monkeypatch.setattr(odometer, "_mu_squared", lambda event: event.epsilon**2 / 2)
    opened = GaussianFilter(cap=Fraction(1, 3))
    assert (
        worst(opened, spend, hockey_stick(Fraction(0)), rounds=14)
        > delta_at(opened.guarantee, 0).delta
    )


def passed(reading: Callable[[Odometer], Fraction]) -> Worth:
    """1 where the loss is more than what the odometer reads."""
    return lambda books, loss: Fraction(loss * log_down(RATIO) > reading(books))


def run(books: Odometer, power: int) -> Odometer:
    return books.spend(response(power))


def test_an_odometer_is_right_at_all_times_together():
    delta = Fraction(1, 20)
    reading = cache(lambda books: books.epsilon_spent(delta))
    reached = worst(Odometer(), run, passed(reading), rounds=12)
    assert reached <= delta
    # the reading for a plan is too small for an adversary who stops when it is passed
    planned = cache(lambda books: books.epsilon_if_planned(delta))
    assert worst(Odometer(), run, passed(planned), rounds=12) > delta


def test_a_reading_that_forgets_the_price_of_many_times_would_be_noticed():
    reading = cache(lambda books: books.epsilon_spent(Fraction(1, 20)) / 3)
    assert worst(Odometer(), run, passed(reading), rounds=12) > Fraction(1, 20)


@pytest.mark.parametrize("times", [1, 10, 200])
@pytest.mark.parametrize("delta", ["0.1", "1e-3", "1e-6"])
def test_an_odometer_of_a_plan_is_right_at_its_end(times, delta):
    books = Odometer().spend(Repeated(response(2), times))
    one_by_one = Odometer()
    for _ in range(times):
        one_by_one = one_by_one.spend(response(2))
    for each in (books, one_by_one):
        limit, reached = exp_down(each.epsilon_if_planned(delta)), Fraction(0)
        odds = RATIO**2
        for truths in range(times + 1):
            likely = comb(times, truths) * odds**truths / (1 + odds) ** times
            reached += likely * max(1 - limit / odds ** (2 * truths - times), Fraction(0))
        assert reached <= Fraction(delta)


def test_an_odometer_of_pure_answers_is_never_above_their_sum():
    books = Odometer()
    for count in range(1, 21):
        books = books.spend(PureEvent(Fraction(1, 100)))
        assert (
            books.epsilon_spent("1e-6") == books.epsilon_if_planned("1e-9") == Fraction(count, 100)
        )
    after = books.spend(noise(20))
    assert after.pure is None and after.epsilon_spent("1e-6") > Fraction(1, 5)


def test_an_odometer_reads_less_for_a_plan_and_little_more_than_the_best_order():
    step = Sampled(
        PoissonSample(Fraction(1, 100)),
        ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction("1.1"), Distance(Norm.L2, ONE)),
    )
    books = Odometer().spend(Repeated(step, 10**4))
    # 6.2300 is the published Renyi value (dp-accounting, Opacus)
    assert float(books.epsilon_if_planned("1e-6")) == pytest.approx(6.23, rel=2e-3)
    assert (
        books.epsilon_if_planned("1e-6")
        < books.epsilon_spent("1e-6")
        < Fraction(13, 10) * books.epsilon_if_planned("1e-6")
    )


@pytest.mark.parametrize("delta", [0, -1, 2, float("nan")])
def test_a_reading_needs_a_delta(delta):
    for read in (Odometer().epsilon_spent, Odometer().epsilon_if_planned):
        with pytest.raises(InvalidNumber):
            read(delta)


def test_nothing_spent_reads_as_nothing():
    assert Odometer().epsilon_spent("1e-6") == Odometer().epsilon_if_planned("1e-6") == 0


WIDE = [replace(each, cap=Fraction(10**6)) for each in FILTERS]


@pytest.mark.parametrize("books", [*WIDE, Odometer()], ids=[*NAMES, "Odometer"])
def test_the_time_of_a_charge_does_not_grow(books):
    def spent(times: int, state: object) -> tuple[float, object]:
        start = time.process_time()
        for _ in range(times):
            state = state.spend(event)
            _ = state.epsilon_spent("1e-6") if isinstance(state, Odometer) else state.left
        return time.process_time() - start, state

    event = BoundedRange(Fraction(1, 1000))
    _, state = spent(10, books)
    first, state = spent(1000, state)
    _, state = spent(5000, state)
    last, _ = spent(1000, state)
    assert last < 5 * first + 0.05
    assert first < 0.5

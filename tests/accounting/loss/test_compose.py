# SPDX-License-Identifier: Apache-2.0
"""Sums of losses against exact convolutions; the transform's error against its bound."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import fft
from scipy.fft import next_fast_len

from sfumato.accounting.loss import (
    Atoms,
    Gaussian,
    Lattice,
    Pair,
    Ramp,
    Sampled,
    coarsen,
    compose,
    delta_at,
    discretise,
    epsilon_at,
    merge,
    power,
    product,
)
from sfumato.accounting.loss.compose import even_share, folded
from sfumato.accounting.loss.discretise import Span
from sfumato.accounting.loss.edges import ROUNDOFF
from tests.accounting.loss import oracle

OUTSIDE = 1e-18


def under_p(x: Lattice) -> np.ndarray:
    return x.weights * np.exp(x.log_mass - x.tilt * x.losses)


def apart(x: Lattice, exact: dict[int, float]) -> float:
    """The total difference between weights and exact masses, tilted alike."""
    wanted = np.array([exact.get(x.start + place, 0.0) for place in range(len(x.weights))])
    seen = float(np.abs(x.weights - wanted * np.exp(x.tilt * x.losses - x.log_mass)).sum())
    inside = range(x.start, x.start + len(x.weights))
    beyond = sum(
        mass * math.exp(x.tilt * index * x.step - x.log_mass)
        for index, mass in exact.items()
        if index not in inside
    )
    return seen + beyond


@pytest.mark.parametrize(
    "pair", [Gaussian(0.4), Ramp(0.3, tips=True), Atoms.discrete_laplace(0.1, 3)], ids=str
)
@pytest.mark.parametrize("tilt", [0.0, 2.0])
def test_coarsening_keeps_the_mass_of_both_laws(pair: Pair, tilt: float) -> None:
    x = discretise(pair, 0.02, tilt, outside=OUTSIDE)
    for _ in range(3):
        y = coarsen(x)
        assert y.step == 2 * x.step and y.blur == pytest.approx(x.blur + x.step**2)
        assert under_p(y).sum() == pytest.approx(1, rel=1e-11)
        assert (under_p(y) * np.exp(-y.losses)).sum() == pytest.approx(1, rel=1e-11)
        x = y


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0, 3))
@settings(deadline=None)
def test_the_product_of_losses_holds_the_law_of_their_sum(
    one: int, other: int, tilt: float
) -> None:
    first = discretise(Ramp(one / 300, tips=True), 1 / 512, tilt, outside=OUTSIDE)
    second = discretise(Ramp(other / 300, tips=False), 1 / 512, tilt, outside=OUTSIDE)
    both = product(first, second)
    exact = np.convolve(under_p(first), under_p(second))
    law = {first.start + second.start + place: float(mass) for place, mass in enumerate(exact)}
    assert apart(both, law) <= both.error + 1e-11


def test_many_losses_are_added_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [Ramp(0.01 * (1 + each), tips=bool(each % 2)) for each in range(20)]
    parts = [discretise(pair, 1 / 256, 1.5, outside=OUTSIDE) for pair in pairs]
    exact = np.ones(1)
    for part in parts:
        exact = np.convolve(exact, under_p(part))
    law = {
        sum(part.start for part in parts) + place: float(mass) for place, mass in enumerate(exact)
    }
    good = product(*parts)
    assert apart(good, law) <= good.error + 1e-11
    # one part is forgotten
    assert apart(product(*parts[:-1]), law) > 0.01
    # rows whose transforms err as much as they may, all in the same direction: the stated error
    # covers it
    right = fft.rfft

    def poor(values, size=None):
        there = right(values, size)
        most = (
            compose._TRANSFORM
            * ROUNDOFF
            * math.log2(values.shape[-1])
            * math.sqrt(values.shape[-1])
        )
        there[..., 0] += 0.7 * most * np.linalg.norm(values, axis=-1)
        return there

    monkeypatch.setattr(compose.fft, "rfft", poor)
    bad = product(*parts)
    assert (
        (bad.error - sum(part.error for part in parts)) / 40
        < apart(bad, law) - apart(good, law)
        <= bad.error
    )


@given(st.integers(1, 2**24))
def test_a_quick_length_is_the_next_with_small_factors(least: int) -> None:
    assert compose._quick_length(least) == next_fast_len(least, real=True)


def test_a_number_too_large_for_floats_bounds_nothing() -> None:
    assert compose._exp(1.0) == math.e and compose._exp(1e6) == math.inf


RESPONSE = [(Fraction(1, 10), 2), (Fraction(1, 2), 3), (Fraction(2), 10)]


@pytest.mark.parametrize(("epsilon", "categories"), RESPONSE)
@pytest.mark.parametrize("times", [1, 2, 3, 7, 16, 40])
def test_a_power_holds_the_law_of_the_sum_of_so_many(
    epsilon: Fraction, categories: int, times: int
) -> None:
    law = oracle.composed(oracle.response_law(epsilon, categories), times)
    pair = Atoms.response(float(epsilon), categories)
    x = power(discretise(pair, float(epsilon), 1.0, outside=OUTSIDE), times, 0.0)
    assert apart(x, {index: float(mass.mid()) for index, mass in law.items()}) <= x.error + 1e-12
    for place in range(times):
        at = float(epsilon) * (place + 0.37)
        truth = oracle.delta_of(law, oracle.number(epsilon), at)
        bounds = delta_at(x, at)
        assert bounds.lower <= float(truth.mid()) <= bounds.upper


@pytest.mark.parametrize("times", [100, 5000, 77_777])
@pytest.mark.parametrize("budget", [0.0, 1e-3])
def test_powers_with_windows_and_coarsening_hold_gaussians(times: int, budget: float) -> None:
    mu = Fraction(1, 100)
    x = power(discretise(Gaussian(float(mu)), 1e-3, 1.0, outside=OUTSIDE), times, budget)
    for epsilon in (0.1, 1.0, 3.0):
        truth = float(oracle.gaussian_delta(times * mu**2, epsilon).mid())
        bounds = delta_at(x, epsilon)
        assert bounds.lower <= truth <= bounds.upper
    assert x.blur <= times * 1e-6 / 4 + budget


@pytest.mark.parametrize("times", [1, 2, 3, 5, 40, 256])
def test_a_folded_loss_holds_the_law_of_the_sum(times: int) -> None:
    pair = Sampled(Gaussian(1.2), 0.002)
    step, low, high = 2.0**-13, -(2.0**-7), 0.25
    body = discretise(pair, step, 1.0, outside=OUTSIDE, span=Span(low, high, inside=True))
    tail = discretise(pair, 8 * step, 1.0, outside=OUTSIDE, span=Span(low, high, inside=False))
    seldom = folded(body, tail, times, 1)
    plain = power(discretise(pair, step, 1.0, outside=OUTSIDE), times, 0.0)
    for epsilon in (0.01, 0.1, 0.5, 2.0):
        ours, theirs = delta_at(seldom, epsilon), delta_at(plain, epsilon)
        assert max(ours.lower, theirs.lower) <= min(ours.upper, theirs.upper)
    assert seldom.blur <= times * step**2 / 4 + 3 * (8 * step) ** 2 / 4 + (8 * step) ** 2 / 3


def test_a_fold_that_forgets_the_tail_is_noticed() -> None:
    pair = Sampled(Gaussian(1.2), 0.002)
    step, low, high = 2.0**-13, -(2.0**-7), 0.25
    body = discretise(pair, step, 1.0, outside=OUTSIDE, span=Span(low, high, inside=True))
    plain = power(discretise(pair, step, 1.0, outside=OUTSIDE), 256, 0.0)
    assert delta_at(power(body, 256, 0.0), 0.5).upper < delta_at(plain, 0.5).lower


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12))
@settings(deadline=None)
def test_a_merge_holds_the_law_of_the_sum_of_all(sizes: list[int]) -> None:
    # randomised responses of losses size / 64: all on one lattice, so enumeration is exact
    law: dict[int, arb] = {0: arb(1)}
    with ctx.workprec(oracle.BITS):
        for size in sizes:
            one = oracle.response_law(Fraction(size, 64), 2)
            after: dict[int, arb] = {}
            for here, mass in law.items():
                for sign, each in one.items():
                    after[here + sign * size] = after.get(here + sign * size, arb(0)) + mass * each
            law = after
    parts = [discretise(Atoms.pure(size / 64), 1 / 64, 1.0, outside=OUTSIDE) for size in sizes]
    for budget in (0.0, 1e-2):
        whole = merge(parts, budget)
        for epsilon in (0.0, 0.013, 0.3, 0.9):
            truth = float(oracle.delta_of(law, oracle.number(Fraction(1, 64)), epsilon).mid())
            bounds = delta_at(whole, epsilon)
            assert bounds.lower <= truth * (1 + 1e-12) and truth <= bounds.upper * (1 + 1e-12)
        assert whole.blur <= budget


@given(st.integers(2, 10**6), st.integers(2, 256))
def test_a_share_divides_or_is_what_was_asked(times: int, most: int) -> None:
    share = even_share(times, most)
    assert 2 <= share <= most and (share == most or times % share == 0)


@pytest.mark.parametrize("size", [64, 243, 625, 1000, 1536, 2000])
def test_the_transform_keeps_the_assumed_bound(size: int) -> None:
    # the bound of compose.proof.md, 20 u (1 + log2 N), with room of a factor of ten
    values = np.random.default_rng(size).random(size)
    ours = fft.rfft(values, size)
    with ctx.workprec(120):
        turns = [acb(0, -2 * arb.pi() * place / size).exp() for place in range(size)]
        exact = [
            sum(
                (
                    acb(value) * turns[place * index % size]
                    for index, value in enumerate(values.tolist())
                ),
                acb(0),
            )
            for place in range(0, size // 2, max(1, size // 64))
        ]
    seen = [
        abs(complex(float(true.real.mid()), float(true.imag.mid())) - complex(mine))
        for true, mine in zip(exact, ours[: size // 2 : max(1, size // 64)], strict=True)
    ]
    root_mean = math.sqrt(sum(each**2 for each in seen) / len(seen)) * math.sqrt(size)
    bound = (
        compose._TRANSFORM
        * ROUNDOFF
        * math.log2(size)
        * math.sqrt(size)
        * float(np.linalg.norm(values))
    )
    assert root_mean <= bound / 10


def test_powers_keep_their_stated_error_when_the_transform_is_poor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a transform that errs as much as it may, and where it matters most: the stated error still
    # covers it
    right = fft.rfft

    def poor(values):
        there, size, unit = right(values), len(values), float(np.finfo(values.dtype).eps) / 2
        there[0] += (
            0.7
            * compose._TRANSFORM
            * unit
            * math.log2(size)
            * math.sqrt(size)
            * float(np.linalg.norm(values))
        )
        return there

    x = discretise(Gaussian(0.05), 1e-3, 1.0, outside=OUTSIDE)
    good = power(x, 64, 0.0, lost=1e-20)
    monkeypatch.setattr(compose.fft, "rfft", poor)
    bad = power(x, 64, 0.0, lost=1e-20)
    law = dict(
        zip(range(good.start, good.start + len(good.weights)), under_p(good).tolist(), strict=True)
    )
    difference = apart(bad, law)
    assert (bad.error - 64 * x.error) / 20 < difference <= good.error + bad.error


def test_a_window_that_forgets_what_wraps_around_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = discretise(Gaussian(0.05), 1e-3, 1.0, outside=OUTSIDE)
    right = compose._window

    def narrow(x: Lattice, times: int, lost: float) -> compose._Window:
        window = right(x, times, lost)
        quarter = len(window) // 3
        return compose._Window(window.first + quarter, window.last - quarter, window.lost)

    truth = float(oracle.gaussian_delta(Fraction(4096, 400), 20.0).mid())
    assert truth in delta_at(power(x, 4096, 0.0), 20.0)
    monkeypatch.setattr(compose, "_window", narrow)
    assert truth not in delta_at(power(x, 4096, 0.0), 20.0)


def test_epsilon_of_a_power_is_that_of_the_closed_form() -> None:
    x = power(discretise(Gaussian(0.01), 4e-4, 4.0, outside=OUTSIDE), 10_000, 1e-4)
    bounds = epsilon_at(x, 1e-6)
    assert oracle.gaussian_delta(Fraction(1), bounds.upper) <= oracle.number("1e-6")
    assert oracle.gaussian_delta(Fraction(1), bounds.lower) >= oracle.number("1e-6")
    assert bounds.width <= 2e-3 * bounds.upper


@pytest.mark.parametrize("size", [64, 2187, 4096])
def test_transforms_with_all_digits_err_as_little_for_their_digits(size: int) -> None:
    unit = float(np.finfo(np.longdouble).eps) / 2
    values = np.random.default_rng(size).random(size)
    near = fft.rfft(values.astype(np.longdouble))
    # there and back, and against sums of 160 bits at some places
    back = np.abs(fft.irfft(near, size) - values.astype(np.longdouble)).max()
    bound = (
        compose._TRANSFORM
        * unit
        * math.log2(size)
        * math.sqrt(size)
        * float(np.linalg.norm(values))
    )
    assert float(back) <= bound
    with ctx.workprec(160):
        for place in (1, size // 3, size // 2):
            turn = [
                acb(0, -2 * arb.pi() * (place * index % size) / size).exp() for index in range(size)
            ]
            true = sum(
                (acb(value) * each for value, each in zip(values.tolist(), turn, strict=True)),
                acb(0),
            )
            high, low = (
                float(near[place].real),
                float(near[place].real - np.longdouble(float(near[place].real))),
            )
            assert abs(float((true.real - arb(high) - arb(low)).mid())) <= bound

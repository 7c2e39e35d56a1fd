# SPDX-License-Identifier: Apache-2.0
"""The staircase law: what is drawn, what is stated, what a shift costs, and which step is best."""

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, DiscreteLaplace, DiscreteStaircase, Entropy, staircase
from sfumato.privacy import AdditiveNoise, Distance, Norm
from sfumato.privacy.event import event_from_json, event_to_json
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import PRECISION, ball, is_outward

CASES = [
    (Fraction(1), 1, 1),
    (Fraction(1, 2), 10, 4),
    (Fraction(1, 2), 10, 10),
    (Fraction(3), 7, 1),
    (Fraction(8), 1000, 18),
    (Fraction(1, 5), 3, 2),
    (Fraction(400), 5, 2),
]
EPSILONS = st.fractions(min_value=Fraction(1, 4), max_value=12, max_denominator=100)


class Truth:
    """The law by adding up its weights stair by stair, and a geometric rest below e^-100, in 400
    bits.
    """

    def __init__(self, epsilon: Fraction, sensitivity: int, step: int) -> None:
        self.sensitivity, self.step = sensitivity, step
        with ctx.workprec(PRECISION):
            self.decay = (-ball(epsilon)).exp()
            periods = max(math.ceil(100 / epsilon), 70)
            # of each stair: its first |x|, how many, and what one of them weighs
            self.stairs = [(0, step, arb(1))]
            for k in range(1, periods):
                self.stairs.append((step + (k - 1) * sensitivity, sensitivity, self.decay**k))
            self.rest = sensitivity * self.decay**periods / (1 - self.decay)
            self.total = 2 * self.side(0) - 1

    def side(self, first: int, power: int = 0) -> arb:
        """The sum of |x|^power w(x) over x >= first >= 0."""
        with ctx.workprec(PRECISION):
            found = self.rest if power == 0 else arb(0)
            for start, length, weight in self.stairs:
                begin, end = max(start, first), start + length
                if begin < end:
                    found += weight * (
                        end - begin if power == 0 else sum(x**power for x in range(begin, end))
                    )
            return found

    def pmf(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            stair = abs(x) // self.sensitivity + (abs(x) % self.sensitivity >= self.step)
            return self.decay**stair / self.total

    def above(self, x: int) -> arb:
        """P(X > x)."""
        with ctx.workprec(PRECISION):
            return self.side(x + 1) / self.total if x >= 0 else 1 - self.above(-x - 1)

    def moment(self, power: int) -> arb:
        """E |X|^power."""
        with ctx.workprec(PRECISION):
            return 2 * self.side(0, power) / self.total


def is_stated_outward(noise: DiscreteStaircase, x: int, truth: Truth) -> bool:
    """Whether everything stated about ``x`` holds the truth."""
    pmf, cdf, above, tail = noise.pmf(x), noise.cdf(x), noise.above(x), noise.tail(abs(x))
    with ctx.workprec(PRECISION):
        below, outside = truth.above(-x - 1), 2 * truth.above(abs(x))
    return (
        is_outward(pmf.lower, truth.pmf(x), pmf.upper, 2 * truth.above(0) if x == 0 else None)
        and is_outward(cdf.lower, below, cdf.upper, truth.above(x))
        and is_outward(above.lower, truth.above(x), above.upper, below)
        and is_outward(tail.lower, outside, tail.upper)
    )


@pytest.mark.parametrize(("epsilon", "sensitivity", "step"), CASES)
def test_staircase_statements_are_outward_bounds(
    epsilon: Fraction, sensitivity: int, step: int
) -> None:
    noise, truth = DiscreteStaircase(epsilon, sensitivity, step), Truth(epsilon, sensitivity, step)
    edges = [
        0,
        1,
        step - 1,
        step,
        sensitivity - 1,
        sensitivity,
        sensitivity + step,
        3 * sensitivity + 2,
    ]
    assert all(is_stated_outward(noise, side * x, truth) for x in edges for side in (1, -1))
    spread = noise.variance
    if sensitivity <= 10 and epsilon > Fraction(1, 4):
        assert is_outward(spread.lower, truth.moment(2), spread.upper)


@given(EPSILONS, st.integers(1, 12), st.data())
@settings(deadline=None)
def test_staircase_statements_are_outward_bounds_of_any_step(
    epsilon: Fraction, sensitivity: int, data: st.DataObject
) -> None:
    step, x = data.draw(st.integers(1, sensitivity)), data.draw(st.integers(-60, 60))
    noise, truth = DiscreteStaircase(epsilon, sensitivity, step), Truth(epsilon, sensitivity, step)
    assert is_stated_outward(noise, x, truth)
    for stated in (noise.pmf(x), noise.cdf(x), noise.above(x), noise.tail(abs(x)), noise.variance):
        assert stated.width <= 5e-16 * stated.upper + 5e-324


def test_the_bounds_notice_a_wrong_total(monkeypatch: pytest.MonkeyPatch) -> None:
    noise, truth = DiscreteStaircase(1, 4, 2), Truth(Fraction(1), 4, 2)
    assert is_stated_outward(noise, 3, truth)
    # more weight beyond the centre than there is: 4 / (e - 1) = 2.33
    monkeypatch.setattr(
        DiscreteStaircase, "_further", property(lambda self: (Fraction(5, 2), Fraction(5, 2)))
    )
    assert not is_stated_outward(noise, 3, truth)


def test_the_bounds_notice_a_stair_that_begins_one_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        DiscreteStaircase, "_stair", lambda self, x: (x + self.sensitivity - self.step - 1) // 4
    )
    assert not is_stated_outward(DiscreteStaircase(1, 4, 2), 2, Truth(Fraction(1), 4, 2))


def test_a_sensitivity_of_one_is_the_laplace_law() -> None:
    stairs, laplace = DiscreteStaircase("0.7", 1), DiscreteLaplace(Fraction(10, 7))
    for x in (-9, -1, 0, 1, 30):
        for one, other in ((stairs.pmf(x), laplace.pmf(x)), (stairs.above(x), laplace.above(x))):
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    assert max(stairs.variance.lower, laplace.variance.lower) <= min(
        stairs.variance.upper, laplace.variance.upper
    )


def test_far_out_a_statement_keeps_its_digits() -> None:
    noise, stated = DiscreteStaircase(1, 10, 4), DiscreteStaircase(1, 10, 4).above(6_500)
    truth = Truth(Fraction(1), 10, 4)
    with ctx.workprec(PRECISION):
        # all stairs from 650 on, and the end of stair 650 (its |x| are 6494 to 6503)
        exact = (
            truth.decay**650
            * (3 + 10 * truth.decay / (1 - truth.decay))
            / (2 * (4 + 10 * truth.decay / (1 - truth.decay)) - 1)
        )
    assert is_outward(stated.lower, exact, stated.upper)
    assert stated.width < 1e-15 * stated.upper
    assert noise.tail(-1).lower == 1


def worst_loss(stair: Callable[[int], int], shift: int, reach: int) -> int:
    """How many stairs lie between an integer and the one that a shift takes it to, at the most."""
    return max(abs(stair(x + shift) - stair(x)) for x in range(-reach, reach + 1))


@given(st.integers(1, 8), st.data())
@settings(deadline=None)
def test_a_shift_costs_epsilon_for_each_sensitivity_begun(
    sensitivity: int, data: st.DataObject
) -> None:
    step, shift = data.draw(st.integers(1, sensitivity)), data.draw(st.integers(0, 4 * sensitivity))
    noise = DiscreteStaircase(1, sensitivity, step)
    reach = 3 * sensitivity
    stair = {
        x: round(math.log(noise.pmf(0).lower / noise.pmf(x).lower))
        for x in range(-reach, reach + shift + 1)
    }
    assert worst_loss(stair.__getitem__, shift, reach) == math.ceil(shift / sensitivity)


def test_the_cost_of_a_shift_notices_stairs_of_another_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noise = DiscreteStaircase(1, 5, 2)
    assert worst_loss(lambda x: noise._stair(abs(x)), 5, 40) == 1
    monkeypatch.setattr(DiscreteStaircase, "_stair", lambda self, x: (x + 3) // 4)
    assert worst_loss(lambda x: noise._stair(abs(x)), 5, 40) == 2


def magnitude(epsilon: Fraction, sensitivity: int, step: int) -> arb:
    """E |X|, stair by stair."""
    return Truth(epsilon, sensitivity, step).moment(1)


def is_best(epsilon: Fraction, sensitivity: int) -> bool:
    """Whether no other step has a smaller expected magnitude than the one that is chosen."""
    chosen = DiscreteStaircase(epsilon, sensitivity).step
    with ctx.workprec(PRECISION):
        least = magnitude(epsilon, sensitivity, chosen)
        return not any(
            bool(magnitude(epsilon, sensitivity, r) < least) for r in range(1, sensitivity + 1)
        )


@given(st.fractions(min_value=Fraction(1, 3), max_value=12, max_denominator=50), st.integers(1, 12))
@settings(deadline=None)
def test_the_chosen_step_has_the_least_expected_magnitude(
    epsilon: Fraction, sensitivity: int
) -> None:
    assert is_best(epsilon, sensitivity)


@pytest.mark.parametrize("wrong", [math.floor, round])
def test_the_least_magnitude_notices_a_step_rounded_otherwise(
    wrong: Callable[[float], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(epsilon: Fraction, sensitivity: int) -> int:
        return max(wrong(sensitivity / (1 + math.exp(epsilon / 2))), 1)

    monkeypatch.setattr(staircase, "_least_magnitude", chosen)
    # 10 / (1 + e^(3/2)) = 1.82...: 2; 12 / (1 + e) = 3.23: 4
    assert not (is_best(Fraction(3), 10) and is_best(Fraction(2), 12))


def test_the_chosen_step_of_extreme_arguments() -> None:
    assert DiscreteStaircase("1e-300", 10).step == 5
    assert DiscreteStaircase("1e-300", 11).step == 6
    assert DiscreteStaircase("1e300", 10**50).step == 1
    # 10^30 / (1 + e^50) = 192874984.79...
    assert DiscreteStaircase(100, 10**30).step == 192874985
    assert DiscreteStaircase("1e-30", 10**60).step < 5 * 10**59
    assert DiscreteStaircase(1, 1).step == 1


@given(
    EPSILONS,
    st.integers(1, 30),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000)),
)
@settings(deadline=None)
def test_quantile_and_half_width_are_the_smallest(
    epsilon: Fraction, sensitivity: int, level: Fraction
) -> None:
    noise = DiscreteStaircase(epsilon, sensitivity)
    truth = Truth(epsilon, sensitivity, noise.step)
    x, h = noise.quantile(level), noise.half_width(level)
    with ctx.workprec(PRECISION):
        assert bool(truth.above(-x - 1) >= ball(level))
        assert not bool(truth.above(-x) > ball(level + Fraction(1, 2**50)))
        assert bool(1 - 2 * truth.above(h) >= ball(level))
        assert h == 0 or not bool(1 - 2 * truth.above(h - 1) > ball(level + Fraction(1, 2**50)))


def cdf_of(epsilon: float, sensitivity: int, step: int) -> Callable[[int], float]:
    """The law by adding up doubles over 60 stairs, written down here."""
    reach = 60 * sensitivity if epsilon >= 1 else int(40 * sensitivity / epsilon)
    xs = np.abs(np.arange(-reach, reach + 1))
    sums = np.cumsum(np.exp(-epsilon * (xs // sensitivity + (xs % sensitivity >= step))))
    return lambda x: float(sums[min(max(x + reach, 0), 2 * reach)] / sums[-1])


SOURCES = [pytest.param(SYSTEM, id="system"), pytest.param(Replay(2024), id="replay")]
DRAWN = [
    (Fraction(1), 1, 1),
    (Fraction(1, 2), 10, 4),
    (Fraction(1, 2), 10, 10),
    (Fraction(3), 7, 1),
    (Fraction(4), 20, 3),
]


def follows_its_law(noise: DiscreteStaircase, draws: list[int]) -> None:
    """Fails unless the draws are from the stated law.

    Sure to notice an epsilon that is a fifth larger.
    """
    law = float(noise.epsilon), noise.sensitivity, noise.step
    assert_follows(draws, cdf_of(*law), notices=cdf_of(law[0] * 1.2, *law[1:]))


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize(("epsilon", "sensitivity", "step"), DRAWN)
def test_staircase_draws_follow_the_stated_law(
    epsilon: Fraction, sensitivity: int, step: int, entropy: Entropy
) -> None:
    noise = DiscreteStaircase(epsilon, sensitivity, step)
    follows_its_law(noise, noise.sample(60_000, entropy).tolist())


@pytest.mark.parametrize("case", DRAWN[:4])
def test_single_draws_follow_the_stated_law(case: tuple[Fraction, int, int]) -> None:
    noise = DiscreteStaircase(*case)
    follows_its_law(noise, [noise.sample_one() for _ in range(40_000)])


def zero_counted_twice(noise: DiscreteStaircase, count: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: minus zero is not rejected."""
    drawn = HONEST(noise, count, entropy)
    return np.concatenate((drawn, np.zeros(np.count_nonzero(drawn == 0), np.int64)))


def without_parts(noise: DiscreteStaircase, count: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: the place is uniform in the period."""
    return HONEST(
        DiscreteStaircase(noise.epsilon, noise.sensitivity, noise.sensitivity), count, entropy
    )


def steeper(noise: DiscreteStaircase, count: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: too little noise by a fifth."""
    return HONEST(
        DiscreteStaircase(noise.epsilon * Fraction(6, 5), noise.sensitivity, noise.step),
        count,
        entropy,
    )


HONEST = DiscreteStaircase._proposals


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("broken", [zero_counted_twice, without_parts, steeper])
def test_the_law_notices_a_broken_sampler(
    broken: Callable[..., np.ndarray], entropy: Entropy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DiscreteStaircase, "_proposals", broken)
    noise = DiscreteStaircase(3, 7, 1)
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_its_law(noise, noise.sample(60_000, entropy).tolist())


def test_draws_take_any_shape_and_repeat_under_replay() -> None:
    noise = DiscreteStaircase("0.1", 1000)
    assert noise.sample((3, 4)).shape == (3, 4)
    assert noise.sample((3, 4)).dtype == np.int64
    assert noise.sample(0).tolist() == []
    assert np.array_equal(noise.sample(2000, Replay(1)), noise.sample(2000, Replay(1)))
    assert not np.array_equal(noise.sample(2000), noise.sample(2000))


@pytest.mark.parametrize(
    "noise",
    [DiscreteStaircase("1e-20", 3), DiscreteStaircase(3, 10**30), DiscreteStaircase("1e-9", 2**40)],
)
def test_a_wide_law_is_drawn_in_python_integers(noise: DiscreteStaircase) -> None:
    drawn = noise.sample(300)
    assert drawn.dtype == object
    assert all(isinstance(x, int) for x in drawn)
    width = noise.half_width("0.5")
    assert 0 < sum(abs(x) > width for x in drawn) < 300


def test_the_widest_law_in_int64_does_not_wrap() -> None:
    noise = DiscreteStaircase("1/1024", 2**42)
    drawn = noise.sample(100_000)
    assert drawn.dtype == np.int64
    beyond = noise.half_width("0.999999999")
    assert int(np.abs(drawn).max()) <= 2 * beyond
    assert int(np.abs(drawn).max()) > noise.half_width("0.99")


def test_a_draw_that_no_int64_holds_is_saturated(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = DiscreteStaircase(1, 3**30)
    monkeypatch.setattr(
        type(noise._stairs), "sample", lambda self, count, entropy: np.full(count, 2**62)
    )
    assert set(np.abs(noise.sample(200)).tolist()) == {2**62}


def test_a_million_draws_take_little_memory_beside_the_result() -> None:
    noise = DiscreteStaircase("0.5", 20)
    noise.sample(10_000)
    tracemalloc.start()
    drawn = noise.sample(10**6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - drawn.nbytes < 8 << 20


@pytest.mark.parametrize("epsilon", [0, -1, "0", float("nan"), float("inf"), True, None])
def test_an_epsilon_that_is_not_positive_is_refused(epsilon: object) -> None:
    with pytest.raises(InvalidNumber, match="epsilon"):
        DiscreteStaircase(epsilon, 3)


@pytest.mark.parametrize("sensitivity", [0, -3, 2.0, "3", True, None, Fraction(3)])
def test_a_sensitivity_that_is_not_a_positive_integer_is_refused(sensitivity: object) -> None:
    with pytest.raises(InvalidNumber, match="sensitivity"):
        DiscreteStaircase(1, sensitivity)


@pytest.mark.parametrize("step", [0, -1, 4, 2.0, "2", True])
def test_a_step_outside_the_sensitivity_is_refused(step: object) -> None:
    with pytest.raises(InvalidNumber, match="step"):
        DiscreteStaircase(1, 3, step)


def test_the_form_of_an_event_keeps_a_staircase() -> None:
    event = AdditiveNoise(DiscreteStaircase("1/3", 7), Distance(Norm.LINF, Fraction(7)), 2)
    assert event_from_json(event_to_json(event)) == event

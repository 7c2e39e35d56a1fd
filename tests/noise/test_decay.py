# SPDX-License-Identifier: Apache-2.0
"""e^-t of many: within its error of python-flint's, and coins that no error decides."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato.noise.decay as room
from sfumato.exact.exponential import exp_scaled
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.decay import FRACTION, ONE, coins, decay
from sfumato.noise.real import is_below
from sfumato.testing import Replay, assert_counts_follow
from tests.noise.truth import ball

UNIT = 1 << FRACTION
CELL = UNIT >> 10
# every edge of the coarse and of the fine table, and the middle and last bits of a fine cell
EDGES = np.arange(24 << 10, dtype=np.int64)[:, None] * CELL + np.array([-1, 0, 1, CELL // 2, CELL - 1])
RANDOM = np.random.default_rng(1).integers(0, 24 * UNIT, 20_000)
POINTS = np.concatenate((EDGES.ravel()[1:], RANDOM, [0, 30 * UNIT, 64 * UNIT, 2**62]))


def true_decay(t: int) -> arb:
    """2^31 e^-t, t in units of 2^-42."""
    return ONE * (-arb(fmpq(t, UNIT))).exp()


def worst_error(t: Integers) -> float:
    """The largest error of ``decay`` as a ball that surely holds it, also where the true t is 2^10 units above."""
    with ctx.workprec(100):
        worst = 0.0
        for value, each in zip(room.decay(t).tolist(), t.tolist(), strict=True):
            for truth in (true_decay(each), true_decay(each + 1024)):
                worst = max(worst, float(abs(truth - value).upper()))
    return worst


def test_the_decay_is_within_its_error_of_the_exponential() -> None:
    assert worst_error(POINTS) <= room.ERROR


@given(st.lists(st.integers(0, 24 * UNIT), min_size=1, max_size=50))
@settings(deadline=None, max_examples=50)
def test_the_decay_is_within_its_error_of_any_exponential(t: list[int]) -> None:
    assert worst_error(np.array(t)) <= room.ERROR


def test_the_error_notices_an_error_of_zero_and_a_series_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    # the stated bound is no more than three times what happens
    assert room.ERROR / 3 < worst_error(POINTS)
    few = POINTS[::50]
    monkeypatch.setattr(room, "decay", lambda t: linear(t))
    assert worst_error(few) > room.ERROR


def linear(t: Integers) -> Integers:
    """A broken decay: 1 - r for the rest, not 1 - r + r^2/2."""
    rest = t & CELL - 1
    return decay(t - rest) * (ONE - (rest >> FRACTION - 31)) >> 31


def test_the_decay_leaves_its_argument_as_it_is() -> None:
    t = np.array([0, 5 * UNIT, 2**62])
    decay(t)
    assert t.tolist() == [0, 5 * UNIT, 2**62]
    assert decay(t).tolist()[2] == 0
    assert decay(t).dtype == np.int64


# ---------------------------------------------------------------- coins


class Watched:
    """Replayed bits, and a note of what was filled, in order."""

    def __init__(self, seed: int) -> None:
        self._inner, self.filled = Replay(seed), []

    def bits(self, count: int) -> int:
        return self._inner.bits(count)

    def fill(self, buffer: np.ndarray) -> None:
        self._inner.fill(buffer)
        self.filled.append(buffer.copy())


@pytest.fixture
def exact_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The prefix of each lane that neither sixteen nor thirty-two bits decide."""
    calls: list[int] = []

    def counted(real: room.Callable[[int], tuple[int, int]], entropy: Entropy, *, prefix: int, known: int) -> bool:
        assert known == 32
        calls.append(prefix)
        return is_below(real, entropy, prefix=prefix, known=known)

    monkeypatch.setattr(room, "is_below", counted)
    room._sixteen.cache_clear()
    yield calls
    room._sixteen.cache_clear()


def rates(count: int, top: int = 14) -> list[tuple[int, int]]:
    """Ratios from 0 to ``top``: random, tiny, and on the edges of cells."""
    random = np.random.default_rng(7)
    under = random.integers(1, 10**6, count).tolist()
    over = [int(below * share) for below, share in zip(under, random.random(count) * top, strict=True)]
    return [(0, 1), (1, 10**9), (1, 1024), (1, 32), (1, 1), (12, 1), (23, 1), (60, 1), *zip(over, under, strict=True)]


def scaled(rate: tuple[int, int]) -> int:
    """The rate in units of 2^-42, rounded down."""
    return (rate[0] << FRACTION) // rate[1]


def no_verdict_is_wrong(ratios: list[tuple[int, int]], late: int, seed: int) -> bool:
    """Whether each coin decided by its first bits alone is what its whole uniform number makes it.

    ``t`` is given up to 2^10 units too low, as it may be.
    """
    entropy = Watched(seed)
    t = np.maximum(np.array([scaled(each) for each in ratios]) - late, 0)
    yes = coins(t, ratios.__getitem__, entropy)
    first = entropy.filled[0].view("<u2")
    below_first, below_next = certain(first.tolist(), ratios)
    return bool((yes[below_first == 1]).all()) and not bool(yes[below_next == 1].any())


def certain(first: list[int], ratios: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Where sixteen bits make a yes certain, and where a no."""
    yes, no = [], []
    for drawn, (over, under) in zip(first, ratios, strict=True):
        lower, upper = exp_scaled(over, under, 80)
        yes.append(drawn + 1 << 64 <= lower)
        no.append(drawn << 64 >= upper)
    return np.array(yes, int), np.array(no, int)


@pytest.mark.parametrize("late", [0, 512, 1024])
@pytest.mark.parametrize("seed", range(3))
def test_coins_are_decided_by_sixteen_bits_only_where_these_suffice(late: int, seed: int) -> None:
    assert no_verdict_is_wrong(rates(20_000), late, seed)


def test_verdicts_notice_a_table_of_sixteen_bits_without_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    surely, perhaps = room._sixteen()
    monkeypatch.setattr(room, "_sixteen", lambda: (surely + np.uint16(1), perhaps))
    assert not all(no_verdict_is_wrong(rates(20_000, 0.1), 0, seed) for seed in range(9))
    monkeypatch.setattr(room, "_sixteen", lambda: (surely, perhaps - np.uint16(2)))
    assert not all(no_verdict_is_wrong(rates(20_000, 1), 0, seed) for seed in range(9))


def test_thirty_two_bits_decide_only_where_these_suffice(exact_calls: list[int]) -> None:
    # whatever the second sixteen bits are: at a doubtful first draw, walk over many of them
    for rate in rates(40, 6):
        lower, upper = (int(each) for each in exp_scaled(*rate, 32))
        for prefix in {min(max(border + off, 0), 2**32 - 1) for border in (lower, upper) for off in range(-40, 41, 4)}:
            exact_calls.clear()
            yes = bool(coins(np.array([scaled(rate)]), lambda lane, rate=rate: rate, Fixed(prefix))[0])
            if not exact_calls:
                assert yes == (prefix + 1 <= lower)
                assert yes or prefix >= upper - 1
            else:
                assert exact_calls == [prefix]
                assert abs(prefix - lower) <= 2 * room.ERROR + 20


class Fixed:
    """Sixteen bits, then sixteen more, of one number; then zeros."""

    def __init__(self, prefix: int) -> None:
        self._parts = [prefix >> 16, prefix & 0xFFFF]

    def bits(self, count: int) -> int:
        return 0

    def fill(self, buffer: np.ndarray) -> None:
        buffer.view("<u2")[:] = self._parts.pop(0)


BIASES = [(0, 1), (1, 1000), (1, 3), (1, 1), (5, 2), (9, 1), (13, 1)]
TOSSES = 400_000


def follow_their_bias(entropy: Entropy, tosses: int = TOSSES) -> None:
    """Fails unless as many coins of each bias are true as there should be; notices a bias off by 3% or 10^-4."""
    lanes = np.arange(tosses) % len(BIASES)
    t = np.array([scaled(each) for each in BIASES])[lanes]
    yes = coins(t, lambda lane: BIASES[lanes[lane]], entropy)
    for index, (over, under) in enumerate(BIASES):
        heads, total = int(yes[lanes == index].sum()), int((lanes == index).sum())
        bias = math.exp(-over / under)
        wrong = min(bias * 1.03 + 6e-4, 1.0) if over else 0.99
        assert_counts_follow([total - heads, heads], [1 - bias, bias], notices=[1 - wrong, wrong])


@pytest.mark.parametrize("entropy", [SYSTEM, Replay(3)], ids=["system", "replay"])
def test_many_coins_have_exactly_their_bias(entropy: Entropy) -> None:
    follow_their_bias(entropy)


def test_many_coins_have_exactly_their_bias_where_doubt_is_forced(
    monkeypatch: pytest.MonkeyPatch, exact_calls: list[int]
) -> None:
    # an error of 2^27 of 2^31 leaves about a tenth of the coins to their exact bias
    monkeypatch.setattr(room, "ERROR", 1 << 27)
    follow_their_bias(Replay(4), TOSSES // 4)
    assert len(exact_calls) > TOSSES // 80


def test_the_bias_notices_that_the_exact_comparison_forgets_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch, exact_calls: list[int]
) -> None:
    monkeypatch.setattr(room, "ERROR", 1 << 27)
    monkeypatch.setattr(room, "is_below", lambda real, entropy, *, prefix, known: is_below(real, entropy))
    with pytest.raises(AssertionError, match="counts are"):
        follow_their_bias(Replay(4), TOSSES // 4)


def test_blocks_of_coins_are_told_apart() -> None:
    size = 2 * room._BLOCK + 5
    t = np.where(np.arange(size) % 2, 40 * UNIT, 0)
    yes = coins(t, lambda lane: (40, 1) if lane % 2 else (0, 1), SYSTEM)
    assert yes[::2].all()
    # e^-40
    assert not yes[1::2].any()
    assert coins(np.array([], np.int64), lambda lane: (0, 1), SYSTEM).tolist() == []


def test_the_truth_used_here_is_the_exponential() -> None:
    assert float(true_decay(UNIT) / ONE) == pytest.approx(math.exp(-1), rel=1e-15)
    assert bool(abs(true_decay(UNIT) / ONE - ball(Fraction(-1)).exp()) < 1e-14)

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
from sfumato.noise.lazy_uniform import is_below
from sfumato.testing import Replay, assert_counts_follow
from tests.noise.truth import ball

UNIT = 1 << FRACTION
CELL = UNIT >> 10
# every edge of the coarse and of the fine table, and the middle and last bits of a fine cell
EDGES = np.arange(24 << 10, dtype=np.int64)[:, None] * CELL + np.array(
    [-1, 0, 1, CELL // 2, CELL - 1]
)
RANDOM = np.random.default_rng(1).integers(0, 24 * UNIT, 20_000)
POINTS = np.concatenate((EDGES.ravel()[1:], RANDOM, [0, 30 * UNIT, 64 * UNIT, 2**62]))


def true_decay(t: int) -> arb:
    """2^31 e^-t, t in units of 2^-42."""
    return ONE * (-arb(fmpq(t, UNIT))).exp()


def worst_error(t: Integers) -> float:
    """The largest error of ``decay`` as a ball that surely holds it, also where the true t is 2^10
    units above.
    """
    with ctx.workprec(100):
        worst = 0.0
        for value, each in zip(room.decay(t).tolist(), t.tolist(), strict=True):
            for truth in (true_decay(each), true_decay(each + 1024)):
                worst = max(worst, float(abs(truth - value).upper()))
    return worst


def test_the_decay_is_within_its_error_of_the_exponential() -> None:
    assert worst_error(POINTS) <= room.ERROR


@given(st.lists(st.integers(0, 24 * UNIT), min_size=1, max_size=50))
@settings(deadline=None)
def test_the_decay_is_within_its_error_of_any_exponential(t: list[int]) -> None:
    assert worst_error(np.array(t)) <= room.ERROR


def test_the_error_notices_an_error_of_zero_and_a_series_cut_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the stated bound is no more than three times what happens
    assert worst_error(POINTS) > room.ERROR / 3
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


@pytest.fixture
def exact_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The prefix of each lane that neither sixteen nor thirty-two bits decide."""
    calls: list[int] = []

    def counted(
        real: room.Callable[[int], tuple[int, int]], entropy: Entropy, *, prefix: int, known: int
    ) -> bool:
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
    over = [
        int(below * share) for below, share in zip(under, random.random(count) * top, strict=True)
    ]
    return [
        (0, 1),
        (1, 10**9),
        (1, 1024),
        (1, 32),
        (1, 1),
        (12, 1),
        (23, 1),
        (60, 1),
        *zip(over, under, strict=True),
    ]


def scaled(rate: tuple[int, int]) -> int:
    """The rate in units of 2^-42, rounded down."""
    return (rate[0] << FRACTION) // rate[1]


def table_is_sound(surely: np.ndarray, perhaps: np.ndarray) -> bool:
    """Whether a draw below the first bound is a sure yes, and one above the second a sure no, for
    each t of a cell.

    The last cell stands for all that is beyond; a true t is up to 2^-32 above the one that names
    the cell.
    """
    with ctx.workprec(100):
        far = [arb(fmpq((cell + 1) * CELL + 1024, UNIT)) for cell in range(len(surely) - 1)]
        near = [arb(fmpq(cell, 1024)) for cell in range(len(surely))]
        yes = all(
            bool(arb(int(top)) <= 2**16 * (-a).exp()) for top, a in zip(surely, far, strict=False)
        )
        no = all(
            bool(arb(int(top) + 1) >= 2**16 * (-a).exp())
            for top, a in zip(perhaps, near, strict=True)
        )
        return yes and no and int(surely[-1]) == 0


def test_sixteen_bits_decide_only_where_these_suffice() -> None:
    assert table_is_sound(*room._sixteen())


@pytest.mark.parametrize("cell", [0, 1, 700, 5000])
def test_the_table_notices_a_bound_that_is_one_too_bold(cell: int) -> None:
    one = np.zeros(len(room._sixteen()[0]), np.int64)
    one[cell] = 1
    surely, perhaps = room._sixteen()
    assert not table_is_sound(surely + one, perhaps)
    assert not table_is_sound(surely, perhaps - 2 * one)


def test_the_table_notices_an_error_of_zero(
    monkeypatch: pytest.MonkeyPatch, exact_calls: list[int]
) -> None:
    honest = room.decay
    monkeypatch.setattr(room, "decay", lambda t: honest(t) + room.ERROR)
    assert table_is_sound(*room._sixteen())
    room._sixteen.cache_clear()
    monkeypatch.setattr(room, "decay", lambda t: honest(t) + (1 << 15))
    assert not table_is_sound(*room._sixteen())


def thirty_two_bits_are_enough(exact_calls: list[int]) -> bool:
    """Whether no draw near the border is decided wrongly, and few are left to the exact
    comparison.
    """
    for rate in rates(40, 6):
        lower, upper = exp_scaled(*rate, 80)
        for prefix in {min(max((lower >> 48) + off, 0), 2**32 - 1) for off in range(-60, 61, 4)}:
            exact_calls.clear()
            yes = coins(np.array([scaled(rate)]), lambda lane, rate=rate: rate, Fixed(prefix))[0]
            if exact_calls:
                right = exact_calls == [prefix] and abs(prefix - (lower >> 48)) <= 4 * room.ERROR
            else:
                right = prefix + 1 << 48 <= upper if yes else prefix << 48 >= lower
            if not right:
                return False
    return True


def test_thirty_two_bits_decide_only_where_these_suffice(exact_calls: list[int]) -> None:
    assert thirty_two_bits_are_enough(exact_calls)


def test_thirty_two_bits_notice_an_error_of_zero(
    monkeypatch: pytest.MonkeyPatch, exact_calls: list[int]
) -> None:
    monkeypatch.setattr(room, "ERROR", 0)
    assert not thirty_two_bits_are_enough(exact_calls)


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
    """Fails unless as many coins of each bias are true as there should be.

    Notices 14 standard errors, and 150 coins.
    """
    lanes = np.arange(tosses) % len(BIASES)
    t = np.array([scaled(each) for each in BIASES])[lanes]
    yes = coins(t, lambda lane: BIASES[lanes[lane]], entropy)
    for index, (over, under) in enumerate(BIASES):
        heads, total = int(yes[lanes == index].sum()), int((lanes == index).sum())
        bias = math.exp(-over / under)
        off = 14 * math.sqrt(bias * (1 - bias) / total) + 150 / total
        wrong = bias + off if bias < 0.5 else bias - off
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
    monkeypatch.setattr(
        room, "is_below", lambda real, entropy, *, prefix, known: is_below(real, entropy)
    )
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

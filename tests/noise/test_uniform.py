# SPDX-License-Identifier: Apache-2.0
"""Uniform means uniform: over integers, over all orders and over all subsets."""

import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, Entropy, below_many, permutation, subset, uniform
from sfumato.noise.entropy import Bytes
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import Script, every_path

ORDERS = {order: index for index, order in enumerate(permutations(range(4)))}
SUBSETS = {chosen: index for index, chosen in enumerate(combinations(range(6), 3))}
SOURCES = [pytest.param(SYSTEM, id="system"), pytest.param(Replay(5), id="replay")]


def even(count: int) -> Callable[[int], float]:
    """The cdf of a uniform integer of [0, count)."""
    return lambda x: min(max(x + 1, 0), count) / count


def are_uniform(draws: list[int], count: int, wrong: Callable[[int], float]) -> None:
    """Fails unless the draws are uniform on [0, count)."""
    assert_follows(draws, even(count), notices=wrong)


class Words:
    """An entropy source of given 64-bit words."""

    def __init__(self, words: Sequence[int]) -> None:
        self.rest = list(words)

    def fill(self, buffer: Bytes) -> None:
        size = buffer.size // 8
        buffer.view("<u8")[:], self.rest = self.rest[:size], self.rest[size:]


@pytest.mark.parametrize(
    "bound", [2, 3, 5, 6, 7, 10, 1000, 2**32 - 1, 2**40 + 1, 2**62 + 1, 2**63 - 1, 2**63]
)
def test_every_integer_below_a_bound_has_as_many_words(bound: int) -> None:
    share = 2**64 // bound
    edges = {0, 1, bound // 2, bound - 1}
    # the first and the last word of each value, then those that must be drawn again
    words = [word for value in edges for word in (share * value, share * value + share - 1)]
    beyond = [] if 2**64 % bound == 0 else [share * bound, 2**64 - 1]
    size = len(words)
    drawn = below_many(bound, size, Words(beyond + words + [0] * 64))
    assert drawn.tolist() == [value for value in edges for _ in range(2)]


def remainders(bound: int, shape: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: bytes modulo the bound."""
    drawn = np.empty(shape, np.uint8)
    entropy.fill(drawn)
    return drawn.astype(np.int64) % bound


def by_remainder(bound: int) -> Callable[[int], float]:
    """The cdf of a byte modulo the bound."""
    return lambda x: sum(len(range(value, 256, bound)) for value in range(min(x + 1, bound))) / 256


@pytest.mark.parametrize("entropy", SOURCES)
def test_many_integers_below_a_bound_are_uniform(entropy: Entropy) -> None:
    are_uniform(below_many(100, 20_000, entropy).tolist(), 100, by_remainder(100))
    wide = below_many(3 << 61, 20_000, entropy)
    are_uniform((wide >> 56).tolist(), 96, by_remainder(96))


def test_uniformity_notices_a_modulo_bias() -> None:
    with pytest.raises(AssertionError, match="from the stated law"):
        are_uniform(remainders(100, 20_000, Replay(1)).tolist(), 100, by_remainder(100))


@given(st.integers(1, 2**63), st.integers(0, 50))
@settings(deadline=None)
def test_integers_are_below_their_bound(bound: int, size: int) -> None:
    drawn = below_many(bound, size)
    assert drawn.dtype == np.int64
    assert len(drawn) == size
    assert all(0 <= value < bound for value in drawn.tolist())


def test_integers_take_any_shape() -> None:
    assert below_many(9, (2, 0, 3)).shape == (2, 0, 3)
    assert below_many(1, (2, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert np.array_equal(below_many(10**6, 10**5, Replay(3)), below_many(10**6, 10**5, Replay(3)))


@pytest.mark.parametrize("bound", [0, -1, 2**63 + 1, 2.0, "3", True, None, Fraction(3)])
def test_a_bound_that_cannot_be_is_refused(bound: object) -> None:
    with pytest.raises(InvalidNumber, match="bound"):
        below_many(bound, 3)


@pytest.mark.parametrize("shape", [-1, (2, -1), 1.5, "3", 2**61])
def test_a_shape_that_cannot_be_is_refused(shape: object) -> None:
    with pytest.raises(InvalidNumber, match="shape"):
        below_many(7, shape)


def law_of_orders(key_bits: int) -> dict[tuple[int, ...], Fraction]:
    """The exact law of a shuffle of four by keys of so few bits: every key, and every order of the
    words for ties.
    """
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for keys in product(range(2**key_bits), repeat=4):
        tied = sum(keys.count(key) > 1 for key in keys)
        for ranks in permutations(range(tied)):
            source = Words([key << 64 - key_bits for key in keys] + list(ranks))
            order = uniform._shuffled(4, source, dropped=64 - key_bits)
            law[tuple(order.tolist())] += Fraction(1, 2 ** (4 * key_bits) * factorial(tied))
    return law


UNIFORM = dict.fromkeys(ORDERS, Fraction(1, 24))


@pytest.mark.parametrize("key_bits", [1, 2])
@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_equal_keys_leave_every_permutation_equally_likely(
    block: int, key_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uniform, "_BLOCK", block)
    assert law_of_orders(key_bits) == UNIFORM


def by_index(keys: np.ndarray, entropy: Entropy, *, dropped: int) -> None:
    """A broken shuffle: equal keys stay in the order of their indices."""


def test_the_law_of_orders_notices_ties_broken_by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform, "_shuffle_ties", by_index)
    law = law_of_orders(2)
    assert law != UNIFORM
    assert law[0, 1, 2, 3] == max(law.values()) > Fraction(1, 24)


def stable_orders() -> list[float]:
    """The cdf of the order that a stable sort by three-bit keys gives."""
    counts = [0] * 24
    for keys in product(range(8), repeat=4):
        counts[ORDERS[tuple(sorted(range(4), key=lambda index: keys[index]))]] += 1
    return (np.cumsum(counts) / 8**4).tolist()


STABLE = stable_orders()


def with_ties_by_index(x: int) -> float:
    """The cdf of an order by keys of three bits, ties broken by index."""
    return STABLE[x] if 0 <= x < 24 else float(x >= 24)


@pytest.mark.parametrize("entropy", SOURCES)
def test_every_permutation_is_equally_likely(entropy: Entropy) -> None:
    numbers = [ORDERS[tuple(permutation(4, entropy).tolist())] for _ in range(10_000)]
    are_uniform(numbers, 24, with_ties_by_index)


def test_uniformity_notices_ties_broken_by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform, "_shuffle_ties", by_index)
    entropy = Replay(8)
    numbers = [
        ORDERS[tuple(uniform._shuffled(4, entropy, dropped=61).tolist())] for _ in range(10_000)
    ]
    with pytest.raises(AssertionError, match="from the stated law"):
        are_uniform(numbers, 24, with_ties_by_index)


def test_words_for_ties_that_are_equal_are_drawn_again() -> None:
    keys = np.array(
        [0 << 62 | 0, 0 << 62 | 1, 0 << 62 | 2, 1 << 62 | 3, 2 << 62 | 4, 2 << 62 | 5], np.uint64
    )
    # the tied are 0, 1, 2 and 4, 5; the first words leave 0 and 2 equal, so all are drawn again
    source = Words([7, 1, 7, 0, 1, *[9, 8, 7, 4, 3]])
    uniform._shuffle_ties(keys, source, dropped=62)
    assert (keys & np.uint64(7)).tolist() == [2, 1, 0, 3, 5, 4]
    assert source.rest == []


@given(st.integers(0, 300), st.integers(0, 50))
@settings(deadline=None)
def test_a_permutation_has_each_integer_once(n: int, seed: int) -> None:
    drawn = permutation(n, Replay(seed))
    assert drawn.dtype == np.int64
    assert sorted(drawn.tolist()) == list(range(n))


@pytest.mark.parametrize("n", [-1, 2.0, "3", True, None])
def test_a_permutation_of_what_cannot_be_is_refused(n: object) -> None:
    with pytest.raises(InvalidNumber, match="n = "):
        permutation(n)


def subset_numbers(chosen: Callable[[], np.ndarray], count: int) -> list[int]:
    """Which of the twenty 3-subsets of six came, ``count`` times."""
    return [SUBSETS[tuple(chosen().tolist())] for _ in range(count)]


def smallest_of_too_many(n: int, k: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: more draws than are missing, of which the smallest are kept."""
    found = np.empty(0, np.int64)
    while len(found) < k:
        found = np.union1d(found, uniform.below_many(n, 2 * k, entropy))
    return found[:k]


def of_too_many(x: int) -> float:
    """The cdf of the subset that six draws of six give, if the three smallest are kept.

    Fewer than three never come.
    """
    return TOO_MANY[x] if 0 <= x < 20 else float(x >= 20)


def too_many() -> list[float]:
    counts = [0] * 20
    for path in np.ndindex(*[6] * 6):
        found = tuple(sorted(set(path)))[:3]
        counts[SUBSETS.get(found, 0)] += len(found) == 3
    return (np.cumsum(counts) / sum(counts)).tolist()


TOO_MANY = too_many()


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("dense", [0, 32], ids=["listed", "marked"])
def test_every_subset_is_equally_likely(
    dense: int, entropy: Entropy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uniform, "_DENSE", dense)
    are_uniform(subset_numbers(lambda: subset(6, 3, entropy), 10_000), 20, of_too_many)


def law_of_subsets(
    n: int, k: int, draw: Callable[..., np.ndarray]
) -> dict[tuple[int, ...], Fraction]:
    """The exact mass of each subset over all draws below n, but for the paths that become too
    rare.
    """

    def every_draw(bound: int, size: int, script: Script) -> np.ndarray:
        options = [
            (values, Fraction(1, bound**size)) for values in product(range(bound), repeat=size)
        ]
        return np.array(script.choose(options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "below_many", every_draw)
        return every_path(lambda script: tuple(draw(n, k, script).tolist()), 1e-4)[0]


@pytest.mark.parametrize(
    ("n", "k", "dense"),
    [(4, 1, 0), (5, 2, 0), (4, 2, 0), (5, 2, 32), (4, 2, 32), (4, 3, 32), (5, 4, 32), (4, 4, 32)],
)
def test_every_subset_has_the_same_mass(
    n: int, k: int, dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uniform, "_DENSE", dense)
    law = law_of_subsets(n, k, subset)
    assert set(law) == set(combinations(range(n), k))
    assert len(set(law.values())) == 1
    assert sum(law.values()) > 1 - 1e-2


def test_the_law_of_subsets_notices_draws_beyond_what_is_missing() -> None:
    assert len(set(law_of_subsets(4, 2, smallest_of_too_many).values())) > 1


def test_uniformity_notices_draws_beyond_what_is_missing() -> None:
    entropy = Replay(12)
    with pytest.raises(AssertionError, match="from the stated law"):
        are_uniform(
            subset_numbers(lambda: smallest_of_too_many(6, 3, entropy), 10_000), 20, of_too_many
        )


@given(st.data())
@settings(deadline=None)
def test_a_subset_is_ascending_and_of_its_size(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 400) | st.integers(0, 2**63))
    k = data.draw(st.integers(0, min(n, 300)))
    drawn = subset(n, k).tolist()
    assert len(drawn) == k
    assert all(0 <= value < n for value in drawn)
    assert drawn == sorted(set(drawn))


@pytest.mark.parametrize(
    ("n", "k"),
    [(3, 4), (3, -1), (-1, 0), (2**63 + 1, 1), (3.0, 1), (3, 1.0), (True, 1), (3, True), ("3", 1)],
)
def test_a_subset_that_cannot_be_is_refused(n: object, k: object) -> None:
    with pytest.raises(InvalidNumber):
        subset(n, k)


@pytest.mark.parametrize(
    ("draw", "beside"),
    [
        (lambda: below_many(1000, 10**6), 2),
        (lambda: permutation(10**6), 2),
        (lambda: subset(10**6, 500_000), 3),
    ],
    ids=["integers", "permutation", "subset"],
)
def test_a_million_take_little_memory_beside_the_result(
    draw: Callable[[], np.ndarray], beside: int
) -> None:
    draw()
    tracemalloc.start()
    drawn = draw()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - drawn.nbytes < beside << 20

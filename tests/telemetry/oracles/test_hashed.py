# SPDX-License-Identifier: Apache-2.0
"""Local hashing: each bucket in exact fractions, and a hash that shares buckets as stated."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.telemetry.oracles.hashed import HashedOracle, hashed
from sfumato.testing import Replay, assert_counts_follow
from tests.contracts.oracles import OracleContract, dearest, steps, swap

WHOLE = 1 << 64
SEED = [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03]


def laws(oracle, seed):
    """Given a hash function, the probability of each bucket."""
    found = []
    for value in range(oracle.values):
        counts = steps(lambda word, value=value: oracle.encode(value, [*seed, word]))
        assert sum(counts.values()) == WHOLE
        found.append({report: Fraction(words, WHOLE) for report, words in counts.items()})
    return found


class TestHashed(OracleContract):
    def make(self, values, epsilon):
        return hashed(values, epsilon)

    def swapped(self, oracle):
        return swap(oracle, "truth", "other_weight")

    @pytest.mark.parametrize("epsilon", OracleContract.epsilons)
    def test_every_output_of_every_pair_of_values_is_as_stated(self, epsilon):
        oracle = hashed(8, epsilon)
        for seed in (SEED, [0, 0], [1, 5 << 60], [WHOLE - 1, WHOLE - 1]):
            found = laws(oracle, seed)
            assert dearest(found) <= oracle.event.odds
            assert {max(law.values()) for law in found} == {oracle.own}
        assert dearest(laws(oracle, SEED)) == oracle.event.odds


def test_a_bucket_has_exactly_the_stated_weights():
    oracle = hashed(8, 1)
    (law, *_) = laws(oracle, SEED)
    assert sorted(law.values()) == [Fraction(oracle.other_weight, WHOLE)] * 3 + [oracle.own]


class OneWordMore(HashedOracle):
    """A threshold that is off by one word."""

    __slots__ = ()

    def encode(self, value, words):
        return HashedOracle.encode(self, value, [*words[:2], max(words[2] - 1, 0)])


def test_a_law_that_is_not_the_stated_one_is_noticed():
    good = hashed(8, 1)
    bad = OneWordMore(8, 4, good.truth, good.other_weight)
    assert dearest(laws(bad, SEED)) > good.event.odds


def buckets_of(bits, top, slope, shift, values):
    """The hash family with words of so many bits, of which the top ones are kept."""
    return [(slope * value + shift) % (1 << bits) >> (bits - top) for value in range(values)]


def shares(bits, top, values):
    """How often each pair of hashes occurs, for each pair of values, over all hash functions."""
    family = np.array(
        [
            buckets_of(bits, top, slope, shift, values)
            for slope in range(1 << bits)
            for shift in range(1 << bits)
        ]
    )
    for one in range(values):
        for other in range(one):
            yield np.bincount(family[:, one] << top | family[:, other], minlength=4**top)


def test_the_family_is_pairwise_uniform_where_the_words_are_long_enough():
    # 3 bits of values and 3 kept bits need 3 + 3 - 1 = 5 bits or more
    assert all(len(set(counts.tolist())) == 1 for counts in shares(6, 3, 8))
    # a word that is too short is noticed
    assert not all(len(set(counts.tolist())) == 1 for counts in shares(4, 3, 8))


@pytest.mark.parametrize("buckets", [2, 3, 7])
def test_two_values_share_a_bucket_exactly_as_often_as_stated(buckets):
    truth = WHOLE - (buckets - 1) * (WHOLE // 10)
    oracle = HashedOracle(1 << 20, buckets, truth, WHOLE // 10)
    payloads = oracle.encode_many(np.full(40_000, 3), Replay(4))
    slope, shift = payloads[:, :16].copy().view(">u8").astype(np.uint64).T
    said = payloads[:, 16]
    for value in (0, 5, (1 << 20) - 1):
        mixed = (slope * np.uint64(value) + shift) >> np.uint64(32)
        count = int((mixed * np.uint64(buckets) >> np.uint64(32) == said).sum())
        chance = float(oracle.other)
        wrong = [1.2 * chance, 1 - 1.2 * chance]
        assert_counts_follow([count, 40_000 - count], [chance, 1 - chance], notices=wrong)
    # a uniform hash into g buckets: q + (p - q)/g, but for parts of 2^-32
    wanted = oracle.other_weight / WHOLE + float(oracle.own - Fraction(1, 10)) / buckets
    assert abs(float(oracle.other) - wanted) < 1e-9


def test_the_sums_are_those_of_the_definition():
    for buckets_at in ("0.5", "1", "2", "3"):
        oracle = hashed(60, buckets_at)
        payloads = oracle.encode_many(np.arange(5000) % 60, Replay(8))
        rows = payloads.tolist()
        counts = [0] * 60
        for row in rows[:300]:
            slope, shift = (int.from_bytes(bytes(row[at : at + 8]), "big") for at in (0, 8))
            for value in range(60):
                mixed = (slope * value + shift) % WHOLE >> 32
                counts[value] += mixed * oracle.buckets >> 32 == row[16]
        assert oracle.tally(payloads[:300]).tolist() == counts


def test_many_are_encoded_as_one_is():
    oracle = hashed(300, 1)
    values = np.arange(500) % 300
    buffer = np.empty(12_000, np.uint8)
    Replay(5).fill(buffer)
    words = zip(values.tolist(), *buffer.view("<u8").reshape(3, -1).tolist(), strict=True)
    many = oracle.encode_many(values, Replay(5))
    assert many.tobytes() == b"".join(oracle.encode(value, three) for value, *three in words)


def test_what_is_no_bucket_is_no_report():
    oracle = hashed(300, 1)
    rows = np.zeros((2, 17), np.uint8)
    rows[1, 16] = oracle.buckets
    assert oracle.valid(rows).tolist() == [True, False]
    with pytest.raises(Exception, match="buckets"):
        HashedOracle(300, 1, WHOLE - 1, 1)

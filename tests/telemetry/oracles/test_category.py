# SPDX-License-Identifier: Apache-2.0
"""k-ary randomised response: every output of every value, in exact fractions, and mutants."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.telemetry.oracles.category import CategoryOracle, category
from sfumato.testing import Replay
from tests.contracts.oracles import OracleContract, check_law, law_of_one_word, swap


class TestCategory(OracleContract):
    def make(self, values, epsilon):
        return category(values, epsilon)

    def swapped(self, oracle):
        return swap(oracle, "truth", "other_weight")


def test_a_category_has_exactly_the_stated_weights():
    oracle = category(8, "1.25")
    law = law_of_one_word(oracle, 5)
    whole = 1 << 64
    assert law[b"\x05"] * whole == oracle.truth
    assert {law[bytes([said])] * whole for said in range(8) if said != 5} == {oracle.other_weight}


class OneWordMore(CategoryOracle):
    """A threshold that is off by one word."""

    __slots__ = ()

    def encode(self, value, words):
        if words[0] == self.truth:
            return value.to_bytes(self.size, "big")
        return CategoryOracle.encode(self, value, words)


class Swapped(CategoryOracle):
    """Lies as often as it should tell the truth."""

    __slots__ = ()

    def encode(self, value, words):
        return CategoryOracle.encode(self, (value + 1) % self.values, words)


@pytest.mark.parametrize("mutant", [OneWordMore, Swapped])
def test_a_law_that_is_not_the_stated_one_is_noticed(mutant):
    good = category(8, 1)
    bad = mutant(8, good.truth, good.other_weight)
    try:
        laws = [law_of_one_word(bad, value) for value in range(8)]
    except AssertionError:
        return
    with pytest.raises(AssertionError):
        check_law(bad, laws)


def test_a_weight_that_is_rounded_the_wrong_way_costs_too_much():
    good = category(8, 1)
    bad = replace(good, truth=good.truth + 7, other_weight=good.other_weight - 1)
    assert account(good.event).epsilon <= 1 < account(bad.event).epsilon


def test_many_are_encoded_as_one_is():
    oracle = category(300, 1)
    values = np.arange(2000) % 300
    words = np.frombuffer(_bytes(Replay(5), 16_000), "<u8").tolist()
    many = oracle.encode_many(values, Replay(5))
    one = [oracle.encode(value, [word]) for value, word in zip(values.tolist(), words, strict=True)]
    assert many.tobytes() == b"".join(one)


def test_what_is_no_value_is_no_report():
    oracle = category(300, 1)
    rows = np.array([[1, 43], [1, 44], [255, 255]], np.uint8)
    assert oracle.valid(rows).tolist() == [True, False, False]


def _bytes(entropy, count):
    buffer = np.empty(count, np.uint8)
    entropy.fill(buffer)
    return buffer.tobytes()

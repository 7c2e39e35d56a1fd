# SPDX-License-Identifier: Apache-2.0
"""The made-up devices of the demo: counts that add up, and parts of them."""

from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from sfumato.examples.made_up_devices import DEVICES, SEALED, drawn, left, questions

NOW = 1_800_000_000


def test_each_question_has_its_devices_in_each_period_and_is_open_now() -> None:
    asked = questions(NOW, ec.generate_private_key(ec.SECP256R1()).public_key())
    for question in asked:
        task = question.task
        devices = SEALED if task.aggregator else DEVICES
        assert {sum(counts.values()) for counts in question.truth.values()} == {devices}
        assert min(min(counts.values()) for counts in question.truth.values()) >= 0
        assert task.period_at(NOW) == question.period and task.expires > NOW
    assert [question.task.id for question in asked if question.task.aggregator] == ["dark-mode"]
    assert asked[0].task.min_batch == SEALED


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(0, 400))
def test_a_part_of_the_devices_has_none_that_there_is_not(counts: list[int], wanted: int) -> None:
    every = dict(enumerate(counts))
    total = min(wanted, sum(counts))
    if not sum(counts):
        return
    part = drawn(every, total)
    assert sum(part.values()) == total
    assert all(0 <= part[value] <= every[value] for value in every)
    rest = left(every, part)
    assert all(rest[value] + part[value] == every[value] for value in every)

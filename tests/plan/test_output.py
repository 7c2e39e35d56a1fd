# SPDX-License-Identifier: Apache-2.0
"""The shape of an answer says nothing more than what was asked."""

from dataclasses import FrozenInstanceError

import pytest

from sfumato.plan.output import Item, Order, Output
from sfumato.plan.scalar import Constant, Estimate, Field, Key, leaves


def test_nothing_is_hidden_sorted_cut_or_added_up_unless_asked():
    output = Output((Item("n", Estimate(0)),))
    assert (output.having, output.order, output.limit, output.offset, output.sets) == (
        None,
        (),
        None,
        0,
        (),
    )


def test_a_sort_key_is_ascending_with_null_last_unless_asked():
    order = Order(Key(0))
    assert (order.descending, order.nulls_first) == (False, False)


def test_an_output_cannot_be_changed_after_it_was_charged_for():
    output = Output((Item("n", Estimate(0)),), limit=3, sets=((0,), ()))
    with pytest.raises(FrozenInstanceError):
        output.limit = 4
    assert output == Output((Item("n", Estimate(0)),), limit=3, sets=((0,), ()))
    assert hash(output) == hash(Output((Item("n", Estimate(0)),), limit=3, sets=((0,), ())))


def test_an_output_over_released_numbers_reads_no_row():
    output = Output((Item("n", Estimate(0)), Item("k", Key(0)), Item("c", Constant(1))))
    assert not [
        leaf for item in output.items for leaf in leaves(item.expression) if isinstance(leaf, Field)
    ]

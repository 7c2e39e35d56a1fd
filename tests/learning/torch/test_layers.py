# SPDX-License-Identifier: Apache-2.0
"""Which layers have a rule; the sums themselves are tested with gradients."""

from typing import Any

import pytest
from torch import nn

from sfumato.learning.torch.layers import has_rule, in_lines


@pytest.mark.parametrize(
    ("layer", "ruled"),
    [
        (nn.Conv2d(2, 4, 3, groups=2), False),
        (nn.Conv2d(2, 4, 3, padding="same"), False),
        (nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), False),
        (nn.Conv2d(2, 4, 3, stride=2, dilation=2), True),
        (nn.Conv3d(2, 4, 3), True),
        (nn.Conv3d(2, 4, 3, groups=2), False),
        (nn.RMSNorm(4), True),
        (nn.Embedding(4, 2, max_norm=1.0), False),
        (nn.Embedding(4, 2, padding_idx=0), False),
        (nn.Embedding(4, 2), True),
        (nn.GroupNorm(1, 4), True),
        (nn.LSTM(2, 2), False),
    ],
)
def test_a_layer_has_a_rule_only_with_settings_that_the_rule_knows(layer: Any, ruled: bool) -> None:
    assert has_rule(layer) is ruled


@pytest.mark.parametrize(
    ("layer", "lined"),
    [
        (nn.LSTM(2, 2, batch_first=True), True),
        (nn.LSTM(2, 2, bidirectional=True, proj_size=1), True),
        (nn.GRU(2, 2, 2, batch_first=True, dropout=0.5), False),
        (nn.RNN(2, 2, nonlinearity="relu"), True),
        (nn.LSTMCell(2, 2), True),
        (nn.GRUCell(2, 2), True),
        (nn.RNNCell(2, 2), True),
        (nn.MultiheadAttention(4, 2, batch_first=True), True),
        (nn.MultiheadAttention(4, 2), False),
        (nn.MultiheadAttention(4, 2, batch_first=True, kdim=3), False),
        (nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True), False),
        (nn.MultiheadAttention(4, 2, batch_first=True, add_zero_attn=True), False),
    ],
)
def test_a_layer_is_carried_out_in_lines_only_with_known_settings(layer: Any, lined: bool) -> None:
    assert in_lines(layer) is lined

# SPDX-License-Identifier: Apache-2.0
"""Attention in lines returns what torch's own layer returns."""

from typing import Any

import pytest
import torch
from torch import nn

from sfumato.learning.torch.unrolled import Tape, attention

X = torch.linspace(-2, 2, 5 * 4 * 6).reshape(5, 4, 6).sin()
MASK = torch.ones(4, 4, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("mask", [None, MASK, torch.zeros(4, 4).masked_fill(MASK, -torch.inf)])
def test_attention_is_that_of_torch(mask: Any) -> None:
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    for is_causal in (False, mask is not None):
        others = {"attn_mask": mask, "need_weights": False, "is_causal": is_causal}
        tape = Tape(is_on=True)
        found, weights = attention(layer, tape, X, X, X, **others)
        torch.testing.assert_close(found, layer(X, X, X, **others)[0])
        assert weights is None and len(tape.seen) == 2


def test_other_calls_of_attention_go_to_torch_and_are_not_noted() -> None:
    layer, other = nn.MultiheadAttention(6, 2, batch_first=True), X.flip(0)
    hidden = torch.zeros(5, 4, dtype=torch.bool)
    hidden[:, 3] = True
    for given, others in (
        ((X, other, other), {"need_weights": False}),
        ((X, X, X), {}),
        ((X, X, X), {"need_weights": False, "key_padding_mask": hidden}),
    ):
        tape = Tape(is_on=True)
        found, weights = attention(layer, tape, *given, **others)
        wanted = layer(*given, **others)
        torch.testing.assert_close(found, wanted[0])
        assert (weights is None) == (wanted[1] is None) and not tape.seen

# SPDX-License-Identifier: Apache-2.0
"""Attention computed as affine maps whose inputs and outputs are recorded, as in ``recurrent``.

A torch layer hides what its weights are multiplied with, so the same numbers are computed here from
its parameters. A call that is not supported goes to the layer itself, and the network then uses
``torch.func``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional

from sfumato.learning.torch.layers import Line

# Of products with fewer columns, BLAS may compute a row in another way at another place.
_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Seen:
    """A recorded call of a layer in a forward pass: its input, and the shape and autograd edge of
    its output.
    """

    layer: Any
    inputs: torch.Tensor
    shape: torch.Size
    edge: GradientEdge


@dataclass(slots=True)
class Tape:
    """A recorder of the layer calls in one forward pass of a network, from which the gradients of
    single rows are computed.

    Calls are recorded only while ``is_on``.
    """

    seen: list[Seen] = field(default_factory=list)
    is_on: bool = False

    def noted(
        self,
        layer: Any,
        inputs: torch.Tensor,
        output: torch.Tensor,
    ) -> torch.Tensor:
        """Records a call and returns its output."""
        if not self.is_on:
            return output
        # the edge stays that of this output, whatever is written into it later; not that of a view
        if output._is_view():
            output = output.clone()
        self.seen.append(Seen(layer, inputs, output.shape, get_gradient_edge(output)))
        return output

    def line(
        self,
        weight: nn.Parameter,
        bias: nn.Parameter | None,
        x: torch.Tensor,
    ) -> torch.Tensor:
        """Computes the affine map of these parameters at ``x``, and records the call."""
        found = padded(Line(weight, bias), x)
        if not found.requires_grad:
            return found
        return self.noted(Line(weight, bias), x, found)


def padded(
    layer: Any,
    x: torch.Tensor,
) -> torch.Tensor:
    """Returns the output of a linear layer, computed with zero columns added, so that a row gives
    equal bits at any position of a batch.

    Without padding, BLAS may compute a row differently at another position.
    """
    count = layer.out_features
    extra_outputs = -count % _COLUMNS
    extra_inputs = -layer.in_features % _COLUMNS if x.requires_grad else 0
    if not (extra_outputs or extra_inputs):
        return functional.linear(x, layer.weight, layer.bias)
    weight = functional.pad(layer.weight, (0, extra_inputs, 0, extra_outputs))
    bias = layer.bias
    if bias is not None:
        bias = functional.pad(bias, (0, extra_outputs))
    return functional.linear(functional.pad(x, (0, extra_inputs)), weight, bias)[..., :count]


def attention(
    layer: Any,
    tape: Tape,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *more: Any,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Returns the output of ``nn.MultiheadAttention`` of a sequence to itself (no attention
    weights), computed as affine maps that ``tape`` records.
    """
    mask = others.get("attn_mask")
    if more or not (query is key is value and query.dim() == 3 and _is_known(mask, others)):
        found: tuple[torch.Tensor, torch.Tensor | None] = nn.MultiheadAttention.forward(
            layer, query, key, value, *more, **others
        )
        return found
    rows, positions, width = query.shape
    parts = tape.line(layer.in_proj_weight, layer.in_proj_bias, query)
    heads = parts.reshape(rows, positions, 3, layer.num_heads, -1).permute(2, 0, 3, 1, 4)
    queries, keys, values = heads
    # in torch's layers True hides a position, in its function it shows one
    if mask is not None and mask.dtype is torch.bool:
        mask = ~mask
    seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    joined = seen.transpose(1, 2).reshape(rows, positions, width)
    return tape.line(layer.out_proj.weight, layer.out_proj.bias, joined), None


def _is_known(
    mask: torch.Tensor | None,
    options: Mapping[str, Any],
) -> bool:
    """Whether the call is supported: no attention weights, and at most one mask for all rows."""
    if options.get("need_weights", True) or options.get("key_padding_mask") is not None:
        return False
    if mask is None:
        # a causal mask is given as a mask too
        return not options.get("is_causal", False)
    return bool(mask.dim() == 2)

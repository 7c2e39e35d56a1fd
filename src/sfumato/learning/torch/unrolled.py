# SPDX-License-Identifier: Apache-2.0
"""Attention as lines: affine maps whose inputs and outputs can be noted, as in ``recurrent``.

A layer of torch keeps what its weights multiply to itself. Here the same numbers are computed of
its own parameters, line by line. A call that this does not know goes to the layer itself, whose
network then goes through ``torch.func``.
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
    """What a layer was given, and the shape and the place in the graph of what it returned."""

    layer: Any
    inputs: torch.Tensor
    shape: torch.Size
    edge: GradientEdge


@dataclass(slots=True)
class Tape:
    """What layers see in a pass, while ``is_on``."""

    seen: list[Seen] = field(default_factory=list)
    is_on: bool = False

    def noted(
        self,
        layer: Any,
        inputs: torch.Tensor,
        output: torch.Tensor,
    ) -> torch.Tensor:
        """Notes a call; returns its output."""
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
        """The affine map of these parameters at x, noted."""
        found = padded(Line(weight, bias), x)
        if not found.requires_grad:
            return found
        return self.noted(Line(weight, bias), x, found)


def padded(
    layer: Any,
    x: torch.Tensor,
) -> torch.Tensor:
    """A linear layer by products whose columns are padded with zeros, those of its backward pass
    too.
    """
    count = layer.out_features
    more = -count % _COLUMNS
    wider = -layer.in_features % _COLUMNS if x.requires_grad else 0
    if not (more or wider):
        return functional.linear(x, layer.weight, layer.bias)
    weight = functional.pad(layer.weight, (0, wider, 0, more))
    bias = layer.bias
    if bias is not None:
        bias = functional.pad(bias, (0, more))
    return functional.linear(functional.pad(x, (0, wider)), weight, bias)[..., :count]


def attention(
    layer: Any,
    tape: Tape,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *more: Any,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """``nn.MultiheadAttention`` of a sequence to itself, without the weights of positions."""
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
    others: Mapping[str, Any],
) -> bool:
    """Whether attention is asked without its weights, and with at most one mask for all rows."""
    if others.get("need_weights", True) or others.get("key_padding_mask") is not None:
        return False
    if mask is None:
        # a causal mask is given as a mask too
        return not others.get("is_causal", False)
    return bool(mask.dim() == 2)

# SPDX-License-Identifier: Apache-2.0
"""Attention and recurrent layers as lines: affine maps whose inputs and outputs can be noted.

A layer of torch keeps what its weights multiply to itself. Here the same numbers are computed of
its own parameters, line by line. A call that this does not know goes to the layer itself, whose
network then goes through ``torch.func``.
"""

from collections.abc import Mapping, Sequence
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


def recurrent(
    layer: Any,
    tape: Tape,
    x: torch.Tensor,
    state: Any = None,
) -> tuple[torch.Tensor, Any]:
    """``nn.LSTM`` and ``nn.GRU`` from a state of zeros, position by position."""
    # sequences that are packed are no tensor
    if state is not None or not isinstance(x, torch.Tensor) or x.dim() != 3:
        found: tuple[torch.Tensor, Any] = type(layer).forward(layer, x, state)
        return found
    step = _gru
    if isinstance(layer, nn.LSTM):
        step = _lstm
    lasts = []
    for place in range(layer.num_layers):
        into, back, bias, bias_back = _parameters(layer, place)
        given = tape.line(into, bias, x)
        now = (x.new_zeros(len(x), layer.hidden_size),) * 2
        outputs = []
        for position in range(x.shape[1]):
            again = tape.line(back, bias_back, now[0])
            now = step(given[:, position], again, now)
            outputs.append(now[0])
        x = torch.stack(outputs, 1)
        lasts.append(now)
    hidden, cell = (torch.stack(each) for each in zip(*lasts, strict=True))
    if isinstance(layer, nn.LSTM):
        return x, (hidden, cell)
    return x, hidden


def _parameters(
    layer: Any,
    place: int,
) -> Sequence[Any]:
    """The weights of one of the layers on top of each other, and its biases."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(layer, f"{kind}_l{place}", None) for kind in kinds]


def _lstm(
    given: torch.Tensor,
    again: torch.Tensor,
    now: tuple[torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hochreiter and Schmidhuber (1997), as in torch: the hidden state and the cell."""
    into, forget, fresh, out = _gates(given + again, 4)
    cell = torch.sigmoid(forget) * now[1] + torch.sigmoid(into) * torch.tanh(fresh)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def _gru(
    given: torch.Tensor,
    again: torch.Tensor,
    now: tuple[torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cho et al. (2014), as in torch: the hidden state, twice."""
    reset, keep, fresh = _gates(given, 3)
    reset_too, keep_too, fresh_too = _gates(again, 3)
    kept = torch.sigmoid(keep + keep_too)
    made = torch.tanh(fresh + torch.sigmoid(reset + reset_too) * fresh_too)
    hidden = (1 - kept) * made + kept * now[0]
    return hidden, hidden


def _gates(
    values: torch.Tensor,
    count: int,
) -> Sequence[torch.Tensor]:
    """Equal parts of each row, each without gaps: else a row may get other bits at another place,
    since a function computes numbers side by side otherwise than those at the end of a row.
    """
    parts = values.reshape(len(values), count, -1).transpose(0, 1).contiguous()
    return list(parts)

# SPDX-License-Identifier: Apache-2.0
"""The rules of layers: the blocks of a layer's parameters from its input and output gradient.

One forward and one backward pass to the outputs of layers give the gradient of every row. A layer
without a rule has none here: its network goes through ``materialised``.

Source: Bu et al., "Differentially private optimization on large model at small cost" (2023).
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from sfumato.learning.torch.blocks import Block, Lookups, Products, Vectors

# The gradient of a row is written out if it is so many times as large as what gives it, or less.
_WRITTEN = 2
# The blocks of a layer, by the name of its parameter.
Named: TypeAlias = Iterator[tuple[str, Callable[[], Block]]]


def _products(
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Block:
    """The block of a weight: the gradient of each row itself where that is the least to write."""
    positions, width, height = inputs.shape[1], inputs.shape[2], outputs.shape[2]
    if positions > 1 and width * height <= _WRITTEN * positions * (width + height):
        return Vectors(outputs.transpose(1, 2) @ inputs)
    return Products(inputs, outputs)


def _linear(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    rows = inputs.shape[0]
    into = inputs.reshape(rows, -1, layer.in_features)
    out = outputs.reshape(rows, -1, layer.out_features)
    yield "weight", lambda: _products(into, out)
    yield "bias", lambda: Vectors(out.sum(1))


def _convolution(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    sizes: tuple[Any, ...] = (layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    if isinstance(layer, nn.Conv1d):
        # a line is a picture of height 1
        inputs = inputs.unsqueeze(2)
        sizes = tuple((first, *each) for first, each in zip((1, 1, 0, 1), sizes, strict=True))
    windows = functional.unfold(inputs, *sizes).transpose(1, 2)
    out = outputs.flatten(2).transpose(1, 2)
    yield "weight", lambda: _products(windows, out)
    yield "bias", lambda: Vectors(out.sum(1))


def _embedding(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    rows = inputs.shape[0]
    out = outputs.reshape(rows, -1, layer.embedding_dim)
    yield "weight", lambda: Lookups(inputs.reshape(rows, -1), out, layer.num_embeddings)


def _layer_norm(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    normal = functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    rows, width = inputs.shape[0], layer.weight.numel()
    by_position = (outputs * normal).reshape(rows, -1, width)
    yield "weight", lambda: Vectors(by_position.sum(1))
    yield "bias", lambda: Vectors(outputs.reshape(rows, -1, width).sum(1))


def _group_norm(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    normal = functional.group_norm(inputs, layer.num_groups, eps=layer.eps)
    rows, width = inputs.shape[:2]
    products = (outputs * normal).reshape(rows, width, -1)
    yield "weight", lambda: Vectors(products.sum(2))
    yield "bias", lambda: Vectors(outputs.reshape(rows, width, -1).sum(2))


_RULES: dict[type[nn.Module], Callable[[Any, torch.Tensor, torch.Tensor], Named]] = {
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Embedding: _embedding,
    nn.LayerNorm: _layer_norm,
    nn.GroupNorm: _group_norm,
}


def has_rule(layer: nn.Module) -> bool:
    """Whether the gradients of a layer with these settings have blocks.

    >>> has_rule(nn.Linear(2, 3)), has_rule(nn.LSTM(2, 3))
    (True, False)
    """
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        plain = layer.groups == 1 and layer.padding_mode == "zeros"
        return type(layer) in _RULES and plain and not isinstance(layer.padding, str)
    if isinstance(layer, nn.Embedding):
        plain = layer.max_norm is None and layer.padding_idx is None
        return type(layer) in _RULES and plain and not layer.scale_grad_by_freq
    return type(layer) in _RULES


def blocks_of(
    layer: nn.Module,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    """The blocks of a layer from its input and the gradient of its output; first axis: rows."""
    return _RULES[type(layer)](layer, inputs, outputs)

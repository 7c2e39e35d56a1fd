# SPDX-License-Identifier: Apache-2.0
"""The rules of layers: the gradient of a parameter from the layer's input and output gradient.

With them, one forward and one backward pass give the gradients of all rows (book-keeping). The
contributions of several calls, or of layers that share a parameter, are combined. A network with a
layer that has no rule uses ``Recorded.materialised``.

Source: Bu et al., "Differentially private optimization on large model at small cost" (2023).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from sfumato.learning.torch.blocks import Block, Lookups, Products, Vectors

# The gradient of a row is written out if it is so many times as large as what gives it, or less.
_WRITTEN = 2


@dataclass(frozen=True, slots=True)
class Line:
    """An affine map (weight and bias) that is part of a larger layer, such as an LSTM."""

    weight: nn.Parameter
    bias: nn.Parameter | None

    @property
    def in_features(self) -> int:
        """The number of inputs."""
        return int(self.weight.shape[1])

    @property
    def out_features(self) -> int:
        """The number of outputs."""
        return int(self.weight.shape[0])


@dataclass(frozen=True, slots=True)
class Factors:
    """The gradient of a weight (m, n) as factors.

    They are the inputs (rows, positions, n) and the output gradients (rows, positions, m).
    """

    inputs: torch.Tensor
    outputs: torch.Tensor


@dataclass(frozen=True, slots=True)
class Looked:
    """The gradient of a table of ``size`` vectors: indices (rows, positions), and output
    gradients.
    """

    indices: torch.Tensor
    outputs: torch.Tensor
    size: int


# What one call gives for a parameter; a tensor is the gradient of each row itself.
Part: TypeAlias = Factors | Looked | torch.Tensor
# The parts of a call, by the name of the parameter.
Named: TypeAlias = Iterator[tuple[str, Callable[[], Part]]]


def block_of(parts: Sequence[Part]) -> Block:
    """Returns one ``Block`` of a parameter's gradients, combined from the parts of all layer calls
    that use the parameter.

    Parts of one kind are concatenated along their positions.

    Raises:
        ValueError: parts of several kinds, as of a table that is the weight of a layer too.
    """
    written = [part for part in parts if isinstance(part, torch.Tensor)]
    factors = [part for part in parts if isinstance(part, Factors)]
    looked = [part for part in parts if isinstance(part, Looked)]
    if len(written) == len(parts):
        return Vectors(sum(written[1:], written[0]))
    if len(factors) == len(parts):
        inputs = _beside([part.inputs for part in factors])
        return _products(inputs, _beside([part.outputs for part in factors]))
    if len(looked) == len(parts):
        indices = _beside([part.indices for part in looked])
        return Lookups(indices, _beside([part.outputs for part in looked]), looked[0].size)
    raise ValueError("parts of several kinds")


def _beside(values: Sequence[torch.Tensor]) -> torch.Tensor:
    """Concatenates tensors along their positions."""
    return values[0] if len(values) == 1 else torch.cat(list(values), 1)


def _products(
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Block:
    """Returns the block of a weight: factors, or the gradient of each row if that is smaller."""
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
    yield "weight", lambda: Factors(into, out)
    yield "bias", lambda: out.sum(1)


def _convolution(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    out = outputs.flatten(2).transpose(1, 2)
    yield "weight", lambda: Factors(_windows(layer, inputs), out)
    yield "bias", lambda: out.sum(1)


def _windows(
    layer: Any,
    inputs: torch.Tensor,
) -> torch.Tensor:
    """Returns what a convolution multiplies at each position: (rows, positions, n)."""
    if isinstance(layer, nn.Conv3d):
        return _windows_of_volumes(layer, inputs)
    sizes: tuple[Any, ...] = (layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    if isinstance(layer, nn.Conv1d):
        # a line is a picture of height 1
        inputs = inputs.unsqueeze(2)
        sizes = tuple((first, *each) for first, each in zip((1, 1, 0, 1), sizes, strict=True))
    return functional.unfold(inputs, *sizes).transpose(1, 2)


def _windows_of_volumes(
    layer: Any,
    inputs: torch.Tensor,
) -> torch.Tensor:
    """Returns the windows of a convolution in three dimensions."""
    padding = [each for each in reversed(layer.padding) for _ in range(2)]
    windows = functional.pad(inputs, padding)
    for axis in range(3):
        step = layer.dilation[axis]
        length = step * (layer.kernel_size[axis] - 1) + 1
        windows = windows.unfold(axis + 2, length, layer.stride[axis])[..., ::step]
    # rows, channels, three places and three offsets
    rows, width = windows.shape[0], layer.weight[0].numel()
    return windows.permute(0, 2, 3, 4, 1, 5, 6, 7).reshape(rows, -1, width)


def _embedding(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    rows = inputs.shape[0]
    out = outputs.reshape(rows, -1, layer.embedding_dim)
    yield "weight", lambda: Looked(inputs.reshape(rows, -1), out, layer.num_embeddings)


def _layer_norm(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    normal = functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    rows, width = inputs.shape[0], layer.weight.numel()
    by_position = (outputs * normal).reshape(rows, -1, width)
    yield "weight", lambda: by_position.sum(1)
    yield "bias", lambda: outputs.reshape(rows, -1, width).sum(1)


def _rms_norm(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    normal = functional.rms_norm(inputs, layer.normalized_shape, eps=layer.eps)
    rows, width = inputs.shape[0], layer.weight.numel()
    yield "weight", lambda: (outputs * normal).reshape(rows, -1, width).sum(1)


def _group_norm(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    normal = functional.group_norm(inputs, layer.num_groups, eps=layer.eps)
    rows, width = inputs.shape[:2]
    products = (outputs * normal).reshape(rows, width, -1)
    yield "weight", lambda: products.sum(2)
    yield "bias", lambda: outputs.reshape(rows, width, -1).sum(2)


_RULES: dict[type[Any], Callable[[Any, torch.Tensor, torch.Tensor], Named]] = {
    Line: _linear,
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.Embedding: _embedding,
    nn.LayerNorm: _layer_norm,
    nn.RMSNorm: _rms_norm,
    nn.GroupNorm: _group_norm,
}


RECURRENT: tuple[type[Any], ...] = (nn.RNN, nn.LSTM, nn.GRU)
CELLS: tuple[type[Any], ...] = (nn.RNNCell, nn.LSTMCell, nn.GRUCell)


def has_rule(layer: nn.Module) -> bool:
    """Whether the gradients of single rows can be computed for a layer with these settings by a
    rule for its type.

    >>> has_rule(nn.Linear(2, 3)), has_rule(nn.RNN(2, 3))
    (True, False)
    """
    if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        plain = layer.groups == 1 and layer.padding_mode == "zeros"
        return type(layer) in _RULES and plain and not isinstance(layer.padding, str)
    if isinstance(layer, nn.Embedding):
        plain = layer.max_norm is None and layer.padding_idx is None
        return type(layer) in _RULES and plain and not layer.scale_grad_by_freq
    return type(layer) in _RULES


def in_lines(layer: nn.Module) -> bool:
    """Whether a layer (attention, recurrent) is computed as several affine maps that have a rule,
    or is part of such a layer.

    >>> in_lines(nn.LSTM(2, 3, bidirectional=True)), in_lines(nn.LSTM(2, 3, 2, dropout=0.5))
    (True, False)
    """
    if type(layer) is nn.MultiheadAttention:
        plain = layer.in_proj_weight is not None and layer.bias_k is None
        return plain and bool(layer.batch_first) and not layer.add_zero_attn and not layer.dropout
    if type(layer) in RECURRENT:
        # of a single layer no output is dropped
        return not layer.dropout or layer.num_layers == 1
    # the output of an attention
    return type(layer) in CELLS or type(layer) is NonDynamicallyQuantizableLinear


def parts_of(
    layer: Any,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
) -> Named:
    """Yields, for each parameter of a layer, the factors from which the gradients of single rows
    are computed.

    ``inputs`` are the layer's inputs, ``outputs`` the gradients of the loss at its outputs; the
    first axis of both is rows.
    """
    return _RULES[type(layer)](layer, inputs, outputs)

# SPDX-License-Identifier: Apache-2.0
"""A network with its loss: the gradients of each row of a chunk, in one of two ways.

``bookkeeping`` makes one pass and takes the rules of ``layers``; ``materialised`` computes the
whole gradient of each row with ``torch.func``. Both are functions of the module alone.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from sfumato.learning.features import Floats
from sfumato.learning.torch.blocks import Block, Vectors
from sfumato.learning.torch.layers import blocks_of, has_rule

# Of products with fewer columns, BLAS may compute a row in another way at another place.
_COLUMNS = 16
# Weights beyond it are cut.
_LARGEST = 1e30
Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a layer was given, and the shape and the place in the graph of what it returned."""

    name: str
    layer: nn.Module
    inputs: torch.Tensor
    shape: torch.Size
    edge: GradientEdge


class Recorded:
    """A copy of a module in training mode, whose parameters are set before each step.

    Slots are the parameters that are trained, each once, in the order of ``named_parameters``.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
    ) -> None:
        self.module = copy.deepcopy(module).train()
        self.loss = loss
        for layer in self._lines():
            layer.forward = partial(_padded, layer)
        self.named = {
            name: value for name, value in self.module.named_parameters() if value.requires_grad
        }
        self.sizes = tuple(value.numel() for value in self.named.values())
        self.width = sum(self.sizes)
        self.start = self.weights

    def _lines(self) -> Sequence[Any]:
        """The plain linear layers."""
        return [layer for layer in self.module.modules() if type(layer) is nn.Linear]

    def plain(self) -> nn.Module:
        """The module as it was brought, with the weights of now, in evaluation mode."""
        found = copy.deepcopy(self.module).eval()
        for layer in found.modules():
            vars(layer).pop("forward", None)
        return found

    @property
    def weights(self) -> Floats:
        """The weights of all slots, one after the other."""
        parts = [value.detach().double().flatten() for value in self.named.values()]
        return np.concatenate([np.zeros(0), *(part.numpy() for part in parts)])

    def load(
        self,
        weights: Floats,
    ) -> None:
        """Sets the weights of all slots; what float32 does not hold is cut, what is none is 0."""
        parts = torch.from_numpy(weights).split(self.sizes)
        with torch.no_grad():
            for value, part in zip(self.named.values(), parts, strict=True):
                value.copy_(part.view(value.shape))
                value.clamp_(-_LARGEST, _LARGEST).nan_to_num_()

    def bookkeeping(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[Block]:
        """The blocks of all slots, one pass; every slot must be of a layer with a rule."""
        seen: list[_Seen] = []
        hooks = []
        for name, layer in self.module.named_modules():
            trained = [value for value in layer.parameters(recurse=False) if value.requires_grad]
            if trained and has_rule(layer):
                hooks.append(layer.register_forward_hook(_noted(name, seen)))
        try:
            losses = self.loss(self.module(x), y)
        finally:
            for hook in hooks:
                hook.remove()
        edges = [each.edge for each in seen]
        gradients = list(torch.autograd.grad(losses.sum(), edges, allow_unused=True))
        found: dict[str, Block] = {}
        while seen:
            # what a layer saw is dropped as soon as its blocks are there
            each, gradient = seen.pop(), gradients.pop()
            out = torch.zeros(each.shape) if gradient is None else gradient
            for part, block in blocks_of(each.layer, each.inputs.detach(), out):
                slot = f"{each.name}.{part}".lstrip(".")
                if slot in self.named:
                    found[slot] = block()
        return [found[slot] for slot in self.named]

    def materialised(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[Block]:
        """A vector for each slot and row, by ``torch.func.vmap`` of the gradient."""
        return [Vectors(part) for part in self.vectors(x, y)]

    def vectors(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """The gradients of each row, slot by slot, flattened."""
        rest = {
            name: value.detach()
            for name, value in (*self.module.named_parameters(), *self.module.named_buffers())
            if name not in self.named
        }
        trained = {name: value.detach() for name, value in self.named.items()}

        def of_row(
            values: Any,
            one: torch.Tensor,
            label: torch.Tensor,
        ) -> torch.Tensor:
            output = torch.func.functional_call(
                self.module, ({**rest, **values},), (one.unsqueeze(0),)
            )
            return self.loss(output, label.unsqueeze(0)).sum()

        by_row = torch.func.vmap(torch.func.grad(of_row), in_dims=(None, 0, 0))
        # other kernels of attention have no rule of vmap
        with sdpa_kernel(SDPBackend.MATH):
            found = by_row(trained, x, y)
        return [found[name].flatten(1) for name in self.named]

    def one_by_one(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """The gradients of each row by an ordinary backward pass for each: slow, and right."""
        rows = []
        for row in range(len(x)):
            loss = self.loss(self.module(x[row : row + 1]), y[row : row + 1]).sum()
            values = list(self.named.values())
            parts = torch.autograd.grad(loss, values, allow_unused=True)
            rows.append(
                [
                    torch.zeros(value.numel()) if part is None else part.flatten()
                    for part, value in zip(parts, values, strict=True)
                ]
            )
        return [torch.stack(parts) for parts in zip(*rows, strict=True)]


def _padded(
    layer: Any,
    x: torch.Tensor,
) -> torch.Tensor:
    """A linear layer by a product whose columns are padded with zeros."""
    count = layer.out_features
    more = -count % _COLUMNS
    if not more:
        return functional.linear(x, layer.weight, layer.bias)
    weight = functional.pad(layer.weight, (0, 0, 0, more))
    bias = layer.bias
    if bias is not None:
        bias = functional.pad(bias, (0, more))
    return functional.linear(x, weight, bias)[..., :count]


def _noted(
    name: str,
    seen: list[_Seen],
) -> Callable[..., torch.Tensor]:
    """A hook that notes the input and the output of a layer."""

    def hook(
        layer: nn.Module,
        inputs: Any,
        output: torch.Tensor,
    ) -> torch.Tensor:
        # the edge stays that of this output, whatever is written into it later; not that of a view
        if output._is_view():
            output = output.clone()
        edge = get_gradient_edge(output)
        seen.append(_Seen(name, layer, inputs[0], output.shape, edge))
        return output

    return hook

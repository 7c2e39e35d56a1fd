# SPDX-License-Identifier: Apache-2.0
"""A network with its loss, and two ways to compute the gradient of each row of a chunk.

``bookkeeping`` makes one pass and applies the rules of ``layers``; ``materialised`` computes the
whole gradient of each row with ``torch.func``. Both depend on the module only. Frozen first layers
of a sequence are its stem: their outputs are the same at each step and can be cached.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sfumato.errors import WrongUse
from sfumato.learning.features import Floats
from sfumato.learning.torch.blocks import Block, Vectors
from sfumato.learning.torch.device import device_of, repeatable
from sfumato.learning.torch.layers import (
    CELLS,
    RECURRENT,
    Part,
    block_of,
    has_rule,
    in_lines,
    parts_of,
)
from sfumato.learning.torch.recurrent import one_step, recurrent
from sfumato.learning.torch.unrolled import Seen, Tape, attention, padded

# Weights beyond it are cut.
_LARGEST = 1e30
# Layers that drop out by a setting of their own.
_DROPPING = (nn.MultiheadAttention, *RECURRENT)
Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Brought = TypeVar("Brought")


class Recorded:
    """A copy of a module in training mode that can compute the gradients of single rows; its
    parameters are set before each step.

    Frozen parts keep the mode that they came with. Slots are the trained parameters, each once, in
    the order of ``named_parameters``. All is computed on ``device``, that of the parameters.

    A second copy of the module and loss never sees a row: fitted models are made from it.

    Raises:
        WrongUse: a module or a loss that cannot be copied.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
    ) -> None:
        self._unused: tuple[nn.Module, Loss] = (_copied(module), _copied(loss))
        self.device = device_of(module)
        self.renew()
        self.sizes = tuple(value.numel() for value in self.named.values())
        self.width = sum(self.sizes)
        self.start = self.weights

    def renew(self) -> None:
        """Replaces the copies of module and loss that saw private rows by new ones, at the initial
        weights.
        """
        module, loss = self._unused
        self.module, self.loss = _copied(module), _copied(loss)
        _set_modes(self.module)
        self._tape = Tape()
        for layer in self.module.modules():
            self._replace_forward(layer)
        self.named = _trained(self.module)
        self.stem, self._rest = _divided(self.module)

    def begun(
        self,
        x: torch.Tensor,
    ) -> torch.Tensor:
        """Returns the output of the stem (the frozen first layers) for a batch; the batch itself if
        there is no stem.
        """
        if self.stem is None:
            return x
        with torch.no_grad(), repeatable(self.device):
            found: torch.Tensor = self.stem(x)
        return found

    def _replace_forward(
        self,
        layer: Any,
    ) -> None:
        """Replaces the forward pass of layers: linear ones in padded columns, attention as affine
        maps.
        """
        if "forward" in vars(layer):
            # a method of this layer alone is the user's
            return
        if type(layer) is nn.Linear:
            layer.forward = partial(padded, layer)
        elif type(layer) is nn.MultiheadAttention and in_lines(layer):
            layer.forward = partial(attention, layer, self._tape)
        elif type(layer) in RECURRENT and in_lines(layer):
            layer.forward = partial(recurrent, layer, self._tape)
        elif type(layer) in CELLS and in_lines(layer):
            layer.forward = partial(one_step, layer, self._tape)

    def plain(
        self,
        weights: Floats,
    ) -> nn.Module:
        """Returns the original module with these weights, in evaluation mode on the CPU.

        Guarantees:
            a model holds nothing of rows but its weights
        """
        module, _ = self._unused
        made = _copied(module)
        _fill(_trained(made), weights)
        return made.eval().cpu()

    @property
    def weights(self) -> Floats:
        """The current values of all trained parameters as one vector, in the order of the slots."""
        parts = [value.detach().double().flatten() for value in self.named.values()]
        return np.concatenate([np.zeros(0), *(part.cpu().numpy() for part in parts)])

    def load(
        self,
        weights: Floats,
    ) -> None:
        """Sets all trained parameters to these weights; values are clipped to the range of float32,
        and NaN becomes 0.
        """
        _fill(self.named, weights)

    def bookkeeping(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[Block]:
        """Returns the gradients of each row as one block for each slot, from a single backward
        pass; every slot must belong to a layer with a rule.

        ``x`` is the output of the stem.
        """
        calls, gradients = self._observed(x, y)
        slots = {id(value): name for name, value in self.named.items()}
        calls_left = Counter(slot for call in calls for slot in _slots(call.layer, slots).values())
        slot_parts: dict[str, list[Part]] = {slot: [] for slot in calls_left}
        blocks: dict[str, Block] = {}
        while calls:
            # what a layer saw is dropped as soon as its blocks are there
            call, gradient = calls.pop(), gradients.pop()
            mine = _slots(call.layer, slots)
            out = torch.zeros(call.shape, device=self.device) if gradient is None else gradient
            for name, part in parts_of(call.layer, call.inputs.detach(), out):
                if name in mine:
                    slot_parts[mine[name]].append(part())
            for slot in mine.values():
                calls_left[slot] -= 1
                if not calls_left[slot]:
                    blocks[slot] = block_of(slot_parts.pop(slot))
        return [blocks[slot] for slot in self.named]

    def _observed(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> tuple[list[Seen], list[torch.Tensor | None]]:
        """Returns the inputs of all trained layers in one pass, and the gradients of their
        outputs.
        """
        tape = self._tape
        hooks = []
        for layer in self.module.modules():
            trained = [value for value in layer.parameters(recurse=False) if value.requires_grad]
            if trained and has_rule(layer):
                hooks.append(layer.register_forward_hook(_noted(tape)))
        with repeatable(self.device):
            try:
                tape.is_on = True
                losses = self.loss(self._rest(x), y)
            finally:
                seen, tape.seen, tape.is_on = tape.seen, [], False
                for hook in hooks:
                    hook.remove()
            edges = [each.edge for each in seen]
            return seen, list(torch.autograd.grad(losses.sum(), edges, allow_unused=True))

    def materialised(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[Block]:
        """Returns the gradients of each row as one block of vectors for each slot, computed by
        ``torch.func.vmap``.
        """
        return [Vectors(part) for part in self.vectors(x, y)]

    def vectors(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """Returns the gradients of each row as one matrix for each slot, with a line for each row,
        computed by ``torch.func.vmap``.
        """
        layers = {
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
                self.module, ({**layers, **values},), (one.unsqueeze(0),)
            )
            return self.loss(output, label.unsqueeze(0)).sum()

        by_row = torch.func.vmap(torch.func.grad(of_row), in_dims=(None, 0, 0))
        # other kernels of attention have no rule of vmap
        with repeatable(self.device), sdpa_kernel(SDPBackend.MATH):
            found = by_row(trained, x, y)
        return [found[name].flatten(1) for name in self.named]

    def one_by_one(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[torch.Tensor]:
        """Returns the gradients of each row by a separate ordinary backward pass: slow, the
        reference.
        """
        rows = []
        for row in range(len(x)):
            loss = self.loss(self.module(x[row : row + 1]), y[row : row + 1]).sum()
            values = list(self.named.values())
            parts = torch.autograd.grad(loss, values, allow_unused=True)
            rows.append(
                [
                    (torch.zeros_like(value) if part is None else part).flatten()
                    for part, value in zip(parts, values, strict=True)
                ]
            )
        return [torch.stack(parts) for parts in zip(*rows, strict=True)]


def _copied(brought: Brought) -> Brought:
    """Returns a copy of a module or of a loss.

    Raises:
        WrongUse: it cannot be copied.
    """
    try:
        return copy.deepcopy(brought)
    except Exception as failure:
        raise WrongUse(
            f"A {type(brought).__name__} that cannot be copied: {type(failure).__name__}.",
            allowed="a module and a loss that copy.deepcopy takes",
            remedy="What it keeps of an earlier run may be in a graph of torch: make it anew.",
        ) from failure


def modes_kept(module: nn.Module) -> tuple[str, ...]:
    """Returns the names of a module's frozen parts that are in evaluation mode, and stay so in
    training.

    >>> modes_kept(nn.Sequential(nn.Dropout().eval(), nn.Linear(2, 2).eval()))
    ('0',)
    """
    names = []
    for name, layer in module.named_modules():
        is_trained = any(value.requires_grad for value in layer.parameters())
        if not layer.training and not is_trained:
            names.append(name)
    return tuple(names)


def _set_modes(module: nn.Module) -> None:
    """Sets training mode, except for frozen parts in evaluation mode."""
    names = modes_kept(module)
    module.train()
    for name in names:
        layer: Any = module.get_submodule(name)
        if type(layer) in _DROPPING:
            # trained without dropout is the same function, without the kernels of evaluation
            # mode, which compute several layers at once
            layer.dropout = 0.0
        elif type(layer) is not nn.TransformerEncoderLayer:
            layer.training = False


def _trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """Returns the trained parameters by name."""
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _fill(
    slots: Mapping[str, nn.Parameter],
    weights: Floats,
) -> None:
    """Writes weights into slots, one after the other."""
    parts = torch.from_numpy(weights).split([value.numel() for value in slots.values()])
    with torch.no_grad():
        for value, part in zip(slots.values(), parts, strict=True):
            value.copy_(part.view(value.shape))
            value.clamp_(-_LARGEST, _LARGEST).nan_to_num_()


def _divided(module: nn.Module) -> tuple[nn.Module | None, nn.Module]:
    """Splits a sequence into its stem (frozen first layers; None if there are none) and the other
    layers.

    A sequence with a method or hooks of its own is not split.
    """
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    if type(module) is not nn.Sequential or "forward" in vars(module) or any(hooks):
        return None, module
    count = 0
    for layer in module:
        if any(value.requires_grad for value in layer.parameters()):
            break
        count += 1
    if count in (0, len(module)):
        return None, module
    return module[:count], module[count:]


def _slots(
    layer: Any,
    slots: Mapping[int, str],
) -> dict[str, str]:
    """Returns the slots of a layer's trained parameters, by the layer's own names."""
    found = {}
    for name in ("weight", "bias"):
        slot = slots.get(id(getattr(layer, name, None)))
        if slot is not None:
            found[name] = slot
    return found


def _noted(tape: Tape) -> Callable[..., torch.Tensor]:
    """Returns a hook that records the input and the output of a layer."""

    def hook(
        layer: nn.Module,
        inputs: Any,
        output: torch.Tensor,
    ) -> torch.Tensor:
        return tape.noted(layer, inputs[0], output)

    return hook
